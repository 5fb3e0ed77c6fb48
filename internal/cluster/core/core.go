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

// ErrDeposed means that the epoch in which something was decided is over. It may still
// come to be in the log, if it was proposed before.
var ErrDeposed = errors.New("core: this member may no longer decide")

// A Log is what a core reads of the member's log.
type Log interface {
	raft.Storage
	State() raftlog.State
	Last() raftlog.Position
	// Has reports whether an entry is in the log, or was cut.
	Has(raftlog.Position) bool
	// ConfChanges returns the indexes of the entries that change the configuration.
	ConfChanges() []uint64
}

// Options of a core. ID and Applied must be set; for the others 0 means the default.
type Options struct {
	ID      uint64           // of this member, not 0
	Applied raftlog.Position // up to here the journal has every change

	Tick time.Duration // 60 ms

	Logger *slog.Logger
}

const (
	electionTicks = 10 // without a leader, before a member stands
	leaseTicks    = 6  // less than electionTicks
)

// Limits of what is under way to one member, and in one piece.
const (
	maxMessage       = 1 << 20  // bytes of entries in a message, unless one entry is larger
	maxInflight      = 64       // messages to a member
	maxInflightBytes = 64 << 20 // of them
	maxApplying      = 4 << 20  // bytes of entries that are applied at a time
)

// A Core is the part of a member that agrees with the others. Its methods are for one
// goroutine at a time. Moments are nanoseconds of a clock that never stops and never goes
// back.
type Core struct {
	opt  Options
	log  Log
	node *raft.RawNode

	// What Raft was last seen to be.
	term  uint64
	state raft.StateType
	lead  uint64

	// Invariants:
	//  1. epoch != 0 only if state is Leader and appliedEmpty >= neededEmpty.
	//  2. epochs only grows; each number of an epoch was given once.
	//  3. appliedEmpty and neededEmpty count from the beginning of the term. The first
	//     entry without data of a term is its leader's; the others are those that Rebuilt
	//     proposed.
	epoch        uint64 // in force; 0: none
	epochs       uint64
	appliedEmpty int // entries of this term without data that were applied
	neededEmpty  int // of them an epoch needs so many
	resigned     bool
	rebuilt      bool // after resigned: the engine is ready for another epoch

	own own // what was proposed in the epoch in force

	applied raftlog.Position // Done was called for the entries up to here
	agreed  uint64           // so many entries were known to be agreed on at the start
	last    uint64           // the last entry that Raft has given out to be written

	conf     *raftpb.ConfState // after the last change of configuration that was applied
	confDone uint64            // its index
	confAsk  bool              // another one was proposed in this term, and not applied

	lacks      uint64            // the entry of a snapshot that the leader of this term has offered; 0: none
	installing bool              // a snapshot was restored, and Installed not called since
	held       []*raftpb.Message // responses that wait for that

	lease lease
	ticks int // since the start

	hard            *raftpb.HardState // as Raft has it
	commitUnwritten bool              // no Write has it: only its commit is new
	delayed         delayed

	work Work
}

// New makes the core of a member from its log. The entries up to o.Applied that come in
// Work.Apply all the same are there for the changes of configuration among them.
func New(log Log, o Options) (*Core, error) {
	o.Tick = cmp.Or(o.Tick, 60*time.Millisecond)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if !log.Has(o.Applied) {
		return nil, fmt.Errorf("core: the journal has entry %v, and the log, which ends with %v, does not: cut it there", o.Applied, log.Last())
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

// storage is the log and the journal of a core, as Raft sees them.
type storage struct {
	Log
	c *Core
}

// InitialState knows what the journal knows: an entry that was applied was committed.
func (s storage) InitialState() (*raftpb.HardState, *raftpb.ConfState, error) {
	hard, conf, err := s.Log.InitialState()
	if commit := s.c.opt.Applied.Index; err == nil && hard.GetCommit() < commit {
		hard = &raftpb.HardState{Term: hard.Term, Vote: hard.Vote, Commit: &commit}
	}
	return hard, conf, err
}

// Tick says that about Options.Tick has passed. The caller leaves out ticks that it has
// missed.
func (c *Core) Tick(now int64) {
	c.ticks++
	c.work.Send = append(c.work.Send, c.delayed.take(c.term)...)
	switch {
	case c.lead == 0 && isAlone(c.opt.ID, c.log.State().Roles):
		if c.state == raft.StateFollower {
			c.node.Campaign() // it has the only vote
		}
	default:
		c.node.Tick()
	}
	if c.state == raft.StateLeader {
		c.endSnapshots()
	}
	c.observe()
	c.comeBack()
	if c.epoch != 0 && !c.lease.underWay {
		c.ask(now)
	}
	c.observe()
}

// Step takes a message of another member. An error says that the message is of no use.
func (c *Core) Step(m *raftpb.Message) error {
	switch m.GetType() {
	case raftpb.MsgVote, raftpb.MsgPreVote:
		if c.ticks < electionTicks {
			return nil // the process before this one may have promised a leader not to vote
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

// Propose proposes entries that were decided in an epoch, none of them empty. If the epoch
// ends before they are committed, each of them may be in the log in the end or not.
func (c *Core) Propose(epoch uint64, entries ...[]byte) error {
	if epoch == 0 || epoch != c.epoch {
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

// Committed returns how many of the entries that were proposed in the epoch in force are
// committed: no leader can be without them any more. They need not be on the disk of this
// member.
func (c *Core) Committed() uint64 { return c.own.committed }

// Resign ends the epoch, though the member may go on leading. In this term the member is
// not active again before Rebuilt.
func (c *Core) Resign() {
	if c.epoch != 0 {
		c.epoch, c.resigned, c.rebuilt = 0, true, false
	}
}

// Rebuilt says that the engine is again what the entries that were applied make it, after
// an epoch that was given up. A member that still leads is active again when everything
// was applied that it had proposed.
func (c *Core) Rebuilt() {
	c.rebuilt = true
	c.comeBack()
	c.observe()
}

// AwaitsRebuilt reports whether an epoch was given up, in this term, and Rebuilt was not
// called since.
func (c *Core) AwaitsRebuilt() bool { return c.resigned && !c.rebuilt }

// comeBack proposes the entry after which a member that has resigned may be active again.
// Raft refuses it as long as a transfer is under way.
func (c *Core) comeBack() {
	if c.resigned && c.rebuilt && c.node.Propose(nil) == nil {
		c.resigned = false
		c.neededEmpty++
	}
}

// Transfer hands the leadership to another member, if that one is up to date.
func (c *Core) Transfer(to uint64) {
	c.lease.forbid(c.term)
	c.node.TransferLeader(to)
	c.observe()
}

// Done takes the responses of a Write that is durable, or of an Apply that is done.
func (c *Core) Done(responses []*raftpb.Message) {
	for _, m := range responses {
		if m.GetTo() != c.opt.ID {
			c.work.Send = append(c.work.Send, m)
			continue
		}
		if c.installing && m.GetType() == raftpb.MsgStorageAppendResp {
			// Raft applies what comes after the snapshot when it hears of that. It must
			// not hear of entries first: its log would end with the snapshot again.
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
		// A leader that was removed does not know itself.
		if err := c.node.Step(m); err != nil && !errors.Is(err, raft.ErrStepPeerNotFound) {
			panic(fmt.Sprintf("core: a response of the disk is refused: %v", err))
		}
	}
	c.observe()
}

// didApply does what entries that were applied mean to Raft.
func (c *Core) didApply(entries []*raftpb.Entry) {
	for _, e := range entries {
		if e.GetIndex() > c.applied.Index { // else it was given out before a snapshot that has it
			c.applied = raftlog.Position{Index: e.GetIndex(), Term: e.GetTerm()}
		}
		switch {
		case e.GetType() != raftpb.EntryNormal:
			c.didChange(e)
		case len(e.GetData()) == 0 && e.GetTerm() == c.term:
			c.appliedEmpty++
		}
	}
}

// Epoch returns the number of the epoch in force, or 0.
func (c *Core) Epoch() uint64 { return c.epoch }

// Leader returns the leader that this member knows, or 0, and the term.
func (c *Core) Leader() (id, term uint64) { return c.lead, c.term }

// Status returns what Raft knows of itself and, at a leader, of the others.
func (c *Core) Status() raft.Status { return c.node.Status() }

// Unreachable says that messages to another member are lost.
func (c *Core) Unreachable(id uint64) { c.node.ReportUnreachable(id) }

// Applied returns the last entry that was applied.
func (c *Core) Applied() raftlog.Position { return c.applied }
