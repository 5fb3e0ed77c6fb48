// Package vfs is the interface to files: the few operations that the journal needs.
//
// [OS] is the real file system. In internal/test, memfs (in memory, with power cuts
// and a size limit) and faultfs (any FS, with failing calls) show a test what a disk
// does once in ten years. All of them pass the tests of vfstest there, which state the
// contract precisely; the comments of [FS] and [File] describe it.
//
// Each FS promises that this survives a power cut, and no more:
//
//   - the bytes and the size of a file as they were when [File.Sync] last
//     returned nil, overlaid with any subset of what was written since;
//   - the names in a directory as they were when [FS.SyncDir] last returned
//     nil, with any subset of the creations, renames and removals since. To
//     sync a file does not make its name durable.
//
// After a failed Sync nothing is known about what was written since the last
// successful one, even if a later Sync succeeds.
//
// Errors keep their cause: errors.Is works with syscall.ENOSPC, fs.ErrNotExist and
// fs.ErrExist on all errors of an FS.
//
// Deliberately not here: permissions (files are 0600, directories 0700), times,
// seeking, partial directory reads, and Windows.
package vfs

import (
	"errors"
	"io"
)

// ErrLocked is wrapped by the error of [FS.Lock] when the lock is held.
var ErrLocked = errors.New("locked")

// ErrNotRegular is wrapped by the error of opening or locking what is not a
// regular file.
var ErrNotRegular = errors.New("not a regular file")

// An FS is a file system. Names are paths as in package path/filepath. All
// methods may be called from several goroutines.
type FS interface {
	// Create makes a new empty file, open for reading and writing. The file
	// must not exist.
	Create(name string) (File, error)

	// Open opens an existing file for reading. The error wraps ErrNotRegular if
	// the name is that of a directory, a FIFO, a socket or a device; a symbolic
	// link is followed. It never waits for another process.
	Open(name string) (File, error)

	// OpenWrite opens an existing file for reading and writing. Like Open it refuses
	// files that are not regular.
	OpenWrite(name string) (File, error)

	// Rename gives a file another name in the same directory, atomically. It
	// never replaces a file: the error wraps fs.ErrExist if there is a file with the
	// new name.
	Rename(oldName, newName string) error

	// Replace is Rename that removes a file with the new name, in the same step.
	Replace(oldName, newName string) error

	// Remove removes a file.
	Remove(name string) error

	// Size returns the size of a file in bytes.
	Size(name string) (int64, error)

	// List returns the names in a directory, without the path, sorted.
	List(dir string) ([]string, error)

	// Mkdir makes a directory; its parent must exist.
	Mkdir(dir string) error

	// SyncDir makes the names in a directory durable.
	SyncDir(dir string) error

	// Free returns how many bytes are free in the file system that holds dir. Other
	// processes may use them first.
	Free(dir string) (int64, error)

	// Lock takes an exclusive lock on a file. It creates the file if there is none;
	// the file stays when the lock is closed. It does not wait: the error wraps
	// ErrLocked if another process, or this one, has the lock, and ErrNotRegular if
	// the name is not that of a regular file; a symbolic link is not followed. A file
	// that was removed and made again has another lock.
	Lock(name string) (io.Closer, error)
}

// A File is an open file. Reads, writes and Sync may be called from several
// goroutines; a Sync covers the writes that returned before it was called.
type File interface {
	// ReadAt is that of io.ReaderAt: fewer bytes than asked for come with an
	// error, which is io.EOF at the end of the file.
	io.ReaderAt

	// WriteAt is that of io.WriterAt. It may fail having written a part. A
	// write past the end leaves zeros in between.
	io.WriterAt

	// Size returns the current size in bytes.
	Size() (int64, error)

	// Stat returns the size in bytes, and whether the file has a name. After it was
	// removed it has none, although it can still be used.
	Stat() (size int64, named bool, err error)

	// Truncate sets the size. Added bytes read as zeros and have no blocks on the
	// disk.
	Truncate(size int64) error

	// Preallocate grows the file to at least size bytes and reserves blocks on the
	// disk, so that no later write below size fails for lack of space. Added bytes
	// read as zeros. Only on Linux it fills holes that the file had before. If it
	// fails the file is unchanged. File systems that compress or copy on write, as
	// ZFS and Btrfs do, may still run out of space in a later write.
	Preallocate(size int64) error

	// Sync makes the file's bytes and size durable.
	Sync() error

	// Close closes the file without syncing it.
	Close() error
}
