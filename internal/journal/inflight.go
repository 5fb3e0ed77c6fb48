package journal

import "github.com/beanpole-mq/beanpole/internal/engine"

// inFlight has what the engine of a leader has done, and the journal does not have yet:
// facts that are not committed, or are and were not appended yet. Meanwhile neither the
// place of such a job's whole record nor its committed state can be asked of the engine.
type inFlight struct {
	jobs     map[uint64]flight
	reserved []int64 // for each fact, in order, the bytes that Admit has reserved for its record
}

// A flight is a job with facts in flight, as the journal has it.
type flight struct {
	facts   int            // J5: in flight, at least one
	segment uint32         // J5: segment of the whole record; 0: it has none
	slot    uint32         // see engine.Change.Slot
	tube    string         // unless segment is 0
	from    string         // its origin, unless segment is 0
	body    int            // J5: with so many facts the body is that of the engine; until then the one that the journal has is not known
	state   *engine.Change // nil: not known, because none of the facts since the engine was the same is in the journal
}

// isJob reports whether a change is one of a job.
func isJob(kind engine.ChangeKind) bool {
	switch kind {
	case engine.JobPut, engine.JobState, engine.JobDeleted, engine.JobMoved:
		return true
	}
	return false
}

// of returns what is in flight of a job, if anything is.
func (in *inFlight) of(id uint64) (f flight, ok bool) {
	if len(in.jobs) == 0 { // as in a single server
		return f, false
	}
	f, ok = in.jobs[id]
	return f, ok
}

// add notes a fact, for which some bytes are reserved.
func (in *inFlight) add(c *engine.Change, reserved int64) {
	in.reserved = append(in.reserved, reserved)
	if !isJob(c.Kind) {
		return
	}
	f, ok := in.jobs[c.ID]
	if !ok {
		f = flight{segment: c.Segment, slot: c.Slot, tube: c.Tube, from: c.Origin}
		switch c.Kind {
		case engine.JobPut:
			f.segment = 0
		case engine.JobMoved:
			f.tube, f.from = c.From, c.Was
		}
	}
	f.facts++
	if c.Kind == engine.JobMoved && c.From == c.Tube {
		f.body = f.facts
	}
	in.jobs[c.ID] = f
}

// committed makes c, a job as its engine has it, what the journal says of it. ok is false
// if that is not known before another fact of the job is appended.
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

// Executed takes changes that the engine has made, and that a cluster has not agreed on
// yet. It is for the leader, in place of Append. AppendCommitted will come for each of
// them, in the same order, or the journal is closed.
func (j *Journal) Executed(changes []engine.Change) {
	for i := range changes {
		c := &changes[i]
		n := int64(0)
		if c.Kind != engine.TubeGone {
			n = cost(c.Kind, len(c.Tube), len(c.Body))
		}
		j.index.inFlight.add(c, n)
		c.Segment = 0 // the flight has it
		j.index.weigh(c)
	}
}

// InFlight returns how many facts are in flight. It must be called within a turn.
func (j *Journal) InFlight() int { return len(j.index.inFlight.reserved) }
