package journal

import (
	"fmt"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/journal/record"
	"github.com/beanpole-mq/beanpole/internal/wal"
)

// Append implements broker.Log. Append cannot fail: Admit has reserved space for each
// change except TubeGone, for which no client waits, and a failed log keeps appended
// records.
func (j *Journal) Append(changes []engine.Change) error {
	for i := range changes {
		c := &changes[i]
		if c.Kind != engine.TubeGone {
			j.files.Unreserve(costOf(c))
			j.index.weigh(c)
		}
		_, err := j.append(c)
		switch {
		case err == nil:
		case c.Kind == engine.TubeGone:
			j.persistentState.gone = append(j.persistentState.gone, c.Tube) // Housekeep will append it
		default:
			panic(fmt.Sprintf("journal: a change that was admitted cannot be appended: %v", err))
		}
	}
	return nil
}

// append appends the record of a change and updates the index.
func (j *Journal) append(c *engine.Change) (wal.Pos, error) {
	at, err := j.write(c)
	if err == nil {
		j.indexRecord(c, at)
	}
	return at, err
}

// appendWithSpare appends a change. It can use the space that is reserved for cleaning.
func (j *Journal) appendWithSpare(c *engine.Change) (at wal.Pos, err error) {
	err = j.space.withSpare(func() error {
		at, err = j.append(c)
		return err
	})
	return at, err
}

// write appends the record of a change.
func (j *Journal) write(c *engine.Change) (wal.Pos, error) {
	j.buf = record.Append(j.buf[:0], c, j.opt.Epoch)
	at, err := j.files.Append(j.buf, c.Body)
	if err != nil {
		return at, fmt.Errorf("journal: %w", err)
	}
	j.dirty = true
	j.stats.Written++
	n := wal.Cost(len(j.buf) + len(c.Body))
	j.bytes += n
	j.unflushed += n
	j.cleaner.appended += n
	return at, nil
}

// indexRecord updates the index for the record of a change.
func (j *Journal) indexRecord(c *engine.Change, at wal.Pos) {
	switch c.Kind {
	case engine.JobPut, engine.JobMoved:
		j.index.set(c, uint32(at.Segment))
		if mark, ok := c.MarkOf(); ok {
			j.persistentState.record(&mark, at.Segment)
		}
	case engine.LastID:
		j.lastID = at.Segment
	case record.AppliedMark:
		j.applied.record(c, at)
	case engine.TubeGone, engine.TubePaused, engine.PolicySet, engine.ScheduleSet, engine.ScheduleMark:
		j.persistentState.record(c, at.Segment)
	}
}
