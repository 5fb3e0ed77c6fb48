package cluster

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
	"golang.org/x/time/rate"

	"github.com/beanpole-mq/beanpole/internal/cluster/raftlog"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/journal"
)

// Raft offers a snapshot (MsgSnap) to a member whose next entry the leader has cut. A
// snapshot is a backup of the leader's journal, which contains exactly the committed
// changes. The member stores the snapshot next to its own journal, and continues to take
// part in the cluster. When it has received the whole snapshot, it passes a MsgSnap with
// the end of this snapshot to Raft. If Raft accepts it, the log is cut there and the
// snapshot is installed (install.go): the member creates an engine from it, as it does
// from the journal after it has lost the leadership.

// fetchSnapshot starts to fetch the snapshot that the leader offers if this member lacks
// entries that the leader has cut.
func (r *raftLoop) fetchSnapshot() {
	m := r.m
	from := r.core.Lead().Leader
	if r.fetching || from == 0 || m.opt.Fetch == nil || !r.lacksQueue() {
		return
	}
	r.fetching = true
	m.done.Go(func() {
		s, err := m.fetch(from)
		m.ails.update(func(a *ailments) { a.fetch = err })
		if err != nil && !m.stopped() {
			m.opt.Logger.Warn("could not receive the queue from the leader; retrying", "from", from, "err", err)
			m.sleep(recoverPause)
		}
		m.mail.post(func() { r.fetchEnded(s) })
	})
}

// fetchEnded handles a fetched snapshot. s is nil if the fetch failed, or if the snapshot
// was dropped.
func (r *raftLoop) fetchEnded(s *raftpb.Snapshot) {
	r.fetched, r.fetching = s, s != nil
	r.offerSnapshot()
}

// installed records that the engine contains the snapshot with which the log starts.
func (r *raftLoop) installed() {
	r.fetching = false
	r.core.Installed()
}

// reportFetching updates ailments once per tick.
func (r *raftLoop) reportFetching() {
	receiving := r.fetching || r.lacksQueue()
	r.m.ails.update(func(a *ailments) {
		if a.receiving = receiving; !receiving {
			a.fetch, a.received = nil, 0
		}
	})
}

// lacksQueue reports whether this member lacks entries that the leader has cut.
func (r *raftLoop) lacksQueue() bool {
	return r.core.LacksSnapshot() && r.core.Status().GetCommit() < r.minReachable
}

// sleep waits for d, or until the member has stopped.
func (m *Member) sleep(d time.Duration) {
	select {
	case <-time.After(d):
	case <-m.Failed():
	}
}

// fetch fetches a snapshot and commits it.
func (m *Member) fetch(from uint64) (*raftpb.Snapshot, error) {
	if err := dropSnapshot(m.opt.FS, m.opt.Dir); err != nil { // left behind by a failed attempt
		return nil, err
	}
	stream, err := m.opt.Fetch(m.ctx, from)
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	defer context.AfterFunc(m.ctx, func() { stream.Close() })()
	in := bufio.NewReaderSize(impatient{stream}, 64<<10)
	line, err := in.ReadSlice('\n') // a line that does not fit into the buffer is an error
	if err != nil {
		return nil, err
	}
	with, err := decodeMembers(line)
	if err != nil {
		return nil, err
	}
	if !contains(with.Members, m.opt.Self.ID) {
		if m.number <= with.LastNumber {
			m.mail.post(m.disk.leave)
			return nil, ErrRemoved
		}
		return nil, fmt.Errorf("cluster: member %d has not added this member yet", from)
	}
	m.ails.update(func(a *ailments) { a.received = 0 })
	m.opt.Logger.Info("the leader's log no longer has the entries that this member lacks; receiving the whole queue", "from", from)
	at, err := journal.ReadSnapshot(staged{m.opt.FS}, m.opt.Dir, paced{in, m, rate.NewLimiter(maxPace, paceBurst)})
	if err == nil && at.Index < with.RolesIndex {
		err = fmt.Errorf("cluster: the snapshot ends with entry %d, before the change of the members at entry %d", at.Index, with.RolesIndex)
	}
	if err == nil {
		err = commitSnapshot(m.opt.FS, m.opt.Dir, raftlog.Position{Index: at.Index, Term: at.Term})
	}
	if err != nil {
		return nil, errors.Join(err, dropSnapshot(m.opt.FS, m.opt.Dir))
	}
	return &raftpb.Snapshot{
		Metadata: &raftpb.SnapshotMetadata{ConfState: with.Roles, Index: &at.Index, Term: &at.Term},
		Data:     encodeMembers(with),
	}, nil
}

// An impatient connection fails if no data arrives for leaderSilence, because the
// leader's machine or disk hangs.
type impatient struct{ net.Conn }

const leaderSilence = 10 * time.Second

func (c impatient) Read(b []byte) (int, error) {
	c.SetReadDeadline(time.Now().Add(leaderSilence))
	return c.Conn.Read(b)
}

// paced is a reader limited to maxPace, so that the disks of both members can sync their
// logs in time.
type paced struct {
	io.Reader
	m       *Member
	limiter *rate.Limiter
}

const (
	maxPace   = 50 << 20 // bytes per second
	paceBurst = 1 << 20  // bytes; a sleep is then much longer than the delay of a timer
)

func (r paced) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b[:min(len(b), paceBurst)])
	r.m.ails.update(func(a *ailments) { a.received += int64(n) })
	return n, cmp.Or(err, r.limiter.WaitN(r.m.ctx, n))
}

// offerSnapshot passes the fetched snapshot to Raft. Without a leader, it does nothing,
// because the message must come from a leader.
func (r *raftLoop) offerSnapshot() {
	s := r.fetched
	if lead := r.core.Lead().Leader; s == nil || lead == 0 {
		return
	}
	r.fetched = nil
	if !r.core.Restore(s) {
		r.m.opt.Logger.Info("the received snapshot is no longer needed")
		r.m.done.Go(func() {
			if err := dropSnapshot(r.m.opt.FS, r.m.opt.Dir); err != nil {
				r.m.opt.Logger.Warn("cannot remove the received snapshot", "err", err)
			}
			r.m.mail.post(func() { r.fetchEnded(nil) })
		})
		return
	}
	list, err := decodeMembers(s.GetData())
	if err != nil {
		panic(err) // encodeMembers has encoded it
	}
	r.members, r.lastNumber = list.Members, list.LastNumber
	r.connect()
	r.note()
}

// restore cuts the log at the end of a snapshot, in the append goroutine.
func (d *disk) restore(s *raftpb.Snapshot) error {
	with, err := decodeMembers(s.GetData())
	if err != nil {
		return err
	}
	at := s.GetMetadata()
	with.Roles, with.RolesIndex = at.GetConfState(), at.GetIndex()
	return d.m.log.Restore(raftlog.Position{Index: at.GetIndex(), Term: at.GetTerm()}, with)
}

// snapshotPatience is the time in nanoseconds that a leader waits for a member to fetch a
// snapshot, or to respond after fetching it. After that, Raft offers the snapshot again.
// Raft alone would not repeat the offer after a lost message.
const snapshotPatience = 10_000_000_000

// watchSnapshots reports to Raft the members that do not fetch the offered snapshots. It
// runs on the leader.
func (r *raftLoop) watchSnapshots(s *raft.Status) {
	now := r.m.opt.Now()
	for id, progress := range s.Progress {
		p := r.peer(id)
		switch {
		case progress.State != tracker.StateSnapshot:
			p.offered = 0
		case p.offered == 0 || p.fetches > 0:
			p.offered = now
		case now-p.offered >= snapshotPatience:
			p.offered = 0
			r.core.SnapshotFailed(id)
		}
	}
}

// SendSnapshot writes a snapshot for another member. It returns an error for a server
// that is not a member.
func (m *Member) SendSnapshot(to uint64, w io.Writer) error {
	err := error(ErrStopped)
	m.inLoop(func() {
		if err = nil; !m.raft.isMember(to) {
			err = ErrNotMember
			return
		}
		m.raft.peer(to).fetches++
	})
	if err != nil {
		return err
	}
	err = m.sendSnapshot(w)
	m.mail.post(func() {
		m.raft.peer(to).fetches--
		if err != nil {
			m.raft.core.SnapshotFailed(to)
		}
	})
	return err
}

func (m *Member) sendSnapshot(w io.Writer) error {
	b, with, err := m.openSnapshot()
	if err != nil {
		return err
	}
	defer b.Close()
	if err := writeMembership(w, with); err != nil {
		return err
	}
	return b.Write(w)
}

// openSnapshot opens the files of the journal. with is the membership at the last entry
// in the files.
func (m *Member) openSnapshot() (b *journal.Backup, with raftlog.Membership, err error) {
	if !m.inLoop(func() { with = m.raft.membership() }) {
		return nil, with, ErrStopped
	}
	m.broker.View(func(*engine.Engine, int64) {}) // Housekeep writes all applied changes to the files
	if b, err = m.Journal().Backup(); err != nil {
		return nil, with, err
	}
	same := false
	m.inLoop(func() {
		commit := m.raft.core.Status().GetCommit()
		_, index := m.raft.core.Conf()
		same = index == with.RolesIndex && !slices.ContainsFunc(m.log.ConfChanges(), func(i uint64) bool { return i > index && i <= commit })
	})
	if !same {
		b.Close()
		return nil, with, errors.New("cluster: the members are being changed; try again")
	}
	return b, with, nil
}

// writeMembership writes the header of a snapshot, a line of JSON.
func writeMembership(w io.Writer, with raftlog.Membership) error {
	_, err := w.Write(append(encodeMembers(with), '\n'))
	return err
}
