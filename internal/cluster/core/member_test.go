package core

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/beanpole-mq/beanpole/internal/cluster/raftlog"
	"github.com/beanpole-mq/beanpole/internal/test/memfs"
)

// A machine has a member's disk, log and core.
type machine struct {
	id   uint64
	opt  raftlog.Options
	disk *memfs.FS
	log  *raftlog.Log
	core *Core
}

// create creates the log of a new member.
func (m *machine) create(conf *raftpb.ConfState, index uint64) error {
	m.disk = memfs.New()
	err := m.open()
	if err == nil {
		err = errors.Join(m.log.SetMembership(raftlog.Membership{Roles: conf, RolesIndex: index}), m.log.Sync())
	}
	return err
}

func (m *machine) open() (err error) {
	m.log, err = raftlog.Open(m.disk, "/", m.opt)
	return err
}

// start starts a core. The journal has the entries up to mark.
func (m *machine) start(name uint64, mark raftlog.Position) error {
	var err error
	if !m.log.Has(mark) {
		err = m.log.Cut(mark)
	}
	if err = errors.Join(err, m.log.Start(name), m.log.Sync()); err == nil {
		m.core, err = New(m.log, Options{ID: m.id, Applied: mark})
	}
	return err
}

// append writes the data that the core wants to be written, and returns the responses.
func (m *machine) append(writes []Write) (responses []*raftpb.Message, restored bool, err error) {
	for _, w := range writes {
		if at := w.Snapshot.GetMetadata(); at != nil {
			restored = true
			err = errors.Join(err, m.log.Restore(raftlog.Position{Index: at.GetIndex(), Term: at.GetTerm()}, raftlog.Membership{Roles: at.GetConfState(), RolesIndex: at.GetIndex()}))
		}
		err = errors.Join(err, m.log.Append(w.Hard, w.Entries))
		responses = append(responses, w.Responses...)
	}
	return responses, restored, err
}

// A member is a process and its machine.
type member struct {
	machine
	sim    *simulation
	life   int // number of starts; events of an earlier life are dropped
	up     bool
	paused int64 // time until which it is paused
	rate   float64
	base   int64 // offset of its clock

	applied []change // the journal: the applied changes, in order
	synced  int      // number of changes in applied that survive a crash
	doneAt  int64    // time at which the last Apply is done
	writing bool
	writes  []Write

	// State of the current epoch, in which the engine is ahead of the journal.
	jobs    map[uint64]bool
	stamp   int64
	epoch   uint64
	reached uint64 // the last op that was applied in the epoch; ops are applied in order
	pending []*op

	gone    bool  // whether it was removed
	slow    int64 // additional time of a sync
	fetch   fetch
	passive bool // the member counts no ticks, so it never runs for election
}

// A change is an entry that was applied.
type change struct {
	raftlog.Position
	stamp int64
	kind  byte // 0 if the entry is not a test's
	id    uint64
	op    uint64
}

const entryLength = 25

func (f change) encode() []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(f.stamp))
	b = append(b, f.kind)
	b = binary.LittleEndian.AppendUint64(b, f.id)
	return binary.LittleEndian.AppendUint64(b, f.op)
}

func changeOf(e *raftpb.Entry) change {
	f := change{Position: raftlog.Position{Index: e.GetIndex(), Term: e.GetTerm()}}
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

// clock returns the time of the member's clock.
func (m *member) clock() int64 { return m.base + int64(float64(m.sim.now)*m.rate) }

// do executes an action of the member now or after its pause, unless the process has
// ended by then.
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

// boot starts the process. The log must be open.
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
		m.synced = len(m.applied) // the journal must not lose changes that the log will not contain
	}
	sim.must(m.start(sim.rng.Uint64(), mark))
	if sim.fault == "a vote just after a start" {
		m.core.ticks = 1000
	}
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

// work executes the work that the core returns.
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
		return // the member is about to be added
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
		if m.life == life { // otherwise, the connection has ended
			if err := to.core.Step(msg); errors.Is(err, ErrContradiction) {
				sim.fail("member %d contradicts member %d: %v", to.id, msg.GetFrom(), msg)
			}
		}
	})
}

// write writes and syncs all pending data, and then delivers the responses.
func (m *member) write() {
	if m.writing || len(m.writes) == 0 {
		return
	}
	batch := m.writes
	m.writes, m.writing = nil, true
	responses, restored, err := m.append(batch)
	m.sim.must(err)
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

// early delivers responses before the sync, if that is the planted fault.
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
		f := changeOf(e)
		if n := len(m.applied); n > 0 && f.Index <= m.applied[n-1].Index {
			continue // the journal already contains it
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
	at := max(m.doneAt, m.sim.now+m.sim.rng.Int64N(ms)) // in order
	m.doneAt = at
	m.do(at-m.sim.now, func() { m.core.Done(a.Responses) })
}

// take applies a change to the engine.
func (m *member) take(f change) {
	switch f.kind {
	case put:
		m.jobs[f.id] = true
	case del:
		delete(m.jobs, f.id)
	}
}

// rebuild creates the engine from the journal.
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

// notice handles the end or the start of an epoch.
func (m *member) notice() {
	epoch := m.core.Lead().Epoch
	if epoch == m.epoch {
		return
	}
	if m.epoch != 0 {
		m.pending = nil // the outcome of these changes is unknown
		m.rebuild()
		m.core.Reloaded()
	}
	m.reached = 0
	if m.epoch = epoch; epoch != 0 {
		m.sim.active(m)
	}
}

// An op is a request of a client.
type op struct {
	kind   byte
	number uint64
	id     uint64
	begin  int64
	sent   uint64          // time on the ledger's clock
	seen   map[uint64]bool // result of a read
	asked  uint64          // question whose answer a read without a lease awaits
}

// ask sends the member a request. Like a turn, it changes the engine at once.
func (m *member) ask(kind byte) {
	sim := m.sim
	if m.epoch == 0 || m.core.Lead().Epoch != m.epoch {
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
		f := change{stamp: m.stamp, kind: kind, id: o.id, op: o.number}
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

// settle answers requests in order: a change when it is applied, and a read when all
// earlier requests are settled and no other member can be active.
func (m *member) settle() {
	for len(m.pending) > 0 && m.core.Lead().Epoch == m.epoch {
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

// crash kills the process. If power is true, the machine also loses power.
func (m *member) crash(power bool) {
	sim := m.sim
	m.life++
	m.up = false
	if power {
		m.disk = m.disk.Crash(sim.rng)
		m.applied = m.applied[:m.synced+sim.rng.IntN(len(m.applied)-m.synced+1)]
	} else {
		m.disk = m.disk.Crash(nil)
	}
	m.pending = nil
}

func (m *member) restart() {
	if m.up || m.gone {
		return
	}
	m.opt.LogID = m.sim.rng.Uint64() | 1
	m.sim.must(m.open())
	m.boot()
}

// keepHouse syncs the journal and cuts the log.
func (m *member) keepHouse() {
	if m.sim.fault != "cut at the unsynced mark" {
		m.synced = len(m.applied)
	}
	upTo := len(m.applied)
	// A member keeps entries that reachable members lack; without faults, all members are
	// reachable. Sometimes it cuts more, so that they need snapshots.
	if (!m.sim.faults || m.sim.rng.IntN(3) > 0) && m.sim.fault != "cut at the unsynced mark" {
		for _, other := range m.sim.members {
			if !other.gone {
				upTo = min(upTo, len(other.applied))
			}
		}
	}
	if upTo > 0 && m.core.Applied().Index >= m.applied[upTo-1].Index {
		m.sim.must(m.log.Cut(m.applied[upTo-1].Position))
	}
}
