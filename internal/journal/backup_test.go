package journal

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/test/memfs"
	"github.com/beanpole-mq/beanpole/internal/vfs"
	"github.com/beanpole-mq/beanpole/internal/wal"
)

// A chain is a queue whose worker puts the next job, and then deletes the current one. It
// always contains one job or two successive ones.
type chain struct {
	journal *Journal
	broker  *broker.Broker
	last    uint64 // the newest job
}

func newChain(t *testing.T, fsys vfs.FS, dir string) *chain {
	j := New(Options{SegmentSize: 4096})
	eng := engine.New(engine.Options{Logged: true, Admit: j.Admit})
	if _, err := j.Open(fsys, dir, eng); err != nil {
		t.Fatal(err)
	}
	c := &chain{journal: j, broker: broker.New(eng, broker.Options{Log: j})}
	c.step(t)
	return c
}

func (c *chain) step(t *testing.T) {
	t.Helper()
	before := c.last
	err := errors.Join(
		c.broker.Call(func(e *engine.Engine, now int64) {
			c.last, _ = e.PutInto(now, []byte("a"), engine.Spec{TTR: 1}, bytes.Repeat([]byte("x"), 300))
		}),
		c.broker.Call(func(e *engine.Engine, now int64) { e.DeleteJob(before) }))
	if err != nil {
		t.Error(err)
	}
}

// checkCopy checks a copy of a chain. Its jobs must not be older than first.
func checkCopy(t *testing.T, fsys vfs.FS, dir string, first uint64) {
	t.Helper()
	e := engine.New(engine.Options{})
	if _, err := Load(fsys, dir, e, 0); err != nil {
		t.Fatal(err)
	}
	var ids []uint64
	for c := range e.Snapshots {
		ids = append(ids, c.ID)
	}
	if len(ids) == 0 || len(ids) > 2 || len(ids) == 2 && ids[0]+1 != ids[1] && ids[0] != ids[1]+1 || e.LastID() < first {
		t.Errorf("the copy has the jobs %d, last id %d; want one or two successive jobs, from %d on", ids, e.LastID(), first)
	}
}

// A backup contains the queue at some time after the start of the backup, regardless of
// writes and cleaning during the backup.
func TestBackupOfBusyQueue(t *testing.T) {
	dir := t.TempDir()
	c := newChain(t, vfs.OS, dir)
	for i := range 30 {
		for range i {
			c.step(t)
		}
		acknowledged := c.last
		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			for {
				select {
				case <-stop:
					return
				default:
					c.step(t)
				}
			}
		}()
		b, err := c.journal.Backup()
		if err != nil {
			t.Fatal(err)
		}
		r, w := io.Pipe()
		go func() { w.CloseWithError(b.Write(w)) }()
		to := t.TempDir()
		report, err := ReadBackup(vfs.OS, to, r)
		b.Close()
		close(stop)
		<-stopped
		if err != nil || report.Records == 0 {
			t.Fatalf("%+v, %v", report, err)
		}
		checkCopy(t, vfs.OS, to, acknowledged)
	}
	if err := c.broker.Close(); err != nil {
		t.Error(err)
	}
}

// ReadBackup returns an error for a truncated archive or one with other contents.
func TestReadBackupInvalid(t *testing.T) {
	disk := memfs.New()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(disk.Mkdir("/from"))
	c := newChain(t, disk, "/from")
	for range 50 {
		c.step(t)
	}
	b, err := c.journal.Backup()
	must(err)
	defer b.Close()
	var archive bytes.Buffer
	must(b.Write(&archive))
	n := 0
	read := func(r io.Reader) error {
		n++
		dir := fmt.Sprintf("/to%d", n)
		must(disk.Mkdir(dir))
		_, err := ReadBackup(disk, dir, r)
		if err == nil {
			checkCopy(t, disk, dir, c.last)
		}
		return err
	}
	must(read(bytes.NewReader(archive.Bytes())))
	for cut := 0; cut < archive.Len()-1024; cut += 300 { // an archive ends with 1024 bytes of 0
		part := io.MultiReader(bytes.NewReader(archive.Bytes()[:cut]), brokenReader{})
		if err := read(part); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("cut after %d bytes of %d: %v", cut, archive.Len(), err)
		}
	}
	for name, err := range map[string]error{
		"text":  read(bytes.NewReader(bytes.Repeat([]byte("text"), 1000))),
		"empty": read(bytes.NewReader(nil)),
		"path":  read(archiveOf(tar.Header{Name: "../beanpole.1.wal"})),
		"other": read(archiveOf(tar.Header{Name: "lock"})),
		"link":  read(archiveOf(tar.Header{Name: "beanpole.1.wal", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"})),
	} {
		if !errors.Is(err, ErrNotBackup) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := read(archiveOf(tar.Header{Name: "beanpole.0000000000000007.wal", Size: 100})); !errors.Is(err, wal.ErrCorrupt) {
		t.Errorf("a segment of something: %v", err)
	}
	must(c.broker.Close())
}

// brokenReader simulates an interrupted connection.
type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func archiveOf(head tar.Header) io.Reader {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	w.WriteHeader(&head)
	w.Write(bytes.Repeat([]byte("x"), int(head.Size)))
	w.Close()
	return &b
}

// A backup of a member's journal contains a journal for a single server.
func TestBackupOfMember(t *testing.T) {
	disk := memfs.New()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(errors.Join(disk.Mkdir("/from"), disk.Mkdir("/to")))
	j, _ := openMember(t, disk, "/from")
	put := engine.Change{Kind: engine.JobPut, ID: 1, Tube: "mail", State: engine.Ready, TTR: 60, Body: []byte("a job")}
	must(j.AppendCommitted([]engine.Change{put}, Applied{Index: 7, Term: 3, Stamp: epoch}))
	_, err := j.Flush()
	must(err)
	b, err := j.Backup()
	must(err)
	defer b.Close()
	var archive bytes.Buffer
	must(b.Write(&archive))
	_, err = ReadBackup(disk, "/to", &archive)
	must(err)
	e := engine.New(engine.Options{Logged: true})
	single := New(Options{SegmentSize: segment})
	_, err = single.Open(disk, "/to", e)
	must(err)
	if e.Stats().Ready != 1 {
		t.Errorf("the backup has %d jobs", e.Stats().Ready)
	}
	must(errors.Join(single.Close(), j.Close()))
}
