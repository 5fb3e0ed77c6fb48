package core

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/cryptotest"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/beanpole-mq/beanpole/internal/cluster/raftlog"
	"github.com/beanpole-mq/beanpole/internal/vfs/memfs"
)

const (
	ms     = int64(1_000_000)
	second = 1000 * ms
)

// A simulation is members with disks, clocks and a network, all of which fail, and
// clients. One goroutine steps it on fake time, so a seed is a run.
type simulation struct {
	rng     *rand.Rand
	now     int64
	seq     int
	events  []event // ascending
	members []*member
	cut     map[[2]int]bool // the link from one member to another is cut
	fault   fault
	faults  bool                                       // may happen
	hold    func(to *member, msg *raftpb.Message) bool // whether a message is kept back

	oracle
}

// A fault is a mistake that is made on purpose.
type fault string

type event struct {
	at  int64
	seq int
	do  func()
}

func (sim *simulation) after(d int64, do func()) {
	sim.seq++
	e := event{sim.now + d, sim.seq, do}
	i, _ := slices.BinarySearchFunc(sim.events, e, func(a, b event) int {
		if a.at != b.at {
			return int(min(max(a.at-b.at, -1), 1))
		}
		return a.seq - b.seq
	})
	sim.events = slices.Insert(sim.events, i, e)
}

// run runs what happens until a moment.
func (sim *simulation) run(until int64) {
	for len(sim.events) > 0 && sim.events[0].at <= until && sim.wrong == "" {
		e := sim.events[0]
		sim.events = sim.events[1:]
		sim.now = e.at
		e.do()
	}
	sim.now = until
}

// A member is a process and its machine.
type member struct {
	sim    *simulation
	id     uint64
	life   int // counts starts; what belongs to an earlier life is dropped
	up     bool
	paused int64 // until when it stands still
	rate   float64
	base   int64 // of its clock

	disk    *memfs.FS
	log     *raftlog.Log
	core    *Core
	applied []fact // the journal: what was applied, in order
	synced  int    // so many of applied survive a crash
	doneAt  int64  // when the last Apply is done
	writing bool
	writes  []Write

	// The epoch in force: the engine is ahead of the journal.
	jobs    map[uint64]bool
	stamp   int64
	epoch   uint64
	reached uint64 // the last op that was applied in it: they are applied in their order
	pending []*op

	gone    bool  // it was removed
	slow    int64 // so much longer a sync takes
	fetch   fetch
	passive bool // counts no ticks, and so never stands for election
}

// A fact is an entry that was applied.
type fact struct {
	raftlog.Position
	stamp int64
	kind  byte // 0: none of ours
	id    uint64
	op    uint64
}

const entryLength = 25

func (f fact) encode() []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(f.stamp))
	b = append(b, f.kind)
	b = binary.LittleEndian.AppendUint64(b, f.id)
	return binary.LittleEndian.AppendUint64(b, f.op)
}

func factOf(e *raftpb.Entry) fact {
	f := fact{Position: raftlog.Position{Index: e.GetIndex(), Term: e.GetTerm()}}
	if b := e.GetData(); e.GetType() == raftpb.EntryNormal && len(b) == entryLength {
		f.stamp, f.kind = int64(binary.LittleEndian.Uint64(b)), b[8]
		f.id, f.op = binary.LittleEndian.Uint64(b[9:]), binary.LittleEndian.Uint64(b[17:])
	}
	return f
}

const (
	put  = 'p'
	del  = 'd'
	read = 'r'
)

// clock is what the member's clock shows.
func (m *member) clock() int64 { return m.base + int64(float64(m.sim.now)*m.rate) }

// do lets the member do something now, or when it no longer stands still, if it is still
// the same process then.
func (m *member) do(delay int64, what func()) {
	life := m.life
	var again func()
	again = func() {
		switch {
		case m.life != life || !m.up:
		case m.sim.now < m.paused:
			m.sim.after(m.paused-m.sim.now, again)
		default:
			what()
			m.work()
		}
	}
	m.sim.after(delay, again)
}

func (sim *simulation) join(n int) {
	voters := make([]uint64, n)
	for i := range voters {
		voters[i] = uint64(i + 1)
	}
	for i := range n {
		m := &member{sim: sim, id: uint64(i + 1), disk: memfs.New(), rate: 1, base: 1 + sim.rng.Int64N(1000*second)}
		m.disk.Mkdir("d")
		sim.members = append(sim.members, m)
		m.open()
		sim.must(m.log.SetMembership(raftlog.Membership{Roles: &raftpb.ConfState{Voters: voters}}))
		sim.must(m.log.Sync())
		m.boot()
	}
}

func (sim *simulation) must(err error) {
	if err != nil {
		panic(err)
	}
}

// open opens the log.
func (m *member) open() {
	var err error
	m.log, err = raftlog.Open(m.disk, "d", raftlog.Options{SegmentSize: 8 << 10, Recent: 4 << 10, LogID: m.sim.rng.Uint64() | 1})
	m.sim.must(err)
}

// boot starts the process; its log is open.
func (m *member) boot() {
	sim := m.sim
	m.life++
	m.up, m.writing, m.writes, m.pending, m.epoch = true, false, nil, nil, 0
	m.settleSnapshot()
	var mark raftlog.Position
	if n := len(m.applied); n > 0 {
		mark = m.applied[n-1].Position
	}
	if !m.log.Has(mark) {
		m.synced = len(m.applied) // the journal must not lose what the log will not have
		sim.must(m.log.Cut(mark))
	}
	sim.must(m.log.Start(sim.rng.Uint64()))
	sim.must(m.log.Sync())
	c, err := New(m.log, Options{ID: m.id, Applied: mark})
	sim.must(err)
	if sim.fault == "a vote just after a start" {
		c.ticks = 1000
	}
	m.core = c
	m.rebuild()
	m.do(sim.rng.Int64N(60*ms), m.tick)
}

func (m *member) tick() {
	if !m.passive {
		m.core.Tick(m.clock())
	}
	m.watchSnapshots()
	m.do(int64(float64(60*ms)/m.rate), m.tick)
}

// work does what the core wants done.
func (m *member) work() {
	for {
		work := m.core.Work()
		m.notice()
		m.fetchSnapshot()
		if work.Idle() {
			break
		}
		for _, msg := range work.Send {
			m.send(msg)
		}
		if work.Roles != nil {
			m.regroup(work.Roles)
		}
		m.writes = append(m.writes, work.Write...)
		for _, a := range work.Apply {
			m.apply(a)
		}
	}
	m.write()
	m.settle()
}

func (m *member) send(msg *raftpb.Message) {
	sim := m.sim
	if msg.GetTo() > uint64(len(sim.members)) {
		return // it is only about to be added
	}
	to := sim.members[msg.GetTo()-1]
	if sim.hold != nil && sim.hold(to, msg) {
		return
	}
	if sim.cut[[2]int{int(m.id), int(to.id)}] || sim.faults && sim.rng.IntN(50) == 0 {
		return
	}
	delay := ms/10 + sim.rng.Int64N(3*ms)
	if sim.faults && sim.rng.IntN(30) == 0 {
		delay += sim.rng.Int64N(400 * ms)
	}
	life := m.life
	to.do(delay, func() {
		if m.life == life { // else the connection has ended
			if err := to.core.Step(msg); errors.Is(err, ErrContradiction) {
				sim.fail("member %d contradicts member %d: %v", to.id, msg.GetFrom(), msg)
			}
		}
	})
}

// write writes and syncs all that waits, and then delivers the responses.
func (m *member) write() {
	if m.writing || len(m.writes) == 0 {
		return
	}
	batch := m.writes
	m.writes, m.writing = nil, true
	var responses []*raftpb.Message
	restored := false
	for _, b := range batch {
		if b.Snapshot != nil {
			m.restore(b.Snapshot)
			restored = true
		}
		m.sim.must(m.log.Append(b.Hard, b.Entries))
		responses = append(responses, b.Responses...)
	}
	if m.early(responses) {
		responses = nil
	}
	delay := ms/10 + m.sim.rng.Int64N(2*ms) + m.slow
	if m.sim.faults && m.sim.rng.IntN(100) == 0 {
		delay += m.sim.rng.Int64N(second)
	}
	m.do(delay, func() {
		m.sim.must(m.log.Sync())
		m.writing = false
		if m.sim.fault == notHeld && m.core.installing && !restored {
			m.core.installing = false
			m.core.Done(responses)
			m.core.installing = true
		} else {
			m.core.Done(responses)
		}
		if restored {
			m.install()
		}
		m.sim.must(m.log.Prepare())
	})
}

// early delivers responses before the sync, if that is the mistake that was planted.
func (m *member) early(responses []*raftpb.Message) bool {
	votes := slices.ContainsFunc(responses, func(r *raftpb.Message) bool {
		return r.GetType() == raftpb.MsgVoteResp
	})
	if m.sim.fault == "a vote before its sync" && votes || m.sim.fault == "an append before its sync" && !votes && len(responses) > 0 {
		m.do(0, func() { m.core.Done(responses) })
		return true
	}
	return false
}

func (m *member) apply(a Apply) {
	for _, e := range a.Entries {
		f := factOf(e)
		if n := len(m.applied); n > 0 && f.Index <= m.applied[n-1].Index {
			continue // the journal has it
		}
		if f.kind != 0 && m.sim.fault == "the clock is not carried over" && m.epoch == 0 {
			f.stamp = 0
		}
		m.applied = append(m.applied, f)
		m.stamp = max(m.stamp, f.stamp)
		if own := m.epoch != 0 && slices.ContainsFunc(m.pending, func(o *op) bool { return o.number == f.op }); !own {
			m.take(f)
		}
		if m.epoch != 0 && f.kind != 0 {
			m.reached = f.op
		}
		m.sim.committed(m, f)
	}
	at := max(m.doneAt, m.sim.now+m.sim.rng.Int64N(ms)) // in their order
	m.doneAt = at
	m.do(at-m.sim.now, func() { m.core.Done(a.Responses) })
}

// take makes the engine have a fact.
func (m *member) take(f fact) {
	switch f.kind {
	case put:
		m.jobs[f.id] = true
	case del:
		delete(m.jobs, f.id)
	}
}

// rebuild makes the engine what the journal says.
func (m *member) rebuild() {
	m.jobs, m.stamp = map[uint64]bool{}, 0
	for _, f := range m.applied {
		m.take(f)
		m.stamp = max(m.stamp, f.stamp)
	}
	if m.sim.fault == "the clock is not carried over" {
		m.stamp = 0
	}
}

// notice notices that an epoch has ended or begun.
func (m *member) notice() {
	epoch := m.core.Epoch()
	if epoch == m.epoch {
		return
	}
	if m.epoch != 0 {
		m.pending = nil // nobody knows what became of them
		m.rebuild()
		m.core.Rebuilt()
	}
	m.reached = 0
	if m.epoch = epoch; epoch != 0 {
		m.sim.active(m)
	}
}

// An op is what a client asked for.
type op struct {
	kind   byte
	number uint64
	id     uint64
	begin  int64
	sent   uint64          // by the clock of the ledger
	seen   map[uint64]bool // by a read
	asked  uint64          // a read without a lease waits for the answer to this question
}

// ask asks the member for something. It is a turn: the engine changes at once.
func (m *member) ask(kind byte) {
	sim := m.sim
	if m.epoch == 0 || m.core.Epoch() != m.epoch {
		return
	}
	sim.ops++
	o := &op{kind: kind, number: sim.ops, begin: sim.now}
	m.stamp = max(m.clock(), m.stamp+1)
	switch kind {
	case put:
		o.id = o.number
		m.jobs[o.id] = true
	case del:
		for _, id := range slices.Sorted(maps.Keys(m.jobs)) {
			if o.id = id; sim.rng.IntN(3) == 0 {
				break
			}
		}
		if o.id == 0 {
			return
		}
		delete(m.jobs, o.id)
	case read:
		o.seen = maps.Clone(m.jobs)
		if !m.leased() {
			o.asked = m.core.Ask(m.clock())
		}
	}
	sim.begun(o)
	m.pending = append(m.pending, o)
	if kind != read {
		f := fact{stamp: m.stamp, kind: kind, id: o.id, op: o.number}
		if err := m.core.Propose(m.epoch, f.encode()); err != nil && !errors.Is(err, ErrDeposed) {
			panic(err)
		}
	}
}

func (m *member) leased() bool {
	switch m.sim.fault {
	case "no lease":
		return true
	case "a lease during a transfer":
		m.core.lease.none = 0
	case "a lease after a transfer":
		if m.core.Status().LeadTransferee == 0 {
			m.core.lease.none = 0
		}
	}
	return m.clock() < m.core.LeasedUntil()
}

// settle answers what can be answered, in order: a fact when it was applied, a read when
// all before it is settled and no other member can be active.
func (m *member) settle() {
	for len(m.pending) > 0 && m.core.Epoch() == m.epoch {
		o := m.pending[0]
		switch {
		case o.kind != read:
			if o.number > m.reached {
				return
			}
		case m.leased():
		case o.asked == 0:
			o.asked = m.core.Ask(m.clock())
			return
		case m.core.Confirmed() < o.asked:
			return
		}
		m.pending = m.pending[1:]
		m.sim.answered(o)
	}
}

// crash ends the process without a word; the power goes, too, if asked for.
func (m *member) crash(power bool) {
	sim := m.sim
	m.life++
	m.up = false
	if power {
		m.disk = m.disk.Crash(sim.rng)
		m.applied = m.applied[:m.synced+sim.rng.IntN(len(m.applied)-m.synced+1)]
	} else {
		m.disk = m.disk.Crash(rand.New(keep{})) // what was written is there
	}
	m.pending = nil
}

// keep draws what leaves everything that was written.
type keep struct{}

func (keep) Uint64() uint64 { return 1 << 62 } // the second of the six kinds of luck of memfs

func (m *member) restart() {
	if m.up || m.gone {
		return
	}
	m.open()
	m.boot()
}

// keepHouse syncs the journal and cuts the log.
func (m *member) keepHouse() {
	if m.sim.fault != "cut at the unsynced mark" {
		m.synced = len(m.applied)
	}
	upTo := len(m.applied)
	if m.sim.rng.IntN(3) > 0 && m.sim.fault != "cut at the unsynced mark" {
		for _, other := range m.sim.members { // those that are away need no snapshot
			if !other.gone {
				upTo = min(upTo, len(other.applied))
			}
		}
	}
	if upTo > 0 && m.core.Applied().Index >= m.applied[upTo-1].Index {
		m.sim.must(m.log.Cut(m.applied[upTo-1].Position))
	}
}

// simulate lets members and clients live for some seconds.
func simulate(t *testing.T, seed uint64, p fault) *simulation {
	cryptotest.SetGlobalRandom(t, seed)
	sim := &simulation{rng: rand.New(rand.NewPCG(seed, 7)), cut: map[[2]int]bool{}, fault: p, faults: true}
	sim.oracle = newOracle()
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

// settle lets members live on without faults, and looks what they have then.
func (sim *simulation) settle() {
	before, agreed := sim.acknowledged, uint64(len(sim.entries))
	sim.run(sim.now + 6*second)
	if sim.acknowledged == before {
		sim.fail("nothing is answered though all is well")
	}
	for _, m := range sim.members {
		if m.up && !m.gone && m.core.Applied().Index < agreed {
			sim.fail("member %d is left behind: it has applied %v of %d", m.id, m.core.Applied(), agreed)
		}
	}
	sim.audit()
}

// clients ask whoever is active, again and again.
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

// mishaps happen until the faults are over.
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
	if sim.rng.IntN(2) == 0 { // rather whoever leads
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
		lead, term := uint64(0), uint64(0)
		if m.core != nil {
			lead, term = m.core.Leader()
		}
		fmt.Fprintf(&b, "%d: up %v, epoch %d, leader %d in term %d, log to %v, applied %d, %d pending\n", m.id, m.up, m.epoch, lead, term, m.log.Last(), len(m.applied), len(m.pending))
	}
	return b.String()
}
