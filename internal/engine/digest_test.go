package engine

import (
	"bytes"
	"slices"
	"testing"
)

func digestOf(now, epoch int64, changes ...Change) uint64 {
	e := New(Options{})
	for _, c := range changes {
		e.Restore(c)
	}
	return e.Digest(now, epoch)
}

// The digest depends on every field of a Change, except fields that are not part of the
// state.
func TestDigestOfFields(t *testing.T) {
	const now = 100 * second
	job := Change{Kind: JobPut, State: Delayed, ID: 7, Pri: 1, Delay: 2, TTR: 3, Created: 4, Due: 200 * second, Tube: "a", Body: []byte("body"), Counts: Counts{Releases: 5, Buries: 6, Kicks: 7}}
	pause := Change{Kind: TubePaused, Tube: "a", Delay: 10, Due: 200 * second}
	for name, edit := range map[string]func(c *Change){
		"id":       func(c *Change) { c.ID = 8 },
		"ready":    func(c *Change) { c.State, c.Due = Ready, 0 },
		"buried":   func(c *Change) { c.State = Buried },
		"pri":      func(c *Change) { c.Pri++ },
		"delay":    func(c *Change) { c.Delay++ },
		"ttr":      func(c *Change) { c.TTR++ },
		"created":  func(c *Change) { c.Created++ },
		"due":      func(c *Change) { c.Due++ },
		"tube":     func(c *Change) { c.Tube = "b" },
		"body":     func(c *Change) { c.Body = []byte("bodi") },
		"no body":  func(c *Change) { c.Body = nil },
		"releases": func(c *Change) { c.Releases++ },
		"buries":   func(c *Change) { c.Buries++ },
		"kicks":    func(c *Change) { c.Kicks++ },
		"failure":  func(c *Change) { c.Failure = (&Failure{End: Lost}).Append(nil) },
	} {
		other := job
		edit(&other)
		if digestOf(now, 0, job) == digestOf(now, 0, other) {
			t.Errorf("%s makes no difference", name)
		}
	}
	for name, edit := range map[string]func(c *Change){
		"tube":  func(c *Change) { c.Tube = "b" },
		"delay": func(c *Change) { c.Delay++ },
		"due":   func(c *Change) { c.Due++ },
		"none":  func(c *Change) { c.Delay = 0 },
	} {
		other := pause
		edit(&other)
		if digestOf(now, 0, job, pause) == digestOf(now, 0, job, other) {
			t.Errorf("%s of a pause makes no difference", name)
		}
	}
	counted := job
	counted.Reserves, counted.Timeouts, counted.Segment = 9, 9, 9
	if digestOf(now, 0, job) != digestOf(now, 0, counted, Change{Kind: LastID, ID: 1000}) {
		t.Error("reserves, timeouts, segments and the last id make a difference")
	}
}

func TestDigestIgnoresOrder(t *testing.T) {
	var all []Change
	for id := range uint64(100) {
		all = append(all, Change{Kind: JobPut, State: Ready, ID: id + 1, TTR: 1, Tube: "a", Body: bytes.Repeat([]byte("x"), int(id))})
	}
	want := digestOf(0, 0, all...)
	slices.Reverse(all)
	if got := digestOf(0, 0, all...); got != want {
		t.Errorf("in reverse order: %x, want %x", got, want)
	}
	if twice := digestOf(0, 0, append(all, all...)...); twice != want {
		t.Errorf("each job put twice: %x, want %x", twice, want)
	}
}

// An engine and a second engine that restores its changes always have equal digests,
// regardless of due events and of their clocks.
func TestDigestOfFollower(t *testing.T) {
	const epoch = 50 * second
	leader, follower := New(Options{Logged: true}), New(Options{})
	var now int64
	same := func(when string) {
		t.Helper()
		leader.Tick(now)
		for _, c := range leader.TakeChanges() {
			if c.Created -= epoch; c.Due != 0 {
				c.Due -= epoch
			}
			follower.Restore(c)
		}
		if l, f := leader.Digest(now, 0), follower.Digest(now-epoch, epoch); l != f {
			t.Fatalf("%s: %x at the leader, %x at the follower", when, l, f)
		}
	}
	s := leader.Open(nil)
	leader.Watch(s, []byte("paused"))
	ready, _ := leader.Put(now, s, Spec{TTR: 1}, []byte("ready"))
	leader.Put(now, s, Spec{Delay: 10, TTR: 1}, []byte("delayed"))
	leader.Pause(now, []byte("paused"), 10)
	same("after two puts and a pause")
	empty := New(Options{}).Digest(now, 0)
	if leader.Digest(now, 0) == empty {
		t.Fatal("it equals the digest of an empty engine")
	}
	leader.Reserve(now, s, 0)
	same("after a reserve")
	now += 2 * second
	same("after the TTR has run out")
	now += 8 * second
	same("when the delay and the pause are over")
	leader.Reserve(now, s, 0)
	leader.Release(now, s, ready, 1, 5)
	leader.Reserve(now, s, 0)
	same("when one is delayed again, and the other reserved")
	leader.Close(now, s)
	same("when the session is gone")
	leader.DeleteJob(ready)
	leader.DeleteJob(ready + 1)
	same("when all are deleted")
	if d := leader.Digest(now, 0); d != empty {
		t.Errorf("%x after all jobs were deleted, want the digest of an empty engine, %x", d, empty)
	}
}
