package engine

import (
	"fmt"
	"slices"
	"testing"
)

// The jobs of eachState, all in the tube "work".
const (
	readyJob uint64 = 1 + iota
	delayedJob
	buriedJob
	myJob    // reserved by me
	theirJob // reserved by another
	noJob    // never was
)

// eachState returns an engine with a job in each state and a second session.
func eachState(opt Options, now int64) (e *Engine, me, other *Session) {
	e = New(opt)
	me, other = e.Open(nil), e.Open(nil)
	e.Use(me, []byte("work"))
	for id := readyJob; id < noJob; id++ {
		spec := Spec{Pri: 10, TTR: 60}
		if id == delayedJob {
			spec.Delay = 30
		}
		e.Put(now, me, spec, []byte("hello"))
	}
	e.ReserveJob(now, me, buriedJob)
	e.Bury(me, buriedJob, 10)
	e.ReserveJob(now, me, myJob)
	e.ReserveJob(now, other, theirJob)
	return e, me, other
}

// TestCommandByState is the table of the reference: what each command answers
// for a job in each state, and which state the job is in after.
func TestCommandByState(t *testing.T) {
	const now = 1000 * second
	const gone = State(0)
	commands := map[string]func(e *Engine, s *Session, id uint64) Outcome{
		"delete":         func(e *Engine, s *Session, id uint64) Outcome { return e.Delete(s, id) },
		"release":        func(e *Engine, s *Session, id uint64) Outcome { return e.Release(now, s, id, 1, 0) },
		"release, delay": func(e *Engine, s *Session, id uint64) Outcome { return e.Release(now, s, id, 1, 7) },
		"bury":           func(e *Engine, s *Session, id uint64) Outcome { return e.Bury(s, id, 1) },
		"touch":          func(e *Engine, s *Session, id uint64) Outcome { return e.Touch(now, s, id) },
		"kick-job":       func(e *Engine, _ *Session, id uint64) Outcome { return e.KickJob(now, id) },
		"reserve-job": func(e *Engine, s *Session, id uint64) Outcome {
			_, o := e.ReserveJob(now, s, id)
			return o
		},
		"peek":      func(e *Engine, _ *Session, id uint64) Outcome { _, o := e.Peek(id); return o },
		"stats-job": func(e *Engine, _ *Session, id uint64) Outcome { _, o := e.JobStats(now, id); return o },
	}
	const same = State(99) // NotFound, and nothing changes
	table := []struct {
		command string
		after   [5]State // of the ready, delayed, buried, mine, theirs
	}{
		{"delete", [5]State{gone, gone, gone, gone, same}},
		{"release", [5]State{same, same, same, Ready, same}},
		{"release, delay", [5]State{same, same, same, Delayed, same}},
		{"bury", [5]State{same, same, same, Buried, same}},
		{"touch", [5]State{same, same, same, Reserved, same}},
		{"kick-job", [5]State{same, Ready, Ready, same, same}},
		{"reserve-job", [5]State{Reserved, Reserved, Reserved, same, same}},
		{"peek", [5]State{Ready, Delayed, Buried, Reserved, Reserved}},
		{"stats-job", [5]State{Ready, Delayed, Buried, Reserved, Reserved}},
	}
	for _, row := range table {
		for k, after := range row.after {
			id := readyJob + uint64(k)
			e, me, _ := eachState(Options{}, now)
			before, _ := e.JobStats(now, id)
			want := OK
			if after == same {
				want, after = NotFound, before.State
			}
			if got := commands[row.command](e, me, id); got != want {
				t.Errorf("%s of a job that is %v: %v, want %v", row.command, before.State, got, want)
			}
			if st, _ := e.JobStats(now, id); st.State != after {
				t.Errorf("%s of a job that is %v: it is %v now, want %v", row.command, before.State, st.State, after)
			} else if want == NotFound && st != before {
				t.Errorf("%s found nothing, but %+v became %+v", row.command, before, st)
			}
			if err := e.Check(); err != nil {
				t.Errorf("%s of a job that is %v: %v", row.command, before.State, err)
			}
		}
		e, me, _ := eachState(Options{}, now)
		if got := commands[row.command](e, me, noJob); got != NotFound {
			t.Errorf("%s of a job that never was: %v", row.command, got)
		}
	}
}

func TestStateString(t *testing.T) {
	got := fmt.Sprint(Ready, Reserved, Delayed, Buried, State(0))
	if want := "ready reserved delayed buried invalid"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TTR 0 is 1. A reserve of another session has it at the very end of the TTR.
func TestTTR(t *testing.T) {
	e := New(Options{})
	a, b := e.Open(nil), e.Open(nil)
	e.Put(0, a, Spec{Pri: 7, TTR: 0}, nil)
	e.Reserve(0, a, 0)
	e.Tick(second - 1)
	if st, _ := e.JobStats(second-1, 1); st.State != Reserved || st.TTR != 1 {
		t.Fatalf("before the TTR ends: %+v", st)
	}
	e.Tick(second)
	st, _ := e.JobStats(second, 1)
	if st.State != Ready || st.Timeouts != 1 || st.Releases != 0 || st.Pri != 7 {
		t.Fatalf("when the TTR ends: %+v", st)
	}
	if e.Stats().Timeouts != 1 {
		t.Errorf("job-timeouts is %d", e.Stats().Timeouts)
	}
	if o := e.Touch(second, a, 1); o != NotFound {
		t.Errorf("touch after the TTR: %v", o)
	}
	if j, o := e.Reserve(second, b, 0); o != OK || j.ID != 1 {
		t.Errorf("reserve by another: %v", o)
	}
}

// Touch gives the whole TTR again.
func TestTouch(t *testing.T) {
	e := New(Options{})
	s := e.Open(nil)
	e.Put(0, s, Spec{TTR: 10}, nil)
	e.Reserve(0, s, 0)
	e.Touch(9*second, s, 1)
	if st, _ := e.JobStats(9*second, 1); st.TimeLeft != 10 {
		t.Errorf("time-left is %d, want 10", st.TimeLeft)
	}
	e.Tick(19*second - 1)
	if st, _ := e.JobStats(19*second, 1); st.State != Reserved || st.TimeLeft != 0 {
		t.Errorf("before the new end: %+v", st)
	}
	e.Tick(19 * second)
	if e.Stats().Ready != 1 {
		t.Errorf("after the new end: %+v", e.Stats())
	}
}

// worker is a session that remembers what it heard when it waited.
type worker struct {
	*Session
	name  string
	heard *[]string
}

func (w *worker) WaitOver(j Job, o Outcome) {
	names := map[Outcome]string{OK: fmt.Sprint("reserved ", j.ID), TimedOut: "timed out", DeadlineSoon: "deadline soon"}
	*w.heard = append(*w.heard, w.name+" "+names[o])
}

// workers opens sessions that write into one list.
func workers(e *Engine, names ...string) (ws []*worker, heard *[]string) {
	heard = new([]string)
	for _, name := range names {
		w := &worker{name: name, heard: heard}
		w.Session = e.Open(w)
		ws = append(ws, w)
	}
	return ws, heard
}

func wantHeard(t *testing.T, e *Engine, heard *[]string, want ...string) {
	t.Helper()
	if !slices.Equal(*heard, want) {
		t.Errorf("heard %q, want %q", *heard, want)
	}
	if err := e.Check(); err != nil {
		t.Error(err)
	}
	*heard = nil
}

// mustReserve reserves with the given timeout and wants the outcome.
func mustReserve(t *testing.T, e *Engine, now int64, s *Session, timeout int64, want Outcome) uint64 {
	t.Helper()
	j, o := e.Reserve(now, s, timeout)
	if o != want {
		t.Fatalf("reserve: %v, want %v", o, want)
	}
	return j.ID
}

func TestDeadlineSoon(t *testing.T) {
	e := New(Options{})
	ws, heard := workers(e, "w", "producer")
	w, producer := ws[0], ws[1]
	e.Put(0, producer.Session, Spec{TTR: 1}, nil)
	mustReserve(t, e, 0, w.Session, 0, OK)
	// A TTR of 1 s is within the margin from the start.
	mustReserve(t, e, 0, w.Session, Forever, DeadlineSoon)
	mustReserve(t, e, 0, w.Session, 0, DeadlineSoon)
	// But a job that is there is handed out.
	e.Put(0, producer.Session, Spec{TTR: 5}, nil)
	if id := mustReserve(t, e, 0, w.Session, 0, OK); id != 2 {
		t.Errorf("reserved %d", id)
	}
	// Ready jobs of a paused tube do not help.
	e.Put(0, producer.Session, Spec{TTR: 5}, nil)
	e.Pause(0, []byte("default"), 100)
	mustReserve(t, e, 0, w.Session, Forever, DeadlineSoon)
	// Nor does reserve-job care.
	if _, o := e.ReserveJob(0, w.Session, 3); o != OK {
		t.Errorf("reserve-job within the margin: %v", o)
	}
	// When only jobs with time are held, the answer comes at the margin.
	e.Delete(w.Session, 1)
	mustReserve(t, e, 0, w.Session, 100, Waiting)
	e.Tick(4*second - 1)
	wantHeard(t, e, heard)
	e.Tick(4 * second)
	wantHeard(t, e, heard, "w deadline soon")
	// The job stays reserved until its time is up.
	e.Tick(5*second - 1)
	if e.Stats().Reserved != 2 {
		t.Errorf("stats are %+v", e.Stats())
	}
	e.Tick(5 * second)
	if e.Stats().Reserved != 0 || e.Stats().Timeouts != 2 {
		t.Errorf("stats are %+v", e.Stats())
	}
}

// The warning wins over a timeout in the same tick, and over the loss of the
// job: no session gets its own job back at the moment when it is warned.
func TestDeadlineSoonWins(t *testing.T) {
	for _, late := range []int64{0, 1, second, 100 * second} {
		e := New(Options{})
		ws, heard := workers(e, "w")
		e.Put(0, ws[0].Session, Spec{TTR: 3}, nil)
		mustReserve(t, e, 0, ws[0].Session, 0, OK)
		mustReserve(t, e, 0, ws[0].Session, 2, Waiting)
		e.Tick(2*second + late)
		wantHeard(t, e, heard, "w deadline soon")
	}
}

// A job whose holder waits for others goes to somebody else when its time is up.
func TestExpiryWhileOthersWait(t *testing.T) {
	e := New(Options{})
	ws, heard := workers(e, "a", "b")
	e.Put(0, ws[0].Session, Spec{TTR: 3}, nil)
	mustReserve(t, e, 0, ws[0].Session, 0, OK)
	mustReserve(t, e, 0, ws[0].Session, Forever, Waiting)
	mustReserve(t, e, 0, ws[1].Session, Forever, Waiting)
	e.Tick(3 * second)
	wantHeard(t, e, heard, "a deadline soon", "b reserved 1")
}

func TestTimeouts(t *testing.T) {
	e := New(Options{})
	ws, heard := workers(e, "a", "b", "c")
	mustReserve(t, e, 0, ws[0].Session, 2, Waiting)
	mustReserve(t, e, 0, ws[1].Session, 1, Waiting)
	mustReserve(t, e, 0, ws[2].Session, 0, TimedOut)
	e.Tick(second - 1)
	wantHeard(t, e, heard)
	e.Tick(2 * second)
	wantHeard(t, e, heard, "b timed out", "a timed out")
	if e.Next() != Never {
		t.Errorf("nothing is due, but next is %d", e.Next())
	}
}

// A job that comes due reaches a worker whose patience ends in that moment.
func TestDelayBeforeTimeout(t *testing.T) {
	e := New(Options{})
	ws, heard := workers(e, "a", "b")
	mustReserve(t, e, 0, ws[0].Session, 2, Waiting)
	mustReserve(t, e, 0, ws[1].Session, 2, Waiting)
	e.Put(0, ws[1].Session, Spec{Delay: 2}, nil)
	e.Tick(2 * second)
	wantHeard(t, e, heard, "a reserved 1", "b timed out")
}

// A timer that is early, because what it was set for went away, must not let
// its owner go before what is due sooner elsewhere.
func TestTickOrderWithEarlyTimer(t *testing.T) {
	e := New(Options{})
	ws, heard := workers(e, "w")
	p := e.Open(nil)
	put := func(tube string, delay uint32) uint64 {
		e.Use(p, []byte(tube))
		e.Watch(ws[0].Session, []byte(tube))
		id, _ := e.Put(0, p, Spec{Delay: delay}, nil)
		return id
	}
	early := put("a", 1)
	put("a", 10)
	sooner := put("b", 7)
	e.Delete(p, early)
	mustReserve(t, e, 0, ws[0].Session, Forever, Waiting)
	e.Tick(20 * second)
	wantHeard(t, e, heard, fmt.Sprint("w reserved ", sooner))
}

func TestWaitersAreServedInOrder(t *testing.T) {
	e := New(Options{})
	ws, heard := workers(e, "1", "2", "3", "4", "5", "6")
	for _, w := range ws {
		mustReserve(t, e, 0, w.Session, Forever, Waiting)
	}
	e.HalfClose(ws[2].Session)
	e.Close(0, ws[4].Session)
	p := e.Open(nil)
	for range 4 {
		e.Put(0, p, Spec{TTR: 100}, nil)
	}
	wantHeard(t, e, heard, "3 timed out", "1 reserved 1", "2 reserved 2", "4 reserved 3", "6 reserved 4")
}

func TestHalfClosed(t *testing.T) {
	e := New(Options{})
	s := e.Open(nil)
	e.HalfClose(s)
	mustReserve(t, e, 0, s, Forever, TimedOut)
	e.Put(0, s, Spec{TTR: 1}, nil)
	mustReserve(t, e, 0, s, Forever, OK)
	mustReserve(t, e, 0, s, Forever, DeadlineSoon)
}

// Close gives back the oldest reservation first, whatever its TTR, priority or id.
func TestCloseGivesBackInOrder(t *testing.T) {
	e := New(Options{})
	ws, heard := workers(e, "a", "b", "c")
	holder := e.Open(nil)
	for k := range 3 {
		e.Put(0, holder, Spec{Pri: uint32(k), TTR: uint32(10 * (k + 1))}, nil)
	}
	for _, id := range []uint64{2, 3, 1} {
		e.ReserveJob(0, holder, id)
	}
	e.Touch(5*second, holder, 2)
	for _, w := range ws {
		mustReserve(t, e, 5*second, w.Session, Forever, Waiting)
	}
	e.Close(5*second, holder)
	wantHeard(t, e, heard, "a reserved 2", "b reserved 3", "c reserved 1")
	if st, _ := e.JobStats(5*second, 2); st.Releases != 0 || st.Timeouts != 0 || st.Reserves != 2 {
		t.Errorf("the job counts %+v", st)
	}
}

func TestKickBuriedBeforeDelayed(t *testing.T) {
	e := New(Options{})
	s := e.Open(nil)
	for k := range uint32(4) {
		e.Put(0, s, Spec{Delay: 100 - k}, nil) // the last is due first
	}
	for _, id := range []uint64{2, 1} {
		e.ReserveJob(0, s, id)
		e.Bury(s, id, 0)
	}
	first := func(state State) uint64 { j, _ := e.PeekState(s, state); return j.ID }
	if first(Buried) != 2 || first(Delayed) != 4 {
		t.Fatalf("first are %d and %d", first(Buried), first(Delayed))
	}
	steps := []struct{ n, kicked, buried, delayed uint32 }{
		{0, 0, 2, 2}, {1, 1, 1, 2}, {9, 1, 0, 2}, {1, 1, 0, 1}, {9, 1, 0, 0}, {9, 0, 0, 0},
	}
	for _, step := range steps {
		kicked := e.Kick(0, s, step.n)
		if st := e.Stats(); kicked != step.kicked || st.Buried != uint64(step.buried) || st.Delayed != uint64(step.delayed) {
			t.Errorf("kick %d: %d, leaving %d buried, %d delayed; want %+v", step.n, kicked, st.Buried, st.Delayed, step)
		}
	}
	if st, _ := e.JobStats(0, 3); st.Kicks != 1 || st.Delay != 98 || st.TimeLeft != 0 {
		t.Errorf("a kicked job keeps its delay in stats: %+v", st)
	}
}

func TestPause(t *testing.T) {
	e := New(Options{})
	ws, heard := workers(e, "a")
	p := e.Open(nil)
	name := []byte(DefaultTube)
	if o := e.Pause(0, []byte("nope"), 1); o != NotFound || e.Stats().Tubes != 1 {
		t.Errorf("pause of no tube: %v, %d tubes", o, e.Stats().Tubes)
	}
	e.Pause(0, name, 10)
	mustReserve(t, e, 0, ws[0].Session, Forever, Waiting)
	e.Put(0, p, Spec{TTR: 1}, nil)
	e.Pause(5*second, name, 10) // replaces the first
	e.Tick(15*second - 1)
	wantHeard(t, e, heard)
	if st, _ := e.TubeStats(14*second, name); st.Pause != 10 || st.PauseLeft != 1 || st.Pauses != 2 || st.Ready != 1 || st.Waiting != 1 {
		t.Errorf("while paused: %+v", st)
	}
	e.Tick(15 * second)
	wantHeard(t, e, heard, "a reserved 1")
	if st, _ := e.TubeStats(15*second, name); st.Pause != 0 || st.PauseLeft != 0 {
		t.Errorf("after the pause: %+v", st)
	}
	// 0 ends a pause.
	e.Delete(ws[0].Session, 1)
	e.Pause(20*second, name, 1<<32-1)
	mustReserve(t, e, 20*second, ws[0].Session, Forever, Waiting)
	e.Put(20*second, p, Spec{TTR: 1}, nil)
	e.Pause(21*second, name, 0)
	wantHeard(t, e, heard, "a reserved 2")
}

// A tube goes with the last that refers to it, and its counters and pause too.
func TestTubesVanish(t *testing.T) {
	e := New(Options{})
	s := e.Open(nil)
	name := []byte("a")
	there := func(want bool, why string) {
		t.Helper()
		if _, o := e.TubeStats(0, name); (o == OK) != want {
			t.Errorf("%s: the tube is there: %v", why, o == OK)
		}
		if err := e.Check(); err != nil {
			t.Error(err)
		}
	}
	e.Use(s, name)
	there(true, "used")
	e.Pause(0, name, 100)
	e.Put(0, s, Spec{}, nil)
	e.Use(s, []byte(DefaultTube))
	there(true, "a ready job")
	e.ReserveJob(0, s, 1)
	there(true, "a reserved job")
	e.Bury(s, 1, 0)
	there(true, "a buried job")
	e.Watch(s, name)
	e.Delete(s, 1)
	there(true, "watched")
	e.Ignore(s, name)
	there(false, "nothing")
	e.Watch(s, name)
	if st, _ := e.TubeStats(0, name); st != (TubeStats{Watching: 1}) {
		t.Errorf("the new tube has %+v of the old", st)
	}
	e.Close(0, s)
	there(false, "session closed")
	if names := e.TubeNames().collect(); !slices.Equal(names, []string{DefaultTube}) {
		t.Errorf("tubes are %q", names)
	}
}

// The last takes the place of what goes, in both lists, as in beanstalkd.
func TestListOrder(t *testing.T) {
	e := New(Options{})
	s := e.Open(nil)
	for _, name := range []string{"a", "b", "c", "a"} {
		e.Watch(s, []byte(name))
	}
	if n, ok := e.Ignore(s, []byte("nope")); n != 4 || !ok {
		t.Errorf("ignore of a tube not watched: %d, %v", n, ok)
	}
	e.Ignore(s, []byte(DefaultTube))
	if got := s.WatchedNames().collect(); !slices.Equal(got, []string{"c", "a", "b"}) {
		t.Errorf("watched are %q", got)
	}
	e.Ignore(s, []byte("a"))
	if got := e.TubeNames().collect(); !slices.Equal(got, []string{"default", "c", "b"}) {
		t.Errorf("tubes are %q", got)
	}
	e.Ignore(s, []byte("c"))
	if n, ok := e.Ignore(s, []byte("b")); n != 1 || ok {
		t.Errorf("ignore of the only tube: %d, %v", n, ok)
	}
}

// One Tick does a bounded amount of work; until all are done the next is due
// at once, and other verbs work meanwhile.
func TestTickLimit(t *testing.T) {
	const n = 10000
	e := New(Options{})
	s := e.Open(nil)
	for range n {
		e.Put(0, s, Spec{Delay: 1, TTR: 100}, nil)
	}
	ticks := 0
	for e.Stats().Delayed > 0 {
		if e.Next() != second {
			t.Fatalf("%d are due, but next is %d", e.Stats().Delayed, e.Next())
		}
		before := e.Stats()
		e.Tick(second)
		ticks++
		if done := before.Delayed - e.Stats().Delayed; done == 0 || e.turnWork > maxTurnWork/tickShare+2 || e.Spent() {
			t.Fatalf("one tick did %d, %d units of work", done, e.turnWork)
		}
		id := mustReserve(t, e, second, s, 0, OK)
		if o := e.Delete(s, id); o != OK {
			t.Fatalf("delete: %v", o)
		}
		if id, o := e.Put(second, s, Spec{Pri: 9, Delay: 50}, nil); o != OK || e.Delete(s, id) != OK {
			t.Fatalf("put and delete: %v", o)
		}
		if err := e.Check(); err != nil {
			t.Fatal(err)
		}
	}
	if ticks < n*2/maxTurnWork {
		t.Errorf("%d jobs came due in %d ticks", n, ticks)
	}
	if e.Tick(second); e.Next() <= second {
		t.Errorf("all is done, but next is %d", e.Next())
	}
}
