package engine

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// A queueTwin is a queue beside the jobs that should be in it, of which it sorts all when it is asked.
type queueTwin struct {
	t      *testing.T
	jobs   jobSlab
	q      queue
	state  State
	lastID uint64
	there  []slot // in the order of coming
	looks  []*twinLook
	late   bool // the numbers in a run begin below 1<<32, of which a job has the low bits
}

// A twinLook is a walk through the queue that goes on while jobs come and leave.
type twinLook struct {
	walk queueWalk
	ids  map[uint64]bool // of the jobs that were there and have stayed
	last entry
}

func newQueueTwin(t *testing.T, state State, least int) *queueTwin {
	q := &queueTwin{t: t, jobs: newJobSlab(), state: state}
	q.jobs.minHeap = least
	return q
}

// push adds a job of a stream, with an id and a time that may be before those of others.
func (q *queueTwin) push(stream uint32, id uint64, when int64) {
	i, j := q.jobs.alloc()
	q.lastID = max(q.lastID, id)
	j.id = id
	j.setState(q.state)
	j.pri, j.delayAndCounts = stream, stream
	q.jobs.cold(j).when = when
	j.created = when
	q.q.push(&q.jobs, i, j)
	if q.late && j.run() != inHeap {
		if r := &q.q.runs.all[j.run()]; r.end == 1 {
			r.head = 1<<32 - 2*chunkSlots
			r.end = r.head + 1
			j.pos = uint32(r.head)
		}
	}
	q.there = append(q.there, i)
}

// remove removes the job that came as the nth.
func (q *queueTwin) remove(n int) {
	i := q.there[n]
	for _, l := range q.looks {
		delete(l.ids, q.jobs.at(i).id)
	}
	q.q.remove(&q.jobs, q.jobs.at(i))
	q.jobs.free(i, q.jobs.at(i))
	q.there = slices.Delete(q.there, n, n+1)
}

// pop removes the first job, and fails if it is another one.
func (q *queueTwin) pop() {
	want := slices.MinFunc(q.there, q.compare)
	if got := q.q.top(); got != want {
		q.t.Fatalf("the first job is %+v, want %+v", q.jobs.at(got), q.jobs.at(want))
	}
	q.remove(slices.Index(q.there, want))
}

// drain removes all jobs, the first ones first.
func (q *queueTwin) drain() {
	q.check()
	slices.SortFunc(q.there, q.compare)
	for ; len(q.there) > 0; q.there = q.there[1:] {
		if got := q.q.top(); got != q.there[0] {
			q.t.Fatalf("the first job is %+v, want %+v", q.jobs.at(got), q.jobs.at(q.there[0]))
		}
		q.q.remove(&q.jobs, q.jobs.at(q.there[0]))
	}
	if q.q.runs != nil || q.q.n > 0 {
		q.t.Errorf("the drained queue has %d jobs, and runs: %v", q.q.n, q.q.runs != nil)
	}
}

// compare is the order that is wanted, said without entries.
func (q *queueTwin) compare(a, b slot) int {
	x, y := q.jobs.at(a), q.jobs.at(b)
	if q.state == Ready {
		return cmp.Or(cmp.Compare(x.pri, y.pri), cmp.Compare(x.id, y.id))
	}
	return cmp.Or(cmp.Compare(q.jobs.when(x), q.jobs.when(y)), cmp.Compare(x.id, y.id))
}

// look begins a walk, and lets those that began before go on.
func (q *queueTwin) look() {
	l := &twinLook{walk: newQueueWalk(q.q.view(&q.jobs, Cursor{})), ids: map[uint64]bool{}}
	for _, i := range q.there {
		l.ids[q.jobs.at(i).id] = true
	}
	q.looks = append(q.looks, l)
	for _, l := range q.looks {
		q.goOn(l, 3)
	}
	if len(q.looks) > 4 {
		q.goOn(q.looks[0], len(q.looks[0].ids)*1000+1000)
		q.looks = q.looks[1:]
	}
}

// goOn takes some steps of a walk, which must end with no job left out.
func (q *queueTwin) goOn(l *twinLook, steps int) {
	for range steps {
		x, ok := l.walk.next(&q.jobs)
		if !ok {
			if len(l.ids) > 0 {
				q.t.Fatalf("a walk has left out %d jobs", len(l.ids))
			}
			return
		}
		if x.before(l.last) {
			q.t.Fatalf("a walk comes to %v after %v", x, l.last)
		}
		l.last = x
		if p := x.slot / slotsPerPage; int(p) < len(q.jobs.pages) && q.jobs.pages[p] != nil && q.jobs.entryAt(x.slot) == x {
			delete(l.ids, q.jobs.at(x.slot).id)
		}
	}
}

// check compares all that can be seen.
func (q *queueTwin) check() {
	q.t.Helper()
	c := checker{e: &Engine{jobs: q.jobs}}
	c.queue("the queue", &q.q, q.state, func(*job) bool { return true })
	if err := errors.Join(c.broken...); err != nil {
		q.t.Fatal(err)
	}
	if q.q.n != len(q.there) {
		q.t.Fatalf("the queue has %d jobs, want %d", q.q.n, len(q.there))
	}
	slices.SortFunc(q.there, q.compare)
	for n := 0; n < len(q.there); n += 1 + len(q.there)/20 {
		after := q.jobs.entryAt(q.there[n]).cursor()
		v := q.q.view(&q.jobs, after)
		for r := v.firstRun(&q.jobs); r != nil; r = nil {
			if !after.before(r.x) {
				q.t.Fatalf("after %v there is %v", after, r.x)
			}
		}
		in := 0
		for k := range v.runs {
			for w := &v.runs[k]; w.next(&q.jobs); w.at++ {
				in++
			}
		}
		want := 0
		for _, i := range q.there[n+1:] {
			want += int(count(q.jobs.at(i).run() != inHeap))
		}
		if in != want {
			q.t.Fatalf("after job %d of %d the runs have %d, want %d", n, len(q.there), in, want)
		}
	}
}

// TestQueue lets jobs come as they do: streams side by side, some that come back in
// order or not, some removed from the middle, until none is left.
func TestQueue(t *testing.T) {
	for _, state := range []State{Ready, Delayed} {
		for _, streams := range []uint32{1, 3, 15, 40, 1 << 31} {
			t.Run(fmt.Sprintf("%v, %d streams", state, streams), func(t *testing.T) {
				rng := seeded(t)
				q := newQueueTwin(t, state, rng.IntN(2)*minHeap)
				q.late = rng.IntN(2) == 0
				var back []job
				for step := range 5000 {
					switch k := rng.IntN(100); {
					case k < 20+40*int(count(step/1250%2 == 0)):
						stream := rng.Uint32N(streams)
						q.push(stream, q.lastID+1+rng.Uint64N(2)<<32*count(k == 0), int64(step)+int64(stream%1000)*500)
					case k < 75 && len(q.there) > 0:
						i := slices.MinFunc(q.there, q.compare)
						back = append(back, *q.jobs.at(i))
						q.pop()
					case k < 80 && len(q.there) > 0:
						q.remove(rng.IntN(len(q.there)))
					case k < 81 && len(q.there) > 300: // a hole of more than a chunk
						at := rng.IntN(len(q.there) - 290)
						for range 290 {
							q.remove(at)
						}
					case k < 84:
						for _, j := range back {
							q.push(j.pri, j.id, j.created)
						}
						back = nil
					case k == 84:
						rng.Shuffle(len(back), func(i, k int) { back[i], back[k] = back[k], back[i] })
					case k == 85:
						back = nil
					case k == 86:
						q.look()
					}
					if step%500 == 0 {
						q.check()
					}
				}
				q.drain()
			})
		}
	}
}

// FuzzQueue lets bytes say what happens, three at a time: what, and how.
func FuzzQueue(f *testing.F) {
	rng := rand.New(rand.NewPCG(5, 6))
	for n := range 8 {
		ops := make([]byte, 300<<(n%4))
		for k := range ops {
			ops[k] = byte(rng.Uint32())
			if n%2 == 0 && k%3 == 0 {
				ops[k] %= 3 // mostly in order
			}
		}
		f.Add(ops)
	}
	f.Fuzz(func(t *testing.T, ops []byte) {
		q := newQueueTwin(t, Ready, len(ops)%3)
		for len(ops) >= 3 {
			what, how := ops[0]%8, binary.LittleEndian.Uint16(ops[1:])
			ops = ops[3:]
			switch n := len(q.there); {
			case what < 2:
				q.push(uint32(how%20), q.lastID+1, 0)
			case what == 2: // some hundreds in order
				for range how % 400 {
					q.push(uint32(how%3), q.lastID+1, 0)
				}
			case what == 3 && q.lastID > 0: // one that was there before, or has never been
				id := 1 + uint64(how)%q.lastID
				if !slices.ContainsFunc(q.there, func(i slot) bool { return q.jobs.at(i).id == id }) {
					q.push(uint32(how%20), id, 0)
				}
			case what == 4 && n > 0:
				q.remove(int(how) % n)
			case what == 5: // some hundreds side by side
				for at := int(how) % (n + 1); at < len(q.there) && how%512 > 0; how-- {
					q.remove(at)
				}
			case what == 6 && n > 0:
				q.pop()
			case what == 7:
				q.look()
			}
		}
		q.drain()
	})
}

// A job in the middle of a run, and the first one before very many holes, are removed without a look
// at the others.
func TestQueueHoles(t *testing.T) {
	const jobs = 50_000
	q := newQueueTwin(t, Ready, 0)
	for id := range uint64(jobs) {
		q.push(0, id+1, 0)
		q.push(1, id+1, 0)
	}
	r := &q.q.runs.all[0]
	stays := map[slot]bool{r.chunks[0].first(): true, r.chunks[len(r.chunks)-1].first(): true}
	for _, i := range q.there {
		if j := q.jobs.at(i); j.run() == 0 && !stays[i] {
			if work := q.q.remove(&q.jobs, j); work > 2*chunkSlots/looksPerUnit {
				t.Fatalf("a job in the middle took %d units", work)
			}
		}
	}
	if kept := slices.IndexFunc(r.chunks[1:], func(c chunk) bool { return c.slots != nil }); kept != len(r.chunks)-2 {
		t.Errorf("chunk %d of %d is kept without jobs", kept, len(r.chunks))
	}
	if work := q.q.remove(&q.jobs, q.jobs.at(r.chunks[0].first())); work > jobs/chunkSlots/looksPerUnit+2*chunkSlots/looksPerUnit {
		t.Errorf("the job before all holes took %d units", work)
	}
}

// A run takes no more jobs than can be told apart by the low bits of their numbers.
func TestLongestRun(t *testing.T) {
	rs := runs{all: []run{{n: 1, chunks: make([]chunk, maxChunks-1)}}}
	next := entry{hi: 1}
	if k := rs.find(next, 0); k != 0 {
		t.Errorf("a run with room for a chunk does not take a job: %d", k)
	}
	rs.all[0].chunks = make([]chunk, maxChunks)
	if k := rs.find(next, 0); k != inHeap {
		t.Errorf("a run of 1<<31 places takes a job: %d", k)
	}
}
