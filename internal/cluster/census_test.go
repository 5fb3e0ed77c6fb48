package cluster

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// census compares the queues of all members that are up, and returns the sums of each.
func (w *world) census() []CensusSums {
	w.t.Helper()
	var all []*Census
	var due int64
	var from, until uint64
	for _, m := range w.machines {
		c, at, err := m.member.BeginCensus(due)
		w.must(err)
		all, due, from = append(all, c), c.Due(), max(from, at)
	}
	for _, c := range all {
		c.Walk(from)
	}
	for _, c := range all {
		w.until("the walk is over", func() bool {
			at, over, err := c.Walked()
			w.must(err)
			until = max(until, at)
			return over
		})
	}
	var sums []CensusSums
	for i, c := range all {
		w.until("the member has the last entry", func() bool {
			s, ok, err := c.Sums(from, until)
			w.must(err)
			if ok {
				sums = append(sums, s)
			}
			return ok
		})
		w.machines[i].member.EndCensus(c)
	}
	return sums
}

func (s *CensusSums) same(o *CensusSums) bool {
	for i := range s.Buckets {
		if s.Buckets[i] != o.Buckets[i] {
			return false
		}
	}
	return s.Jobs == o.Jobs && s.Changed == o.Changed
}

// Members that are the same are found to be so while clients put, delete and reserve, and one that is not is found.
func TestCensus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 3)
		time.Sleep(time.Second)
		l := w.leader()
		for i := range 2000 {
			_, err := w.put(l, "old", engine.Spec{Pri: uint32(i), TTR: 60, Delay: uint32(i % 3)}, "it stays")
			w.must(err)
		}
		w.must(l.Broker().Call(func(e *engine.Engine, now int64) {
			e.Pause(now, []byte("old"), 3600)
		}))
		stop := w.load(40)
		var changed uint64
		for range 3 {
			sums := w.census()
			for i := range sums {
				if s := &sums[i]; !s.same(&sums[0]) || s.Jobs == 0 {
					t.Errorf("member %d: %d jobs, %d changed; member 1: %d, %d", i+1, s.Jobs, s.Changed, sums[0].Jobs, sums[0].Changed)
				}
			}
			changed += sums[0].Changed
		}
		stop()
		time.Sleep(time.Second) // the followers have everything
		if changed == 0 {
			t.Error("nothing has changed during the comparisons")
		}

		// One job differs in its priority.
		follower := w.machines[l.opt.Self.ID%3]
		var planted uint64
		follower.member.Broker().Look(func(e *engine.Engine, _ int64) {
			c, place, _ := e.NextSnapshot(0)
			for string(c.Tube) != "old" {
				c, place, _ = e.NextSnapshot(place)
			}
			planted = c.ID
			c.Pri++
			e.Restore(c)
		})
		sums := w.census()
		for i := range sums {
			m := w.machines[i]
			if same := sums[i].same(&sums[l.opt.Self.ID-1]); same == (m == follower) {
				t.Errorf("member %d is the same as the leader: %v", m.id, same)
			}
			if m == follower && sums[i].Buckets[planted%CensusBuckets] == sums[l.opt.Self.ID-1].Buckets[planted%CensusBuckets] {
				t.Error("the bucket of the job that differs is the same")
			}
		}
		w.close()
	})
}

// A member that has another engine meanwhile, or is to receive the whole queue, does not count.
func TestCensusIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 1)
		m := w.leader()
		first, _, err := m.BeginCensus(0)
		w.must(err)
		second, from, err := m.BeginCensus(0)
		w.must(err)
		if _, _, err := first.Walked(); err == nil {
			t.Error("two are under way")
		}
		m.EndCensus(second)
		second.Walk(from)
		if _, _, err := second.Sums(0, 0); err == nil {
			t.Error("one that was ended counts")
		}
		w.close()
	})
}
