package engine

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/test/seeds"
)

// A group is a log of entries that a leader decides and others are told of, without a
// network: engines that lead, follow, and catch up while the others go on.
type group struct {
	src     *rand.Rand
	planted catchupFault
	now     int64
	term    int

	log       []logEntry // of index 1 and above
	committed int

	leader   *Engine
	sessions []*Session

	follower *Engine
	applied  int // by the follower

	joiner *joiner
	joined int // how many joiners have caught up
	kept   int // how many leaders have followed after they had led
	thrown int // how many walks were thrown away
}

// Some tubes of a group have policies.
var groupOptions = Options{Logged: true, Policies: func(tube string) *Policy {
	return map[string]*Policy{
		"a": {MaxAttempts: 2, RetryDelay: second, RetryMax: 3 * second, RetryFactor: 2, RetryJitter: 0.5, RetryOn: Timeout | Lost | Release},
		"b": {MaxTimeouts: 1, Exhausted: MoveExhausted, DeadTube: "{tube}.dead"},
		"c": {MaxReleases: 1, Exhausted: DeleteExhausted},
	}[tube]
}}

// A logEntry is what one turn has changed.
type logEntry struct {
	term    int
	changes []Change
}

// catchupFault is a mistake that a test must find.
type catchupFault int

const (
	noFault     catchupFault = iota
	mergedTail               // changes are applied while the walk goes on
	uncommitted              // the walk over a leader counts before its last entry is committed
)

// A joiner is an empty engine that is filled by a walk over another one, and then by the
// entries since the walk began.
type joiner struct {
	eng     *Engine
	donor   *Engine
	leading bool  // the donor is the leader
	place   int64 // of the walk; negative: it is over
	applied int   // index of the last entry that is in eng; before the end of the walk: of that before the walk
	end     int   // index of the last entry that the donor had made or applied when the walk ended
}

func newGroup(seed uint64, planted catchupFault) *group {
	g := &group{src: rand.New(rand.NewPCG(seed, seed)), planted: planted, follower: New(groupOptions)}
	g.elect()
	return g
}

// elect makes an engine that has applied all that is committed the leader's, and drops what
// is not committed, as if the leader had died.
func (g *group) elect() {
	if g.joiner != nil && g.awaits(g.joiner) {
		g.joiner = nil
		g.thrown++
	}
	g.log = g.log[:g.committed]
	g.begin(g.replayed(g.committed))
}

// begin makes an engine the leader's.
func (g *group) begin(leader *Engine) {
	g.term++
	g.leader, g.sessions = leader, nil
	for range 4 {
		g.sessions = append(g.sessions, leader.Open(nil))
	}
}

// handOver makes the follower the leader, and the leader, whose decisions are all committed, the follower.
func (g *group) handOver() error {
	g.committed = len(g.log)
	g.follow(g.committed)
	old := g.leader
	g.begin(g.follower)
	g.follower = old
	if j := g.joiner; j != nil && j.donor == g.leader {
		j.leading = true
	}
	old.DropSessions(g.now)
	if err := old.Check(); err != nil {
		return err
	}
	if n := len(old.TakeChanges()); n > 0 {
		return fmt.Errorf("an engine that has dropped its sessions has made %d changes", n)
	}
	if got, want := old.Digest(g.now, 0), g.replayed(g.committed).Digest(g.now, 0); got != want {
		return fmt.Errorf("a leader without its sessions has the digest %x at %d, and what is committed %x", got, g.committed, want)
	}
	g.kept++
	return nil
}

// replayed returns an engine that was told the first n entries.
func (g *group) replayed(n int) *Engine {
	e := New(groupOptions)
	for _, entry := range g.log[:n] {
		restoreAll(e, entry.changes)
	}
	return e
}

func restoreAll(e *Engine, changes []Change) {
	for _, c := range changes {
		e.Restore(c)
	}
}

// turn lets the leader decide something.
func (g *group) turn() {
	g.now += g.src.Int64N(second)
	g.leader.Tick(g.now)
	for range 1 + g.src.IntN(3) {
		g.verb()
	}
	if changes := g.leader.TakeChanges(); len(changes) > 0 {
		g.log = append(g.log, logEntry{g.term, changes})
	}
}

// verb is one of a random session.
func (g *group) verb() {
	e, r, n := g.leader, g.src, g.src.IntN(len(g.sessions))
	s := g.sessions[n]
	if s.waiting {
		return
	}
	id := 1 + r.Uint64N(e.LastID()+1)
	if r.IntN(2) == 0 && s.held.first != none {
		id = e.jobs.at(s.held.first).id
	}
	tube := []byte{'a' + byte(r.IntN(4))}
	state := []State{Ready, Delayed, Buried}[r.IntN(3)]
	switch r.IntN(16) {
	case 0, 1, 2:
		e.Use(s, tube)
		e.Put(g.now, s, Spec{uint32(r.IntN(3)), uint32(r.IntN(3)), 1}, fmt.Appendf(nil, "%d of %d", e.LastID(), g.term))
	case 3:
		e.Watch(s, tube)
	case 4, 5, 6:
		e.Reserve(g.now, s, 0)
	case 7:
		e.Release(g.now, s, id, uint32(r.IntN(3)), uint32(r.IntN(3)))
	case 8:
		e.Bury(s, id, 1)
	case 9:
		e.Kick(g.now, s, uint32(r.IntN(3)))
	case 10:
		e.ReserveJob(g.now, s, id)
	case 11:
		e.Pause(g.now, tube, uint32(r.IntN(3)))
	case 12:
		e.Close(g.now, s)
		g.sessions[n] = e.Open(nil)
	case 13:
		if w, o := e.BeginMove(tube, []byte{'a' + byte(r.IntN(4))}, state); o == OK {
			w.AtMost(2)
			for e.ContinueSweep(g.now, &w) {
			}
		}
	case 14, 15:
		e.Delete(s, id)
	}
}

// follow lets the follower apply some of what is committed.
func (g *group) follow(atMost int) {
	for ; g.applied < g.committed && atMost > 0; atMost-- {
		restoreAll(g.follower, g.log[g.applied].changes)
		g.applied++
	}
}

// catchUp lets the joiner come a little nearer to the others.
func (g *group) catchUp() {
	j := g.joiner
	switch {
	case j == nil:
		g.join()
	case j.place >= 0:
		g.walk(j)
	case !g.awaits(j):
		g.tail(j, 1+g.src.IntN(4))
	}
}

// awaits reports whether the leader that the joiner has walked over may still lose its epoch
// before all that it had decided is committed: then what the walk has seen has never been.
func (g *group) awaits(j *joiner) bool {
	return j.leading && g.planted != uncommitted && (j.place >= 0 || g.committed < j.end)
}

// join begins a walk over the leader or the follower.
func (g *group) join() {
	g.joiner = &joiner{eng: New(groupOptions), donor: g.follower, applied: g.applied}
	if g.src.IntN(2) == 0 {
		g.joiner.donor, g.joiner.leading, g.joiner.applied = g.leader, true, len(g.log)
	}
}

// walk sends a few jobs to the joiner.
func (g *group) walk(j *joiner) {
	for range 1 + g.src.IntN(4) {
		c, next, ok := j.donor.NextSnapshot(j.place)
		if ok {
			c.Body = bytes.Clone(c.Body)
			j.eng.Restore(c)
		}
		if j.place = next; next < 0 {
			break
		}
	}
	if g.planted == mergedTail {
		g.tail(j, 2)
	}
	if j.place >= 0 {
		return
	}
	for c := range j.donor.Pauses {
		j.eng.Restore(c)
	}
	j.eng.Restore(Change{Kind: LastID, ID: j.donor.LastID()})
	if j.end = g.applied; j.leading {
		j.end = len(g.log)
	}
}

// tail lets the joiner apply entries that are committed.
func (g *group) tail(j *joiner, atMost int) {
	for ; j.applied < g.committed && atMost > 0; atMost-- {
		restoreAll(j.eng, g.log[j.applied].changes)
		j.applied++
	}
}

// compare compares all engines that have applied the same, and makes the joiner the follower
// if it has caught up.
func (g *group) compare() error {
	j := g.joiner
	if j == nil || j.place >= 0 || j.applied < j.end || g.awaits(j) {
		return nil
	}
	if err := j.eng.Check(); err != nil {
		return err
	}
	want := g.replayed(min(j.applied, g.committed))
	if got, want := j.eng.Digest(g.now, 0), want.Digest(g.now, 0); got != want {
		return fmt.Errorf("a joiner that has caught up to %d has the digest %x, and what is committed %x", j.applied, got, want)
	}
	if got, want := g.follower.Digest(g.now, 0), g.replayed(g.applied).Digest(g.now, 0); got != want {
		return fmt.Errorf("the follower has the digest %x at %d, and what is committed %x", got, g.applied, want)
	}
	if got, want := j.eng.LastID(), want.LastID(); got < want {
		return fmt.Errorf("the joiner's last id is %d, below %d", got, want)
	}
	if g.committed == len(g.log) {
		if got, want := g.leader.Digest(g.now, 0), g.replayed(g.committed).Digest(g.now, 0); got != want {
			return fmt.Errorf("the leader has the digest %x at %d, and what is committed %x", got, g.committed, want)
		}
	}
	g.follower, g.applied, g.joiner = j.eng, j.applied, nil
	g.joined++
	return nil
}

func (g *group) run(steps int) error {
	for range steps {
		switch k := g.src.IntN(100); {
		case k < 50:
			g.turn()
		case k < 65:
			g.committed += g.src.IntN(len(g.log) - g.committed + 1)
		case k < 75:
			g.follow(1 + g.src.IntN(8))
		case k < 98:
			g.catchUp()
		case k < 99 && g.src.IntN(2) == 0:
			g.elect()
		case k < 99:
			if err := g.handOver(); err != nil {
				return err
			}
		default:
			g.joiner = nil // it was killed
		}
		if err := g.compare(); err != nil {
			return err
		}
	}
	return nil
}

// TestCatchUp runs engines that lead, follow and catch up with the others by a walk over one
// of them and the entries since the walk began, and compares them.
func TestCatchUp(t *testing.T) {
	joined, thrown, kept, acted := 0, 0, 0, uint64(0)
	ran := seeds.Each(t, 60, func(t *testing.T, seed uint64) {
		g := newGroup(seed, noFault)
		if err := g.run(600); err != nil {
			t.Fatal(err)
		}
		joined, thrown, kept = joined+g.joined, thrown+g.thrown, kept+g.kept
		counts := g.leader.PolicyCounts()
		acted += counts.Exhausted()
	})
	t.Logf("%d joiners caught up, %d walks were thrown away, %d leaders have followed", joined, thrown, kept)
	if seeds.Enough(ran, 60) && (joined == 0 || thrown == 0 || kept == 0 || acted == 0) {
		t.Error("the test tries nothing")
	}
}

// TestCatchUpPlanted plants the mistakes that the order of a walk and what follows it is there
// to prevent.
func TestCatchUpPlanted(t *testing.T) {
	for name, fault := range map[string]catchupFault{
		"changes are applied during the walk":      mergedTail,
		"a leader's walk counts before it commits": uncommitted,
	} {
		t.Run(name, func(t *testing.T) {
			seeds.Find(t, 3436129734, func(_ *testing.T, seed uint64) string {
				if err := newGroup(seed, fault).run(600); err != nil {
					return err.Error()
				}
				return ""
			})
		})
	}
}
