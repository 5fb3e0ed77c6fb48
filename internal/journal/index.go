package journal

import "github.com/beanpole-mq/beanpole/internal/engine"

// An index has where the whole record of each job is, and how much the jobs weigh. The
// segment of a job that has no facts in flight is noted beside it in the engine.
type index struct {
	eng      *engine.Engine
	inFlight inFlight       // J5: of the leader of a cluster
	live     int64          // J1; bytes
	jobsIn   map[uint32]int // J2
}

// set notes the segment of a job's whole record.
func (x *index) set(c *engine.Change, segment uint32) {
	f, ok := x.inFlight.of(c.ID)
	before := f.segment
	if ok {
		f.segment = segment
		x.inFlight.jobs[c.ID] = f
	} else if before, ok = x.eng.SetSegment(c, segment); !ok {
		return // the job is deleted, perhaps by the next change
	}
	x.uncount(before)
	x.jobsIn[segment]++
}

// uncount counts a job less in its segment, which is 0 if the job has had no record
// before.
func (x *index) uncount(segment uint32) {
	if segment == 0 {
		return
	}
	if x.jobsIn[segment]--; x.jobsIn[segment] == 0 {
		delete(x.jobsIn, segment)
	}
}

// hasBefore reports whether the whole record of a job is in a segment before one.
func (x *index) hasBefore(first uint64) bool {
	for segment := range x.jobsIn {
		if uint64(segment) < first {
			return true
		}
	}
	return false
}

// weigh updates live for a change of a job. If a record of the job is replaced, its
// segment does not count the job any more.
func (x *index) weigh(c *engine.Change) {
	switch c.Kind {
	case engine.JobPut:
		x.live += weight(c)
	case engine.JobMoved:
		if segment, _ := x.eng.SetSegment(c, 0); segment != 0 { // it was put, or moved, in the same turn
			c.Segment = segment
		}
		x.uncount(c.Segment)
		before := *c
		before.Tube, before.BodyLen = c.From, c.FromLen
		x.live += weight(c) - weight(&before)
	case engine.JobDeleted:
		x.live -= weight(c)
		x.uncount(c.Segment)
	}
}

// landed notes that a fact of a job was appended.
func (x *index) landed(c *engine.Change) {
	in := &x.inFlight
	f := in.jobs[c.ID]
	f.facts--
	f.body = max(0, f.body-1)
	switch {
	case c.Kind == engine.JobDeleted:
		x.uncount(f.segment)
		delete(in.jobs, c.ID)
	case f.facts == 0:
		x.eng.SetSegment(&engine.Change{ID: c.ID, Slot: f.slot}, f.segment)
		delete(in.jobs, c.ID)
	default:
		if c.Kind == engine.JobPut {
			f.tube, f.from = c.Tube, c.Origin
		}
		f.state = new(*c)
		f.state.Body = nil
		in.jobs[c.ID] = f
	}
}
