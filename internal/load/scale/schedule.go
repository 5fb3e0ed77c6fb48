package scale

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// A schedule has jobs that are put one after the other, the later ones with a
// shorter delay, so that all come due within the same second, and the order in
// which they were served.
//
// What order is right follows from two rules of the protocol: delayed jobs
// become ready the soonest first, and of ready jobs of the same priority the one
// with the smallest id goes first. So a job goes before another for certain if
// it has the smaller id and comes due before. When a job comes due the client
// does not know exactly, as it sees only when it sent a batch and when it had the
// last answer; but of jobs with the same delay the one put first comes due first.
//
// Not safe for concurrent use, but once the jobs are there one goroutine may
// serve while another asks for lastDue.
type schedule struct {
	total      int
	due        time.Time // the end of the second
	watchFrom  time.Time // the clients are watched from here ...
	watchUntil time.Time // ... to here

	jobs   []scheduled // in the order of the puts, which is that of the ids
	served []int       // indexes of jobs, in the order in which they came
}

// A scheduled job is one that was put.
type scheduled struct {
	id             uint64
	delay          uint32    // s
	soonest, until time.Time // it comes due between these
	served         bool
}

const (
	dueSecond   = time.Second
	slowestPuts = 40_000 // each second, on any server; a plan needs some number
	planSlack   = time.Second
)

// newSchedule plans for n jobs, to be put from now on. Clients are watched for a
// second and the time around, a quarter of which comes before.
func newSchedule(n int64, now time.Time, around time.Duration) *schedule {
	s := &schedule{total: int(n)}
	s.watchFrom = now.Add(planSlack + time.Duration(n)*(time.Second/slowestPuts))
	s.due = s.watchFrom.Add(around/4 + dueSecond)
	s.watchUntil = s.watchFrom.Add(around + dueSecond)
	return s
}

// delay returns the delay of a job that is put now, in seconds: at least one.
func (s *schedule) delay(now time.Time) (uint32, error) {
	if now.After(s.watchFrom) {
		return 0, fmt.Errorf("only %d of %d jobs were put in %v", len(s.jobs), s.total, time.Duration(s.total)*(time.Second/slowestPuts)+planSlack)
	}
	return uint32(s.due.Sub(now) / time.Second), nil
}

// body is that of the job which is put as the i-th.
func (s *schedule) body(i int) []byte { return fmt.Appendf(nil, "%064d", i) }

// bound notes when the jobs from the first on were put.
func (s *schedule) bound(first int, sent, answered time.Time) {
	for i := first; i < len(s.jobs); i++ {
		j := &s.jobs[i]
		delay := time.Duration(j.delay) * time.Second
		j.soonest, j.until = sent.Add(delay), answered.Add(delay)
	}
}

// lastDue is when the last job comes due, or a little before.
func (s *schedule) lastDue() (last time.Time) {
	for i := range s.jobs {
		if at := s.jobs[i].soonest; at.After(last) {
			last = at
		}
	}
	return last
}

// serve notes that a job came, and refuses one that must not.
func (s *schedule) serve(id uint64, body []byte, now time.Time) error {
	i, err := strconv.Atoi(string(body))
	if err != nil || i < 0 || i >= len(s.jobs) || s.jobs[i].id != id {
		return fmt.Errorf("job %d was never put with the body %.80q", id, body)
	}
	j := &s.jobs[i]
	switch {
	case j.served:
		return fmt.Errorf("job %d was served twice", id)
	case now.Before(j.soonest):
		return fmt.Errorf("job %d was served %v before it was due", id, j.soonest.Sub(now))
	}
	j.served = true
	s.served = append(s.served, i)
	return nil
}

// misplaced returns how many jobs were served after one that they go before for
// certain. It is an error if jobs are missing, or if ids do not grow.
func (s *schedule) misplaced() (n int, err error) {
	if len(s.served) != s.total {
		return 0, fmt.Errorf("%d of %d jobs were served", len(s.served), s.total)
	}
	for i := range s.jobs[1:] {
		if s.jobs[i].id >= s.jobs[i+1].id {
			return 0, fmt.Errorf("job %d was put before job %d", s.jobs[i].id, s.jobs[i+1].id)
		}
	}
	last := make(map[uint32]int) // by the delay: the latest put of those served
	before := newSuffixMax(len(s.jobs))
	for _, i := range s.served {
		j := &s.jobs[i]
		if l, ok := last[j.delay]; ok && l > i || before.above(i) > j.until.UnixNano() {
			n++
		}
		last[j.delay] = max(last[j.delay], i)
		before.raise(i, j.soonest.UnixNano())
	}
	return n, nil
}

// A suffixMax has a value for each of n places and returns the largest of those
// above one: a Fenwick tree, both in O(log n).
type suffixMax []int64

func newSuffixMax(n int) suffixMax {
	m := make(suffixMax, n+1)
	for i := range m {
		m[i] = math.MinInt64
	}
	return m
}

// raise gives place i the value v, if it is larger than the one it has.
func (m suffixMax) raise(i int, v int64) {
	for k := len(m) - 1 - i; k < len(m); k += k & -k { // counted from the end, from 1
		m[k] = max(m[k], v)
	}
}

// above returns the largest value of the places after i, or the smallest int64.
func (m suffixMax) above(i int) int64 {
	largest := int64(math.MinInt64)
	for k := len(m) - 2 - i; k > 0; k -= k & -k {
		largest = max(largest, m[k])
	}
	return largest
}
