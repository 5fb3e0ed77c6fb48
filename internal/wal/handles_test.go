package wal

import (
	"errors"
	"io"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/test/memfs"
	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// counted counts the open files.
type counted struct {
	vfs.FS
	open, most int
}

type countedFile struct {
	vfs.File
	fsys *counted
}

func (c *counted) count(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	c.open++
	c.most = max(c.most, c.open)
	return countedFile{f, c}, nil
}

func (c *counted) Create(name string) (vfs.File, error)    { return c.count(c.FS.Create(name)) }
func (c *counted) Open(name string) (vfs.File, error)      { return c.count(c.FS.Open(name)) }
func (c *counted) OpenWrite(name string) (vfs.File, error) { return c.count(c.FS.OpenWrite(name)) }

func (f countedFile) Close() error {
	f.fsys.open--
	return f.File.Close()
}

// Only a few files are open, even if there are many segments.
func TestOpenFiles(t *testing.T) {
	fsys := &counted{FS: memfs.New()}
	l := mustOpen(t, fsys, Options{SegmentSize: 512, LogID: 7})
	for range 2000 {
		must(t, l.Reserve(Cost(30)))
	}
	must(t, l.Prepare())
	if st := l.Stats(); st.Preallocated < 100 || fsys.most > 2 {
		t.Errorf("%d preallocated segments, and up to %d open files", st.Preallocated, fsys.most)
	}
	for i := range 2000 {
		l.Unreserve(Cost(30))
		_, err := l.Append(make([]byte, 30))
		must(t, err)
		if i%100 == 0 {
			must(t, l.Flush())
			must(t, l.Sync())
			must(t, l.Prepare())
		}
	}
	if st := l.Stats(); st.Segments < 100 || fsys.most > 4 {
		t.Errorf("%d segments, and up to %d open files", st.Segments, fsys.most)
	}
	for done, at := false, (Pos{Segment: 1}); !done; {
		var err error
		at, done, err = l.ReadSealed(at, 1000, func(Record) error { return nil })
		must(t, err)
	}
	must(t, l.Close())
	if fsys.open != 0 {
		t.Errorf("%d files are still open", fsys.open)
	}
}

// The log removes no file during a copy, even if there are many. A copy opens one file at
// a time.
func TestFilesStay(t *testing.T) {
	fsys := &counted{FS: memfs.New()}
	l := mustOpen(t, fsys, Options{SegmentSize: 512, LogID: 7})
	for range 1000 {
		_, err := l.Append(make([]byte, 30))
		must(t, err)
		must(t, l.Flush())
		must(t, l.Prepare())
	}
	must(t, l.Sync())
	files, err := l.Files()
	must(t, err)
	segments := l.Stats().Segments
	if files.Len() < 50 || fsys.most > 4 {
		t.Fatalf("%d of %d segments to copy, with up to %d open files", files.Len(), segments, fsys.most)
	}
	for range 40 {
		must(t, l.RemoveOldest())
	}
	must(t, errors.Join(l.Flush(), l.Sync()))
	l.RemovalPending() // passes the durable removals to Prepare
	must(t, l.Prepare())
	if l.NeedsPrepare() {
		t.Error("while files are copied, Prepare is called again and again")
	}
	copied := 0
	must(t, files.Each(func(_ string, size int64, content io.Reader) error {
		copied++
		n, err := io.Copy(io.Discard, content)
		if n != size {
			t.Errorf("%d bytes instead of %d", n, size)
		}
		return err
	}))
	if copied != files.Len() || fsys.most > 4 {
		t.Errorf("%d of %d segments were copied, and up to %d files were open", copied, files.Len(), fsys.most)
	}
	names := func() int {
		all, err := fsys.List(l.dir)
		must(t, err)
		return len(all)
	}
	before := names()
	files.Close()
	must(t, l.Prepare())
	if after := names(); after != before-40 {
		t.Errorf("%d files before, %d after; 40 are not needed", before, after)
	}
	must(t, l.Close())
}
