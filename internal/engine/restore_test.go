package engine

import (
	"bytes"
	"cmp"
	"slices"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/test/seeds"
)

// TestRestoreRandom runs random operations and sometimes restores engines from the
// emitted changes, for all orders in which a log can be read.
func TestRestoreRandom(t *testing.T) {
	tw := randomTwins(t, Options{Logged: true})
	names := verbs()
	step := func() {
		tw.m.heard, tw.heard = nil, nil
		tw.verb(pick(tw.src, "verb", names))
	}
	for i := range seeds.Rounds(t, 50) {
		for range 150 {
			step()
		}
		tw.compare()
		whole := wantLogged(tw.m, nil)
		restored(t, tw, whole, tw.log)
		restored(t, tw, whole, tw.log, tw.log)
		restored(t, tw, whole, shuffled(tw.src, tw.log))

		start := len(tw.log)
		snapshot := tw.slowSnapshot(step)
		tail := tw.log[start:]
		restored(t, tw, wantSince(tw.m, snapshot, tail), snapshot, tail)

		tw.drain(i)
		tw.log = append(tw.log, tw.e.TakeChanges()...)
	}
}

// slowSnapshot takes a snapshot job by job while the engine continues.
func (tw *twins) slowSnapshot(step func()) []Change {
	snapshot := slices.Collect(tw.e.Pauses)
	for _, id := range tw.m.ids() {
		if c, ok := tw.e.Snapshot(id); ok {
			c.Body = bytes.Clone(c.Body)
			snapshot = append(snapshot, c)
		}
		if id%2 == 0 {
			step()
		}
	}
	return append(snapshot, Change{Kind: LastID, ID: tw.e.LastID()})
}

// wantLogged returns the logged state of the jobs that only accepts.
func wantLogged(m *model, only map[uint64]bool) map[uint64]Change {
	want := make(map[uint64]Change)
	for id, j := range m.jobs {
		if only != nil && !only[id] {
			continue
		}
		f := j.logged
		c := Change{
			Kind: JobPut, State: f.state, ID: id, Pri: f.pri, Delay: f.delay, TTR: f.ttr, Created: f.created,
			Counts: Counts{f.reserves, f.timeouts, f.releases, f.buries, f.kicks},
			Tube:   f.tube, Origin: f.origin, Body: f.body, BodyLen: len(f.body),
		}
		if f.failed {
			c.Failure = f.failure.Append(nil)
		}
		switch f.state {
		case Delayed:
			c.Due = f.due
		case Buried:
			c.Due = int64(f.buried) // on the model's clock, because only the order matters
		}
		want[id] = c
	}
	return want
}

// wantSince returns the state that results from a snapshot and the changes since its
// start. Changes take precedence.
func wantSince(m *model, snapshot, tail []Change) map[uint64]Change {
	inTail := make(map[uint64]bool)
	for _, c := range tail {
		inTail[c.ID] = true
	}
	want := wantLogged(m, inTail)
	for _, c := range snapshot {
		if j := m.jobs[c.ID]; c.Kind == JobPut && j != nil && !inTail[c.ID] {
			if c.State == Buried {
				c.Due = int64(j.buried)
			}
			want[c.ID] = c
		}
	}
	return want
}

// restored restores an engine and compares it with the expected state.
func restored(t *testing.T, tw *twins, want map[uint64]Change, logs ...[]Change) {
	t.Helper()
	e := New(Options{Logged: true})
	last := uint64(0)
	for _, log := range logs {
		for _, c := range log {
			e.Restore(c)
			last = max(last, c.ID)
		}
	}
	if err := e.Check(); err != nil {
		t.Fatal(err)
	}
	if e.Promises() != 0 {
		t.Fatalf("restoring emitted %d changes", e.Promises())
	}
	got := make(map[uint64]Change)
	for c := range e.Snapshots {
		c.Body = bytes.Clone(c.Body)
		got[c.ID] = c
	}
	tw.same("buried order", inBuriedOrder(got), inBuriedOrder(want))
	tw.same("jobs", plainJobs(got), plainJobs(want))
	tw.same("last id", e.LastID(), last)
	tw.same("pauses", pausesOf(e, tw.now), pausesOfModel(tw.m, tw.now))
	tw.same("digest", e.Digest(tw.now, 0), tw.e.Digest(tw.now, 0))
	e.Tick(tw.now)
	if err := e.Check(); err != nil {
		t.Fatal(err)
	}
}

// inBuriedOrder returns the ids of the buried jobs, the longest buried first.
func inBuriedOrder(jobs map[uint64]Change) []uint64 {
	var buried []Change
	for _, c := range jobs {
		if c.State == Buried {
			buried = append(buried, c)
		}
	}
	slices.SortFunc(buried, func(a, b Change) int { return cmp.Compare(a.Due, b.Due) })
	ids := []uint64{}
	for _, c := range buried {
		ids = append(ids, c.ID)
	}
	return ids
}

// plainJobs removes the ranks of buried jobs, and the difference between a nil and an
// empty body.
func plainJobs(jobs map[uint64]Change) map[uint64]Change {
	plain := make(map[uint64]Change, len(jobs))
	for id, c := range jobs {
		c.Slot = 0
		if c.State == Buried {
			c.Due = 0
		}
		if len(c.Body) == 0 {
			c.Body = nil
		}
		plain[id] = c
	}
	return plain
}

type pauseFields struct{ Delay, Due int64 }

func pausesOf(e *Engine, now int64) map[string]pauseFields {
	pauses := make(map[string]pauseFields)
	for c := range e.Pauses {
		if c.Due > now {
			pauses[c.Tube] = pauseFields{int64(c.Delay), c.Due}
		}
	}
	return pauses
}

func pausesOfModel(m *model, now int64) map[string]pauseFields {
	pauses := make(map[string]pauseFields)
	for _, t := range m.tubes {
		if t.paused && t.pauseEnds > now {
			pauses[t.name] = pauseFields{int64(t.pause), t.pauseEnds}
		}
	}
	return pauses
}

// shuffled reorders the changes, except those of the same job or tube.
func shuffled(src source, log []Change) []Change {
	type key struct {
		id   uint64
		tube string
	}
	of := make(map[key][]Change)
	var keys []key
	for _, c := range log {
		k := key{id: c.ID}
		if c.Kind == TubePaused || c.Kind == TubeGone {
			k.tube = c.Tube
		}
		keys = append(keys, k)
		of[k] = append(of[k], c)
	}
	for i := range keys {
		k := i + src.intn("shuffle", len(keys)-i)
		keys[i], keys[k] = keys[k], keys[i]
	}
	mixed := make([]Change, 0, len(log))
	for _, k := range keys {
		mixed = append(mixed, of[k][0])
		of[k] = of[k][1:]
	}
	return mixed
}

func TestRestoreUnknownJob(t *testing.T) {
	e := New(Options{})
	e.Restore(Change{Kind: JobState, ID: 5, State: Buried, Tube: "a"})
	e.Restore(Change{Kind: JobDeleted, ID: 7, Tube: "b"})
	e.Restore(Change{Kind: TubePaused, Tube: "c"})
	if got, want := e.Stats(), (Stats{Tubes: 1}); got != want {
		t.Errorf("stats are %+v, want %+v", got, want)
	}
	if e.LastID() != 7 {
		t.Errorf("last id is %d, want 7, because ids are not reused", e.LastID())
	}
	if err := e.Check(); err != nil {
		t.Error(err)
	}
}

// The body of a put is not copied for the log.
func TestChangeBody(t *testing.T) {
	e := New(Options{Logged: true})
	body := []byte("hello")
	e.Put(0, e.Open(nil), Spec{}, body)
	if n := e.Promises(); n != 1 {
		t.Fatalf("%d changes pending, want 1", n)
	}
	changes := e.TakeChanges()
	if c := changes[0]; c.Kind != JobPut || c.BodyLen != 5 || &c.Body[0] != &body[0] {
		t.Errorf("the change is %+v, want a put with the caller's own body", c)
	}
	if j, _ := e.Peek(1); &j.Body[0] == &body[0] {
		t.Error("the job lives in the caller's body")
	}
	if e.Promises() != 0 || len(e.TakeChanges()) != 0 {
		t.Error("taken changes are still pending")
	}
}

// Commands that only read, and reservations, are not logged.
func TestNotLogged(t *testing.T) {
	e := New(Options{Logged: true})
	s := e.Open(nil)
	e.Put(0, s, Spec{Delay: 1, TTR: 1}, nil)
	e.TakeChanges()
	e.Tick(second)
	e.Reserve(second, s, 0)
	e.Touch(second, s, 1)
	e.SkipID(s)
	e.Tick(3 * second / 2)
	if got := e.TakeChanges(); len(got) != 0 {
		t.Errorf("emitted %+v", got)
	}
}

// A segment belongs to the job of a change, not to a later job in its slot.
func TestSegment(t *testing.T) {
	e := New(Options{Logged: true})
	s := e.Open(nil)
	e.Put(0, s, Spec{}, nil)
	put := e.TakeChanges()[0]
	for _, want := range []uint32{0, 77} {
		if before, ok := e.SetSegment(&put, want+77); before != want || !ok {
			t.Errorf("segment was %d, %v; want %d", before, ok, want)
		}
	}
	if st, _ := e.JobStats(0, 1); st.Segment != 154 {
		t.Errorf("stats-job shows segment %d", st.Segment)
	}
	e.Delete(s, 1)
	if deleted := e.TakeChanges()[0]; deleted.Segment != 154 {
		t.Errorf("the deletion has segment %d", deleted.Segment)
	}
	if _, ok := e.SetSegment(&put, 78); ok {
		t.Error("a job that was deleted got a segment")
	}
	e.Put(0, s, Spec{}, nil)
	if second := e.TakeChanges()[0]; second.Slot != put.Slot {
		t.Fatal("the second job is in another slot")
	}
	if _, ok := e.SetSegment(&put, 78); ok {
		t.Error("a job got the segment of another job")
	}
	if st, _ := e.JobStats(0, 2); st.Segment != 0 {
		t.Errorf("the second job has segment %d", st.Segment)
	}
}

// The age of a job that was put while the clock was ahead is not negative.
func TestAgeOfFutureJob(t *testing.T) {
	e := New(Options{})
	e.Restore(Change{Kind: JobPut, State: Ready, ID: 1, TTR: 1, Created: 30 * 86400 * second, Tube: DefaultTube})
	if st, _ := e.JobStats(0, 1); st.Age != 0 {
		t.Errorf("its age is %d s", st.Age)
	}
}

// restoreAll applies the changes to an engine.
func restoreAll(e *Engine, changes []Change) {
	for _, c := range changes {
		e.Restore(c)
	}
}
