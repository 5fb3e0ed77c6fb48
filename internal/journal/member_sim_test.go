package journal

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/test/faultfs"
	"github.com/beanpole-mq/beanpole/internal/test/seeds"
)

// planted is a bug that the simulation must detect.
type planted int

const (
	nothing         planted = iota
	cleanedInFlight         // cleaning ignores changes in flight
	putNotCounted           // a segment can be removed although a job in it has its deletion in flight
	cutUnsynced             // the log is cut at a mark that is not durable
	markFirst               // the mark is written before the facts of its entry
)

// The journals of members contain the committed changes, regardless of changes in flight,
// dropped changes, cleaning and faults.
func TestMembers(t *testing.T) {
	var seen tally
	const enough = 15
	ran := seeds.Each(t, enough, func(t *testing.T, seed uint64) {
		if err := live(t, seed, nothing, &seen); err != nil {
			t.Error(err)
		}
	}, 3171598197, 3669338716)
	t.Logf("%+v", seen)
	if seeds.Enough(ran, enough) && (seen.Dropped < 20 || seen.Migrated < 20 || seen.InFlight == 0 || seen.Failed == 0) {
		t.Errorf("too few events: %+v", seen)
	}
}

// The simulation detects each planted bug.
func TestMembersPlanted(t *testing.T) {
	if seeds.Race {
		t.Skip("adds nothing to TestMembers under the race detector")
	}
	for _, p := range []struct {
		mistake planted
		name    string
		seed    uint64
	}{
		{cleanedInFlight, "cleaning of a job in flight", 3972932850}, {putNotCounted, "the mark of a put in flight", 2708999848},
		{cutUnsynced, "log cut at the unsynced mark", 1}, {markFirst, "mark ahead of its facts", 173290536},
	} {
		t.Run(p.name, func(t *testing.T) {
			seeds.Find(t, p.seed, func(t *testing.T, seed uint64) string {
				if err := live(t, seed, p.mistake, new(tally)); err != nil {
					return err.Error()
				}
				return ""
			})
		})
	}
}

// live runs a group and returns the first error.
func live(t *testing.T, seed uint64, p planted, seen *tally) (err error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // so that a seed always gives the same run
	synctest.Test(t, func(*testing.T) {
		g := newGroup(seed, p)
		g.seen = *seen
		for range 300 {
			g.step()
			if err = g.wrong(); err != nil {
				break
			}
		}
		if err == nil {
			g.settle()
			err = g.wrong()
		}
		g.end()
		*seen = g.seen
	})
	return err
}

func (g *group) wrong() error {
	for n, m := range g.members {
		if m.wrong != nil {
			return fmt.Errorf("member %d: %w", n, m.wrong)
		}
	}
	return nil
}

// step performs the next action.
func (g *group) step() {
	m := g.members[g.rng.IntN(len(g.members))]
	switch k := g.rng.IntN(100); {
	case g.leader == nil:
		for _, m := range g.members {
			m.rebuild()
		}
		if !m.dark() {
			g.elect(m)
		}
	case k < 50:
		g.leader.work(1 + g.rng.IntN(4))
	case k < 75:
		g.commit(1 + g.rng.IntN(g.pace))
		m.applySome(g.rng.IntN(2 * g.pace))
	case k < 84:
		if time.Sleep(time.Duration(g.rng.Int64N(int64(400 * time.Millisecond)))); g.rng.IntN(4) == 0 {
			time.Sleep(time.Duration(g.rng.Int64N(int64(20 * time.Second))))
		}
		synctest.Wait()
	case k < 86:
		g.depose()
	case k < 88:
		m.crash(k == 87)
	case k < 89:
		m.disk.CutAt(m.disk.Ops() + 1 + g.rng.IntN(60))
	case k < 91:
		m.fsys.Set(faultfs.Fault{
			Op: []faultfs.Op{faultfs.Any, faultfs.Sync, faultfs.Write}[g.rng.IntN(3)], N: 1 + g.rng.IntN(10),
			How: faultfs.How(g.rng.IntN(2)), Sticky: g.rng.IntN(2) == 0,
		})
	case k < 92:
		m.disk.SetLimit(m.disk.Used() + g.rng.Int64N(4*g.opt.SegmentSize))
	case k < 96:
		m.fsys.Set()
		m.disk.SetLimit(0)
	case k < 98:
		m.turn(func(*engine.Engine, int64) { m.j.Rewrite() })
	default:
		if !m.dark() {
			m.lookAtDisk()
		}
	}
	for _, m := range g.members {
		if m.dark() {
			m.crash(true)
		}
	}
}

// settle stops all faults, applies everything, and compares.
func (g *group) settle() {
	for _, m := range g.members {
		m.fsys.Set()
		m.disk.SetLimit(0)
		m.disk.CutAt(0)
		m.rebuild()
	}
	for range 5 {
		time.Sleep(2001 * time.Millisecond) // so that no TTR ends between the turns of an iteration
		synctest.Wait()
		if g.leader != nil {
			g.leader.turn(func(*engine.Engine, int64) {}) // expired TTRs are changes
		}
		g.commit(len(g.entries))
		for _, m := range g.members {
			m.applySome(len(g.entries))
		}
	}
	for _, m := range g.members {
		if got := m.j.Applied().Index; got != uint64(g.committed) {
			m.fail(fmt.Errorf("%d of %d entries are applied after all faults ended", got, g.committed))
		}
		m.turn(func(e *engine.Engine, _ int64) { m.compare(e, m.epoch, "the engine") })
		m.lookAtDisk()
		g.seen.Migrated += int(m.j.Stats().Migrated)
	}
}

// end stops all members.
func (g *group) end() {
	g.depose()
	for _, m := range g.members {
		m.stop()
		m.fsys.Set()
		m.b.Close()
	}
	synctest.Wait()
}

// work lets the leader perform random operations in a turn.
func (m *member) work(n int) {
	m.turn(func(e *engine.Engine, now int64) {
		if m.sessions == nil {
			for range 3 {
				m.sessions = append(m.sessions, e.Open(nil))
			}
		}
		for range n {
			m.act(m.g.rng, e, now)
		}
	})
}

func (m *member) act(rng *rand.Rand, e *engine.Engine, now int64) {
	n := rng.IntN(len(m.sessions))
	s, tube, id := m.sessions[n], m.anyTube(rng), m.anyJob(rng, e)
	switch k := rng.IntN(32); {
	case k < 8 && e.Stats().Ready+e.Stats().Delayed+e.Stats().Buried < 25:
		e.Put(now, s, engine.Spec{Pri: rng.Uint32N(9), TTR: 1 + rng.Uint32N(30), Delay: rng.Uint32N(3) * rng.Uint32N(9)}, make([]byte, rng.IntN(300)))
	case k < 13:
		e.Delete(s, id)
	case k < 14:
		e.Use(s, tube)
		e.Watch(s, m.anyTube(rng))
	case k < 15:
		e.Ignore(s, tube)
	case k < 18:
		e.Reserve(now, s, 0)
	case k < 20:
		e.ReserveJob(now, s, id)
	case k < 23:
		e.Release(now, s, id, rng.Uint32N(9), rng.Uint32N(2)*rng.Uint32N(9))
	case k < 25:
		e.Bury(s, id, rng.Uint32N(9))
	case k < 26:
		e.Kick(now, s, rng.Uint32N(4))
	case k < 27:
		e.KickJob(now, id)
	case k < 28 && rng.IntN(2) == 0:
		e.SetPolicy(string(m.anyTube(rng))+"*", []string{"", "max-attempts=5\n", "paused=yes\n"}[rng.IntN(3)])
	case k < 28:
		e.Pause(now, tube, rng.Uint32N(2)*rng.Uint32N(30))
	case k < 29:
		w, _ := e.BeginMove(tube, m.anyTube(rng), []engine.State{engine.Ready, engine.Delayed, engine.Buried}[rng.IntN(3)], 0)
		for e.ContinueSweep(now, &w) {
		}
	case k < 31:
		e.Close(now, s)
		m.sessions[n] = e.Open(nil)
	default:
		body := make([]byte, rng.IntN(300))
		e.AlterJob(now, id, engine.Alteration{Body: &body})
	}
}

func (m *member) anyTube(rng *rand.Rand) []byte {
	return []byte([]string{"default", "mail", "images"}[rng.IntN(3)])
}

// anyJob returns the id of a job, often of a job that was recently changed.
func (m *member) anyJob(rng *rand.Rand, e *engine.Engine) uint64 {
	for range 10 {
		id := e.LastID() - rng.Uint64N(min(40, e.LastID())+1)
		if _, o := e.Peek(id); o == engine.OK {
			return id
		}
	}
	return e.LastID()
}

// differences lists the differences of two engines. The times of the second engine count
// from 1970.
func differences(e *engine.Engine, epoch int64, ledger *engine.Engine, now int64) string {
	list := func(e *engine.Engine, epoch int64) map[string]bool {
		lines := make(map[string]bool)
		for c := range e.Snapshots {
			if c.State == engine.Delayed {
				c.Due += epoch
			}
			lines[fmt.Sprintf("job %d in %s: %v pri %d delay %d ttr %d due %d created %d, %d %d %d, %d bytes, failure %x",
				c.ID, c.Tube, c.State, c.Pri, c.Delay, c.TTR, c.Due, c.Created+epoch, c.Releases, c.Buries, c.Kicks, len(c.Body), c.Failure)] = true
		}
		for c := range e.Pauses {
			if c.Due+epoch > now {
				lines[fmt.Sprintf("%s paused for %d s until %d", c.Tube, c.Delay, c.Due+epoch)] = true
			}
		}
		for c := range e.Named() {
			lines[fmt.Sprintf("policy of %s: %q", c.Tube, c.Body)] = true
		}
		return lines
	}
	got, want := list(e, epoch), list(ledger, 0)
	var b strings.Builder
	for _, line := range slices.Sorted(maps.Keys(got)) {
		if !want[line] {
			fmt.Fprintf(&b, "+ %s\n", line)
		}
	}
	for _, line := range slices.Sorted(maps.Keys(want)) {
		if !got[line] {
			fmt.Fprintf(&b, "- %s\n", line)
		}
	}
	return b.String()
}
