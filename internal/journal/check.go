package journal

import (
	"errors"
	"fmt"
	"maps"
	"math"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// Check tests every invariant of the package and reports all that are broken,
// each with its number. It is for tests, and for a server that somebody suspects. It
// must be called within a turn, before anything is changed in it.
func (j *Journal) Check() error {
	var broken []error
	assert := func(ok bool, format string, args ...any) {
		if !ok {
			broken = append(broken, fmt.Errorf(format, args...))
		}
	}
	st := j.files.Stats()
	newest := st.Current
	if newest == 0 {
		newest = math.MaxUint32 // Stats does not tell which of the sealed ones is
	}
	live, jobs, marks := int64(0), 0, make(map[uint32]int)
	facts := 0
	for id, f := range j.inFlight.jobs {
		facts += f.facts
		assert(f.facts > 0, "J6: job %d has %d facts in flight", id, f.facts)
		if f.mark != 0 {
			marks[f.mark]++
		}
	}
	assert(facts <= len(j.inFlight.reserved), "J6: %d facts of jobs are in flight, of %d", facts, len(j.inFlight.reserved))
	owedPut, owedPause := make(map[uint64]bool), make(map[string]bool)
	for _, c := range j.backlog {
		owedPut[c.ID] = owedPut[c.ID] || c.Kind == engine.JobPut || c.Kind == engine.JobMoved
		owedPause[c.Tube] = owedPause[c.Tube] || c.Kind == engine.TubePaused
	}
	for c := range j.eng.Snapshots {
		jobs++
		live += weight(&c)
		if owedPut[c.ID] {
			assert(c.Mark == 0, "J5: job %d is in the backlog, and in segment %d", c.ID, c.Mark)
			continue
		}
		if _, ok := j.inFlight.jobs[c.ID]; ok {
			continue
		}
		marks[c.Mark]++
		assert(uint64(c.Mark) >= st.Oldest && uint64(c.Mark) <= newest, "J2: job %d is in segment %d of %d to %d", c.ID, c.Mark, st.Oldest, newest)
	}
	assert(j.live == live, "J1: live is %d, the jobs weigh %d", j.live, live)
	assert(maps.Equal(j.marks, marks), "J2: marks are %v, not %v", j.marks, marks)
	assert(j.space.held+j.space.unreserved == jobs, "J3: %d deletions are reserved, %d are not, of %d jobs", j.space.held, j.space.unreserved, jobs)
	reserved := int64(j.space.held)*deletion + int64(j.space.standbys)*j.standby() + int64(j.space.states)*state
	if len(j.inFlight.reserved) == 0 { // else it depends on the size of each
		assert(st.Reserved == reserved, "J3: %d bytes are reserved, not %d", st.Reserved, reserved)
	}
	assert(j.failure() != nil || st.Room >= st.Reserved, "J3: there is room for %d bytes, and %d are reserved", st.Room, st.Reserved)
	queued, pauses := make(map[pausedTube]bool), int64(0)
	for i, p := range j.pauses.queue {
		queued[p] = true
		assert(i == 0 || p.segment >= j.pauses.queue[i-1].segment, "J4: the queue of pauses is out of order")
	}
	for tube, last := range j.pauses.at {
		segment := last.segment
		assert(segment <= newest && segment >= st.Oldest, "J4: the pause of tube %q is in segment %d of %d to %d", tube, segment, st.Oldest, newest)
		assert(queued[pausedTube{tube, segment}], "J4: the pause of tube %q is not in the queue", tube)
		pauses += pauseWeight(tube)
	}
	assert(j.pauses.bytes == pauses, "J4: pauses take %d bytes, not %d", j.pauses.bytes, pauses)
	for c := range j.eng.Pauses {
		_, ok := j.pauses.at[c.Tube]
		assert(ok || owedPause[c.Tube] || c.Due <= j.now || len(j.inFlight.reserved) > 0, "J4: the pause of tube %q has no record", c.Tube)
	}
	assert((len(j.backlog) > 0) == (j.backlogErr != nil), "J5: the backlog has %d changes, and its error is %v", len(j.backlog), j.backlogErr)
	return errors.Join(broken...)
}
