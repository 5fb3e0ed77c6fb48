package journal

import (
	"bytes"
	"cmp"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/wal"
)

// owe adds a change to the backlog.
func (j *Journal) owe(c *engine.Change, err error) {
	owed := *c
	owed.Body = bytes.Clone(c.Body)
	j.backlog, j.backlogErr = append(j.backlog, owed), err
}

// appendBacklog appends the backlog.
func (j *Journal) appendBacklog() error {
	for len(j.backlog) > 0 {
		c := &j.backlog[0]
		if _, err := j.appendWithStandby(c); err != nil {
			j.backlogErr = err
			return err
		}
		j.backlog = j.backlog[1:]
	}
	j.backlog, j.backlogErr = nil, nil
	j.health.healed(j.log)
	return nil
}

// failure returns why nothing can be appended, or nil.
func (j *Journal) failure() error {
	if err := j.files.Err(); err != nil {
		return err
	}
	return j.backlogErr
}

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
	if j.files.Err() == nil && j.backlogErr != nil {
		return j.appendBacklog()
	}
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
	return j.appendBacklog()
}
