package journal

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"sync"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/journal/record"
	"github.com/beanpole-mq/beanpole/internal/test/faultfs"
	"github.com/beanpole-mq/beanpole/internal/test/memfs"
	"github.com/beanpole-mq/beanpole/internal/wal"
)

// A group simulates the members of a cluster. Each member has a journal. The Raft log is
// a list in memory. A seed determines the commits, the leader, the changes that a deposed
// leader drops, and the faults.
type group struct {
	mu        sync.Mutex
	changed   sync.Cond // signals that a commit was made, or the leader changed
	rng       *rand.Rand
	opt       Options
	planted   planted
	pace      int // approximate number of entries that are committed at a time
	entries   []entry
	committed int // number of committed entries
	term      uint64
	leader    *member // nil if there is none
	members   []*member

	ledger *engine.Engine // contains the facts of the committed entries

	seen tally
}

// An entry contains the records of its facts.
type entry struct {
	facts [][]byte
	at    Applied
}

// tally counts events over all seeds.
type tally struct {
	Committed, Dropped, Deposed, Crashed, Looked, Migrated, InFlight, Failed int
}

// changes returns the facts of an entry as a member receives them.
func (e *entry) changes(epoch int64) (changes []engine.Change) {
	tubes := make(map[string]string)
	for _, rec := range e.facts {
		c, err := record.Decode(rec, epoch, tubes)
		if err != nil {
			panic(err)
		}
		changes = append(changes, c)
	}
	return changes
}

func newGroup(seed uint64, p planted) *group {
	g := &group{rng: rand.New(rand.NewPCG(seed, 17)), ledger: engine.New(engine.Options{}), planted: p, term: 1}
	g.changed.L = &g.mu
	g.pace = 1 + g.rng.IntN(8)
	g.opt = Options{SegmentSize: 512 << g.rng.IntN(4), Member: true, Sync: time.Duration(1+g.rng.IntN(300)) * time.Millisecond}
	for range 2 {
		m := &member{g: g, disk: memfs.New()}
		g.members = append(g.members, m)
		m.boot()
	}
	return g
}

// commit commits some more entries.
func (g *group) commit(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for ; n > 0 && g.committed < len(g.entries); n-- {
		e := &g.entries[g.committed]
		for _, c := range e.changes(0) {
			g.ledger.Restore(c)
		}
		g.committed++
		g.seen.Committed++
	}
	g.changed.Broadcast()
}

// depose ends the epoch of the leader, and drops some of its uncommitted changes.
func (g *group) depose() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.leader == nil {
		return
	}
	g.seen.Deposed++
	kept := g.committed + g.rng.IntN(len(g.entries)-g.committed+1)
	g.seen.Dropped += len(g.entries) - kept
	g.entries = g.entries[:kept]
	g.leader.deposed = true
	g.leader = nil
	g.term++
	g.changed.Broadcast()
}

// elect makes a member the leader after it has applied all entries.
func (g *group) elect(m *member) {
	g.commit(len(g.entries))
	m.applySome(len(g.entries))
	g.mu.Lock()
	defer g.mu.Unlock()
	if !m.deposed && m.j.Applied().Index == uint64(g.committed) {
		g.leader = m
	}
}

// A member is the Log of its own broker.
type member struct {
	g        *group
	disk     *memfs.FS
	fsys     *faultfs.FS
	epoch    int64  // time at which the engine's clock was 0, in ns since 1970
	cut      uint64 // its copy of the entries starts after this one
	began    time.Time
	j        *Journal
	eng      *engine.Engine
	b        *broker.Broker
	sessions []*engine.Session
	facts    [][]byte // facts of the current turn
	wrong    error
	budget   int // number of entries to apply in the next turn

	// The following fields are used by the leader only.
	deposed  bool              // its engine must be rebuilt
	executed [][]engine.Change // changes of entries that are not applied, for planted mistakes
}

func (m *member) boot() {
	m.fsys = faultfs.New(m.disk)
	m.began = time.Now()
	m.epoch = m.began.UnixNano()
	m.b = broker.New(m.open(), broker.Options{Log: m, Now: func() int64 { return int64(time.Since(m.began)) }})
}

// open reads the journal into a new engine.
func (m *member) open() *engine.Engine {
	opt := m.g.opt
	opt.Epoch = m.epoch
	m.j = New(opt)
	m.eng = engine.New(engine.Options{Logged: true, Admit: m.j.Admit})
	m.sessions, m.facts, m.executed, m.deposed = nil, nil, nil, false
	_, err := m.j.Open(m.fsys, "/", m.eng)
	if wal.NoRoom(err) {
		m.disk.SetLimit(0)
		return m.open()
	}
	if err != nil {
		if m.deposed = m.dark(); !m.deposed { // without power, it has no engine
			m.fail(err)
		}
		m.j = nil
		return m.eng
	}
	m.fail(m.known(m.j.Applied()))
	return m.eng
}

// known returns an error if the member does not have the entries after a mark.
func (m *member) known(a Applied) error {
	switch {
	case a.Index > uint64(m.g.committed):
		return errors.New("the journal has uncommitted changes")
	case a.Index < m.cut:
		return errors.New("the log was cut where the journal still needs it")
	case a.Index > 0 && m.g.entries[a.Index-1].at != a:
		return errors.New("the journal has the mark of another entry")
	}
	return nil
}

func (m *member) fail(err error) {
	if m.wrong == nil && err != nil {
		m.wrong = err
	}
}

func (m *member) Append(changes []engine.Change) error {
	g := m.g
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.leader != m {
		return broker.ErrDeposed
	}
	var kept []engine.Change
	for i := range changes {
		c := &changes[i]
		m.facts = append(m.facts, append(record.Append(nil, c, m.epoch), c.Body...))
		kept = append(kept, *c)
		kept[i].Body, kept[i].Failure = bytes.Clone(c.Body), bytes.Clone(c.Failure)
	}
	m.executed = append(m.executed, kept)
	if g.planted != cleanedInFlight {
		m.j.Stage(changes)
	}
	return nil
}

// Flush proposes an entry with the facts of the turn.
func (m *member) Flush() (durable bool, err error) {
	g := m.g
	g.mu.Lock()
	defer g.mu.Unlock()
	if m.deposed {
		return false, broker.ErrDeposed
	}
	if len(m.facts) == 0 {
		return true, nil
	}
	at := Applied{Index: uint64(len(g.entries)) + 1, Term: g.term, Stamp: time.Now().UnixNano()}
	g.entries = append(g.entries, entry{m.facts, at})
	m.facts = nil
	return false, nil
}

// Sync waits for the commit.
func (m *member) Sync() error {
	g := m.g
	g.mu.Lock()
	defer g.mu.Unlock()
	for want := len(g.entries); g.leader == m && g.committed < want; {
		g.changed.Wait()
	}
	if g.leader != m {
		return broker.ErrDeposed
	}
	return nil
}

// Housekeep applies committed entries.
func (m *member) Housekeep(now int64) (next int64) {
	m.g.mu.Lock()
	defer m.g.mu.Unlock()
	if m.deposed || m.wrong != nil {
		return engine.Never
	}
	m.apply()
	m.j.Flush()
	return m.j.Housekeep(now)
}

func (m *member) Close() error {
	if m.j == nil { // the journal could not be read
		return nil
	}
	return m.j.Close()
}

// apply applies some entries.
func (m *member) apply() {
	g := m.g
	for ; m.budget > 0 && m.j.Applied().Index < uint64(g.committed); m.budget-- {
		e := &g.entries[m.j.Applied().Index]
		if err := m.append(e); err != nil {
			g.seen.Failed++
			return
		}
		if g.leader == m {
			m.executed = m.executed[1:]
		}
	}
	m.cut = max(m.cut, m.j.Synced().Index)
	if g.planted == cutUnsynced {
		m.cut = m.j.Applied().Index
	}
	g.seen.InFlight = max(g.seen.InFlight, len(m.j.index.inFlight.reserved))
}

// append appends an entry, or performs the planted bug.
func (m *member) append(e *entry) error {
	changes := e.changes(m.epoch)
	switch m.g.planted {
	case markFirst:
		if err := m.j.AppendCommitted(nil, e.at); err != nil {
			return err
		}
		m.j.Flush()
		return m.j.AppendCommitted(changes, Applied{})
	case cleanedInFlight:
		if m.g.leader == m && m.j.appended == 0 {
			m.j.Stage(m.executed[0])
		}
	}
	err := m.j.AppendCommitted(changes, e.at)
	if m.g.planted == putNotCounted {
		for id, f := range m.j.index.inFlight.jobs {
			if _, ok := m.eng.Snapshot(id); !ok {
				m.j.index.removeFrom(f.segment)
				f.segment = 0
				m.j.index.inFlight.jobs[id] = f
			}
		}
	}
	return err
}

// turn calls f in a turn of the member's broker, without waiting for a commit.
func (m *member) turn(f func(e *engine.Engine, now int64)) {
	m.b.View(func(e *engine.Engine, now int64) {
		if m.wrong == nil && m.j != nil && m.g.planted == nothing && e.Promises() == 0 { // otherwise Tick has reserved space
			m.fail(errors.Join(e.Check(), m.j.Check()))
		}
		f(e, now)
	})
	synctest.Wait()
}

// applySome applies n committed entries, unless the disk fails.
func (m *member) applySome(n int) {
	m.g.mu.Lock()
	m.budget = n
	m.g.mu.Unlock()
	m.turn(func(*engine.Engine, int64) {})
}

// rebuild creates a new engine for a deposed leader from its journal.
func (m *member) rebuild() {
	if !m.deposed {
		return
	}
	m.turn(func(*engine.Engine, int64) {}) // so that the broker notices the new engine
	m.b.Replace(func(*engine.Engine) *engine.Engine {
		m.fsys.Set()
		m.Close()
		return m.open()
	})
	synctest.Wait()
}

// stop prevents further actions of the member.
func (m *member) stop() {
	m.g.mu.Lock()
	defer m.g.mu.Unlock()
	m.deposed = true
}

// crash ends the process, with or without a power cut, and starts it again.
func (m *member) crash(power bool) {
	g := m.g
	g.seen.Crashed++
	if g.leader == m {
		g.depose()
	}
	m.stop()
	if power {
		m.disk.Cut()
	}
	m.fsys.Set(faultfs.Fault{Op: faultfs.Any, Sticky: true}) // the process is dead
	m.b.Close()
	synctest.Wait()
	m.fsys.Set()
	if power {
		m.disk = m.disk.Crash(g.rng)
	}
	m.boot()
}

// dark reports whether the power of the member is cut.
func (m *member) dark() bool {
	_, err := m.disk.List("/")
	return errors.Is(err, memfs.ErrPowerCut)
}

// compare compares an engine that has all committed changes with the ledger.
func (m *member) compare(e *engine.Engine, epoch int64, what string) {
	now := time.Now().UnixNano() + int64(time.Millisecond)
	if got, want := e.Digest(now-epoch, epoch), m.g.ledger.Digest(now, 0); got != want {
		m.fail(errors.New(what + " differs from the committed changes:\n" + differences(e, epoch, m.g.ledger, now)))
	}
}

// lookAtDisk reads the disk as it would be after a power cut, and applies the later
// entries.
func (m *member) lookAtDisk() {
	g := m.g
	g.mu.Lock()
	defer g.mu.Unlock()
	g.seen.Looked++
	opt := g.opt
	opt.Epoch = m.epoch
	j := New(opt)
	eng := engine.New(engine.Options{Logged: true, Admit: j.Admit})
	disk := m.disk.Crash(g.rng)
	disk.SetLimit(0)
	if _, err := j.Open(disk, "/", eng); err != nil {
		m.fail(err)
		return
	}
	defer j.Close()
	m.fail(m.known(j.Applied()))
	for n := j.Applied().Index; m.wrong == nil && n < uint64(g.committed); n++ {
		e := &g.entries[n]
		m.fail(j.AppendCommitted(e.changes(m.epoch), e.at))
	}
	m.fail(errors.Join(eng.Check(), j.Check()))
	m.compare(eng, m.epoch, "the disk")
}
