package wal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// A Lost is a file of the log that is not where it should be, or that could not be
// looked for.
type Lost struct {
	Sequence uint64
	Err      error // wraps fs.ErrNotExist if the file is surely gone

	preallocated *segment  // the segment, if it is preallocated; nil if it has records
	lock         io.Closer // a new lock, if the file of the lock was lost
}

// A stolenError says that another process has the lock now. The files in the directory
// belong to that process.
type stolenError struct{ error }

func (e stolenError) Unwrap() error { return e.error }

// A LostError lists files that are lost, or could not be looked for.
type LostError []Lost

func (e LostError) Error() string {
	what := "files of the log cannot be looked for"
	switch {
	case e.stolen():
		what = "another process has locked the directory of the log"
	case e.Gone():
		what = "files of the log are lost"
	}
	var names []string
	for _, lost := range e {
		name := "lock"
		if lost.Sequence != 0 {
			name = FileName(lost.Sequence)
		}
		names = append(names, name)
	}
	if len(names) > 3 {
		names = append(names[:3], fmt.Sprintf("and %d more", len(e)-3))
	}
	return fmt.Sprintf("wal: %s: %s: %v", what, strings.Join(names, ", "), e[0].Err)
}

// Unwrap returns the error of each file.
func (e LostError) Unwrap() []error {
	errs := make([]error, len(e))
	for i, lost := range e {
		errs[i] = lost.Err
	}
	return errs
}

// Gone reports whether a file is surely gone. It is false if the system could not
// tell, and if the directory belongs to another process now.
func (e LostError) Gone() bool { return !e.stolen() && slices.ContainsFunc(e, Lost.gone) }

func (e LostError) stolen() bool {
	return slices.ContainsFunc(e, func(f Lost) bool { return errors.Is(f.Err, vfs.ErrLocked) })
}

func (f Lost) gone() bool { return errors.Is(f.Err, fs.ErrNotExist) }

// Look returns a function that looks for the file of the current segment, and for
// the files of at most so many sealed and preallocated segments. Each Look goes on
// where the one before ended. Any goroutine may call the function. The owner may
// have removed a file that it misses meanwhile; see [Log.Confirm].
func (l *Log) Look(limit int) func() LostError {
	n := len(l.sealed)
	if l.nextLook >= n || limit >= n {
		l.nextLook = 0
	}
	sealed := slices.Clone(l.sealed[l.nextLook:min(l.nextLook+min(limit, n), n)])
	l.nextLook += len(sealed)
	preallocated := l.pool.list(limit)
	var tip *segment
	if len(l.open) > 0 && l.open[0].flushed.Load() > headerSize {
		tip = l.open[0]
	}
	return func() (lost LostError) {
		for _, s := range sealed {
			if s.End == 0 {
				continue // void
			}
			if err := missing(s.End)(l.fs.Size(l.path(s.Sequence))); err != nil {
				lost = append(lost, Lost{Sequence: s.Sequence, Err: err})
			}
		}
		if tip != nil {
			if err := tip.look(); err != nil {
				lost = append(lost, Lost{Sequence: tip.sequence, Err: err})
			}
		}
		for _, s := range preallocated {
			if err := missing(s.size)(l.fs.Size(s.name)); errors.Is(err, fs.ErrNotExist) {
				lost = append(lost, Lost{Sequence: s.named, Err: err, preallocated: s.segment})
			}
		}
		return l.lookForLock(lost)
	}
}

// lookForLock takes the lock anew if its file is lost: another server could start
// otherwise.
func (l *Log) lookForLock(lost LostError) LostError {
	switch lock, err := l.fs.Lock(lockName(l.dir)); {
	case err == nil:
		lost = append(lost, Lost{Err: fs.ErrNotExist, lock: lock})
	case errors.Is(err, vfs.ErrLocked) && !errors.Is(err, vfs.ErrHeld):
		lost = append(lost, Lost{Err: stolenError{err}})
	}
	return lost
}

// A shortError says how many bytes of a file are missing. To the log they are as lost as
// a file.
type shortError int64

func (e shortError) Error() string {
	return fmt.Sprintf("the file is shorter than it was: %d bytes are missing", int64(e))
}

// Is makes errors.Is(err, fs.ErrNotExist) work.
func (e shortError) Is(target error) bool { return target == fs.ErrNotExist }

// missing returns a function that returns an error if a file is shorter than it should
// be, or if its size is not known.
func missing(want int64) func(size int64, err error) error {
	return func(size int64, err error) error {
		if err == nil && size < want {
			return shortError(want - size)
		}
		return err
	}
}

// look returns an error if the file does not have its name any more, or not its
// length.
func (s *segment) look() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	named, err := s.file.Named(s.name)
	switch {
	case errors.Is(err, fs.ErrClosed):
		return nil // it is sealed
	case err == nil && !named:
		return fmt.Errorf("%w: the file that is written has lost its name, %s", fs.ErrNotExist, s.name)
	case err == nil:
		return missing(s.size)(s.file.Size())
	}
	return err
}

// Confirm returns which of the files that a look missed hold records that the log
// still needs. A lock that was taken anew is the log's from now on; if another
// process has it, the log never takes records again. If the current segment is gone
// the log enters the failed state: later records would be lost too. If any file is
// gone, all preallocated segments are made anew, because they were in the same
// place. A file that could not be looked for is returned, and nothing follows from
// it: it may be there.
func (l *Log) Confirm(lost LostError) (needed LostError) {
	gone := false // a preallocated one
	for _, f := range lost {
		switch _, stolen := f.Err.(stolenError); {
		case f.lock != nil:
			l.lock.Close()
			l.lock = f.lock
		case stolen:
			needed = append(needed, f)
			l.stolen = f.Err
			l.pool.stolen.Store(true)
			if len(l.open) > 0 {
				l.open[0].fail(f.Err)
				_ = l.fail(f.Err)
			}
		case f.preallocated != nil:
			gone = gone || l.pool.has(f.preallocated, f.Sequence)
		case slices.ContainsFunc(l.sealed, func(s Segment) bool { return s.Sequence == f.Sequence }):
			needed = append(needed, f)
		case len(l.open) > 0 && l.open[0].sequence == f.Sequence:
			needed = append(needed, f)
			if f.gone() {
				l.open[0].fail(LostError{f})
				_ = l.fail(LostError{f})
			}
		}
	}
	if l.stolen == nil && (gone || needed.Gone()) {
		_ = l.pool.removeAll()
		if tip := l.tip(); tip != nil && l.err == nil {
			// After an error, Reserve and Append try again.
			_ = errors.Join(l.ensureRoom(tip.free()), l.pool.ensureClaims())
		}
	}
	return needed
}
