package wal

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/test/memfs"
	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// discard is a file system whose segments take writes and forget them, so that
// what is measured is the log's own work.
type discard struct{ *memfs.FS }

func (d discard) Create(name string) (vfs.File, error) {
	f, err := d.FS.Create(name)
	return discardFile{f}, err
}

func (d discard) OpenWrite(name string) (vfs.File, error) {
	f, err := d.FS.OpenWrite(name)
	return discardFile{f}, err
}

type discardFile struct{ vfs.File }

func (discardFile) WriteAt(p []byte, off int64) (int, error) { return len(p), nil }
func (discardFile) Preallocate(int64) error                  { return nil }
func (discardFile) Truncate(int64) error                     { return nil }
func (discardFile) Stat() (int64, bool, error)               { return 1 << 40, true, nil }
func (discardFile) Size() (int64, error)                     { return MaxSegmentSize, nil }
func (discardFile) Sync() error                              { return nil }

// Reading a log of 64 MB from the page cache, checksums included, with a decode
// that does nothing.
func BenchmarkReplay(b *testing.B) {
	for _, size := range []int{100, 4000} {
		for _, parallel := range []int{1, 2} {
			b.Run(fmt.Sprintf("record=%d/parallel=%d", size, parallel), func(b *testing.B) {
				dir := b.TempDir()
				l, err := Open(vfs.OS, dir, Options{})
				must(b, err)
				_, _, err = replayAll(l)
				must(b, err)
				p := make([]byte, size)
				for l.Stats().Bytes < 64<<20 {
					_, err := l.Append(p)
					must(b, err)
				}
				b.SetBytes(l.Stats().Bytes)
				must(b, l.Close())
				for b.Loop() {
					l, err := Open(vfs.OS, dir, Options{ReadOnly: true, Parallel: parallel})
					must(b, err)
					n := 0
					_, err = Replay(l, func(r []Record) (int, error) { return len(r), nil }, func(k int) error {
						n += k
						return nil
					})
					must(b, err)
					must(b, l.Close())
				}
			})
		}
	}
}

// A write and a sync, on space that was reserved in three ways. It decides how
// segments are made: see fill. TMPDIR says which disk is measured.
//
//	go test -run=^$ -bench=Preallocation -benchtime=1500x ./internal/wal
func BenchmarkPreallocation(b *testing.B) {
	const size = 10 << 20
	for _, method := range []string{"none", "fallocate", "zeros"} {
		for _, n := range []int{128, 4096, 16384} {
			b.Run(fmt.Sprintf("method=%s/write=%d", method, n), func(b *testing.B) {
				dir := b.TempDir()
				p := make([]byte, n)
				for i := range p {
					p[i] = byte(i)
				}
				var f vfs.File
				off := int64(size)
				for i := 0; b.Loop(); i++ {
					if off+int64(n) > size {
						b.StopTimer()
						if f != nil {
							f.Close()
						}
						f = preallocated(b, filepath.Join(dir, fmt.Sprint(i)), method, size)
						off = 0
						b.StartTimer()
					}
					if _, err := f.WriteAt(p, off); err != nil {
						b.Fatal(err)
					}
					if err := f.Sync(); err != nil {
						b.Fatal(err)
					}
					off += int64(n)
				}
				f.Close()
			})
		}
	}
}

func preallocated(b *testing.B, name, method string, size int64) vfs.File {
	b.Helper()
	f, err := vfs.OS.Create(name)
	must(b, err)
	switch method {
	case "fallocate":
		must(b, f.Preallocate(size))
	case "zeros":
		_, err := f.WriteAt(make([]byte, size), 0)
		must(b, err)
	}
	must(b, f.Sync())
	return f
}
