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
	"slices"
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
	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// A member whose next entry the leader does not have any more gets a walk over another one's engine (package catchup), and
// goes on with the log from there. The leader says in its beacon who needs one, and who sends it. From the
// moment in which the member throws its journal away until it has the whole walk it is partial: a
// file says so, for a process that is killed meanwhile. It answers heartbeats and votes for others, by its log, and takes no other part.

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
		case !p.IsLearner && p.Match >= cut && p.Match+donorLag >= s.GetCommit() && m.isReachable(id):
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
	if donor == r.failed { // what the leader does not see: its journal hangs, or it cannot be reached from here
		donor = r.told
	}
	m.done.Go(func() {
		ctx, cancel := m.context()
		defer cancel()
		err := m.receive(ctx, donor, cut)
		if err != nil && ctx.Err() == nil {
			m.opt.Logger.Warn("the queue could not be received from another member; it is tried again", "from", donor, "err", err)
			m.sleep(ctx, recoverPause)
		}
		m.mail.post(func() {
			r.walking, r.moving, r.failed = false, false, 0
			if err != nil {
				r.failed = donor
			}
		})
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
	defer context.AfterFunc(ctx, func() { stream.Close() })()
	m.opt.Logger.Info("the log does not have what this member lacks: it receives the whole queue", "from", donor)
	if err := m.becomePartial(); err != nil {
		return err
	}
	in := bufio.NewReaderSize(newImpatient(stream), 64<<10) // Receive reads through this one, and not beyond the walk
	gentleUntil := time.Now().Add(gentleWalk)
	got, err := catchup.Receive(in, m.clock.zero, func(changes []engine.Change) error {
		began := time.Now()
		err := m.take(ctx, changes, journal.Applied{})
		if now := time.Now(); now.Before(gentleUntil) {
			m.sleep(ctx, walkRest*min(now.Sub(began), maxWork))
		}
		return err
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
	if !slices.ContainsFunc(group.Members, func(k raftlog.Member) bool { return k.ID == m.opt.Self.ID }) {
		if m.number <= group.Numbers {
			m.mail.post(m.leave)
			return ErrRemoved
		}
		return fmt.Errorf("cluster: member %d does not know this one yet", donor)
	}
	if err := m.begin(ctx, got, group); err != nil {
		return err
	}
	m.opt.Logger.Info("the whole queue was received", "jobs", got.Jobs, "bytes", got.Bytes, "entry", got.From.Index)
	return nil
}

// impatient reads from a donor until nothing comes for donorSilence: its machine stands still, or its disk hangs.
type impatient struct {
	io.Reader
	silence *time.Timer
}

const donorSilence = 10 * time.Second

func newImpatient(stream io.ReadCloser) impatient {
	silence := time.AfterFunc(donorSilence, func() { stream.Close() })
	silence.Stop()
	return impatient{stream, silence}
}

func (r impatient) Read(b []byte) (int, error) {
	r.silence.Reset(donorSilence)
	n, err := r.Reader.Read(b)
	if !r.silence.Stop() {
		err = fmt.Errorf("cluster: nothing came for %v", donorSilence)
	}
	return n, err
}

// A walk takes of processors and disks which the others may need for their clients. So the member that receives it rests after
// each part for walkRest times as long as that took, and so the donor has to wait, too. Not for longer than gentleWalk: the others keep
// the log since the walk began, and not all of it for ever.
const (
	walkRest   = 5
	maxWork    = 50 * time.Millisecond // that counts: the disk may have hung
	gentleWalk = 20 * time.Second
)

// partialFile is in the directory of a member that is partial.
func (m *Member) partialFile() string { return partialFile(m.opt.Dir) }

func partialFile(dir string) string { return filepath.Join(dir, "cluster", "receiving") }

// isPartial reports whether the journal has only a part of a walk. What cannot be looked at is not taken for whole.
func isPartial(fsys vfs.FS, dir string) (bool, error) {
	_, err := fsys.Size(partialFile(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// becomePartial throws the journal away.
func (m *Member) becomePartial() error {
	leads := false
	if !m.inLoop(func() {
		if leads = m.raft.core.Status().RaftState == raft.StateLeader; !leads {
			m.raft.partial = true
		}
	}) {
		return ErrStopped
	}
	if leads {
		return errors.New("cluster: this member leads by now")
	}
	partial, err := isPartial(m.opt.FS, m.opt.Dir)
	if err != nil {
		return err
	}
	if !partial {
		f, err := m.opt.FS.Create(m.partialFile())
		if err != nil {
			return err
		}
		if err := errors.Join(f.Sync(), f.Close(), m.opt.FS.SyncDir(filepath.Dir(m.partialFile()))); err != nil {
			return err
		}
	}
	m.broker.Replace(func(*engine.Engine) *engine.Engine {
		t := &m.turn
		t.epoch, t.retryAt = 0, 0
		t.endCensus(errors.New("cluster: the member has begun to receive the whole queue")) // it skips entries
		m.mu.Lock()
		m.install()
		m.mu.Unlock()
		t.closeJournal() // what it could not write is of no use
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
	roster
	at   raftlog.Position
	done chan struct{}
}

func (b *beginning) write(log *raftlog.Log) error {
	if err := errors.Join(log.Cut(b.at), b.roster.write(log), log.Sync()); err != nil {
		return err
	}
	close(b.done)
	return nil
}

// begin ends a walk: engine and journal have all, and the log begins there.
func (m *Member) begin(ctx context.Context, got catchup.Received, g Group) error {
	from := journal.Applied(got.From)
	b := &beginning{
		roster: roster{new(raftpb.ConfState), g.Index, g.Members, g.Numbers},
		at:     raftlog.Position{Index: from.Index, Term: from.Term}, done: make(chan struct{}),
	}
	if err := proto.Unmarshal(g.Conf, b.conf); err != nil {
		return err
	}
	if err := m.take(ctx, nil, from); err != nil {
		return err
	}
	if err := m.syncJournal(); err != nil {
		return err
	}
	if !m.inLoop(func() { m.raft.moving = true }) { // votes given before are written before
		return ErrStopped
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
	var err error
	if !m.inLoop(func() { err = m.goOn(b) }) {
		return ErrStopped
	}
	if err != nil {
		return err
	}
	m.broker.Look(func(*engine.Engine, int64) { // with the queue of the next core: the log has nothing more of what is in the other one
		m.turn.applied, m.turn.wholeAt = from, got.Until.Index
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.phase == installing {
			m.follow()
		}
	})
	return nil
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
	m.mu.Lock()
	err := m.newCore(b.at)
	m.mu.Unlock()
	if err != nil {
		m.fail(err)
		return err
	}
	r.partial, r.moving, r.members, r.numbers = false, false, b.members, b.numbers
	m.connect()
	m.acknowledge(b.at.Index)
	return nil
}

// Donate writes what another member receives that was told to fetch it from this one.
func (m *Member) Donate(ctx context.Context, w io.Writer) error {
	return m.donate(ctx, w, m.donor(ctx))
}

// donor returns this member's part in a walk over its engine.
func (m *Member) donor(ctx context.Context) *catchup.Donor {
	var walked *engine.Engine
	return &catchup.Donor{
		Turn: func(f func(e *engine.Engine)) {
			m.broker.Look(func(e *engine.Engine, _ int64) {
				if m.isWhole() {
					walked = e
					f(e)
				}
			})
		},
		Applied: func() catchup.Mark { return catchup.Mark(m.turn.applied) },
		Settled: func(context.Context) (catchup.Mark, error) { return m.settled(walked) },
		Pause:   func() { m.sleep(ctx, time.Millisecond) },
		Epoch:   m.clock.zero,
	}
}

func (m *Member) donate(ctx context.Context, w io.Writer, d *catchup.Donor) error {
	if _, err := catchup.Send(ctx, w, d); err != nil {
		return err
	}
	var g Group
	if !m.inLoop(func() { g = m.group() }) {
		return ErrStopped
	}
	return writeGroup(w, g)
}

// settled returns an entry from which on nothing can be lost that an engine has.
func (m *Member) settled(walked *engine.Engine) (mark catchup.Mark, err error) {
	t, same, decides := &m.turn, false, false
	goesOn := m.resignIfStuck()
	err = m.broker.Call(func(e *engine.Engine, _ int64) {
		same = e == walked && m.isWhole()
		mark, decides = catchup.Mark(t.applied), t.epoch != 0
	})
	goesOn()
	switch {
	case err != nil:
		return mark, err
	case !same:
		return mark, errors.New("cluster: this member has lost its leadership meanwhile")
	case !decides:
		return mark, nil
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

// settleTime is how long a walk over a leader's engine waits for anything to be committed.
const settleTime = 2 * time.Second

// resignIfStuck makes this member give up its leadership epoch unless something is committed in settleTime, or goesOn is called. Without the
// member that receives the walk there may be no majority, and that one acknowledges nothing before the walk has ended. An engine
// without an epoch has only what is committed, so a walk over it waits for nobody.
func (m *Member) resignIfStuck() (goesOn func() bool) {
	var epoch, commit uint64
	m.inLoop(func() { epoch, commit = m.raft.core.Epoch(), m.raft.core.Status().GetCommit() })
	resign := func() {
		c := m.raft.core
		if epoch == 0 || c.Epoch() != epoch || c.Status().GetCommit() != commit {
			return
		}
		m.opt.Logger.Warn("nothing is committed without the member that receives the queue: this one gives up what is not")
		c.Resign()
	}
	return time.AfterFunc(settleTime, func() { m.mail.post(resign) }).Stop
}

// group returns who the members are after the last change of configuration that was applied, in the raft loop.
func (m *Member) group() Group {
	conf, index := m.raft.core.Conf()
	b, err := proto.Marshal(conf)
	if err != nil {
		panic(err) // numbers and booleans
	}
	return Group{Conf: b, Index: index, Members: m.raft.members, Numbers: m.raft.numbers}
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
