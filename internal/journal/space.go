package journal

import (
	"cmp"
	"fmt"
	"syscall"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/journal/record"
	"github.com/beanpole-mq/beanpole/internal/wal"
)

// deletion and state are the room for the deletion and the new state of a job, in bytes.
var (
	deletion = cost(engine.JobDeleted, 0, 0)
	state    = cost(engine.JobState, 0, 0)
)

// cost returns how many bytes of the log the record of a change takes at most.
func cost(kind engine.ChangeKind, tube, body int) int64 {
	return wal.Cost(record.MaxLen(kind, tube, body))
}

// weight is what a job counts for in live: about the size of its whole record, and the
// same as long as it stays in its tube. Besides name and body a record has 17 bytes at
// least, and seldom more than 40.
func weight(c *engine.Change) int64 {
	return wal.Cost(24 + len(c.Tube) + c.BodyLen)
}

// A full disk must not stop cleaning, which writes before it frees: otherwise a disk
// that is full of deleted jobs would stay full. So the space of two segments is set
// aside for cleaning alone. It needs one. The other makes up for what a restart loses:
// the rest of the segment that was written last.
const standbys = 2

// standby returns how many bytes are reserved for one of them.
func (j *Journal) standby() int64 {
	return max(j.opt.SegmentSize, wal.MinSegmentSize) * 15 / 16 &^ 7
}

// states returns how many new states of jobs have room set aside, so that a worker can
// release or bury its job while the disk is full. Beside the standbys that takes no
// further segment.
func (j *Journal) states() int {
	return int(max(j.opt.SegmentSize, wal.MinSegmentSize) / 16 / state)
}

// space counts what is reserved beyond the turn.
type space struct {
	held       int   // reservations for deletions of jobs, whichever they are
	unreserved int   // number of jobs without such a reservation: there was no room
	standbys   int   // number of reserved standbys; should be the constant
	states     int   // number of reservations for new states; should be Journal.states
	retry      int64 // when to try to reserve what is missing, on the engine's clock
}

// Admit is for engine.Options.Admit: it reserves the room that Append will need,
// and for a put that of the later delete.
func (j *Journal) Admit(kind engine.ChangeKind, tube string, body int) engine.Outcome {
	switch {
	case j.failure() != nil:
		return engine.Failed
	case kind == engine.NoChange:
		return engine.OK
	case kind == engine.JobDeleted:
		return j.admitDeletion()
	}
	n := cost(kind, len(tube), body)
	err := j.reserveMissing()
	if err == nil {
		err = j.reserve(kind, n)
	}
	if kind == engine.JobState || kind == engine.TubePaused || kind == engine.PolicySet {
		for err != nil && j.unreserveState() {
			err = j.files.Reserve(n)
		}
	}
	if err != nil {
		return j.refuse(err, n)
	}
	return engine.OK
}

// refuse notes why there is no room for a record of n bytes, and returns the outcome: a
// full disk and a failing one are answered differently.
func (j *Journal) refuse(err error, n int64) engine.Outcome {
	j.health.noRoom(j.log, err, n)
	if wal.NoRoom(err) {
		return engine.OutOfMemory
	}
	return engine.Failed
}

// reserve reserves n bytes for a change, and for a put those of its deletion.
func (j *Journal) reserve(kind engine.ChangeKind, n int64) error {
	if err := j.files.Reserve(n); err != nil {
		return err
	}
	if kind == engine.JobPut {
		if err := j.files.Reserve(deletion); err != nil {
			j.files.Unreserve(n)
			return err
		}
		j.space.held++
	}
	return nil
}

// admitDeletion admits a deletion.
func (j *Journal) admitDeletion() engine.Outcome {
	if err := j.reserveDeletion(); err != nil {
		return j.refuse(err, deletion)
	}
	return engine.OK
}

// reserveForDeletion makes the reservation for the deletion of a job that nobody has
// admitted.
func (j *Journal) reserveForDeletion() {
	if j.files.Reserve(deletion) != nil {
		j.space.unreserved++
		return
	}
	j.space.held++
}

// unreserveDeletion gives up the reservation for a deletion, which is about to be
// written.
func (j *Journal) unreserveDeletion() {
	if j.space.held == 0 {
		j.space.unreserved--
		return
	}
	j.space.held--
	j.files.Unreserve(deletion)
}

// reserveDeletion uses one of the reservations for deletions. If there is none it makes
// one.
func (j *Journal) reserveDeletion() error {
	if j.space.held > 0 {
		j.space.held--
		return nil
	}
	err := j.files.Reserve(deletion)
	if err == nil {
		j.space.unreserved--
	}
	return err
}

// reserveMissing makes the reservations, for deletions, standbys and states, for which
// there was no room before.
func (j *Journal) reserveMissing() error {
	for j.space.unreserved > 0 {
		if err := j.files.Reserve(deletion); err != nil {
			return err
		}
		j.space.unreserved--
		j.space.held++
	}
	for j.space.standbys < standbys {
		if err := j.files.Reserve(j.standby()); err != nil {
			return err
		}
		j.space.standbys++
	}
	for j.space.states < j.states() {
		if err := j.files.Reserve(state); err != nil {
			return err
		}
		j.space.states++
	}
	return nil
}

// retryReserve makes missing reservations even if no command needs one, and finds out
// whether there is room again for what was refused.
func (j *Journal) retryReserve(now int64) (next int64) {
	if j.space.unreserved == 0 && j.space.standbys == standbys && j.space.states == j.states() && j.health.full == nil {
		return engine.Never
	}
	if now < j.space.retry {
		return j.space.retry
	}
	j.files.RetryRoom()
	err := j.reserveMissing()
	if err == nil {
		err = j.tryRoom(j.health.refused)
	}
	if err == nil {
		j.health.room(j.log)
		return engine.Never
	}
	j.health.noRoom(j.log, err, 0)
	j.space.retry = now + healPause
	return j.space.retry
}

// tryRoom returns why there is no room for a record of n bytes, or nil. For a large
// record it asks the file system, and does not make a file.
func (j *Journal) tryRoom(n int64) error {
	if small := j.opt.SegmentSize / 2; n > small {
		if free, err := j.fs.Free(j.dir); err != nil || free < n {
			return cmp.Or(err, fmt.Errorf("%d bytes are free, and %d were asked for: %w", free, n, syscall.ENOSPC))
		}
		n = small
	}
	if err := j.files.Reserve(n); err != nil {
		return err
	}
	j.files.Unreserve(n)
	return nil
}

// unreserveAll gives up all that is reserved.
func (j *Journal) unreserveAll() {
	for j.unreserveStandby() || j.unreserveState() {
	}
	for ; j.space.held > 0; j.space.held-- {
		j.files.Unreserve(deletion)
	}
}

// unreserveStandby frees the space of a standby, if one is reserved.
func (j *Journal) unreserveStandby() bool {
	if j.space.standbys == 0 {
		return false
	}
	j.space.standbys--
	j.files.Unreserve(j.standby())
	return true
}

// unreserveState frees the room for a new state, if one is reserved.
func (j *Journal) unreserveState() bool {
	if j.space.states == 0 {
		return false
	}
	j.space.states--
	j.files.Unreserve(state)
	return true
}
