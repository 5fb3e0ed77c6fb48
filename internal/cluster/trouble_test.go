package cluster

import (
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// A trouble is a fault of a disk: it hangs or is full.
type trouble struct {
	mu    sync.Mutex
	until chan struct{}                   // nil: nothing waits
	waits func(name string) bool          // writes to such a file wait; nil: syncs of all do
	bad   func(name string) bool          // such a file cannot be opened for reading; nil: all can
	full  func(name string) bool          // such a file cannot be made, or become larger; nil: all can
	late  func(name string) time.Duration // a sync of such a file is answered so much too soon; nil: none is
	pace  int64                           // bytes that are written in a second; 0: no limit
	ready time.Time                       // when all is written that was begun; with pace
}

// slow lets the disk write so many bytes a second.
func (h *trouble) slow(pace int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pace = pace
}

// write takes the time that so many bytes take.
func (h *trouble) write(bytes int) {
	h.mu.Lock()
	if h.pace == 0 {
		h.mu.Unlock()
		return
	}
	if now := time.Now(); h.ready.Before(now) {
		h.ready = now
	}
	h.ready = h.ready.Add(time.Duration(int64(bytes) * int64(time.Second) / h.pace))
	ready := h.ready
	h.mu.Unlock()
	time.Sleep(time.Until(ready))
}

// hang lets the writes to some files wait, or, with nil, the syncs of all.
func (h *trouble) hang(writes func(name string) bool) (end func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.until, h.waits = make(chan struct{}), writes
	return h.goOn
}

// goOn ends what hang has begun, if it has not ended yet.
func (h *trouble) goOn() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.until != nil {
		close(h.until)
		h.until = nil
	}
}

// spoil makes some files unreadable. With nil, all are readable.
func (h *trouble) spoil(bad func(name string) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.bad = bad
}

// fill leaves no room for some files. With nil, all have room.
func (h *trouble) fill(full func(name string) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.full = full
}

// wait waits if a sync hangs or, with a name, a write.
func (h *trouble) wait(name string) {
	h.mu.Lock()
	until := h.until
	if name != "" && (h.waits == nil || !h.waits(name)) || name == "" && h.waits != nil {
		until = nil
	}
	h.mu.Unlock()
	if until != nil {
		<-until
	}
}

func (h *trouble) room(name string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.full != nil && h.full(name) {
		return syscall.ENOSPC
	}
	return nil
}

// troubledFS is a disk that has trouble.
type troubledFS struct {
	vfs.FS
	*trouble
}

type troubledFile struct {
	vfs.File
	*trouble
	name string
}

func (f *troubledFile) Sync() error {
	f.wait("")
	if f.late != nil {
		if d := f.late(f.name); d > 0 {
			time.AfterFunc(d, func() { f.File.Sync() }) // it may be closed by then
			return nil
		}
	}
	return f.File.Sync()
}

func (f *troubledFile) WriteAt(b []byte, at int64) (int, error) {
	f.wait(f.name)
	size, _, err := f.File.Stat()
	if err == nil && at+int64(len(b)) > size {
		err = f.room(f.name)
	}
	if err != nil {
		return 0, err
	}
	f.write(len(b))
	return f.File.WriteAt(b, at)
}

func (d *troubledFS) Create(name string) (vfs.File, error) {
	if err := d.room(name); err != nil {
		return nil, err
	}
	f, err := d.FS.Create(name)
	return d.file(name, f, err)
}

func (d *troubledFS) Open(name string) (vfs.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.bad != nil && d.bad(name) {
		return nil, syscall.EIO
	}
	return d.FS.Open(name)
}

func (d *troubledFS) OpenWrite(name string) (vfs.File, error) {
	f, err := d.FS.OpenWrite(name)
	return d.file(name, f, err)
}

func (d *troubledFS) file(name string, f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &troubledFile{f, d.trouble, name}, nil
}

func isOfJournal(name string) bool { return !isOfLog(name) }

func isOfLog(name string) bool { return strings.Contains(name, "/cluster/") }
