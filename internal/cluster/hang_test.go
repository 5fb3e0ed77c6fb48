package cluster

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// A hang makes the syncs of a disk wait.
type hang struct {
	mu    sync.Mutex
	until chan struct{} // nil: it does not hang
}

func (h *hang) begin() (end func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	until := make(chan struct{})
	h.until = until
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.until = nil
		close(until)
	}
}

func (h *hang) wait() {
	h.mu.Lock()
	until := h.until
	h.mu.Unlock()
	if until != nil {
		<-until
	}
}

// hangFS is a disk that can hang.
type hangFS struct {
	vfs.FS
	hang *hang
}

type hangFile struct {
	vfs.File
	hang *hang
}

func (f *hangFile) Sync() error {
	f.hang.wait()
	return f.File.Sync()
}

func (d *hangFS) Create(name string) (vfs.File, error) { return d.file(d.FS.Create(name)) }

func (d *hangFS) OpenWrite(name string) (vfs.File, error) { return d.file(d.FS.OpenWrite(name)) }

func (d *hangFS) file(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &hangFile{f, d.hang}, nil
}

// A leader whose disk hangs commits with the disks of the others, hands the leadership over, and comes back when its
// disk does. The disk of a follower holds nobody up.
func TestDiskHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 3)
		time.Sleep(time.Second)
		l := w.leader()
		end := w.machineOf(l).hang.begin()
		began := time.Now()
		for time.Since(began) < 500*time.Millisecond {
			_, err := w.put(l, "mail", engine.Spec{TTR: 60}, "while the leader's disk hangs")
			w.must(err)
		}
		if w.leader() != l {
			t.Error("the leader did not even wait half a second for its disk")
		}
		w.until("another one leads", func() bool { m := w.whoLeads(); return m != nil && m != l })
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("the leader kept the leadership for %v of fake time", took)
		}
		for range 50 { // the disk of a follower hangs
			_, err := w.put(w.leader(), "mail", engine.Spec{TTR: 60}, "while a follower's disk hangs")
			w.must(err)
		}
		end()
		w.audit()
		w.close()
	})
}

// A leader whose disk hangs, and that has nobody to hand over to, acknowledges nothing until its disk comes back.
func TestOnlyDiskHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 1)
		time.Sleep(time.Second)
		l := w.leader()
		end := w.machines[0].hang.begin()
		put := make(chan error)
		go func() {
			_, err := w.put(l, "mail", engine.Spec{TTR: 60}, "while the only disk hangs")
			put <- err
		}()
		time.Sleep(5 * time.Second)
		if w.acknowledged() > 0 {
			t.Error("a put was acknowledged that is on no disk")
		}
		end()
		w.must(<-put)
		w.audit()
		w.close()
	})
}
