package core

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/cryptotest"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/beanpole-mq/beanpole/internal/cluster/raftlog"
)

const (
	ms     = int64(1_000_000)
	second = 1000 * ms
)

// A simulation consists of members with disks, clocks and a network, all of which can
// fail, and of clients. A single goroutine steps it in fake time, so a seed determines a
// run.
type simulation struct {
	rng     *rand.Rand
	now     int64
	events  []event // ascending by time, then in the order of the calls of after
	members []*member
	cut     map[[2]int]bool // whether the link from one member to another is cut
	fault   fault
	faults  bool                                       // whether faults can happen
	hold    func(to *member, msg *raftpb.Message) bool // whether a message is held back

	oracle
}

// A fault is a planted fault.
type fault string

type event struct {
	at int64
	do func()
}

func (sim *simulation) after(d int64, do func()) {
	at := sim.now + d
	i, _ := slices.BinarySearchFunc(sim.events, at+1, func(e event, at int64) int { return cmp.Compare(e.at, at) })
	sim.events = slices.Insert(sim.events, i, event{at, do})
}

// run executes events until a given time.
func (sim *simulation) run(until int64) {
	for len(sim.events) > 0 && sim.events[0].at <= until && sim.wrong == "" {
		e := sim.events[0]
		sim.events = sim.events[1:]
		sim.now = e.at
		e.do()
	}
	sim.now = until
}

func (sim *simulation) join(n int) {
	voters := make([]uint64, n)
	for i := range voters {
		voters[i] = uint64(i + 1)
	}
	for range n {
		sim.grow(1, &raftpb.ConfState{Voters: voters}, 0)
	}
}

// grow adds a member.
func (sim *simulation) grow(rate float64, conf *raftpb.ConfState, index uint64) {
	m := &member{sim: sim, rate: rate, base: 1 + sim.rng.Int64N(1000*second)}
	m.id, m.opt = uint64(len(sim.members)+1), raftlog.Options{SegmentSize: 8 << 10, Recent: 4 << 10, LogID: sim.rng.Uint64() | 1}
	sim.members = append(sim.members, m)
	sim.must(m.create(conf, index))
	m.boot()
}

func (sim *simulation) must(err error) {
	if err != nil {
		panic(err)
	}
}

// newSimulation returns a simulation without members. stream selects its random numbers.
func newSimulation(t *testing.T, seed, stream uint64, p fault) *simulation {
	cryptotest.SetGlobalRandom(t, seed)
	return &simulation{rng: rand.New(rand.NewPCG(seed, stream)), cut: map[[2]int]bool{}, fault: p, oracle: newOracle()}
}

// simulate runs members and clients for some seconds.
func simulate(t *testing.T, seed uint64, p fault) *simulation {
	sim := newSimulation(t, seed, 7, p)
	sim.faults = true
	sim.join(3 + 2*sim.rng.IntN(2))
	for _, m := range sim.members {
		m.rate = 0.95 + sim.rng.Float64()/10
	}
	sim.clients()
	sim.mishaps()
	sim.run(12 * second)
	sim.heal()
	sim.settle()
	return sim
}

// settle lets members run without faults, and checks the result.
func (sim *simulation) settle() {
	before, agreed := sim.acknowledged, uint64(len(sim.entries))
	sim.run(sim.now + 6*second)
	if sim.acknowledged == before {
		sim.fail("no reply in a healthy cluster")
	}
	for _, m := range sim.members {
		if m.up && !m.gone && m.core.Applied().Index < agreed {
			sim.fail("member %d is left behind: it has applied %v of %d", m.id, m.core.Applied(), agreed)
		}
	}
	sim.audit()
}

// clients repeatedly send requests to the active member.
func (sim *simulation) clients() {
	var next func()
	next = func() {
		for _, m := range sim.members {
			if m.up && m.epoch != 0 && sim.now >= m.paused {
				kind := []byte{put, put, del, read, read}[sim.rng.IntN(5)]
				m.do(0, func() { m.ask(kind) })
			}
		}
		sim.after(sim.rng.Int64N(12*ms), next)
	}
	next()
}

// mishaps causes failures until faults are disabled.
func (sim *simulation) mishaps() {
	var next func()
	next = func() {
		if !sim.faults {
			return
		}
		sim.mishap()
		sim.after(sim.rng.Int64N(500*ms), next)
	}
	sim.after(second, next)
	var house func()
	house = func() {
		m := sim.members[sim.rng.IntN(len(sim.members))]
		m.do(0, m.keepHouse)
		sim.after(sim.rng.Int64N(300*ms), house)
	}
	house()
}

func (sim *simulation) mishap() {
	m := sim.members[sim.rng.IntN(len(sim.members))]
	if sim.rng.IntN(2) == 0 { // prefer the leader
		for _, l := range sim.members {
			if l.up && l.epoch != 0 {
				m = l
			}
		}
	}
	switch sim.rng.IntN(9) {
	case 0, 1:
		if m.up {
			m.crash(sim.rng.IntN(2) == 0)
			sim.after(sim.rng.Int64N(second), m.restart)
		}
	case 2, 3:
		for _, m := range sim.members { // all at once
			if m.up {
				m.crash(true)
				sim.after(sim.rng.Int64N(300*ms), m.restart)
			}
		}
	case 4:
		m.paused = sim.now + sim.rng.Int64N(3*second)
	case 5, 6:
		for _, other := range sim.members {
			for _, link := range [][2]int{{int(m.id), int(other.id)}, {int(other.id), int(m.id)}} {
				if sim.rng.IntN(4) > 0 {
					sim.cut[link] = true
					sim.after(sim.rng.Int64N(2*second), func() { delete(sim.cut, link) })
				}
			}
		}
	case 7, 8:
		to := sim.members[sim.rng.IntN(len(sim.members))]
		if m.up && m.epoch != 0 && to != m {
			m.do(0, func() { m.core.Transfer(to.id) })
		}
	}
}

// heal ends all faults.
func (sim *simulation) heal() {
	sim.faults = false
	clear(sim.cut)
	for _, m := range sim.members {
		m.paused = 0
		m.restart()
	}
}

func (sim *simulation) String() string {
	var b strings.Builder
	for _, m := range sim.members {
		var lead Leadership
		if m.core != nil {
			lead = m.core.Lead()
		}
		fmt.Fprintf(&b, "%d: up %v, epoch %d, leader %d in term %d, log to %v, applied %d, %d pending\n", m.id, m.up, m.epoch, lead.Leader, lead.Term, m.log.Last(), len(m.applied), len(m.pending))
	}
	return b.String()
}
