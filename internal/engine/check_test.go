package engine

import (
	"strings"
	"testing"
)

// fullEngine returns an engine with objects of all kinds.
func fullEngine() (e *Engine, me *Session) {
	e, me, _ = eachState(Options{}, 0)
	w := e.Open(nil)
	e.Watch(w, []byte("quiet"))
	e.Ignore(w, []byte(DefaultTube))
	e.Reserve(0, w, 50)
	e.Pause(0, []byte("work"), 20)
	for range 40 {
		e.Put(0, me, Spec{Delay: 5}, []byte("hello"))
		e.Put(0, me, Spec{Delay: 7}, nil)
	}
	return e, me
}

func (e *Engine) mustFind(id uint64) *job {
	_, j := e.lookup(id)
	return j
}

// TestCheckReports violates each invariant in turn. All other tests rely on Check to
// detect that.
func TestCheckReports(t *testing.T) {
	work := func(e *Engine) *tube { return e.byName["work"] }
	waiting := func(e *Engine) *Session { return e.byName["quiet"].waiters.first.sess }
	tests := []struct {
		want, what string
		corrupt    func(e *Engine, me *Session)
	}{
		{"I1", "a job in a queue of another state", func(e *Engine, _ *Session) { e.mustFind(readyJob).setState(Buried) }},
		{"I1", "a job in the queue of another tube", func(e *Engine, _ *Session) { e.mustFind(readyJob).setTube(e.defaultTube.num) }},
		{"I1", "a job with another session as its holder", func(e *Engine, _ *Session) { e.jobs.cold(e.mustFind(myJob)).holder++ }},
		{"I1", "a job in no queue", func(e *Engine, _ *Session) {
			i, j := e.lookup(buriedJob)
			e.detach(e.tubeOfJob(j), i, j)
		}},
		{"I2", "a job in no tube", func(e *Engine, _ *Session) { e.mustFind(myJob).setTube(99) }},
		{"I2", "a reserved job without a holder", func(e *Engine, _ *Session) { e.jobs.cold(e.mustFind(myJob)).holder = 99 }},
		{"I3", "a session waits for a job that is ready", func(e *Engine, _ *Session) {
			w := waiting(e)
			e.cancelWait(w)
			e.Watch(w, []byte("work"))
			e.beginWait(w)
			work(e).paused, work(e).shut = false, false
		}},
		{"I4", "urgent", func(e *Engine, _ *Session) { work(e).urgent++ }},
		{"I4", "bytes", func(e *Engine, _ *Session) { work(e).bytes++ }},
		{"I6", "memory", func(e *Engine, _ *Session) { e.bodies.used++ }},
		{"I4", "waiting", func(e *Engine, _ *Session) { work(e).waiting++ }},
		{"I4", "using, in two tubes", func(e *Engine, _ *Session) { work(e).using++; e.defaultTube.using-- }},
		{"I4", "watching, in two tubes", func(e *Engine, _ *Session) { work(e).watching++; e.defaultTube.watching-- }},
		{"I4", "reserved, in two tubes", func(e *Engine, _ *Session) { work(e).reserved--; e.defaultTube.reserved++ }},
		{"I5", "waits in no list", func(_ *Engine, me *Session) { me.waiting = true }},
		{"I5", "in a list, but does not wait", func(e *Engine, _ *Session) { waiting(e).waiting = false }},
		{"I5", "watches no tube", func(_ *Engine, me *Session) { me.watches = nil }},
		{"I5", "a tube is watched twice", func(_ *Engine, me *Session) { me.watches = append(me.watches, me.watches[0]) }},
		{"I6", "ready", func(e *Engine, _ *Session) { e.stats.Ready++ }},
		{"I6", "workers", func(e *Engine, _ *Session) { e.stats.Workers-- }},
		{"I6", "waiting", func(e *Engine, _ *Session) { e.stats.Waiting++ }},
		{"I7", "an unused id", func(e *Engine, _ *Session) { e.lastID = 3 }},
		{"I8", "no TTR", func(e *Engine, _ *Session) { e.mustFind(readyJob).ttr = 0 }},
		{"I9", "an unused tube", func(e *Engine, _ *Session) { e.tubeNamed("x") }},
		{"I9", "a tube without its name", func(e *Engine, _ *Session) { delete(e.byName, "work") }},
		{"I9", "a name too many", func(e *Engine, _ *Session) { e.byName["x"] = e.defaultTube }},
		{"I9", "a tube in the wrong place of the list", func(e *Engine, _ *Session) {
			e.defaultTube.nameIndex, work(e).nameIndex = work(e).nameIndex, e.defaultTube.nameIndex
		}},
		{"I9", "a number too many", func(e *Engine, _ *Session) { e.tubes = append(e.tubes, &tube{}) }},
		{"I10", "a free slot too many", func(e *Engine, _ *Session) { e.jobs.slots.pages[0].free[0] |= 1 }},
		{"I10", "a page that is not open", func(e *Engine, _ *Session) { e.jobs.slots.open = nil }},
		{"I10", "an empty page too many, among bodies", func(e *Engine, _ *Session) { e.bodies.class(5).slots.empty++ }},
		{"I11", "a job that cannot be found", func(e *Engine, _ *Session) { e.mustFind(readyJob).id = 20 << 32 }},
		{"I11", "an empty node", func(e *Engine, _ *Session) {
			*e.ids.nodes.at(e.ids.root).place(1<<(e.ids.bits-idBits), e.ids.bits-idBits) = e.ids.newNode() | isNode
		}},
		{"I11", "a node that is not the recent one", func(e *Engine, _ *Session) { e.ids.recent[0].node = new(node) }},
		{"I11", "the count", func(e *Engine, _ *Session) { e.ids.n++ }},
		{"I19", "the count of a queue", func(e *Engine, _ *Session) { work(e).delayed.n++ }},
		{"I19", "a leaf without jobs", func(e *Engine, _ *Session) {
			work(e).delayed.insert(0, 2, dueKey(9*second, 0))
		}},
		{"I20", "a stale key", func(e *Engine, _ *Session) { e.mustFind(delayedJob).delayAndCounts += 9 }},
		{"I20", "a job with a wrong position", func(e *Engine, _ *Session) { e.mustFind(delayedJob).pos++ }},
		{"I20", "a job in the wrong order", func(e *Engine, _ *Session) {
			s := e.jobs.leaves.at(e.mustFind(delayedJob).pos).entries
			s[1], s[2] = s[2], s[1]
		}},
		{"I20", "a leaf that begins too late", func(e *Engine, _ *Session) { work(e).delayed.pages[0].leaves[1].low.id++ }},
		{"I22", "a buried job without a cold part", func(e *Engine, _ *Session) { e.mustFind(buriedJob).cold = none }},
		{"I22", "a ready job that is packed", func(e *Engine, _ *Session) { e.mustFind(readyJob).cold = isPacked }},
		{"I22", "a cold part of two jobs", func(e *Engine, _ *Session) { e.mustFind(readyJob).cold = e.mustFind(myJob).cold }},
		{"I22", "a cold part that is in use and spare", func(e *Engine, _ *Session) { e.jobs.spareCold = e.mustFind(myJob).cold }},
		{"I22", "the count of cold parts", func(e *Engine, _ *Session) { e.jobs.coldCount++ }},
		{"I23", "a segment of a free slot", func(e *Engine, _ *Session) {
			i, j := e.jobs.alloc()
			e.jobs.slab.free(i)
			j.id = 0
			e.jobs.segments.set(i, 1)
		}},
		{"I13", "a tube's timer is late", func(e *Engine, _ *Session) { work(e).timer.at = 6 * second }},
		{"I13", "a session's timer is not set", func(e *Engine, me *Session) { e.disarm(&me.timer) }},
		{"I13", "a timer with a wrong position", func(e *Engine, _ *Session) { e.timers[0].pos++ }},
		{"I13", "a timer of a removed session", func(e *Engine, me *Session) { e.sessions[me.num] = nil }},
		{"I13", "the timers are no heap", func(e *Engine, _ *Session) {
			a, b := e.timers[0], e.timers[1]
			e.timers[0], e.timers[1], a.pos, b.pos = b, a, 1, 0
		}},
		{"I14", "a held job that is not in the list", func(e *Engine, me *Session) { me.held.remove(&e.jobs, e.jobs.heldAt(me.held.first)) }},
		{"I14", "a job twice in the list of held jobs", func(e *Engine, me *Session) { e.jobs.cold(e.mustFind(myJob)).heldAfter = me.held.first }},
		{"I15", "a session that is closed and forgotten", func(e *Engine, me *Session) { me.closed, me.waiting = true, true }},
		{"I15", "a number that is not marked free", func(e *Engine, _ *Session) { e.sessions = append(e.sessions, nil) }},
		{"I24", "a tube that is open while it is paused", func(e *Engine, _ *Session) { work(e).shut = false }},
		{"I24", "a tube that is shut without a reason", func(e *Engine, _ *Session) { e.defaultTube.shut = true }},
		{"I24", "a policy without its gate", func(e *Engine, _ *Session) { e.defaultTube.policy = &Policy{MaxReserved: 1} }},
		{"I24", "a gate that does not close", func(e *Engine, _ *Session) { work(e).policy, work(e).gate = &Policy{MaxReserved: 1}, &gate{} }},
		{"I24", "a gate that does not open", func(e *Engine, _ *Session) {
			e.defaultTube.gate, e.defaultTube.shut = &gate{shut: true, opensAt: Never}, true
		}},
		{"I28", "a job without its key", func(e *Engine, _ *Session) { work(e).policy, work(e).keyed = &Policy{Unique: byBody}, true }},
		{"I28", "a key for a job without a policy", func(e *Engine, _ *Session) { e.keys.add(e.ids.find(readyJob), e.hashKey(work(e), nil)) }},
		{"I28", "a key of a free slot", func(e *Engine, _ *Session) {
			i, j := e.jobs.alloc()
			e.jobs.slab.free(i)
			j.id = 0
			e.keys.add(i, e.hashKey(work(e), nil))
		}},
		{"I28", "the count of keys", func(e *Engine, _ *Session) { e.keys.held++ }},
		{"I18", "a TTR that expires too early", func(e *Engine, _ *Session) { e.jobs.cold(e.mustFind(myJob)).when++ }},
	}
	seen := make(map[string]bool)
	for _, test := range tests {
		t.Run(test.want+" "+test.what, func(t *testing.T) {
			e, me := fullEngine()
			if err := e.Check(); err != nil {
				t.Fatalf("before anything is broken: %v", err)
			}
			test.corrupt(e, me)
			err := e.Check()
			if err == nil {
				t.Fatal("Check reports no error")
			}
			if !strings.Contains("\n"+err.Error(), "\n"+test.want+":") {
				t.Errorf("Check does not report %s but\n%v", test.want, err)
			}
		})
		seen[test.want] = true
	}
	if len(seen) != 21 {
		t.Errorf("the test violates %d invariants, want all 21", len(seen))
	}
}
