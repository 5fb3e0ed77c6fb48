package journal

import (
	"bytes"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// An index counts the jobs per segment and their total weight. The engine stores the
// segment of each job's whole record, unless the job has changes in flight.
type index struct {
	eng      *engine.Engine
	inFlight inFlight       // J5: only on the leader of a cluster
	live     int64          // J1; bytes
	jobsIn   map[uint32]int // J2
}

// set sets the segment of a job's whole record.
func (x *index) set(c *engine.Change, segment uint32) {
	f, ok := x.inFlight.of(c.ID)
	before := f.segment
	if ok {
		f.segment = segment
		x.inFlight.jobs[c.ID] = f
	} else if before, ok = x.eng.SetSegment(c, segment); !ok {
		return // the job is deleted, possibly by the next change
	}
	x.removeFrom(before)
	x.jobsIn[segment]++
}

// removeFrom subtracts a job from the count of a segment. segment is 0 if the job had no
// record.
func (x *index) removeFrom(segment uint32) {
	if segment == 0 {
		return
	}
	if x.jobsIn[segment]--; x.jobsIn[segment] == 0 {
		delete(x.jobsIn, segment)
	}
}

// hasBefore reports whether a segment before first contains the whole record of a job.
func (x *index) hasBefore(first uint64) bool {
	for segment := range x.jobsIn {
		if uint64(segment) < first {
			return true
		}
	}
	return false
}

// weigh updates live for a change of a job. If the change replaces the job's record, the
// old segment no longer counts the job.
func (x *index) weigh(c *engine.Change) {
	switch c.Kind {
	case engine.JobPut:
		x.live += weight(c)
	case engine.JobMoved:
		if segment, _ := x.eng.SetSegment(c, 0); segment != 0 { // the job was put or moved in the same turn
			c.Segment = segment
		}
		x.removeFrom(c.Segment)
		before := *c
		before.Tube, before.BodyLen = c.From, c.FromLen
		x.live += weight(c) - weight(&before)
	case engine.JobDeleted:
		x.live -= weight(c)
		x.removeFrom(c.Segment)
	}
}

// appendedChange updates the index for a change in flight that was appended.
func (x *index) appendedChange(c *engine.Change) {
	in := &x.inFlight
	f := in.jobs[c.ID]
	f.changes--
	f.body = max(0, f.body-1)
	switch {
	case c.Kind == engine.JobDeleted:
		x.removeFrom(f.segment)
		delete(in.jobs, c.ID)
	case f.changes == 0:
		x.eng.SetSegment(&engine.Change{ID: c.ID, Slot: f.slot}, f.segment)
		delete(in.jobs, c.ID)
	default:
		if c.Kind == engine.JobPut {
			f.tube, f.from = c.Tube, c.Origin
		}
		f.state = new(*c)
		f.state.Body, f.state.Failure = nil, bytes.Clone(c.Failure)
		f.state.From, f.state.Was = "", ""
		in.jobs[c.ID] = f
	}
}
