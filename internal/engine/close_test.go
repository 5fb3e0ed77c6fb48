package engine

import (
	"fmt"
	"slices"
	"testing"
)

// A session with too many jobs for one turn is closed in slices. It no longer counts, and
// its jobs become ready one after the other while other sessions work.
func TestCloseInSlices(t *testing.T) {
	const now = 7 * second
	e := New(Options{})
	e.slice, e.workLimit = 5, 10 // one slice per Tick
	other := e.Open(nil)
	e.Use(other, []byte("work"))
	holder := e.Open(nil)
	e.Watch(holder, []byte("work"))
	e.Ignore(holder, []byte(DefaultTube))
	for k := range 10 {
		e.Put(0, other, Spec{Pri: uint32(k), TTR: 1}, nil)
	}
	order := []uint64{3, 1, 10, 2, 9, 4, 8, 5, 7, 6}
	for _, id := range order {
		e.ReserveJob(now, holder, id)
	}
	e.Close(now, holder) // frees both tubes and three jobs
	num := holder.num
	for _, ready := range []int{3, 8} {
		if st, want := e.Stats(), uint64(ready); st.Ready != want || st.Reserved != 10-want || st.Sessions != 1 || st.Workers != 0 {
			t.Errorf("after %d jobs: %+v", ready, st)
		}
		for k, id := range order {
			if st, _ := e.JobStats(now, id); (st.State == Ready) != (k < ready) {
				t.Errorf("after %d jobs: number %d of them is %v", ready, k, st.State)
			}
		}
		if st, _ := e.TubeStats(now, []byte("work")); st.Watching != 0 || st.Using != 1 || st.Reserved != uint64(10-ready) {
			t.Errorf("after %d jobs: %+v", ready, st)
		}
		if o := e.Delete(other, order[9]); o != NotFound {
			t.Errorf("after %d jobs: delete of a held job: %v", ready, o)
		}
		if e.Next() > now+60*second {
			t.Errorf("after %d jobs: next is %d", ready, e.Next())
		}
		if s := e.Open(nil); s.num == num {
			t.Errorf("after %d jobs: another session has its number", ready)
		} else {
			e.Close(now, s)
		}
		if err := e.Check(); err != nil {
			t.Error(err)
		}
		e.Tick(now + 60*second) // no TTR expires in the meantime
	}
	if st := e.Stats(); st.Ready != 10 || st.Reserved != 0 || st.Timeouts != 0 || e.Next() != Never {
		t.Errorf("at the end: %+v, next %d", st, e.Next())
	}
	if err := e.Check(); err != nil {
		t.Error(err)
	}
}

// A small session is closed at once, even while a large one is being closed.
func TestCloseDoesNotQueue(t *testing.T) {
	e := New(Options{})
	e.slice = 10
	s := e.Open(nil)
	hold := func(n int) *Session {
		h := e.Open(nil)
		for range n {
			e.Put(0, s, Spec{TTR: 100}, nil)
			mustReserve(t, e, 0, h, 0, OK)
		}
		return h
	}
	much, little := hold(100), hold(1)
	e.Close(0, much)
	before := e.Stats().Ready
	e.Close(0, little)
	if got := e.Stats().Ready - before; got != 1 {
		t.Errorf("%d jobs returned, want 1", got)
	}
	if err := e.Check(); err != nil {
		t.Error(err)
	}
}

// The tubes of a closed session are removed in slices, and the lists are the same as
// after a removal in one step.
func TestCloseManyTubes(t *testing.T) {
	var lists [][]string
	for _, slice := range []int{1000, 7} {
		e := New(Options{})
		e.slice = slice
		keeper, s := e.Open(nil), e.Open(nil)
		for k := range 100 {
			name := fmt.Appendf(nil, "t%d", k)
			e.Watch(s, name)
			if k%3 == 0 {
				e.Watch(keeper, name)
			}
		}
		e.Close(0, s)
		ticks := 0
		for ; e.Next() <= 0; ticks++ {
			if err := e.Check(); err != nil {
				t.Fatal(err)
			}
			e.Tick(0)
		}
		if (ticks > 0) != (slice < 100) {
			t.Errorf("slices of %d: %d ticks", slice, ticks)
		}
		lists = append(lists, e.TubeNames().collect())
	}
	if len(lists[0]) != 35 || !slices.Equal(lists[0], lists[1]) {
		t.Errorf("remaining tubes after a removal at once\n%q, in slices\n%q", lists[0], lists[1])
	}
}

// Returning a job of a closed session takes constant work, even if the session held many
// jobs. With a log, each tick returns the same small number of jobs.
func TestCloseWork(t *testing.T) {
	for _, logged := range []bool{false, true} {
		testCloseWork(t, Options{Logged: logged})
	}
}

func testCloseWork(t *testing.T, opt Options) {
	rng := seeded(t)
	work := func(held int) float64 {
		e := New(opt)
		s := e.Open(nil)
		for range held {
			e.Put(0, s, Spec{TTR: 1 + rng.Uint32N(1000)}, nil)
		}
		for range held {
			mustReserve(t, e, 0, s, 0, OK)
		}
		e.Tick(0)
		e.Close(0, s)
		total := e.turnWork
		for e.Next() <= 0 {
			if e.Tick(0); e.turnWork > maxTurnWork/tickShare+3*maxSlice {
				t.Fatalf("one tick did %d units of work", e.turnWork)
			}
			total += e.turnWork
		}
		if err := e.Check(); err != nil {
			t.Error(err)
		}
		return float64(total) / float64(held)
	}
	if few, many := work(500), work(50_000); many > 1.1*few {
		t.Errorf("%.1f units of work a job of many, %.1f of few", many, few)
	}
}

// DropSessions removes all sessions at once, in any state, and their jobs become ready.
func TestDropSessions(t *testing.T) {
	const now = 7 * second
	e := New(Options{Logged: true})
	tubes := [][]byte{[]byte("a"), []byte("b"), []byte("c"), []byte("d"), []byte("paused"), []byte("empty")}
	var all []*Session
	for n := range 8 {
		s := e.Open(deaf{})
		all = append(all, s)
		e.Use(s, tubes[n%len(tubes)])
		for k := range n {
			e.Watch(s, tubes[k%len(tubes)])
		}
		e.Put(0, s, Spec{TTR: 60, Delay: uint32(n % 2)}, []byte("job"))
	}
	e.Pause(now, []byte("paused"), 60)
	for id := uint64(1); id < 6; id++ {
		e.ReserveJob(now, all[id%2], id)
	}
	for _, s := range all[2:7] {
		e.Reserve(now, s, Forever)
	}
	e.slice, e.workLimit = 2, 4
	e.Close(now, all[1]) // needs more than one turn
	e.TakeChanges()
	if st := e.Stats(); st.Waiting == 0 || st.Reserved == 0 || e.sessions[all[1].num] == nil {
		t.Fatalf("the test has no effect: %+v", st)
	}
	e.DropSessions(now)
	if err := e.Check(); err != nil {
		t.Error(err)
	}
	if st := e.Stats(); st.Sessions+st.Producers+st.Workers+st.Waiting+st.Reserved != 0 || st.Ready+st.Delayed != 8 {
		t.Errorf("%+v", st)
	}
	if n := e.Promises(); n != 0 {
		t.Errorf("%d changes", n)
	}
	if c, ok := e.PauseOf("paused"); !ok || c.Delay != 60 {
		t.Errorf("the pause is %+v, %v", c, ok)
	}
	e.Tick(now + 61*second)
	if err := e.Check(); err != nil {
		t.Error(err)
	}
}
