package engine

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/test/seeds"
)

// A group simulates replication without a network: one engine leads and decides entries
// of a log, and others follow.
type group struct {
	src  *rand.Rand
	now  int64
	term int

	log       []logEntry // of index 1 and above
	committed int

	leader   *Engine
	sessions []*Session

	follower *Engine
	applied  int // by the follower

	kept int // number of leaders that became followers
}

// Some tubes of a group have policies.
var groupOptions = Options{Logged: true, Policies: PolicyFunc(func(tube string) *Policy {
	return map[string]*Policy{
		"a": {MaxAttempts: 2, RetryDelay: second, RetryMax: 3 * second, RetryFactor: 2, RetryJitter: 0.5, RetryOn: Timeout | Lost | Release},
		"b": {MaxTimeouts: 1, Exhausted: MoveExhausted, DeadTube: "{tube}.dead", Unique: byFirst},
		"c": {MaxReleases: 1, Exhausted: DeleteExhausted, TTL: 20 * second, BuryAtTTL: true, KeepBuried: 40 * second},
		"d": {MaxReserved: 1, Interval: second, Burst: 2, TTL: 20 * second, Unique: byFirst, UniqueWhile: WhileActive, UniqueMode: Replace},
	}[tube]
})}

// A logEntry contains the changes of one turn.
type logEntry struct {
	term    int
	changes []Change
}

func newGroup(seed uint64) *group {
	g := &group{src: rand.New(rand.NewPCG(seed, seed)), follower: New(groupOptions)}
	g.elect()
	return g
}

// elect makes an engine with all committed changes the leader's, and drops uncommitted
// changes, as after the death of a leader.
func (g *group) elect() {
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

// handOver makes the follower the leader, and the leader, whose decisions are all
// committed, the follower.
func (g *group) handOver() error {
	g.committed = len(g.log)
	g.follow(g.committed)
	old := g.leader
	g.begin(g.follower)
	g.follower = old
	old.DropSessions(g.now)
	if err := old.Check(); err != nil {
		return err
	}
	if n := len(old.TakeChanges()); n > 0 {
		return fmt.Errorf("an engine that has dropped its sessions made %d changes", n)
	}
	if got, want := old.Digest(g.now, 0), g.replayed(g.committed).Digest(g.now, 0); got != want {
		return fmt.Errorf("a leader without its sessions has the digest %x at %d, the committed changes %x", got, g.committed, want)
	}
	g.kept++
	return nil
}

// replayed returns an engine that has restored the first n entries.
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

// turn lets the leader execute some verbs.
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

// verb executes a command of a random session.
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
		e.Put(g.now, s, Spec{Pri: uint32(r.IntN(3)), Delay: uint32(r.IntN(3)), TTR: 1}, fmt.Appendf(nil, "%c%d of %d", 'a'+r.IntN(6), e.LastID(), g.term))
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

// follow makes the follower apply some committed changes.
func (g *group) follow(atMost int) {
	for ; g.applied < g.committed && atMost > 0; atMost-- {
		restoreAll(g.follower, g.log[g.applied].changes)
		g.applied++
	}
}

// compare compares the engines with others that restored the expected changes.
func (g *group) compare() error {
	if err := g.follower.Check(); err != nil {
		return err
	}
	want := g.replayed(g.applied)
	if got, want := g.follower.Digest(g.now, 0), want.Digest(g.now, 0); got != want {
		return fmt.Errorf("the follower has the digest %x at %d, the committed changes %x", got, g.applied, want)
	}
	if got, want := g.follower.LastID(), want.LastID(); got < want {
		return fmt.Errorf("the follower's last id is %d, below %d", got, want)
	}
	if g.committed == len(g.log) {
		if got, want := g.leader.Digest(g.now, 0), g.replayed(g.committed).Digest(g.now, 0); got != want {
			return fmt.Errorf("the leader has the digest %x at %d, the committed changes %x", got, g.committed, want)
		}
	}
	return nil
}

func (g *group) run(steps int) error {
	for range steps {
		switch k := g.src.IntN(100); {
		case k < 50:
			g.turn()
		case k < 65:
			g.committed += g.src.IntN(len(g.log) - g.committed + 1)
		case k < 95:
			g.follow(1 + g.src.IntN(8))
		case k < 97:
			if err := g.compare(); err != nil {
				return err
			}
		case k < 98:
			g.elect()
		default:
			if err := g.handOver(); err != nil {
				return err
			}
		}
	}
	return nil
}

// TestFollow runs engines that lead and follow, and compares them.
func TestFollow(t *testing.T) {
	kept, acted, expired, duplicates := 0, uint64(0), uint64(0), uint64(0)
	ran := seeds.Each(t, 60, func(t *testing.T, seed uint64) {
		g := newGroup(seed)
		if err := g.run(600); err != nil {
			t.Fatal(err)
		}
		kept += g.kept
		counts := g.leader.PolicyCounts()
		acted += counts.Exhausted()
		expired += counts.Expired()
		duplicates += counts[Deduplicated]
	})
	t.Logf("%d leaders have followed", kept)
	if seeds.Enough(ran, 60) && (kept == 0 || acted == 0 || expired == 0 || duplicates == 0) {
		t.Error("the test has no effect")
	}
}
