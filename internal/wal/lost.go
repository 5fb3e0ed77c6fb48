package wal

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"

	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// A LostError says that files of the log are not what the log has left there: others have
// removed, replaced, cut or overwritten them.
type LostError struct {
	Newest uint64 // sequence of the newest of the files
	Files  int    // how many there are
	First  error  // what is wrong with the oldest
}

func (e *LostError) Error() string {
	text := fmt.Sprintf("wal: files of the log are lost: %v", e.First)
	if e.Files > 1 {
		text += fmt.Sprintf(", and %d more", e.Files-1)
	}
	return text
}

func (e *LostError) Unwrap() error { return e.First }

// errChanged says that a file is another one, or has lost something. To the log that is
// as if the file was gone.
var errChanged = fmt.Errorf("%w as the log left it", fs.ErrNotExist)

// An expectedFile is a file of the log.
type expectedFile struct {
	sequence uint64 // of its name
	size     int64  // in bytes, at least
	tip      *segment
	spare    bool // it is preallocated, and has no records
}

// expectedFiles returns the files that there should be, except that of the lock.
func (l *Log) expectedFiles() []expectedFile {
	var files []expectedFile
	for _, s := range l.sealed {
		if s.End > 0 { // not void
			files = append(files, expectedFile{sequence: s.Sequence, size: s.End})
		}
	}
	if len(l.open) > 0 && l.open[0].flushed.Load() > headerSize {
		files = append(files, expectedFile{sequence: l.open[0].sequence, tip: l.open[0]})
	}
	return l.pool.appendFiles(files)
}

// look returns what is wrong with a file, or nil. The error wraps fs.ErrNotExist unless
// the file could not be looked at.
func (f expectedFile) look(l *Log) (err error) {
	if f.tip != nil {
		err = f.tip.look()
	} else {
		err = longEnough(f.size)(l.fs.Size(l.path(f.sequence)))
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", FileName(f.sequence), err)
	}
	return err
}

// longEnough returns a function that returns an error if a file is shorter than it was, or
// if its size is not known.
func longEnough(want int64) func(size int64, err error) error {
	return func(size int64, err error) error {
		if err == nil && size < want {
			return fmt.Errorf("%w: %d bytes are missing", errChanged, want-size)
		}
		return err
	}
}

// look returns an error if the file of a segment that is written has lost its name, its
// length or its header.
func (s *segment) look() error {
	named, err := s.file.Named(s.name)
	if err == nil && !named {
		err = fmt.Errorf("%w: it has lost its name", errChanged)
	}
	if err == nil {
		err = longEnough(s.size)(s.file.Size())
	}
	header := make([]byte, headerSize)
	if err == nil {
		err = readFull(s.file, header, 0)
	}
	if err == nil && !bytes.Equal(header, s.header.encode()) {
		err = fmt.Errorf("%w: its header was overwritten", errChanged)
	}
	if errors.Is(err, fs.ErrClosed) {
		return nil // it is sealed
	}
	return err
}

// Look returns a function that reports whether all files of the log seem to be as the log
// left them. Any goroutine may call it, while the owner goes on and may remove files. If
// it returns false the owner has to call [Log.Confirm].
func (l *Log) Look() (seemsWell func() bool) {
	files := l.expectedFiles()
	return func() bool {
		for _, f := range files {
			if f.look(l) != nil {
				return false
			}
		}
		lock, err := l.fs.Lock(lockName(l.dir))
		if err == nil {
			lock.Close()
		}
		return errors.Is(err, vfs.ErrHeld)
	}
}

// Confirm looks at all files. It takes the lock again if its file was lost, and makes
// preallocated segments again. After a *[LostError] records that are needed are lost; if
// the current segment is among them, the log is in the failed state. After any other
// error files could not be looked at, or another process has the lock: then the log never
// takes records again.
func (l *Log) Confirm() error {
	switch lock, err := l.fs.Lock(lockName(l.dir)); {
	case err == nil:
		l.lock.Close()
		l.lock = lock
	case errors.Is(err, vfs.ErrLocked) && !errors.Is(err, vfs.ErrHeld):
		l.stolen = fmt.Errorf("wal: another process has locked the directory of the log: %w", err)
		l.pool.stolen.Store(true)
		l.failTip(l.stolen)
		return l.stolen
	}
	var lost LostError
	var unknown error
	spares := false // some are lost
	for _, f := range l.expectedFiles() {
		switch err := f.look(l); {
		case err == nil:
		case f.spare:
			spares = spares || errors.Is(err, fs.ErrNotExist)
		case errors.Is(err, fs.ErrNotExist):
			lost = LostError{max(lost.Newest, f.sequence), lost.Files + 1, cmp.Or(lost.First, err)}
			if f.tip != nil {
				l.failTip(&LostError{f.sequence, 1, err})
			}
		default:
			unknown = cmp.Or(unknown, fmt.Errorf("wal: files of the log cannot be looked for: %w", err))
		}
	}
	if spares || lost.Files > 0 { // they are all in the same place
		_ = l.pool.removeAll()
		if tip := l.tip(); tip != nil && l.err == nil {
			// After an error, Reserve and Append try again.
			_ = errors.Join(l.ensureRoom(tip.free()), l.pool.ensureClaims())
		}
	}
	if lost.Files > 0 {
		return &lost
	}
	return unknown
}

func (l *Log) failTip(err error) {
	if len(l.open) > 0 {
		l.open[0].fail(err)
		_ = l.fail(err)
	}
}
