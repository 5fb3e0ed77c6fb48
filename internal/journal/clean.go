package journal

import (
	"errors"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/journal/record"
	"github.com/beanpole-mq/beanpole/internal/wal"
)

// Cleaning is due when the log is larger than one and a half times what the jobs would
// take, plus a segment: at least a third of it is dead. It is also due when there are many
// more segments than the bytes need: each start that writes begins one. While a turn
// appends n bytes, cleaning reads cleanRatio times as many old ones, so that a pass ends
// before the log has grown to twice its live data plus two segments.
//
// No turn reads much more than maxCleanStep bytes, even after a very large job; the next
// ones make up for it. Only a log that is about to become too large is cleaned at once.
const (
	cleanRatio   = 4
	cleanStep    = 64 << 10   // bytes looked at in a turn at least
	maxCleanStep = 512 << 10  // bytes looked at in a turn at most, if the log is not too large
	cleanPause   = int64(2e6) // ns between two steps while nothing else happens

	maxShort = 8 // segments that may be there beside those that are at least half full

	removalCost = cleanStep / 8 // what the removal of a segment counts for, in bytes looked at
	lookCost    = 64            // what a job counts for that need not be written
)

// A cleaner cleans, a step at a time.
type cleaner struct {
	j        *Journal
	appended int64   // bytes appended since the last step
	missed   int64   // bytes that earlier steps should have looked at
	from     wal.Pos // in the oldest segment: up to here it has been looked at
}

// kept returns what the log would take if everything was rewritten, about. The
// overhead matters where segments are tiny: cleaning would never end without it.
func (c *cleaner) kept() int64 {
	n := c.j.index.live + c.j.standing.bytes
	return n + c.j.files.Overhead(n)
}

// due tells whether cleaning is due.
func (c *cleaner) due() bool {
	j, kept := c.j, c.kept()
	return j.bytes > kept+kept/2+j.opt.SegmentSize || len(j.files.Sealed()) > maxShort+int(2*j.bytes/j.opt.SegmentSize)
}

// late tells whether the log is about to become larger than it may.
func (c *cleaner) late() bool { return c.j.bytes > 2*c.kept()+c.j.opt.SegmentSize }

// step does a step of cleaning, if it is due, and returns when the next is.
func (c *cleaner) step(now int64) (next int64) {
	j := c.j
	want := c.missed + cleanRatio*c.appended
	step := max(cleanStep, want)
	if !c.late() {
		step = min(step, maxCleanStep)
	}
	budget := step
	defer func() {
		c.appended = 0 // what cleaning itself appends is no reason to do more
		c.missed = 0
		if c.due() {
			c.missed = max(0, want-(step-budget))
		}
	}()
	if j.rewriting != nil {
		return j.rewriting.step(now) // it removes all segments that are to be cleaned
	}
	for budget > 0 && c.due() {
		oldest, ok := j.files.Oldest()
		if !ok {
			return engine.Never // all is in the current segment
		}
		if j.index.jobsIn[uint32(oldest.Sequence)] > 0 {
			n, err := c.copyJobs(oldest, budget)
			switch {
			case j.rewriting != nil: // the segment is damaged
				return now + cleanPause
			case errors.Is(err, errInFlight):
				return engine.Never // the turn that appends a fact of the job will go on
			case err != nil:
				return now + healPause // the disk is full, or fails
			}
			budget -= n
			continue
		}
		if removed, err := c.remove(oldest, &budget); err != nil {
			return now + healPause
		} else if !removed {
			return now + cleanPause // the next turn goes on
		}
		budget -= removalCost
	}
	if c.due() {
		return now + cleanPause
	}
	j.health.ended(uncleaned) // there is nothing to do any more
	return engine.Never
}

// errInFlight means that the state of a job that the journal should have is not known
// before a fact of it that is in flight was appended.
var errInFlight = errors.New("a fact of a job is in flight")

// copyJobs reads about budget bytes of the oldest segment and writes the jobs again whose
// whole record is there. It returns how many bytes it read, or why it cannot go on now.
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
		j.health.has(uncleaned, err)
	}
	return next.Offset - from.Offset, err
}

// copyJob writes a job again if r is its whole record.
func (c *cleaner) copyJob(r wal.Record) error {
	if !record.IsPut(r.Payload) {
		return nil
	}
	j := c.j
	put, err := record.Decode(r.Payload, j.opt.Epoch, j.tubes)
	if err != nil {
		return err
	}
	job, ok := j.eng.Snapshot(put.ID)
	if f, flies := j.index.inFlight.of(put.ID); flies {
		job, ok = put, true // with the body of the record
		job.Segment = f.segment
	}
	if !ok || uint64(job.Segment) != r.Segment {
		return nil
	}
	if !j.index.inFlight.committed(&job) {
		return errInFlight
	}
	_, err = j.appendWithStandby(&job)
	if err == nil {
		j.stats.Migrated++
	}
	return err
}

// remove removes the oldest segment, which has no whole record of a live job. It returns
// false if it has to copy more than budget bytes first. Copies and deletions need not be
// durable: the log keeps the file until the record of its removal is, which is later.
func (c *cleaner) remove(oldest wal.Segment, budget *int64) (bool, error) {
	done, err := c.copyOtherRecords(oldest.Sequence, budget)
	if err == nil && done {
		err = c.removeOldest()
	}
	switch {
	case err != nil:
		c.j.health.has(uncleaned, err)
	case done:
		c.j.health.ended(uncleaned)
	}
	return done, err
}

// removeOldest removes the oldest segment with the room that is set aside for
// cleaning.
func (c *cleaner) removeOldest() error {
	j := c.j
	if err := j.space.withStandby(j.files.RemoveOldest); err != nil {
		return err
	}
	j.dirty = true
	j.bytes = j.files.Stats().Bytes
	return nil
}

// copyOtherRecords writes the last id, the last Applied and what is standing again, if
// their last records are in a segment that is about to be removed. It lowers budget; done
// is false if that was not enough.
func (c *cleaner) copyOtherRecords(going uint64, budget *int64) (done bool, err error) {
	j := c.j
	if j.lastID <= going {
		if _, err := j.appendWithStandby(&engine.Change{Kind: engine.LastID, ID: j.eng.LastID()}); err != nil {
			return false, err
		}
	}
	if last := j.applied.last; j.applied.segment <= going && last != (Applied{}) {
		mark := last.Change() // it is still true: only facts were appended since
		if _, err := j.appendWithStandby(&mark); err != nil {
			return false, err
		}
	}
	return j.copyStanding(going, budget)
}
