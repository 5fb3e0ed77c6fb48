package cluster

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
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

// Raft offers a snapshot to a member whose next entry the leader has cut (MsgSnap). A
// snapshot is a backup of the leader's journal, which has what was agreed on, and nothing
// else. The member fetches it beside its own journal, and takes part as before meanwhile.
// When it has all of it, Raft is given the message of a snapshot that ends where this one
// does. Only if Raft wants that, it is installed (install.go): the log is cut there, and
// an engine is made of the journal as after a lost leadership; it is another journal now.

// fetchSnapshot begins to fetch what the leader offers, if this member lacks it, and
// entries that the leader has cut.
func (r *raftLoop) fetchSnapshot() {
	m := r.m
	from, _ := r.core.Leader()
	if r.fetching || from == 0 || m.opt.Fetch == nil || !r.core.LacksSnapshot() || r.core.Status().GetCommit() >= r.minReachable {
		return
	}
	r.fetching = true
	m.done.Go(func() {
		s, err := m.fetch(from)
		if err != nil && !m.stopped() {
			m.opt.Logger.Warn("the queue could not be received from the leader; it is tried again", "from", from, "err", err)
			m.sleep(recoverPause)
		}
		m.mail.post(fetched{s})
	})
}

// sleep waits for a time, or until the member has ended.
func (m *Member) sleep(d time.Duration) {
	select {
	case <-time.After(d):
	case <-m.Failed():
	}
}

// fetch fetches a snapshot and seals it.
func (m *Member) fetch(from uint64) (*raftpb.Snapshot, error) {
	if err := dropSnapshot(m.opt.FS, m.opt.Dir); err != nil { // of an attempt that has failed
		return nil, err
	}
	stream, err := m.opt.Fetch(m.ctx, from)
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	defer context.AfterFunc(m.ctx, func() { stream.Close() })()
	in := bufio.NewReaderSize(impatient{stream}, 64<<10)
	with, err := readMembership(in)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(with.Members, func(k raftlog.Member) bool { return k.ID == m.opt.Self.ID }) {
		if m.number <= with.LastNumber {
			m.mail.post(m.disk.leave)
			return nil, ErrRemoved
		}
		return nil, fmt.Errorf("cluster: member %d does not know this one yet", from)
	}
	m.opt.Logger.Info("the log does not have what this member lacks: it receives the whole queue", "from", from)
	at, err := journal.ReadSnapshot(staged{m.opt.FS}, m.opt.Dir, newPaced(m.ctx, in))
	if err == nil && at.Index < with.RolesIndex {
		err = fmt.Errorf("cluster: the queue ends with entry %d, before the change of the members at %d", at.Index, with.RolesIndex)
	}
	if err == nil {
		err = sealSnapshot(m.opt.FS, m.opt.Dir, raftlog.Position{Index: at.Index, Term: at.Term})
	}
	if err != nil {
		return nil, errors.Join(err, dropSnapshot(m.opt.FS, m.opt.Dir))
	}
	return &raftpb.Snapshot{
		Metadata: &raftpb.SnapshotMetadata{ConfState: with.Roles, Index: &at.Index, Term: &at.Term},
		Data:     encodeMembers(with.Members, with.LastNumber),
	}, nil
}

// impatient reads from a leader until nothing comes for leaderSilence: its machine stands
// still, or its disk hangs.
type impatient struct{ net.Conn }

const leaderSilence = 10 * time.Second

func (c impatient) Read(b []byte) (int, error) {
	c.SetReadDeadline(time.Now().Add(leaderSilence))
	return c.Conn.Read(b)
}

// paced reads as many bytes in a second as its limiter lets it: the disks of both members
// have logs to sync.
type paced struct {
	io.Reader
	ctx     context.Context
	limiter *rate.Limiter
}

const (
	maxPace   = 50 << 20 // bytes a second
	paceBurst = 1 << 20  // bytes, so that a sleep is much longer than what a timer is late
)

func newPaced(ctx context.Context, r io.Reader) paced {
	return paced{r, ctx, rate.NewLimiter(maxPace, paceBurst)}
}

func (r paced) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b[:min(len(b), paceBurst)])
	return n, cmp.Or(err, r.limiter.WaitN(r.ctx, n))
}

// offerSnapshot gives Raft the snapshot that was fetched. It waits until somebody leads:
// the message has to be that of a leader.
func (r *raftLoop) offerSnapshot() {
	s := r.fetched
	if lead, _ := r.core.Leader(); s == nil || lead == 0 {
		return
	}
	r.fetched = nil
	if !r.core.Restore(s) {
		r.m.opt.Logger.Info("the queue that was received is not needed any more")
		r.m.done.Go(func() {
			if err := dropSnapshot(r.m.opt.FS, r.m.opt.Dir); err != nil {
				r.m.opt.Logger.Warn("the queue that was received cannot be removed", "err", err)
			}
			r.m.mail.post(fetched{})
		})
		return
	}
	var err error
	if r.members, r.lastNumber, err = decodeMembers(s.GetData()); err != nil {
		panic(err) // encodeMembers made it
	}
	r.connect()
	r.note()
}

// restore cuts the log where a snapshot ends, in the append goroutine.
func (d *disk) restore(s *raftpb.Snapshot) error {
	members, lastNumber, err := decodeMembers(s.GetData())
	if err != nil {
		return err
	}
	at := s.GetMetadata()
	return d.m.log.Restore(raftlog.Position{Index: at.GetIndex(), Term: at.GetTerm()}, raftlog.Membership{
		Roles: at.GetConfState(), RolesIndex: at.GetIndex(), Members: members, LastNumber: lastNumber,
	})
}

// snapshotPatience is how long a leader waits for a member that has been offered a
// snapshot, and does not fetch it or has fetched it, in nanoseconds. Then it offers one
// again: nothing else ends Raft's waiting if a message is lost.
const snapshotPatience = 10_000_000_000

// watchSnapshots looks, at the leader, for members that do not fetch what they were
// offered.
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

// maxSnapshots is how many members are sent a snapshot at a time.
const maxSnapshots = 2

// SendSnapshot writes what another member receives that fetches a snapshot from this one.
func (m *Member) SendSnapshot(to uint64, w io.Writer) error {
	err := error(ErrStopped)
	m.inLoop(func() {
		err = nil
		fetches := 0
		for _, p := range m.raft.peers {
			fetches += p.fetches
		}
		if fetches == maxSnapshots {
			err = fmt.Errorf("cluster: %d members are sent the queue already", fetches)
			return
		}
		m.raft.peer(to).fetches++
	})
	if err != nil {
		return err
	}
	err = m.sendSnapshot(w)
	m.mail.post(sent{to, err})
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

// openSnapshot opens the files of the journal, and returns the members and their roles at
// the last entry that those have.
func (m *Member) openSnapshot() (b *journal.Backup, with raftlog.Membership, err error) {
	if !m.inLoop(func() { with = m.raft.membership() }) {
		return nil, with, ErrStopped
	}
	m.broker.View(func(*engine.Engine, int64) {}) // writes to the files what was applied before
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
		return nil, with, errors.New("cluster: the members change at the moment")
	}
	return b, with, nil
}

// writeMembership writes what comes before a snapshot: a line of JSON.
func writeMembership(w io.Writer, with raftlog.Membership) error {
	return json.NewEncoder(w).Encode(with)
}

func readMembership(r *bufio.Reader) (with raftlog.Membership, err error) {
	line, err := r.ReadSlice('\n') // a line that fits no buffer is none
	if err == nil {
		err = json.Unmarshal(line, &with)
	}
	return with, err
}
