package engine

import (
	"cmp"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
)

// A queueTwin is a queue with the list of its expected jobs.
type queueTwin struct {
	t      testing.TB
	jobs   jobSlab
	q      queue
	lastID uint64
	there  []slot // in the order of arrival
}

func newQueueTwin(t testing.TB) *queueTwin {
	q := &queueTwin{t: t, jobs: newJobSlab()}
	q.q.jobs = &q.jobs
	return q
}

// push adds a ready job.
func (q *queueTwin) push(pri uint32, id uint64) {
	i, j := q.jobs.alloc()
	q.lastID = max(q.lastID, id)
	j.id, j.pri = id, pri
	j.setState(Ready)
	q.q.push(readyKey(j), i, j)
	q.there = append(q.there, i)
}

// remove removes the nth pushed job.
func (q *queueTwin) remove(n int) {
	i := q.there[n]
	q.q.remove(i, q.jobs.at(i))
	q.jobs.free(i, q.jobs.at(i))
	q.there = slices.Delete(q.there, n, n+1)
}

func (q *queueTwin) compare(a, b slot) int {
	x, y := q.jobs.at(a), q.jobs.at(b)
	return cmp.Or(cmp.Compare(x.pri, y.pri), cmp.Compare(x.id, y.id))
}

// check compares the whole order, and the order of the jobs after one of them.
func (q *queueTwin) check(at int) {
	q.t.Helper()
	c := checker{e: &Engine{jobs: q.jobs}}
	c.queue("the queue", &q.q, Ready, func(*job) bool { return true })
	c.slots("leaves", &q.jobs.leaves.slots)
	if err := errors.Join(c.broken...); err != nil {
		q.t.Fatal(err)
	}
	sorted := slices.SortedFunc(slices.Values(q.there), q.compare)
	if got := slices.Collect(q.q.after(key{})); !slices.Equal(got, sorted) || q.q.n != len(sorted) {
		q.t.Fatalf("the queue has %d jobs, counts %d, want %d", len(got), q.q.n, len(sorted))
	}
	if len(sorted) > 0 {
		at %= len(sorted)
		if q.q.top() != sorted[0] || !slices.Equal(slices.Collect(q.q.after(q.jobs.keyAt(sorted[at]))), sorted[at+1:]) {
			q.t.Fatalf("the first job, or the jobs after job %d of %d, are others", at, len(sorted))
		}
	} else if q.q.top() != none || q.q.due() != Never {
		q.t.Fatal("an empty queue has a job")
	}
}

// FuzzQueue interprets bytes as operations, three at a time.
func FuzzQueue(f *testing.F) {
	rng := rand.New(rand.NewPCG(5, 6))
	for n := range 12 {
		ops := make([]byte, 300<<(n%4))
		for k := range ops {
			ops[k] = byte(rng.Uint32())
			if n%2 == 0 && k%3 == 0 {
				ops[k] %= 4 // mainly puts
			}
		}
		f.Add(ops)
	}
	f.Fuzz(func(t *testing.T, ops []byte) {
		q := newQueueTwin(t)
		for step := 0; len(ops) >= 3; step++ {
			what, how := ops[0]%8, int(binary.LittleEndian.Uint16(ops[1:]))
			ops = ops[3:]
			switch n := len(q.there); {
			case what < 2:
				q.push(uint32(how%20), q.lastID+1)
			case what == 2: // adds hundreds of jobs, in order
				for range how % 400 {
					q.push(uint32(how%3), q.lastID+1)
				}
			case what == 3: // adds hundreds of jobs, out of order
				for k := range how % 400 {
					q.push(uint32(k*how%997), q.lastID+1)
				}
			case what == 4 && n > 0:
				q.remove(how % n)
			case what == 5: // adds hundreds of adjacent jobs
				for at := how % (n + 1); at < len(q.there) && how%512 > 0; how-- {
					q.remove(at)
				}
			case what == 6 && n > 0: // removes hundreds of jobs from the head
				for range min(n, how%400) {
					q.remove(slices.Index(q.there, q.q.top()))
				}
			case what == 7 && n > 0: // returns a job to its place
				id := q.jobs.at(q.there[how%n]).id
				pri := q.jobs.at(q.there[how%n]).pri
				q.remove(how % n)
				q.push(pri, id)
			}
			if step%64 == 0 {
				q.check(how)
			}
		}
		q.check(0)
		for len(q.there) > 0 {
			q.remove(0)
		}
		q.check(0)
		if len(q.q.pages) > 0 && (len(q.q.pages) > 1 || len(q.q.pages[0].leaves) > 1) {
			t.Errorf("the empty queue has %d pages", len(q.q.pages))
		}
	})
}

// Pages of leaves are split when jobs are inserted in the middle, and removed when they
// are empty.
func TestQueuePages(t *testing.T) {
	const jobs = 3 * pageLeaves * leafJobs
	rng := seeded(t)
	for _, order := range []func(k int) uint32{
		func(k int) uint32 { return 0 },
		func(k int) uint32 { return uint32(jobs - k) },
		func(int) uint32 { return rng.Uint32() },
		func(k int) uint32 { return uint32(k % 3) },
	} {
		q := newQueueTwin(t)
		for k := range jobs {
			q.push(order(k), uint64(k+1))
		}
		q.check(rng.IntN(jobs))
		if pages := len(q.q.pages); pages < 3 || pages > 12 {
			t.Errorf("%d jobs are in %d pages", jobs, pages)
		}
		rng.Shuffle(jobs, func(a, b int) { q.there[a], q.there[b] = q.there[b], q.there[a] })
		for n, i := range q.there {
			if q.q.remove(i, q.jobs.at(i)); n == jobs/2 {
				q.there, n = q.there[n+1:], 0
				q.check(rng.IntN(jobs / 2))
			}
		}
		if q.q.n != 0 || len(q.q.pages) != 1 || len(q.q.pages[0].leaves) != 1 {
			t.Errorf("%d jobs are left, in %d pages", q.q.n, len(q.q.pages))
		}
	}
}
