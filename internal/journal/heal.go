package journal

import (
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/journal/record"
	"github.com/beanpole-mq/beanpole/internal/wal"
)

// healPause is the time between two attempts of Housekeep to heal.
const healPause = int64(time.Second)

// heal tries to recover from a failure, once a second.
func (j *Journal) heal(now int64) (next int64) {
	j.lostFile(j.files.Err())
	j.health.set(broken, j.files.Err())
	if now < j.health.retry {
		return j.health.retry
	}
	if err := j.recover(); err != nil {
		j.health.retry = now + healPause
		return j.health.retry
	}
	return now
}

// recover ends the failed state of the log.
func (j *Journal) recover() error {
	durable := max(j.files.Durable().Segment, j.files.Stats().Oldest)
	if err := j.files.Recover(func(_, to wal.Pos, payload []byte) {
		id, ok := record.PutID(payload)
		if !ok {
			return
		}
		job, _ := j.eng.Snapshot(id) // if the job is deleted, set has no effect
		// The records that are not durable are the newest ones, so the last record of a
		// job counts.
		j.index.set(&engine.Change{ID: id, Slot: job.Slot}, uint32(to.Segment))
	}); err != nil {
		return err
	}
	j.persistentState.moved(durable)
	j.setTarget()
	// The new positions of these records are unknown. Zero makes cleaning write them
	// again.
	j.lastID = 0
	j.applied.healed()
	j.bytes = j.files.Stats().Bytes
	j.health.clear(broken)
	return nil
}
