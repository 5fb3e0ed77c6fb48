package core

import (
	"math/rand/v2"
	"testing"
	"testing/cryptotest"

	"github.com/beanpole-mq/beanpole/internal/test/seeds"
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// Chance hardly ever finds a moment in which a leader that is none answers. So each of
// these does all it can to make one, and is stopped by one thing alone.
var adversaries = []struct {
	plant plant
	plays func(w *world, old *member, others []*member)
}{
	{"no lease", func(w *world, old *member, others []*member) {
		// The leader stands still; before it hears anything of the new one, a client asks it.
		old.paused = w.now + 3*second
		old.do(0, func() { old.ask(read) })
		w.putAt(others)
		w.run(old.paused + second)
	}},
	{"a lease during a transfer", func(w *world, old *member, others []*member) {
		// The leader tells another member to stand at once, and hears of nothing from then on.
		old.core.Transfer(others[0].id)
		old.work()
		for _, o := range others {
			w.cut[[2]int{int(o.id), int(old.id)}] = true
		}
		w.putAt(others)
		w.readAt(old)
	}},
	{"a lease after a transfer", func(w *world, old *member, others []*member) {
		// The other member is told to stand only when the leader has given the transfer up, and leads on.
		var late *raftpb.Message
		w.hold = func(_ *member, msg *raftpb.Message) bool {
			if msg.GetType() == raftpb.MsgTimeoutNow {
				late = msg
			}
			return msg == late
		}
		old.core.Transfer(others[0].id)
		old.work()
		w.run(w.now + 2*second)
		for _, o := range others {
			w.cut[[2]int{int(o.id), int(old.id)}] = true
		}
		others[0].do(0, func() { others[0].core.Step(late) })
		w.putAt(others)
		w.readAt(old)
	}},
	{"a vote just after a start", func(w *world, old *member, others []*member) {
		// One member hears no leader for long, but the other one does, and votes for nobody. That
		// one forgets the leader in a restart.
		w.part(old, others[0])
		w.run(w.now + 2*second + w.rng.Int64N(second))
		others[1].crash(false)
		w.part(old, others[1])
		others[1].restart()
		w.putAt(others)
		w.readAt(old)
	}},
	{"a vote before its sync", twoVotes},
}

// A member votes for two candidates of a term, if the power goes after it has answered the first and before
// it has synced that.
func twoVotes(w *world, old *member, others []*member) {
	a, b, d, x, y := old, others[0], others[1], others[2], others[3]
	for _, m := range w.members {
		m.crash(false)
		m.restart()
		m.passive = m != x && m != y
		m.core.gate.ticks = m.core.opt.ElectionTicks // as if they had been up for long
	}
	for _, pair := range [][2]*member{{x, y}, {x, d}, {b, y}, {b, d}} {
		w.part(pair[0], pair[1])
	}
	var votes []func()
	requests := map[uint64]bool{}
	w.hold = func(to *member, msg *raftpb.Message) bool {
		if msg.GetType() != raftpb.MsgVote {
			return false
		}
		requests[msg.GetFrom()] = true
		if !w.cut[[2]int{int(msg.GetFrom()), int(to.id)}] {
			votes = append(votes, func() { to.do(ms, func() { to.core.Step(msg) }) })
		}
		return true
	}
	for end := w.now + 5*second; len(requests) < 2 && w.now < end; {
		w.run(w.now + ms)
	}
	w.hold = nil
	if len(requests) < 2 || len(votes) != 4 {
		return // one of them was too late
	}
	first, later := votes[:2], votes[2:]
	a.slow = second
	for _, vote := range first {
		vote()
	}
	w.run(w.now + 6*ms)
	a.crash(true)
	a.slow = 0
	a.restart()
	a.passive, a.core.gate.ticks = true, a.core.opt.ElectionTicks
	for _, m := range []*member{x, y} { // whichever was elected, it must not tell
		if m.core.state == raft.StateLeader {
			w.part(m, a)
		}
	}
	w.run(w.now + 10*ms)
	for _, vote := range later {
		vote()
	}
	w.run(w.now + 50*ms)
	clear(w.cut)
	w.putAt(w.members)
	w.run(w.now + 3*second)
}

// part cuts both ways between two members.
func (w *world) part(a, b *member) {
	w.cut[[2]int{int(a.id), int(b.id)}], w.cut[[2]int{int(b.id), int(a.id)}] = true, true
}

// putAt lets clients put at whoever of some members is active.
func (w *world) putAt(members []*member) {
	for _, m := range members {
		if m.up && m.epoch != 0 {
			m.do(0, func() { m.ask(put) })
		}
	}
	w.after(5*ms, func() { w.putAt(members) })
}

// readAt lets a client read again and again at a member, for a second.
func (w *world) readAt(m *member) {
	for end := w.now + second; w.now < end; w.run(w.now + 5*ms) {
		m.do(0, func() { m.ask(read) })
	}
}

// leads lets members live until one of them is active.
func leads(t *testing.T, seed uint64, size int, p plant) (w *world, leader *member, others []*member) {
	cryptotest.SetGlobalRandom(t, seed)
	w = &world{rng: rand.New(rand.NewPCG(seed, 7)), cut: map[[2]int]bool{}, plant: p, oracle: newOracle()}
	w.join(size)
	for leader == nil {
		w.run(w.now + 10*ms)
		for i, m := range w.members {
			if m.epoch != 0 {
				leader = m
				others = append(append(others, w.members[:i]...), w.members[i+1:]...)
			}
		}
	}
	w.run(w.now + second)
	return w, leader, others
}

// A leader that is deposed without knowing it answers nothing that is out of date, however a
// deposition is brought about; and without what prevents that, it does.
func TestAdversaries(t *testing.T) {
	for _, a := range adversaries {
		t.Run(string(a.plant), func(t *testing.T) {
			size := 3
			if a.plant == "a vote before its sync" {
				size = 5
			}
			play := func(t *testing.T, seed uint64, p plant) string {
				w, old, others := leads(t, seed, size, p)
				a.plays(w, old, others)
				return w.wrong
			}
			seeds.Each(t, 2, func(t *testing.T, seed uint64) {
				if wrong := play(t, seed, ""); wrong != "" {
					t.Fatal(wrong)
				}
			})
			seeds.Find(t, 1, func(t *testing.T, seed uint64) string { return play(t, seed, a.plant) })
		})
	}
}
