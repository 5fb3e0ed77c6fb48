package journal

import (
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/wal"
)

// Cleaning is due when the log is larger than one and a half times what the jobs
// would take, and a segment. A pass over the whole log then finds at least a
// third of it dead. While a turn appends n bytes, cleaning looks at cleanRatio
// times as many old ones: so the pass is over before the log has grown to twice
// its live data and two segments, whatever the turns append.
const (
	cleanRatio = 4
	cleanStep  = 64 << 10   // bytes looked at in a turn at least
	cleanPause = int64(2e6) // ns between two steps while nothing else happens
)

// A cleaner is where cleaning has come to.
type cleaner struct {
	appended int64   // bytes appended since the last step
	from     wal.Pos // in the oldest segment: up to here it has been looked at
	last     wal.Pos // the last record that was written again
	stuck    bool    // damage was found; said once
}

// crowded tells whether cleaning is due.
func (j *Journal) crowded() bool {
	return j.bytes > j.live+j.live/2+j.opt.SegmentSize
}

// clean does a step of cleaning, if it is due, and returns when the next is.
func (j *Journal) clean(now int64) (next int64) {
	budget := max(cleanStep, cleanRatio*j.cleaner.appended)
	j.cleaner.appended = 0
	for budget > 0 && j.crowded() && !j.cleaner.stuck {
		oldest, ok := j.files.Oldest()
		if !ok {
			return engine.Never // all is in the segment that is being written
		}
		if j.marks[uint32(oldest.Sequence)] > 0 {
			n, ok := j.moveOn(oldest, budget)
			if !ok {
				return now + healPause // the disk is full, or worse
			}
			budget -= n
			continue
		}
		if !j.remove(oldest) {
			return now + cleanPause // when its successors' records are durable
		}
		budget -= cleanStep / 8
	}
	if j.crowded() && !j.cleaner.stuck {
		return now + cleanPause
	}
	return engine.Never
}

// moveOn looks at about budget bytes of the oldest segment and writes the jobs
// again that are whole there and nowhere else. It returns how many bytes it
// looked at, or false if it cannot go on for now.
func (j *Journal) moveOn(oldest wal.Segment, budget int64) (n int64, ok bool) {
	if j.cleaner.from.Segment != oldest.Sequence {
		j.cleaner.from = wal.Pos{Segment: oldest.Sequence}
	}
	from := j.cleaner.from
	next, done, err := j.files.ReadSealed(from, budget, j.moveRecord)
	j.cleaner.from = next
	if err == nil && done && j.marks[uint32(oldest.Sequence)] > 0 {
		j.stuck(oldest, errMarks)
		return 0, false
	}
	if err != nil {
		if isCorrupt(err) {
			j.stuck(oldest, err)
		}
		return 0, false
	}
	return next.Offset - from.Offset, true
}

// moveRecord writes a job again if this is its whole record.
func (j *Journal) moveRecord(r wal.Record) error {
	if r.Payload[0] != kindPut {
		return nil
	}
	c, err := decodeRecord(r.Payload, j.opt.Epoch, j.tubes)
	if err != nil {
		return err
	}
	mark, ok := j.eng.Mark(c.ID)
	if !ok || uint64(mark) != r.Segment {
		return nil
	}
	snapshot, _ := j.eng.Snapshot(c.ID)
	at, err := j.append(&snapshot)
	if err != nil {
		return err
	}
	j.unmark(mark)
	j.placed(c.ID, at)
	j.stats.Migrated++
	j.cleaner.last = at
	return nil
}

// remove removes the oldest segment, in which no job is whole. It returns false
// if that has to wait until what was written again is durable.
func (j *Journal) remove(oldest wal.Segment) bool {
	if !j.carryOthers(oldest.Sequence) || !j.durable(j.cleaner.last) {
		return false
	}
	if err := j.files.RemoveOldest(); err != nil {
		j.stuck(oldest, err)
		return false
	}
	j.bytes -= oldest.End
	return true
}

// durable tells whether a record is on the disk. If nobody else will, it syncs.
func (j *Journal) durable(at wal.Pos) bool {
	if at.Compare(j.files.Durable()) < 0 {
		return true
	}
	if j.dirty || j.opt.Sync >= 0 {
		return false
	}
	return j.files.Sync() == nil && at.Compare(j.files.Durable()) < 0
}

// carryOthers writes those records again that speak of no job, if the last of
// them is in a segment that is about to go. Pauses that are over are not.
func (j *Journal) carryOthers(going uint64) bool {
	if j.lastID <= going && !j.carry(engine.Change{Kind: engine.LastID, ID: j.eng.LastID()}) {
		return false
	}
	for tube, segment := range j.pauses {
		if segment > going {
			continue
		}
		c, paused := j.eng.PauseOf(tube)
		if !paused {
			delete(j.pauses, tube)
		} else if !j.carry(c) {
			return false
		}
	}
	return true
}

func (j *Journal) carry(c engine.Change) bool {
	at, err := j.append(&c)
	if err != nil {
		return false
	}
	j.cleaner.last = at
	return true
}

// stuck says that cleaning cannot go on, once.
func (j *Journal) stuck(oldest wal.Segment, err error) {
	j.cleaner.stuck = true
	j.log.Error("the journal cannot be cleaned and will grow; restart the server with room on the disk, or check the journal",
		"segment", wal.FileName(oldest.Sequence), "err", err)
}
