package cluster

import (
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// A trouble is a fault of a disk: the disk hangs, is full, or fails.
type trouble struct {
	mu    sync.Mutex
	until chan struct{}                   // nil if no operation waits
	waits func(name string) bool          // whether writes to a file wait; nil means that all syncs wait
	bad   func(name string) bool          // whether a file cannot be opened for reading; nil means that all can
	full  func(name string) bool          // whether a file cannot be created or grow; nil means that all can
	late  func(name string) time.Duration // time by which a sync of a file is acknowledged too early; nil means 0
	pace  int64                           // bytes written per second; 0 means no limit
	ready time.Time                       // time at which all started writes are done; used with pace
}

// slow limits the disk to a number of bytes per second.
func (h *trouble) slow(pace int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pace = pace
}

// write waits for the duration of a write of the given number of bytes.
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

// hang makes the writes to some files wait or, with nil, all syncs.
func (h *trouble) hang(writes func(name string) bool) (end func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.until, h.waits = make(chan struct{}), writes
	return h.goOn
}

// goOn ends the effect of hang, if it has not ended yet.
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

// fill leaves no space for some files. With nil, there is space for all files.
func (h *trouble) fill(full func(name string) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.full = full
}

// wait waits if a sync hangs or, with a name, if a write to the file hangs.
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

// A troubledFS is a file system with a trouble.
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
			time.AfterFunc(d, func() { f.File.Sync() }) // the file might be closed by then
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
