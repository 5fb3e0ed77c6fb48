package journal

import (
	"cmp"
	"time"

	"github.com/beanpole-mq/beanpole/internal/wal"
)

// failure returns why nothing can be appended, or nil.
func (j *Journal) failure() error { return j.files.Err() }

// healPause is how long Housekeep waits between two attempts to heal.
const healPause = int64(time.Second)

// heal tries to recover from a failure, once a second.
func (j *Journal) heal(now int64) (next int64) {
	j.lostFile(j.failure())
	j.health.failed(j.log, j.failure())
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
	moved, failed := make(map[wal.Pos]wal.Pos), uint64(0)
	if err := j.files.Recover(func(from, to wal.Pos) {
		moved[from] = to
		failed = cmp.Or(failed, from.Segment) // the records come in order
	}); err != nil {
		return err
	}
	for _, p := range j.recent {
		if to, ok := moved[p.at]; ok {
			if c, ok := j.segmentOf(p.id); ok && uint64(c.Segment) == p.at.Segment {
				j.uncount(c.Segment)
				j.replaced(c.Segment, to)
				if _, ok := j.inFlight.setSegment(c.ID, uint32(to.Segment)); !ok {
					j.eng.SetSegment(&c, uint32(to.Segment))
				}
				j.jobsIn[uint32(to.Segment)]++
			}
		}
	}
	if failed != 0 {
		j.standing.moved(failed)
	}
	j.recent = j.recent[:0]
	j.setTarget()
	// The new places of these records are not known. 0 makes cleaning write them
	// again.
	j.lastID = 0
	j.applied.healed()
	j.bytes = j.files.Stats().Bytes
	j.health.healed(j.log)
	return nil
}
