package journal

import "github.com/beanpole-mq/beanpole/internal/engine"

// inFlight contains the changes that a leader's engine has executed and the journal has
// not appended, because the cluster has not committed them, or has only just committed
// them. For a job with such changes, the engine has neither the segment of the whole
// record nor the committed state.
type inFlight struct {
	jobs     map[uint64]pendingJob
	reserved []int64 // bytes that Admit reserved for the record of each change, in order
}

// A pendingJob is a job with changes in flight, in the journal's state.
type pendingJob struct {
	changes int            // J5: number of changes in flight, at least one
	segment uint32         // J5: segment of the whole record, or 0 if there is none
	slot    uint32         // see engine.Change.Slot
	tube    string         // unless segment is 0
	from    string         // its origin, unless segment is 0
	body    int            // J5: number of changes after which the body is the engine's; if changes is larger, the journaled body is unknown
	state   *engine.Change // nil if unknown: the journal has appended no change since the engine had the same state
}

// isJob reports whether a change concerns a job.
func isJob(kind engine.ChangeKind) bool {
	switch kind {
	case engine.JobPut, engine.JobState, engine.JobDeleted, engine.JobMoved:
		return true
	}
	return false
}

// of returns the pendingJob with an id, if there is one.
func (in *inFlight) of(id uint64) (f pendingJob, ok bool) {
	if len(in.jobs) == 0 { // as on a single server
		return f, false
	}
	f, ok = in.jobs[id]
	return f, ok
}

// add adds a change. reserved is the number of bytes that are reserved for its record.
func (in *inFlight) add(c *engine.Change, reserved int64) {
	in.reserved = append(in.reserved, reserved)
	if !isJob(c.Kind) {
		return
	}
	f, ok := in.jobs[c.ID]
	if !ok {
		f = pendingJob{segment: c.Segment, slot: c.Slot, tube: c.Tube, from: c.Origin}
		switch c.Kind {
		case engine.JobPut:
			f.segment = 0
		case engine.JobMoved:
			f.tube, f.from = c.From, c.Was
		}
	}
	f.changes++
	if c.Kind == engine.JobMoved && c.From == c.Tube {
		f.body = f.changes
	}
	in.jobs[c.ID] = f
}

// committed changes c, a job in the engine's state, to the job in the journal's state. ok
// is false if that state is unknown until another change of the job is appended.
func (in *inFlight) committed(c *engine.Change) (ok bool) {
	f, ok := in.of(c.ID)
	if !ok {
		return true
	}
	if f.state == nil || f.body > 0 {
		return false
	}
	body, n := c.Body, c.BodyLen
	*c = *f.state
	c.Kind, c.Tube, c.Origin, c.Body, c.BodyLen, c.Segment, c.Slot = engine.JobPut, f.tube, f.from, body, n, f.segment, f.slot
	return true
}

// Stage accepts changes that the leader's engine has executed and the cluster has not
// committed. The leader calls it in place of Append. AppendCommitted must follow for each
// change, in the same order, or the journal must be closed.
func (j *Journal) Stage(changes []engine.Change) {
	for i := range changes {
		c := &changes[i]
		n := int64(0)
		if c.Kind != engine.TubeGone {
			n = costOf(c)
		}
		j.index.inFlight.add(c, n)
		c.Segment = 0 // the pendingJob stores it
		j.index.weigh(c)
	}
}

// InFlight returns the number of changes in flight. It must be called within a turn.
func (j *Journal) InFlight() int { return len(j.index.inFlight.reserved) }
