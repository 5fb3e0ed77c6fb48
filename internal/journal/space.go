package journal

import (
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/wal"
)

// deletion is the room that is reserved for the deletion of each job.
var deletion = wal.Cost(maxDeleted)

// cost returns the most that the record of a change takes, bytes in the log.
func cost(kind engine.ChangeKind, tube, body int) int64 {
	switch kind {
	case engine.JobPut:
		return wal.Cost(maxJob + 1 + tube + body)
	case engine.JobState:
		return wal.Cost(maxJob)
	case engine.JobDeleted:
		return deletion
	}
	return wal.Cost(maxPaused + tube)
}

// weight is what a job counts for in live: about the size of its whole record,
// and the same all its life. Beside names and bodies records have 17 bytes at
// least, and seldom more than 40.
func weight(c *engine.Change) int64 {
	return wal.Cost(24 + len(c.Tube) + c.BodyLen)
}

// A full disk must not stop cleaning, which writes before it frees: without room
// for that, a disk that is full of deleted jobs would stay full. So the space of
// two segments is set aside, for cleaning and nobody else. It takes one; the
// other makes up for what a restart loses, where spares are made anew and the
// rest of the segment that was written last is not used.
const standbys = 2

// standby returns what is reserved for one of them. That costs twice as much
// (see package wal), which a spare can hold.
func (j *Journal) standby() int64 {
	return max(j.opt.SegmentSize, wal.MinSegmentSize) * 15 / 32 &^ 7
}

// space counts what is reserved beyond the turn.
type space struct {
	held       int   // reservations for deletions, of some of the jobs or all
	unreserved int   // jobs for which there was no room for one
	standbys   int   // of which there should be that many
	retry      int64 // when to try to reserve what is missing, on the engine's clock
}

// Admit is for engine.Options.Admit: it reserves the room that Append will need,
// and for a put that of the later delete.
func (j *Journal) Admit(kind engine.ChangeKind, tube string, body int) engine.Outcome {
	switch {
	case j.files.Err() != nil:
		return engine.Failed
	case kind == engine.JobDeleted:
		return j.admitDeletion()
	}
	err := j.reserveMissing()
	if err == nil {
		err = j.reserve(kind, cost(kind, len(tube), body))
	}
	if err != nil {
		j.trouble.noRoom(j.log, err)
		return engine.OutOfMemory
	}
	if kind == engine.JobPut {
		j.trouble.room(j.log)
	}
	return engine.OK
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
		j.trouble.noRoom(j.log, err)
		return engine.OutOfMemory
	}
	return engine.OK
}

// reserveDeletion lends a deletion the room that is held for any.
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

// reserveMissing reserves for all deletions and the standbys what there was no
// room for before.
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
	return nil
}

// reserveLater is reserveMissing for when nobody asks.
func (j *Journal) reserveLater(now int64) (next int64) {
	if j.space.unreserved == 0 && j.space.standbys == standbys {
		return engine.Never
	}
	if now >= j.space.retry {
		if j.reserveMissing() == nil {
			return engine.Never
		}
		j.space.retry = now + healPause
	}
	return j.space.retry
}

// lendStandby makes the space of a standby free, if there is one.
func (j *Journal) lendStandby() bool {
	if j.space.standbys == 0 {
		return false
	}
	j.space.standbys--
	j.files.Unreserve(j.standby())
	return true
}
