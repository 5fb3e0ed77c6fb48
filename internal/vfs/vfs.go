// Package vfs is the interface to files: the few operations that the journal needs.
//
// [OS] is the real file system. For tests, internal/test has memfs (in memory, with power
// cuts and a size limit) and faultfs (any FS, with failing calls), which reproduce rare
// behaviour of disks. All of them pass the tests of vfstest, which state the contract
// precisely; the comments of [FS] and [File] describe it.
//
// Each FS promises that the following survives a power failure, and no more:
//
//   - the bytes and the size of a file as they were when [File.Sync] last returned nil,
//     overlaid with any subset of the later writes;
//   - the names in a directory as they were when [FS.SyncDir] last returned nil, with any
//     subset of the later creations, renames and removals. A sync of a file does not make
//     its name durable.
//
// After a failed Sync, the writes since the last successful one are in an unknown state,
// even if a later Sync succeeds.
//
// Errors keep their cause: errors.Is works with syscall.ENOSPC, fs.ErrNotExist and
// fs.ErrExist on all errors of an FS.
//
// The package deliberately omits permissions (files are 0600, directories 0700), times,
// seeking, partial directory reads, and Windows.
package vfs

import (
	"errors"
	"io"
	"io/fs"
)

// ErrLocked means that the lock is held. Errors of [FS.Lock] wrap it.
var ErrLocked = errors.New("locked")

// ErrNotRegular means that a name belongs to a directory, a FIFO or another special file.
var ErrNotRegular = errors.New("not a regular file")

// An FS is a file system. Names are paths as in package path/filepath. All methods are
// safe for concurrent use.
type FS interface {
	// Create creates an empty file, open for reading and writing. The file must not
	// exist.
	Create(name string) (File, error)

	// Open opens an existing file for reading. The error wraps ErrNotRegular if the name
	// belongs to a directory, a FIFO, a socket or a device. Open follows a symbolic link,
	// and never waits for another process.
	Open(name string) (File, error)

	// OpenWrite opens an existing file for reading and writing. Like Open, it refuses
	// files that are not regular.
	OpenWrite(name string) (File, error)

	// Rename renames a file within a directory. It atomically replaces a file that has
	// the new name.
	Rename(oldName, newName string) error

	// Remove removes a file.
	Remove(name string) error

	// List returns the names in a directory, without the path, sorted.
	List(dir string) ([]string, error)

	// Mkdir creates a directory; its parent must exist.
	Mkdir(dir string) error

	// SyncDir makes the names in a directory durable.
	SyncDir(dir string) error

	// Free returns the number of free bytes in the file system that contains dir. Other
	// processes can use them at any time.
	Free(dir string) (int64, error)

	// Lock takes an exclusive lock on a file. It creates the file if necessary; the file
	// remains when the lock is closed. It does not wait: the error wraps ErrLocked if
	// this or another process holds the lock. The error wraps ErrNotRegular if the name
	// does not belong to a regular file; Lock does not follow a symbolic link. A file
	// that was removed and created again has a different lock.
	Lock(name string) (io.Closer, error)
}

// A File is an open file. Several goroutines can read, write and sync concurrently. A
// Sync covers the writes that returned before it was called.
type File interface {
	// ReadAt implements io.ReaderAt. If it returns fewer bytes than requested, it returns
	// an error, which is io.EOF at the end of the file.
	io.ReaderAt

	// WriteAt implements io.WriterAt. It can write some of the bytes and fail. A write
	// past the end leaves zeros in between.
	io.WriterAt

	// Stat returns the current size in bytes, and reports whether the file has a name. A
	// removed file has no name, although it can still be used.
	Stat() (size int64, named bool, err error)

	// Truncate sets the size. Added bytes read as zeros and have no blocks on the
	// disk.
	Truncate(size int64) error

	// Preallocate extends the file to at least size bytes and reserves blocks on the
	// disk, so that no later write below size fails for lack of space. Added bytes read
	// as zeros. It fills existing holes only on Linux. If it fails, the file is
	// unchanged. File systems that compress or copy on write, such as ZFS and Btrfs, can
	// still run out of space in a later write.
	Preallocate(size int64) error

	// Sync makes the file's bytes and size durable.
	Sync() error

	// Close closes the file without syncing it.
	Close() error
}

// Exists reports whether a regular file has a name. It fails if the file is not regular.
func Exists(fsys FS, name string) (bool, error) {
	f, err := fsys.Open(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	}
	return true, f.Close()
}

// ReadFile returns the contents of a small file.
func ReadFile(fsys FS, name string) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, _, err := f.Stat()
	if err != nil {
		return nil, err
	}
	data := make([]byte, size)
	if n, err := f.ReadAt(data, 0); n < len(data) {
		return nil, err
	}
	return data, nil
}

// WriteFile creates a file and makes its contents durable. Its name becomes durable with
// the next SyncDir.
func WriteFile(fsys FS, name string, data []byte) error {
	f, err := fsys.Create(name)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(data, 0)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
