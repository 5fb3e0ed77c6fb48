package journal

import (
	"cmp"
	"time"

	"github.com/beanpole-mq/beanpole/internal/journal/record"
	"github.com/beanpole-mq/beanpole/internal/wal"
)

// failure returns why nothing can be appended, or nil.
func (j *Journal) failure() error { return j.files.Err() }

// healPause is how long Housekeep waits between two attempts to heal.
const healPause = int64(time.Second)

// heal tries to recover from a failure, once a second.
func (j *Journal) heal(now int64) (next int64) {
	j.lostFile(j.failure())
	j.health.has(broken, j.failure())
	if now < j.health.retry {
		return j.health.retry
	}
	if err := j.recover(); err != nil {
		j.health.retry = now + healPause
		return j.health.retry
	}
	return now
}

// recover gets the log out of its failed state.
func (j *Journal) recover() error {
	failed := uint64(0)
	if err := j.files.Recover(func(from, to wal.Pos, payload []byte) {
		failed = cmp.Or(failed, from.Segment) // the records come in order
		if record.IsPut(payload) {
			j.moved(payload, to)
		}
	}); err != nil {
		return err
	}
	if failed != 0 {
		j.standing.moved(failed)
	}
	j.setTarget()
	// The new places of these records are not known. 0 makes cleaning write them
	// again.
	j.lastID = 0
	j.applied.healed()
	j.bytes = j.files.Stats().Bytes
	j.health.ended(broken)
	return nil
}

// moved notes where the whole record of a job is that was written again. The records that
// are not durable are the last ones, so the last of a job is the one that counts.
func (j *Journal) moved(payload []byte, to wal.Pos) {
	put, err := record.Decode(payload, j.opt.Epoch, j.tubes)
	if err != nil {
		return // it was encoded here
	}
	c, ok := j.segmentOf(put.ID)
	if !ok {
		return // it is deleted
	}
	j.uncount(c.Segment)
	if _, ok := j.inFlight.setSegment(c.ID, uint32(to.Segment)); !ok {
		j.eng.SetSegment(&c, uint32(to.Segment))
	}
	j.jobsIn[uint32(to.Segment)]++
}
