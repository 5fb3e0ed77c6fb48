package core

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/beanpole-mq/beanpole/internal/cluster/raftlog"
)

// ErrDeposed means that the epoch of a proposal has ended. An entry that was proposed
// earlier can still be committed.
var ErrDeposed = errors.New("core: this member's leadership epoch has ended")

// A Log is the part of the member's log that a core reads.
type Log interface {
	raft.Storage
	State() raftlog.State
	Last() raftlog.Position
	// Has reports whether an entry is in the log, or was removed from its start.
	Has(raftlog.Position) bool
	// ConfChanges returns the indexes of the entries that change the configuration.
	ConfChanges() []uint64
}

// Options configures a Core. ID and Applied are required. For the other fields, zero
// means the default.
type Options struct {
	ID      uint64           // id of this member, not 0
	Applied raftlog.Position // the journal contains all changes up to this entry

	Tick time.Duration // zero means 60 ms

	Logger *slog.Logger
}

const (
	electionTicks = 10 // a member runs for election after this time without a leader
	leaseTicks    = 6  // less than electionTicks
)

// Limits of the messages to one member, and of one batch.
const (
	maxMessage       = 1 << 20  // bytes of entries in a message, unless a single entry is larger
	maxInflight      = 64       // messages in flight to a member
	maxInflightBytes = 64 << 20 // bytes in flight to a member
	maxApplying      = 4 << 20  // bytes of entries in one batch of applied entries
)

// A Leadership is a member's view of the leadership.
type Leadership struct {
	Leader uint64 // id of the leader, or 0 if unknown
	Term   uint64
	Epoch  uint64 // unique in the process; 0 unless this member can make changes
}

// A Core is the part of a member that runs Raft. Its methods must not be called
// concurrently. Times are in nanoseconds, on a clock that never stops and never goes
// back.
type Core struct {
	opt  Options
	log  Log
	node *raft.RawNode

	lead  Leadership     // leader and term at the last call of observe
	state raft.StateType // state of Raft at the last call of observe

	// Invariants:
	//  1. lead.Epoch != 0 only if state is Leader and noopsApplied >= noopsNeeded.
	//  2. epochs only increases; each epoch number is assigned once.
	//  3. noopsApplied and noopsNeeded count from the start of the term. The leader
	//     proposes the first entry without data of a term; Reloaded proposes the others.
	epochs       uint64
	noopsApplied int // applied entries of this term without data
	noopsNeeded  int // number of these entries that the next epoch requires
	resigned     bool
	reloaded     bool // after resigned was set: the engine is ready for another epoch

	proposals proposals // the proposals of the current epoch

	applied raftlog.Position // Done was called for the entries up to this one
	agreed  uint64           // last entry known to be committed at the start
	last    uint64           // the last entry that Raft has returned for writing

	conf     *raftpb.ConfState // after the last applied change of configuration
	confDone uint64            // index of the entry with that change
	confAsk  bool              // a later change was proposed in this term and is not applied

	lacks      uint64            // the entry of the snapshot that this term's leader has offered, or 0
	installing bool              // a snapshot was restored, and Installed has not been called since
	held       []*raftpb.Message // responses to deliver after Installed

	lease lease
	ticks int // number since the start

	hard            *raftpb.HardState // Raft's hard state
	commitUnwritten bool              // only the commit index of hard is new, and no Write contains it
	delayed         delayed

	work Work
}

// New creates the core of a member from its log. Work.Apply can return entries before
// o.Applied, because of the changes of configuration among them.
func New(log Log, o Options) (*Core, error) {
	o.Tick = cmp.Or(o.Tick, 60*time.Millisecond)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if !log.Has(o.Applied) {
		return nil, fmt.Errorf("core: the journal has entry %v, but the log ends with entry %v; cut the log there", o.Applied, log.Last())
	}
	state := log.State()
	applied := o.Applied
	for _, index := range log.ConfChanges() {
		if index > state.RolesIndex && index <= applied.Index {
			applied = raftlog.Position{Index: index - 1}
			break
		}
	}
	c := &Core{opt: o, log: log}
	node, err := raft.NewRawNode(&raft.Config{
		ID:                        o.ID,
		ElectionTick:              electionTicks,
		HeartbeatTick:             1,
		Storage:                   storage{log, c},
		Applied:                   applied.Index,
		AsyncStorageWrites:        true,
		MaxSizePerMsg:             maxMessage,
		MaxCommittedSizePerReady:  maxApplying,
		MaxInflightMsgs:           maxInflight,
		MaxInflightBytes:          maxInflightBytes,
		CheckQuorum:               true,
		PreVote:                   true,
		DisableProposalForwarding: true,
		StepDownOnRemoval:         true,
		Logger:                    &raft.DefaultLogger{Logger: slog.NewLogLogger(o.Logger.Handler(), slog.LevelDebug)}, // for debugging Raft
	})
	if err != nil {
		return nil, fmt.Errorf("core: %w", err)
	}
	c.node, c.applied, c.delayed = node, applied, delayed{}
	c.confDone, c.conf, c.hard = state.RolesIndex, state.Roles, state.Hard
	c.agreed, c.last = max(state.Hard.GetCommit(), o.Applied.Index), log.Last().Index
	c.observe()
	return c, nil
}

// storage adapts the log and the journal of a core to Raft.
type storage struct {
	Log
	c *Core
}

// InitialState raises the commit index to the last applied entry.
func (s storage) InitialState() (*raftpb.HardState, *raftpb.ConfState, error) {
	hard, conf, err := s.Log.InitialState()
	if commit := s.c.opt.Applied.Index; err == nil && hard.GetCommit() < commit {
		hard = &raftpb.HardState{Term: hard.Term, Vote: hard.Vote, Commit: &commit}
	}
	return hard, conf, err
}

// Tick must be called about every Options.Tick. The caller must not repeat missed ticks.
func (c *Core) Tick(now int64) {
	c.ticks++
	c.work.Send = append(c.work.Send, c.delayed.take(c.lead.Term)...)
	switch {
	case c.lead.Leader == 0 && isAlone(c.opt.ID, c.log.State().Roles):
		if c.state == raft.StateFollower {
			c.node.Campaign() // this member has the only vote
		}
	default:
		c.node.Tick()
	}
	if c.state == raft.StateLeader {
		c.endSnapshots()
	}
	c.observe()
	c.reactivate()
	if c.lead.Epoch != 0 && !c.lease.underWay {
		c.ask(now)
	}
	c.observe()
}

// Step handles a message from another member. It returns an error if the message is
// unusable.
func (c *Core) Step(m *raftpb.Message) error {
	switch m.GetType() {
	case raftpb.MsgVote, raftpb.MsgPreVote:
		if c.ticks < electionTicks {
			return nil // an earlier process of this member might have promised a leader not to vote
		}
	case raftpb.MsgSnap:
		return c.offered(m)
	}
	if err := c.checkAgreed(m); err != nil {
		return err
	}
	err := c.node.Step(m)
	c.observe()
	return err
}

// Propose proposes the entries of an epoch. No entry can be empty. If the epoch ends
// before an entry is committed, the entry can still end up in the log.
func (c *Core) Propose(epoch uint64, entries ...[]byte) error {
	if epoch == 0 || epoch != c.lead.Epoch {
		return ErrDeposed
	}
	m := &raftpb.Message{From: &c.opt.ID, Type: raftpb.MsgProp.Enum()}
	for _, data := range entries {
		m.Entries = append(m.Entries, &raftpb.Entry{Data: data})
	}
	if err := c.node.Step(m); err != nil {
		c.Resign()
		return fmt.Errorf("%w: %w", ErrDeposed, err)
	}
	return nil
}

// Committed returns the number of proposals in the current epoch that are committed, so
// that every later leader has them. They need not be on this member's disk.
func (c *Core) Committed() uint64 { return c.proposals.committed }

// Resign ends the epoch, even if the member remains the leader. The member can become
// active again in this term only after Reloaded.
func (c *Core) Resign() {
	if c.lead.Epoch != 0 {
		c.lead.Epoch, c.resigned, c.reloaded = 0, true, false
	}
}

// Reloaded must be called when the engine matches the applied entries again after Resign.
// If the member is still the leader, it becomes active again when all of its proposals
// are applied.
func (c *Core) Reloaded() {
	c.reloaded = true
	c.reactivate()
	c.observe()
}

// AwaitsReload reports whether an epoch was resigned in this term and Reloaded has not
// been called since.
func (c *Core) AwaitsReload() bool { return c.resigned && !c.reloaded }

// reactivate proposes the entry after which a member that has resigned can be active
// again.
func (c *Core) reactivate() {
	if c.resigned && c.reloaded && c.node.Propose(nil) == nil {
		c.resigned = false
		c.noopsNeeded++
	}
}

// Transfer transfers the leadership to another member if that member is up to date.
func (c *Core) Transfer(to uint64) {
	c.lease.forbid(c.lead.Term)
	c.node.TransferLeader(to)
	c.observe()
}

// Done handles the responses of a Write that is durable, or of an Apply that is complete.
func (c *Core) Done(responses []*raftpb.Message) {
	for _, m := range responses {
		if m.GetTo() != c.opt.ID {
			c.work.Send = append(c.work.Send, m)
			continue
		}
		if c.installing && m.GetType() == raftpb.MsgStorageAppendResp {
			// When Raft receives this response, it applies the entries after the
			// snapshot. Raft must not receive responses for entries earlier: its log
			// would end with the snapshot again.
			c.held = append(c.held, m)
			continue
		}
		switch m.GetType() {
		case raftpb.MsgStorageApplyResp:
			c.didApply(m.GetEntries())
		case raftpb.MsgStorageAppendResp:
			if at := m.GetSnapshot().GetMetadata(); at != nil {
				c.applied = raftlog.Position{Index: at.GetIndex(), Term: at.GetTerm()}
			}
		}
		// A leader that was removed is not among the members of its own log.
		if err := c.node.Step(m); err != nil && !errors.Is(err, raft.ErrStepPeerNotFound) {
			panic(fmt.Sprintf("core: a response of the disk is refused: %v", err))
		}
	}
	c.observe()
}

// didApply reports applied entries to Raft.
func (c *Core) didApply(entries []*raftpb.Entry) {
	for _, e := range entries {
		if e.GetIndex() > c.applied.Index { // otherwise, a later snapshot contains the entry
			c.applied = raftlog.Position{Index: e.GetIndex(), Term: e.GetTerm()}
		}
		switch {
		case e.GetType() != raftpb.EntryNormal:
			c.didChange(e)
		case len(e.GetData()) == 0 && e.GetTerm() == c.lead.Term:
			c.noopsApplied++
		}
	}
}

// Lead returns the current leadership.
func (c *Core) Lead() Leadership { return c.lead }

// Status returns Raft's status, with the progress of the other members on a leader.
func (c *Core) Status() raft.Status { return c.node.Status() }

// Unreachable must be called when messages to another member were lost.
func (c *Core) Unreachable(id uint64) { c.node.ReportUnreachable(id) }

// Applied returns the last applied entry.
func (c *Core) Applied() raftlog.Position { return c.applied }
