package core

import (
	"testing"

	"github.com/beanpole-mq/beanpole/internal/test/seeds"
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// Random runs hardly ever produce a reply from a deposed leader. Therefore, each of these
// functions does everything it can to cause one, and a single protection prevents it.
var adversaries = []struct {
	fault fault
	plays func(sim *simulation, old *member, others []*member)
}{
	{"no lease", func(sim *simulation, old *member, others []*member) {
		// The leader is paused. Before it receives a message from the new leader, a
		// client sends it a request.
		old.paused = sim.now + 3*second
		old.do(0, func() { old.ask(read) })
		sim.putAt(others)
		sim.run(old.paused + second)
	}},
	{"a lease during a transfer", func(sim *simulation, old *member, others []*member) {
		// The leader makes another member run for election at once, and receives no more
		// messages.
		old.core.Transfer(others[0].id)
		old.work()
		for _, o := range others {
			sim.cut[[2]int{int(o.id), int(old.id)}] = true
		}
		sim.putAt(others)
		sim.readAt(old)
	}},
	{"a lease after a transfer", func(sim *simulation, old *member, others []*member) {
		// The other member is asked to run for election only when the leader has
		// abandoned the transfer and remains the leader.
		var late *raftpb.Message
		sim.hold = func(_ *member, msg *raftpb.Message) bool {
			if msg.GetType() == raftpb.MsgTimeoutNow {
				late = msg
			}
			return msg == late
		}
		old.core.Transfer(others[0].id)
		old.work()
		sim.run(sim.now + 2*second)
		for _, o := range others {
			sim.cut[[2]int{int(o.id), int(old.id)}] = true
		}
		others[0].do(0, func() { others[0].core.Step(late) })
		sim.putAt(others)
		sim.readAt(old)
	}},
	{"a vote just after a start", func(sim *simulation, old *member, others []*member) {
		// One member has no contact with the leader for a long time. The other receives
		// the leader's messages, and votes for no other member until a restart makes it
		// forget the leader.
		sim.part(old, others[0])
		sim.run(sim.now + 2*second + sim.rng.Int64N(second))
		others[1].crash(false)
		sim.part(old, others[1])
		others[1].restart()
		sim.putAt(others)
		sim.readAt(old)
	}},
	{"a vote before its sync", twoVotes},
}

// A member votes for two candidates in a term if it loses power after it has answered the
// first and before it has synced that vote.
func twoVotes(sim *simulation, old *member, others []*member) {
	a, b, d, x, y := old, others[0], others[1], others[2], others[3]
	for _, m := range sim.members {
		m.crash(false)
		m.restart()
		m.passive = m != x && m != y
		m.core.ticks = electionTicks // as if they had been running for a long time
	}
	for _, pair := range [][2]*member{{x, y}, {x, d}, {b, y}, {b, d}} {
		sim.part(pair[0], pair[1])
	}
	var votes []func()
	requests := map[uint64]bool{}
	sim.hold = func(to *member, msg *raftpb.Message) bool {
		if msg.GetType() != raftpb.MsgVote {
			return false
		}
		requests[msg.GetFrom()] = true
		if !sim.cut[[2]int{int(msg.GetFrom()), int(to.id)}] {
			votes = append(votes, func() { to.do(ms, func() { to.core.Step(msg) }) })
		}
		return true
	}
	for end := sim.now + 5*second; len(requests) < 2 && sim.now < end; {
		sim.run(sim.now + ms)
	}
	sim.hold = nil
	if len(requests) < 2 || len(votes) != 4 {
		return // one of them was too late
	}
	first, later := votes[:2], votes[2:]
	a.slow = second
	for _, vote := range first {
		vote()
	}
	sim.run(sim.now + 6*ms)
	a.crash(true)
	a.slow = 0
	a.restart()
	a.passive, a.core.ticks = true, electionTicks
	for _, m := range []*member{x, y} { // regardless of the result, the elected member must not send messages
		if m.core.state == raft.StateLeader {
			sim.part(m, a)
		}
	}
	sim.run(sim.now + 10*ms)
	for _, vote := range later {
		vote()
	}
	sim.run(sim.now + 50*ms)
	clear(sim.cut)
	sim.putAt(sim.members)
	sim.run(sim.now + 3*second)
}

// part cuts both links between two members.
func (sim *simulation) part(a, b *member) {
	sim.cut[[2]int{int(a.id), int(b.id)}], sim.cut[[2]int{int(b.id), int(a.id)}] = true, true
}

// putAt makes clients put jobs on the active member among some members.
func (sim *simulation) putAt(members []*member) {
	for _, m := range members {
		if m.up && m.epoch != 0 {
			m.do(0, func() { m.ask(put) })
		}
	}
	sim.after(5*ms, func() { sim.putAt(members) })
}

// readAt makes a client read repeatedly from a member, for a second.
func (sim *simulation) readAt(m *member) {
	for end := sim.now + second; sim.now < end; sim.run(sim.now + 5*ms) {
		m.do(0, func() { m.ask(read) })
	}
}

// leads runs members until one of them is active.
func leads(t *testing.T, seed uint64, size int, p fault) (sim *simulation, leader *member, others []*member) {
	sim = newSimulation(t, seed, 7, p)
	sim.join(size)
	for leader == nil {
		sim.run(sim.now + 10*ms)
		for i, m := range sim.members {
			if m.epoch != 0 {
				leader = m
				others = append(append(others, sim.members[:i]...), sim.members[i+1:]...)
			}
		}
	}
	sim.run(sim.now + second)
	return sim, leader, others
}

// A leader that has not noticed its deposition sends no outdated reply, for each kind of
// deposition. With the protection against that kind turned off, the test finds an
// outdated reply.
func TestAdversaries(t *testing.T) {
	for _, a := range adversaries {
		t.Run(string(a.fault), func(t *testing.T) {
			size := 3
			if a.fault == "a vote before its sync" {
				size = 5
			}
			play := func(t *testing.T, seed uint64, p fault) string {
				sim, old, others := leads(t, seed, size, p)
				a.plays(sim, old, others)
				return sim.wrong
			}
			seeds.Each(t, 2, func(t *testing.T, seed uint64) {
				if wrong := play(t, seed, ""); wrong != "" {
					t.Fatal(wrong)
				}
			})
			seeds.Find(t, 1, func(t *testing.T, seed uint64) string { return play(t, seed, a.fault) })
		})
	}
}
