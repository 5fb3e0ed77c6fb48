package journal

import (
	"errors"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/journal/record"
	"github.com/beanpole-mq/beanpole/internal/wal"
)

// Cleaning is due when the log is larger than one and a half times its live data plus a
// segment: at least a third of it is dead. It is also due when there are many more
// segments than the bytes require, because each start that writes creates a segment. For
// n bytes that a turn appends, cleaning reads cleanRatio times n old bytes. Therefore a
// pass ends before the log has grown to twice its live data plus two segments.
//
// No turn reads much more than maxCleanStep bytes, even after a very large job; the next
// turns read the rest. Only a log that is about to become too large is cleaned at once.
const (
	cleanRatio   = 4
	cleanStep    = 64 << 10   // minimum bytes read per turn
	maxCleanStep = 512 << 10  // maximum bytes read per turn, unless the log is too large
	cleanPause   = int64(2e6) // ns between two steps while the server is idle

	maxShort = 8 // maximum number of segments that are less than half full

	removalCost = cleanStep / 8 // cost of a segment's removal, in bytes read
	lookCost    = 64            // cost of a job that need not be written
)

// A cleaner compacts the log in small steps.
type cleaner struct {
	j        *Journal
	appended int64   // bytes appended since the last step
	missed   int64   // bytes that earlier steps should have read
	from     wal.Pos // position of the next record to read in the oldest segment
}

// kept returns the approximate size of the log after a rewrite, in bytes. The overhead
// matters for tiny segments: without it, cleaning would never end.
func (c *cleaner) kept() int64 {
	n := c.j.index.live + c.j.persistentState.bytes
	return n + c.j.files.Overhead(n)
}

// due reports whether cleaning is due.
func (c *cleaner) due() bool {
	j, kept := c.j, c.kept()
	return j.bytes > kept+kept/2+j.opt.SegmentSize || len(j.files.Sealed()) > maxShort+int(2*j.bytes/j.opt.SegmentSize)
}

// late reports whether the log is about to exceed its limit.
func (c *cleaner) late() bool { return c.j.bytes > 2*c.kept()+c.j.opt.SegmentSize }

// step performs a step of cleaning, if one is due, and returns the time of the next step.
func (c *cleaner) step(now int64) (next int64) {
	j := c.j
	want := c.missed + cleanRatio*c.appended
	step := max(cleanStep, want)
	if !c.late() {
		step = min(step, maxCleanStep)
	}
	budget := step
	defer func() {
		c.appended = 0 // without the records that cleaning itself appended
		c.missed = 0
		if c.due() {
			c.missed = max(0, want-(step-budget))
		}
	}()
	if j.rewrite != nil {
		return j.rewrite.step(now) // the rewrite removes all segments that need cleaning
	}
	for budget > 0 && c.due() {
		oldest, ok := j.files.Oldest()
		if !ok {
			return engine.Never // all records are in the active segment
		}
		if j.index.jobsIn[uint32(oldest.Sequence)] > 0 {
			n, err := c.copyJobs(oldest, budget)
			switch {
			case j.rewrite != nil: // the segment is damaged
				return now + cleanPause
			case errors.Is(err, errInFlight):
				return engine.Never // the turn that appends a change of the job continues
			case err != nil:
				return now + healPause // the disk is full or fails
			}
			budget -= n
			continue
		}
		if removed, err := c.remove(oldest, &budget); err != nil {
			return now + healPause
		} else if !removed {
			return now + cleanPause // the next turn continues
		}
		budget -= removalCost
	}
	if c.due() {
		return now + cleanPause
	}
	j.health.clear(uncleaned) // no work is left
	return engine.Never
}

// errInFlight reports that the committed state of a job is unknown until a change in
// flight is appended.
var errInFlight = errors.New("a change of the job is in flight")

// copyJobs reads about budget bytes of the oldest segment, and writes the job of each
// complete record again. It returns the number of bytes that it read.
func (c *cleaner) copyJobs(oldest wal.Segment, budget int64) (n int64, err error) {
	if c.from.Segment != oldest.Sequence {
		c.from = wal.Pos{Segment: oldest.Sequence}
	}
	j, from := c.j, c.from
	next, done, err := j.files.ReadSealed(from, budget, c.copyJob)
	c.from = next
	if err == nil && done && j.index.jobsIn[uint32(oldest.Sequence)] > 0 {
		err = errMissingJobs
	}
	switch {
	case unreadable(err):
		j.damaged(oldest.Sequence, err)
	case err != nil && !errors.Is(err, errInFlight):
		j.health.set(uncleaned, err)
	}
	return next.Offset - from.Offset, err
}

// copyJob writes a job again if r is the job's whole record.
func (c *cleaner) copyJob(r wal.Record) error {
	id, ok := record.PutID(r.Payload)
	if !ok {
		return nil
	}
	j := c.j
	job, exists := j.eng.Snapshot(id)
	segment := job.Segment
	if f, flies := j.index.inFlight.of(id); flies {
		segment = f.segment
	}
	if uint64(segment) != r.Segment {
		return nil // the job is deleted, or a newer segment contains its whole record
	}
	if !exists || !j.index.inFlight.committed(&job) {
		return errInFlight
	}
	_, err := j.appendWithSpare(&job)
	if err == nil {
		j.stats.Migrated++
	}
	return err
}

// remove removes the oldest segment, which contains no whole record of a live job. It
// returns false if it must copy more than budget bytes first. The records that it writes
// need not be durable: they precede the record of the removal, and the log keeps the file
// until that record is durable.
func (c *cleaner) remove(oldest wal.Segment, budget *int64) (bool, error) {
	done, err := c.copyOtherRecords(oldest.Sequence, budget)
	if err == nil && done {
		err = c.removeOldest()
	}
	switch {
	case err != nil:
		c.j.health.set(uncleaned, err)
	case done:
		c.j.health.clear(uncleaned)
	}
	return done, err
}

// removeOldest removes the oldest segment. It can use the space that is reserved for
// cleaning.
func (c *cleaner) removeOldest() error {
	j := c.j
	if err := j.space.withSpare(j.files.RemoveOldest); err != nil {
		return err
	}
	j.dirty = true
	j.bytes = j.files.Stats().Bytes
	return nil
}

// copyOtherRecords writes the last id, the last Applied and the persistent state again if
// their last records are in a segment that will be removed. It lowers budget; done is
// false if the budget was too small.
func (c *cleaner) copyOtherRecords(going uint64, budget *int64) (done bool, err error) {
	j := c.j
	if j.lastID <= going {
		if _, err := j.appendWithSpare(&engine.Change{Kind: engine.LastID, ID: j.eng.LastID()}); err != nil {
			return false, err
		}
	}
	if last := j.applied.last; j.applied.segment <= going && last != (Applied{}) {
		mark := last.Change() // the mark is still correct: only changes were appended since
		if _, err := j.appendWithSpare(&mark); err != nil {
			return false, err
		}
	}
	return j.copyPersistentState(going, budget)
}
