package journal

import (
	"errors"
	"fmt"
	"maps"
	"math"
)

// Check tests every invariant of the package and returns an error with the number of each
// violated one. It is for tests and for debugging a server. It must be called within a
// turn, before the turn changes anything.
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
		newest = math.MaxUint32 // Stats does not return the newest sealed segment
	}
	live, jobs, jobsIn := int64(0), 0, make(map[uint32]int)
	changes := 0
	for id, f := range j.index.inFlight.jobs {
		changes += f.changes
		assert(f.changes > 0, "J5: job %d has %d changes in flight", id, f.changes)
		if f.segment != 0 {
			jobsIn[f.segment]++
		}
	}
	assert(changes <= len(j.index.inFlight.reserved), "J5: %d changes of jobs are in flight, of %d", changes, len(j.index.inFlight.reserved))
	for c := range j.eng.Snapshots {
		jobs++
		live += weight(&c)
		if _, ok := j.index.inFlight.jobs[c.ID]; ok {
			continue
		}
		jobsIn[c.Segment]++
		assert(uint64(c.Segment) >= st.Oldest && uint64(c.Segment) <= newest, "J2: job %d is in segment %d of %d to %d", c.ID, c.Segment, st.Oldest, newest)
	}
	assert(j.index.live == live, "J1: live is %d, the jobs weigh %d", j.index.live, live)
	assert(maps.Equal(j.index.jobsIn, jobsIn), "J2: jobs in segments are %v, not %v", j.index.jobsIn, jobsIn)
	assert(j.space.deletions.want == jobs, "J3: %d deletions are to be reserved, of %d jobs", j.space.deletions.want, jobs)
	reserved := int64(0)
	for _, r := range j.space.all() {
		assert(r.have >= 0 && r.have <= r.want, "J3: %d of %d reservations of %d bytes", r.have, r.want, r.size)
		reserved += int64(r.have) * r.size
	}
	if len(j.index.inFlight.reserved) == 0 { // otherwise it depends on the size of each reservation
		assert(st.Reserved == reserved, "J3: %d bytes are reserved, not %d", st.Reserved, reserved)
	}
	assert(j.files.Err() != nil || st.Room >= st.Reserved, "J3: there is space for %d bytes, but %d are reserved", st.Room, st.Reserved)
	bytes := int64(0)
	for key, last := range j.persistentState.at {
		segment := last.segment
		assert(segment <= newest && segment >= st.Oldest, "J4: the entry of %q is in segment %d of %d to %d", key, segment, st.Oldest, newest)
		bytes += last.weight(key)
	}
	assert(j.persistentState.bytes == bytes, "J4: the persistent entries take %d bytes, not %d", j.persistentState.bytes, bytes)
	for c := range j.eng.Pauses {
		_, ok := j.persistentState.at[c.Tube]
		assert(ok || c.Due <= j.now || len(j.index.inFlight.reserved) > 0, "J4: the pause of tube %q has no record", c.Tube)
	}
	for c := range j.eng.Named() {
		last, ok := j.persistentState.at[keyOf(&c)]
		assert(ok && last.text == string(c.Body) || len(j.index.inFlight.reserved) > 0, "J4: what was set for %q has no record, or another one", c.Tube)
	}
	return errors.Join(broken...)
}
