package journal

import (
	"cmp"
	"fmt"
	"syscall"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/journal/record"
	"github.com/beanpole-mq/beanpole/internal/wal"
)

// deletion and state are the space for the deletion and the new state of a job, in bytes.
var (
	deletion = cost(engine.JobDeleted, 0, 0)
	state    = cost(engine.JobState, 0, 0)
)

// cost returns the maximum size of a change's record in the log, in bytes.
func cost(kind engine.ChangeKind, tube, body int) int64 {
	return wal.Cost(record.MaxLen(kind, tube, body))
}

// costOf returns the maximum size of the record of c, as Admit has reserved it.
func costOf(c *engine.Change) int64 {
	return cost(c.Kind, len(c.Tube), len(c.Body)+c.MarkLen())
}

// weight returns a job's share of live: the approximate size of its whole record. It is
// constant while the job stays in its tube. In addition to name and body, a record has at
// least 17 bytes, and rarely more than 40.
func weight(c *engine.Change) int64 {
	return wal.Cost(24 + len(c.Tube) + c.BodyLen)
}

// A full disk must not stop cleaning, which writes before it frees: a disk full of
// deleted jobs would stay full. Therefore, the space of two segments, the spares, is
// reserved for cleaning alone. Cleaning needs one. The other replaces the space that a
// restart loses: the rest of the last written segment.
//
// A sixteenth of a segment is reserved for new states of jobs, so that a worker can
// release or bury its job while the disk is full. In addition to the spares, this
// requires no further segment.
const spares = 2

// A reserve is a number of reservations of one size.
type reserve struct {
	size       int64
	have, want int // have < want: there was no space
}

// fill creates the missing reservations.
func (r *reserve) fill(files *wal.Log) error {
	for ; r.have < r.want; r.have++ {
		if err := files.Reserve(r.size); err != nil {
			return err
		}
	}
	return nil
}

// release releases a reservation, if there is one.
func (r *reserve) release(files *wal.Log) bool {
	if r.have == 0 {
		return false
	}
	r.have--
	files.Unreserve(r.size)
	return true
}

// space contains the reservations that outlast a turn.
type space struct {
	files  *wal.Log
	health *health
	free   func() (int64, error) // free bytes of the file system
	small  int64                 // records of more bytes are large

	deletions reserve // one per job
	spares    reserve // for cleaning
	states    reserve // for new states of jobs
	retry     int64   // time of the next attempt to fill, on the engine's clock
}

func newSpace(files *wal.Log, h *health, segmentSize int64, free func() (int64, error)) space {
	size := max(segmentSize, wal.MinSegmentSize)
	return space{
		files: files, health: h, free: free, small: segmentSize / 2,
		deletions: reserve{size: deletion},
		spares:    reserve{size: size * 15 / 16 &^ 7, want: spares},
		states:    reserve{size: state, want: int(size / 16 / state)},
	}
}

func (s *space) all() [3]*reserve { return [...]*reserve{&s.deletions, &s.spares, &s.states} }

// fill creates all missing reservations.
func (s *space) fill() error {
	for _, r := range s.all() {
		if err := r.fill(s.files); err != nil {
			return err
		}
	}
	return nil
}

// lacks reports whether reservations are missing.
func (s *space) lacks() bool {
	return s.deletions.have < s.deletions.want || s.spares.have < s.spares.want || s.states.have < s.states.want
}

// releaseAll releases all reservations.
func (s *space) releaseAll() {
	for _, r := range s.all() {
		for r.release(s.files) {
		}
	}
}

// Admit implements engine.Options.Admit: it reserves the space that Append will need and,
// for a put, the space for its later delete.
func (j *Journal) Admit(kind engine.ChangeKind, tube string, body int) engine.Outcome {
	switch {
	case j.files.Err() != nil:
		return engine.Failed
	case kind == engine.NoChange:
		return engine.OK
	case kind == engine.JobDeleted:
		if err := j.space.reserveDeletion(); err != nil {
			return j.health.noRoom(err, deletion)
		}
		return engine.OK
	}
	n := cost(kind, len(tube), body)
	err := j.space.fill()
	if err == nil {
		err = j.space.reserve(kind, n)
	}
	if kind == engine.JobState || kind == engine.TubePaused || kind.IsNamed() {
		for err != nil && j.space.states.release(j.files) {
			err = j.files.Reserve(n)
		}
	}
	if err != nil {
		if kind == engine.JobPut {
			n += deletion
		}
		return j.health.noRoom(err, n)
	}
	return engine.OK
}

// reserve reserves n bytes for a change and, for a put, the space for its deletion.
func (s *space) reserve(kind engine.ChangeKind, n int64) error {
	if err := s.files.Reserve(n); err != nil {
		return err
	}
	if kind == engine.JobPut {
		if err := s.files.Reserve(deletion); err != nil {
			s.files.Unreserve(n)
			return err
		}
		s.deletions.want++
		s.deletions.have++
	}
	return nil
}

// reserveDeletion uses one of the reservations for deletions, or creates one.
func (s *space) reserveDeletion() error {
	d := &s.deletions
	if d.have > 0 {
		d.have--
	} else if err := s.files.Reserve(deletion); err != nil {
		return err
	}
	d.want--
	return nil
}

// retryFill creates missing reservations even if no command needs them, and checks
// whether there is space for the refused records.
func (s *space) retryFill(now int64) (next int64) {
	if !s.lacks() && !s.health.refusesJobs() {
		return engine.Never
	}
	if now < s.retry {
		return s.retry
	}
	s.files.RetryRoom()
	err := s.fill()
	if err == nil {
		err = s.tryRoom(s.health.refused)
	}
	if err == nil {
		s.health.room()
		return engine.Never
	}
	s.health.noRoom(err, 0)
	s.retry = now + healPause
	return s.retry
}

// tryRoom returns the error that prevents a record of n bytes, or nil. For a large
// record, it queries the file system and creates no file.
func (s *space) tryRoom(n int64) error {
	if n > s.small {
		if free, err := s.free(); err != nil || free < n {
			return cmp.Or(err, fmt.Errorf("%d bytes are free, %d are needed: %w", free, n, syscall.ENOSPC))
		}
		n = s.small
	}
	if err := s.files.Reserve(n); err != nil {
		return err
	}
	s.files.Unreserve(n)
	return nil
}

// withSpare calls f, which needs space. If there is none, it releases a spare and calls f
// again.
func (s *space) withSpare(f func() error) error {
	err := f()
	for err != nil && s.files.Err() == nil && s.spares.release(s.files) {
		err = f()
	}
	return err
}
