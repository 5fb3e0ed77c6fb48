package wal

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// BenchmarkPreallocation measures a write and a sync on space that was reserved in three
// ways. The result determines how segments are created: see fill. TMPDIR selects the
// disk.
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
