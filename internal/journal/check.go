package journal

import (
	"errors"
	"fmt"
	"maps"
	"math"
)

// Check tests every invariant of the package and reports all that are broken,
// each with its number. It is for tests and for a server that someone suspects,
// and must be called within a turn before anything is changed in it.
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
	for c := range j.eng.Snapshots {
		jobs++
		live += weight(&c)
		marks[c.Mark]++
		assert(uint64(c.Mark) >= st.Oldest && uint64(c.Mark) <= newest, "J2: job %d is in segment %d of %d to %d", c.ID, c.Mark, st.Oldest, newest)
	}
	assert(j.live == live, "J1: live is %d, the jobs weigh %d", j.live, live)
	assert(maps.Equal(j.marks, marks), "J2: marks are %v, not %v", j.marks, marks)
	assert(j.space.held+j.space.unreserved == jobs, "J3: %d deletions are reserved, %d are not, of %d jobs", j.space.held, j.space.unreserved, jobs)
	reserved := int64(j.space.held)*deletion + int64(j.space.standbys)*2*j.standby()
	assert(st.Reserved == reserved, "J3: %d bytes are reserved, not %d", st.Reserved, reserved)
	for tube, segment := range j.pauses {
		assert(segment <= newest && (segment == 0 || segment >= st.Oldest), "J4: the pause of tube %q is in segment %d of %d to %d", tube, segment, st.Oldest, newest)
	}
	for c := range j.eng.Pauses {
		_, ok := j.pauses[c.Tube]
		assert(ok, "J4: the pause of tube %q is nowhere", c.Tube)
	}
	return errors.Join(broken...)
}
