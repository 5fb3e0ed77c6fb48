package memfs

import (
	"io"
	"io/fs"
	"syscall"

	"github.com/beanpole-mq/beanpole/internal/vfs"
)

const blockSize = 4096 // unit of allocation, in bytes

// An inode is a file, regardless of its names.
type inode struct {
	data      []byte
	allocated []bool // whether each block is written or preallocated
	durable   []byte // data at the last sync
	pending   []edit // changes of data since the last sync, in order

	links int // number of names
	opens int // number of handles
}

// An edit is a write or, when data is nil, a change of the size.
type edit struct {
	off  int64
	data []byte
	size int64 // size of the file after the edit
}

func (n *inode) blocks() int64 {
	var count int64
	for _, a := range n.allocated {
		if a {
			count++
		}
	}
	return count
}

// note records an edit and applies it.
func (n *inode) note(e edit) {
	n.pending = append(n.pending, e)
	n.data = e.apply(n.data)
}

func (e edit) apply(data []byte) []byte {
	if e.size <= int64(len(data)) {
		if e.data == nil {
			clear(data[e.size:]) // a later, longer file must read zeros there
			data = data[:e.size]
		}
	} else if e.size <= int64(cap(data)) {
		data = data[:e.size]
	} else {
		shorter := data // with append, the race detector would check all added bytes
		data = make([]byte, e.size, max(e.size, 2*int64(cap(shorter))))
		copy(data, shorter)
	}
	copy(data[e.off:], e.data)
	return data
}

// sync makes the contents durable.
func (n *inode) sync() {
	for _, e := range n.pending {
		n.durable = e.apply(n.durable)
	}
	n.pending = nil
}

// release frees the space of a file if it has no names and no handles.
func (fsys *FS) release(n *inode) {
	if n.links == 0 && n.opens == 0 {
		fsys.used -= n.blocks() * blockSize
		n.allocated = nil
	}
}

// allocate allocates space for the bytes from..to. It returns the end of the allocated
// part.
func (fsys *FS) allocate(n *inode, from, to int64) int64 {
	for b := from / blockSize; b*blockSize < to; b++ {
		for int64(len(n.allocated)) <= b {
			n.allocated = append(n.allocated, false)
		}
		if n.allocated[b] {
			continue
		}
		if fsys.limit > 0 && fsys.used+blockSize > fsys.limit {
			return max(from, b*blockSize)
		}
		n.allocated[b] = true
		fsys.used += blockSize
	}
	return to
}

// free frees the blocks that lie entirely after size.
func (fsys *FS) free(n *inode, size int64) {
	keep := (size + blockSize - 1) / blockSize
	for b := keep; b < int64(len(n.allocated)); b++ {
		if n.allocated[b] {
			fsys.used -= blockSize
		}
	}
	if keep < int64(len(n.allocated)) {
		n.allocated = n.allocated[:keep]
	}
}

func (fsys *FS) handle(name string, n *inode, writable bool) vfs.File {
	n.opens++
	return &file{fsys: fsys, name: name, inode: n, writable: writable}
}

// A file is an open file.
type file struct {
	fsys     *FS
	name     string
	inode    *inode
	writable bool
	closed   bool
}

// check returns an error if the file is closed.
func (f *file) check() error {
	if f.closed {
		return fs.ErrClosed
	}
	return nil
}

// change runs a method's body if the file is open for writing.
func (f *file) change(op string, body func() error) error {
	return f.fsys.change(op, f.name, func() error {
		if err := f.check(); err != nil {
			return err
		}
		if !f.writable {
			return syscall.EBADF
		}
		return body()
	})
}

func (f *file) ReadAt(p []byte, off int64) (n int, err error) {
	var eof error // io.EOF must not be wrapped
	err = f.fsys.do("read", f.name, func() error {
		if err := f.check(); err != nil {
			return err
		}
		if off < 0 {
			return syscall.EINVAL
		}
		if off < int64(len(f.inode.data)) {
			n = copy(p, f.inode.data[off:])
		}
		if n < len(p) {
			eof = io.EOF
		}
		return nil
	})
	if err == nil {
		err = eof
	}
	return n, err
}

func (f *file) WriteAt(p []byte, off int64) (n int, err error) {
	err = f.change("write", func() error {
		if off < 0 {
			return syscall.EINVAL
		}
		if len(p) == 0 {
			return nil
		}
		n = int(f.fsys.allocate(f.inode, off, off+int64(len(p))) - off)
		if n > 0 {
			size := max(int64(len(f.inode.data)), off+int64(n))
			f.inode.note(edit{off, append([]byte(nil), p[:n]...), size})
		}
		if n < len(p) {
			return syscall.ENOSPC
		}
		return nil
	})
	return n, err
}

func (f *file) Stat() (size int64, named bool, err error) {
	err = f.fsys.do("stat", f.name, func() error {
		size, named = int64(len(f.inode.data)), f.inode.links > 0
		return f.check()
	})
	return size, named, err
}

func (f *file) Truncate(size int64) error {
	return f.change("truncate", func() error {
		if size < 0 {
			return syscall.EINVAL
		}
		f.inode.note(edit{size: size})
		f.fsys.free(f.inode, size)
		return nil
	})
}

func (f *file) Preallocate(size int64) error {
	return f.change("fallocate", func() error {
		old := int64(len(f.inode.data))
		if f.fsys.allocate(f.inode, 0, size) < size {
			f.fsys.free(f.inode, old)
			return syscall.ENOSPC
		}
		if size > old {
			f.inode.note(edit{size: size})
		}
		return nil
	})
}

func (f *file) Sync() error {
	return f.fsys.change("sync", f.name, func() error {
		if err := f.check(); err != nil {
			return err
		}
		f.inode.sync()
		return nil
	})
}

// Close closes the file, even after a power cut.
func (f *file) Close() error {
	f.fsys.mu.Lock()
	defer f.fsys.mu.Unlock()
	if f.closed {
		return &fs.PathError{Op: "close", Path: f.name, Err: fs.ErrClosed}
	}
	f.closed = true
	f.inode.opens--
	f.fsys.release(f.inode)
	return nil
}
