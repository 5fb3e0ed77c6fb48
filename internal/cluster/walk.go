package cluster

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/cluster/catchup"
	"github.com/beanpole-mq/beanpole/internal/cluster/raftlog"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/journal"
)

// A member whose next entry the leader does not have any more gets a walk over another one's engine (package catchup), and
// goes on with the log from there. The leader says in its beacon who needs one, and who sends it. From the
// moment in which the member throws its journal away until it has the whole walk it is partial: a
// file says so, for a process that is killed meanwhile, and it takes no part but for heartbeats.

// findDonor finds, at the leader, who needs a walk, and who is to send it: rather a follower that is up to date.
func (m *Member) findDonor(s *raft.Status) {
	r := &m.raft
	r.needy, r.donor = r.needy[:0], m.opt.Self.ID
	cut := m.log.State().Cut.Index
	for id, p := range s.Progress {
		switch {
		case id == m.opt.Self.ID:
		case p.Next <= cut && p.Match < cut:
			r.needy = append(r.needy, id)
		case !p.IsLearner && p.Match+donorLag >= s.GetCommit() && m.isReachable(id):
			r.donor = id
		}
	}
}

// donorLag is how many entries a donor may be behind the leader.
const donorLag = 10_000

// startWalk begins to receive a walk that is not older than an entry, if none is being received.
func (m *Member) startWalk(cut uint64) {
	r := &m.raft
	if r.walking || m.opt.Fetch == nil || r.donor == 0 || r.donor == m.opt.Self.ID {
		return
	}
	r.walking = true
	donor := r.donor
	m.done.Go(func() {
		ctx, cancel := m.context()
		defer cancel()
		if err := m.receive(ctx, donor, cut); err != nil && ctx.Err() == nil {
			m.opt.Logger.Warn("the queue could not be received from another member; it is tried again", "from", donor, "err", err)
			m.sleep(ctx, recoverPause)
		}
		m.mail.post(func() { m.raft.walking = false })
	})
}

// context returns a context that ends with the member.
func (m *Member) context() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		select {
		case <-m.stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

func (m *Member) sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// receive receives a walk, and makes this member one that goes on from there.
func (m *Member) receive(ctx context.Context, donor, cut uint64) error {
	stream, err := m.opt.Fetch(ctx, donor)
	if err != nil {
		return err
	}
	defer stream.Close()
	m.opt.Logger.Info("the log does not have what this member lacks: it receives the whole queue", "from", donor)
	if err := m.becomePartial(); err != nil {
		return err
	}
	in := bufio.NewReaderSize(stream, 64<<10) // Receive reads through this one, and not beyond the walk
	got, err := catchup.Receive(in, m.clock.epoch, func(changes []engine.Change) error {
		return m.take(ctx, changes, journal.Applied{})
	})
	if err != nil {
		return err
	}
	if from, own := got.From.Index, m.log.State().Cut.Index; from < max(cut, own) {
		return fmt.Errorf("cluster: the walk began at entry %d; the leader's log begins after %d, this member's after %d", from, cut, own)
	}
	group, err := readGroup(in)
	if err != nil {
		return err
	}
	if err := m.begin(ctx, got, group); err != nil {
		return err
	}
	m.opt.Logger.Info("the whole queue was received", "jobs", got.Jobs, "bytes", got.Bytes, "entry", got.From.Index)
	return nil
}

// partialFile is in the directory of a member that is partial.
func (m *Member) partialFile() string { return filepath.Join(m.opt.Dir, "cluster", "receiving") }

func (m *Member) isPartial() bool {
	_, err := m.opt.FS.Size(m.partialFile())
	return err == nil
}

// becomePartial throws the journal away.
func (m *Member) becomePartial() error {
	if !m.inLoop(func() { m.raft.partial = true }) {
		return ErrStopped
	}
	if !m.isPartial() {
		f, err := m.opt.FS.Create(m.partialFile())
		if err != nil {
			return err
		}
		if err := errors.Join(f.Sync(), f.Close(), m.opt.FS.SyncDir(filepath.Dir(m.partialFile()))); err != nil {
			return err
		}
	}
	var err error
	m.broker.Replace(func() *engine.Engine {
		t := &m.turn
		t.office, t.walking, t.spoilt = 0, true, false
		m.spoilt.Store(false)
		m.broker.Follow(true)
		m.mu.Lock()
		m.stuck, m.target = true, target{}
		m.mu.Unlock()
		t.journal.Close() // what it could not write is of no use
		err = m.removeJournal()
		eng, openErr := m.openJournal()
		if err = errors.Join(err, openErr); err != nil {
			m.fail(err)
			return engine.New(engine.Options{})
		}
		return eng
	})
	return err
}

// removeJournal removes the files of the journal.
func (m *Member) removeJournal() error {
	names, err := m.opt.FS.List(m.opt.Dir)
	if err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	for _, name := range names {
		if !strings.HasPrefix(name, "beanpole.") {
			continue
		}
		if err := m.opt.FS.Remove(filepath.Join(m.opt.Dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cluster: %w", err)
		}
	}
	return m.opt.FS.SyncDir(m.opt.Dir)
}

// take lets engine and journal have a part of a walk, or, without changes, the mark of its end. It tries until the journal
// has it.
func (m *Member) take(ctx context.Context, changes []engine.Change, at journal.Applied) error {
	for {
		err := broker.ErrDeposed
		m.broker.Look(func(*engine.Engine, int64) { err = m.turn.journal.AppendCommitted(changes, at) })
		if err == nil {
			return nil
		}
		m.opt.Logger.Debug("the journal does not take what is received", "err", err)
		m.sleep(ctx, recoverPause)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// A beginning is where a member's log begins after a walk, and who the members are.
type beginning struct {
	at      raftlog.Position
	conf    *raftpb.ConfState
	index   uint64
	members []raftlog.Member
	done    chan struct{}
}

func (b *beginning) write(log *raftlog.Log) error {
	if err := errors.Join(log.Cut(b.at), log.SetGroup(b.conf, b.index, b.members), log.Sync()); err != nil {
		return err
	}
	close(b.done)
	return nil
}

// begin ends a walk: engine and journal have all, and the log begins there.
func (m *Member) begin(ctx context.Context, got catchup.Received, g Group) error {
	from := journal.Applied(got.From)
	b := &beginning{at: raftlog.Position{Index: from.Index, Term: from.Term}, conf: new(raftpb.ConfState), index: g.Index, members: g.Members, done: make(chan struct{})}
	if err := proto.Unmarshal(g.Conf, b.conf); err != nil {
		return err
	}
	if err := m.take(ctx, nil, from); err != nil {
		return err
	}
	if err := m.syncJournal(); err != nil {
		return err
	}
	m.disk.add(diskWork{begin: b})
	select {
	case <-b.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := m.opt.FS.Remove(m.partialFile()); err != nil {
		return err
	}
	if err := m.opt.FS.SyncDir(filepath.Dir(m.partialFile())); err != nil {
		return err
	}
	m.broker.Look(func(*engine.Engine, int64) {
		m.turn.walking, m.turn.applied, m.turn.wholeAt = false, from, got.Until.Index
	})
	var err error
	m.inLoop(func() { err = m.goOn(b) })
	return err
}

// syncJournal makes durable what the journal was given.
func (m *Member) syncJournal() error {
	var j *journal.Journal
	m.broker.Look(func(*engine.Engine, int64) { j = m.turn.journal }) // the turn's Housekeep has flushed it
	return j.Sync()
}

// goOn makes a core that goes on after a walk, in the raft loop, and tells the leader where.
func (m *Member) goOn(b *beginning) error {
	r := &m.raft
	torn := r.core.Torn()
	m.mu.Lock()
	m.stuck = false
	err := m.newCore(b.at, torn)
	m.mu.Unlock()
	if err != nil {
		m.fail(err)
		return err
	}
	r.partial, r.members = false, b.members
	m.opt.Transport.SetMembers(b.members)
	_, term := r.core.Leader()
	if r.told != 0 {
		m.opt.Transport.Send([]*raftpb.Message{{
			Type: raftpb.MsgAppResp.Enum(), From: &m.opt.Self.ID, To: &r.told, Term: &term, Index: &b.at.Index,
		}})
	}
	return nil
}

// Donate writes what another member receives that was told to fetch it from this one.
func (m *Member) Donate(ctx context.Context, w io.Writer) error {
	d := &catchup.Donor{
		Turn: func(f func(e *engine.Engine)) {
			m.broker.Look(func(e *engine.Engine, _ int64) {
				if t := &m.turn; !t.walking && t.applied.Index >= t.wholeAt {
					f(e)
				}
			})
		},
		Applied: func() catchup.Mark { return catchup.Mark(m.turn.applied) },
		Settled: m.settled,
		Pause:   func() { m.sleep(ctx, time.Millisecond) },
		Epoch:   m.clock.epoch,
	}
	if _, err := catchup.Send(ctx, w, d); err != nil {
		return err
	}
	var g Group
	if !m.inLoop(func() { g = m.group() }) {
		return ErrStopped
	}
	return writeGroup(w, g)
}

// settled returns an entry from which on nothing can be lost that the engine has.
func (m *Member) settled(context.Context) (mark catchup.Mark, err error) {
	decides := false
	if err := m.broker.Call(func(*engine.Engine, int64) {
		mark, decides = catchup.Mark(m.turn.applied), m.turn.office != 0
	}); err != nil || !decides {
		return mark, err
	}
	if !m.inLoop(func() {
		// All that the engine has is of this term by now, or of an earlier one.
		mark.Index = max(mark.Index, m.raft.core.Status().GetCommit())
		_, mark.Term = m.raft.core.Leader()
	}) {
		return mark, ErrStopped
	}
	return mark, nil
}

// group returns who the members are after the last change of configuration that was applied, in the raft loop.
func (m *Member) group() Group {
	conf, index := m.raft.core.Conf()
	b, err := proto.Marshal(conf)
	if err != nil {
		panic(err) // numbers and booleans
	}
	return Group{Conf: b, Index: index, Members: m.raft.members}
}

// maxGroup is the length of a group in bytes, at most.
const maxGroup = 1 << 20

func writeGroup(w io.Writer, g Group) error {
	text, err := json.Marshal(g)
	if err != nil {
		return err
	}
	_, err = w.Write(append(binary.AppendUvarint(nil, uint64(len(text))), text...))
	return err
}

func readGroup(r *bufio.Reader) (g Group, err error) {
	n, err := binary.ReadUvarint(r)
	if err != nil {
		return g, err
	}
	if n > maxGroup {
		return g, fmt.Errorf("cluster: a group of %d bytes", n)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return g, err
	}
	return g, json.Unmarshal(text, &g)
}
