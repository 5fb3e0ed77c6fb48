package cluster

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/cluster/core"
	"github.com/beanpole-mq/beanpole/internal/cluster/entry"
	"github.com/beanpole-mq/beanpole/internal/cluster/raftlog"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/journal"
	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// A Transport sends messages to other members.
type Transport interface {
	// Send sends messages; messages to the same member stay in order. It must not block,
	// and can lose messages. It keeps the messages, so the caller must not change them.
	Send(messages []*raftpb.Message)

	// SetMembers sets the members, including this member. It must not block.
	SetMembers(members []raftlog.MemberInfo)
}

// Options configures a Member. Dir, Self.ID and Transport are required. For the other
// fields, the zero value selects a default.
type Options struct {
	FS   vfs.FS             // nil means vfs.OS
	Dir  string             // contains the journal and cluster/log
	Self raftlog.MemberInfo // ID and Address

	Transport Transport

	// Deposed, if not nil, is called when a leadership epoch has ended. Requests fail
	// with broker.ErrDeposed until it returns. Afterwards, the clients of that epoch must
	// not send requests.
	Deposed func()

	// Fetch, if not nil, connects to SendSnapshot of another member. It is called when
	// the leader has cut entries that this member needs.
	Fetch func(ctx context.Context, from uint64) (net.Conn, error)

	Journal journal.Options // the Member sets Epoch and Member; a Sync of 0 means 2 s
	Engine  engine.Options  // the Member sets Logged, Admit and Epoch
	Broker  broker.Options  // the Member sets Log and Now
	Log     raftlog.Options // options of Raft's log; a SegmentSize of 0 means 64 MiB

	// FastFailover enables Refused. It must be off if a proxy or a firewall can refuse
	// connections on behalf of a member's machine.
	FastFailover bool

	// Keep is the maximum size of Raft's log for absent members, in bytes. For members
	// that are catching up, the log can be four times as large. Zero means 1 GiB.
	Keep int64
	Tick time.Duration // see core.Options; zero means 60 ms

	// Now returns the time in nanoseconds on a clock that continues while the machine
	// sleeps, never goes back and never shows 0. Nil selects the system's clock.
	Now func() int64

	// Wall returns the machine's time in nanoseconds since 1970. Nil selects the system's
	// clock.
	Wall func() int64

	testHook func(m *Member, apply []core.Apply) []core.Apply // replaces the entries to apply, in tests; can be nil

	Version, Host, Console string // see Handshake; shown in the Status of other members
	Logger                 *slog.Logger
}

func (o *Options) setDefaults() {
	if o.FS == nil {
		o.FS = vfs.OS
	}
	if o.Log.SegmentSize == 0 {
		o.Log.SegmentSize = 64 << 20
	}
	if o.Now == nil {
		o.Now = systemClock()
	}
	if o.Wall == nil {
		o.Wall = func() int64 { return time.Now().UnixNano() }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Keep = cmp.Or(o.Keep, 1<<30)
	o.Tick = cmp.Or(o.Tick, 60*time.Millisecond)
	o.Journal.Sync = cmp.Or(o.Journal.Sync, journalSync)
	o.Journal.Logger = cmp.Or(o.Journal.Logger, o.Logger)
}

// journalSync is the maximum time for which the journal delays a sync. Raft's log is cut
// at the last synced entry.
const journalSync = 2 * time.Second

// A Member is this process's part of the cluster. Any goroutine can call its methods.
type Member struct {
	lifecycle

	opt    Options
	number uint64 // raftlog.MemberInfo.Number of this member; constant
	log    *raftlog.Log
	broker *broker.Broker
	clock  clock
	disk   *disk

	raft raftLoop // owned by the raft loop
	turn turn     // owned by the turn

	opened atomic.Pointer[journal.Journal] // turn.journal, for other goroutines

	noted atomic.Pointer[Status] // see Status

	journaling busy         // a turn's work on the journal
	unsynced   atomic.Int64 // bytes of large entries that were passed to the journal and are not durable in it

	ails ailments

	done sync.WaitGroup

	looped chan struct{} // closed when the raft loop has ended
}

// LogDir returns the directory of Raft's log in a member's directory.
func LogDir(dir string) string { return filepath.Join(dir, "cluster", "log") }

// Open opens the journal and Raft's log of a member, which then takes part in the
// cluster. The Transport can call AcceptHandshake and Step at once.
func Open(o Options) (*Member, error) {
	o.setDefaults()
	m := &Member{
		opt:   o,
		clock: clock{now: o.Now},
		lifecycle: lifecycle{
			self: o.Self.ID, now: o.Now, logger: o.Logger, mail: &mailbox{wake: make(chan struct{}, 1)},
			turns: make(chan struct{}, 1), watch: make(chan struct{}),
		},
		looped: make(chan struct{}),
	}
	m.ctx, m.end = context.WithCancel(context.Background())
	m.changed.L = &m.mu
	m.turn.m = m
	m.raft = raftLoop{
		m:         m,
		peerTable: peerTable{m: m, peers: map[uint64]*peer{}},
		ledSince:  o.Now(),
		health:    health{asked: map[uint64]int64{}},
	}
	log, err := raftlog.Open(o.FS, LogDir(o.Dir), o.Log)
	if err != nil {
		return nil, logError(err)
	}
	m.log = log
	if err := m.open(); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	return m, nil
}

// open reads the journal and starts all goroutines.
func (m *Member) open() error {
	state := m.log.State()
	if len(state.Members) == 0 {
		return logIsGone(m.opt.Dir)
	}
	self := slices.IndexFunc(state.Members, func(k raftlog.MemberInfo) bool { return k.ID == m.opt.Self.ID })
	if self < 0 {
		return ErrRemoved
	}
	if state.FatalReason != "" {
		return fatalError(state.FatalReason)
	}
	m.number = state.Members[self].Number
	if err := m.setClock(state); err != nil {
		return err
	}
	if err := settleSnapshot(m.opt.FS, m.opt.Dir, state.Cut); err != nil {
		return err
	}
	eng, err := m.turn.openJournal()
	if err != nil {
		return err
	}
	if err := m.startCore(); err != nil {
		return errors.Join(err, m.turn.closeJournal())
	}
	opt := m.opt.Broker
	opt.Log, opt.Now, opt.AwaitRoom = &m.turn, m.clock.engine, m.awaitRoom
	opt.Decides = func() bool { return m.turn.epoch != 0 }
	m.broker = broker.New(eng, opt)
	m.disk = newDisk(m)
	m.raft.members, m.raft.lastNumber = state.Members, state.LastNumber
	m.raft.connect()
	m.raft.note()
	m.mu.Lock()
	m.follow()
	m.mu.Unlock()
	m.done.Go(m.raft.run)
	m.done.Go(m.disk.run)
	m.done.Go(m.disk.prepare)
	m.done.Go(m.runTurns)
	return nil
}

// setClock sets the clock from the machine's clock and from the stamps in the log. It
// also chooses the zero of the engine's clock, which must not be later than any time of
// the cluster.
func (m *Member) setClock(state raftlog.State) error {
	stamp, err := lastStamp(m.log, state.Hard.GetCommit())
	if err != nil {
		return err
	}
	wall := m.opt.Wall()
	m.clock.offset.Store(wall - m.clock.now())
	m.clock.notBefore(stamp + 1)
	voters := state.Roles.GetVoters()
	switch {
	case len(voters) == 1 && voters[0] == m.opt.Self.ID:
		m.clock.zero = m.clock.time()
	case stamp > 0:
		m.clock.zero = stamp
	default:
		m.clock.zero = wall - 10*365*24*int64(time.Hour) // this machine's clock might be wrong by years
	}
	m.opt.Journal.Epoch, m.opt.Journal.Member = m.clock.zero, true
	return nil
}

// lastStamp returns the stamp of the last committed entry that has one, or 0.
func lastStamp(log *raftlog.Log, commit uint64) (int64, error) {
	first, _ := log.FirstIndex()
	last, _ := log.LastIndex()
	for index := min(commit, last); index >= first; index-- {
		entries, err := log.Entries(index, index+1, 0)
		if err != nil {
			return 0, fmt.Errorf("cluster: %w", err)
		}
		if e := entries[0]; e.GetType() == raftpb.EntryNormal && len(e.GetData()) > 0 {
			stamp, err := entry.Stamp(e.GetData())
			if err != nil {
				err = fmt.Errorf("cluster: entry %d: %w", index, err)
			}
			return stamp, err
		}
	}
	return 0, nil
}

// openJournal reads the journal into a new engine.
func (t *turn) openJournal() (*engine.Engine, error) {
	opt := t.m.opt.Engine
	opt.Epoch = t.m.clock.zero
	opt.Logged, opt.Admit = true, t.admit
	eng := engine.New(opt)
	j := journal.New(t.m.opt.Journal)
	if _, err := j.Open(t.m.opt.FS, t.m.opt.Dir, eng); err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	t.journal = j
	t.m.opened.Store(j)
	t.applied = t.journal.Applied()
	t.m.clock.notBefore(t.applied.Stamp + 1)
	return eng, nil
}

// startCore starts the core. If the log lacks the journal's last entry, startCore first
// makes the log start there.
func (m *Member) startCore() error {
	applied := raftlog.Position{Index: m.turn.applied.Index, Term: m.turn.applied.Term}
	if cut := m.log.State().Cut; applied.Index < cut.Index {
		return journalIsBehind(applied, cut)
	}
	var err error
	if !m.log.Has(applied) {
		err = m.log.Cut(applied)
	}
	if err = errors.Join(err, m.log.Start(newName())); err == nil {
		err = m.log.Sync() // a start that other members have seen must be durable
	}
	if err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	m.raft.core, err = core.New(m.log, core.Options{ID: m.opt.Self.ID, Applied: applied, Tick: m.opt.Tick, Logger: m.opt.Logger})
	return err
}

// newName returns a random name for a start.
func newName() uint64 {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint64(b[:]) | 1
}

// Broker returns the broker of the member's engine.
func (m *Member) Broker() *broker.Broker { return m.broker }

// Journal returns the member's journal, for metrics and backups. Each new engine has a
// new journal.
func (m *Member) Journal() *journal.Journal { return m.opened.Load() }

// Close stops the member and closes broker, journal and log. Unsettled turns fail.
func (m *Member) Close() error {
	m.fail(nil)
	m.done.Wait()
	m.broker.Close() // returns the error of turns; closeErr is the journal's
	return errors.Join(m.turn.closeErr, m.log.Close(), m.Err())
}
