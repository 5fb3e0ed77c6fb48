package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/beanpole-mq/beanpole/internal/cluster/core"
	"github.com/beanpole-mq/beanpole/internal/cluster/raftlog"
)

// A change of the members is a change of Raft's configuration. Its context is a list of
// members. The members in it that have a role after the change are the new members. Only
// one change is in progress at a time.

var (
	// ErrNotLeader means that this member is not the leader, and that only the leader can
	// perform the operation.
	ErrNotLeader = errors.New("cluster: this member does not lead")

	// ErrBusy means that another change of the members, or a transfer, is in progress.
	ErrBusy = errors.New("cluster: another change of the members is in progress; try again")

	// ErrDeclined means that the other member has not taken over the leadership, and that
	// this member is still the leader. A member declines during its first 0.6 s.
	ErrDeclined = errors.New("cluster: the leadership was declined")
)

// Add adds a member as a learner. The leader makes it a voter when it has caught up. Add
// returns when this member has recorded the learner, so that Membership contains it. If
// added.Replaces is set, the leader removes that member, which can be dead, in the same
// step in which the new member becomes a voter. Therefore, the cluster never survives
// fewer failures than before. Add chooses added.Number.
func (m *Member) Add(ctx context.Context, added raftlog.MemberInfo) error {
	err := m.changeMembers(func() error {
		old := added.Replaces
		if learner, ok := m.raft.abandoned(added.Address); ok && learner.ID != added.ID {
			added.Number = m.raft.lastNumber + 1
			if old == learner.ID || !m.raft.isMember(old) {
				added.Replaces = learner.Replaces
			}
			return m.raft.propose(append(without(m.raft.members, learner.ID), added),
				change(raftpb.ConfChangeRemoveNode, learner.ID), change(raftpb.ConfChangeAddLearnerNode, added.ID))
		}
		if old != 0 && !m.raft.isMember(old) {
			return fmt.Errorf("%w: %d", ErrNotMember, old)
		}
		for _, k := range m.raft.members {
			switch {
			case k.ID == added.ID && k.Address == added.Address:
				return nil // Add was called earlier
			case k.ID == added.ID || k.Address == added.Address && k.ID != old:
				return fmt.Errorf("cluster: member %d already has the address %s; if it is lost, replace or remove it (beanpole cluster join --replace, remove)", k.ID, k.Address)
			case old != 0 && k.Replaces == old:
				return fmt.Errorf("cluster: member %d is already being replaced by member %d; remove that member first", old, k.ID)
			}
		}
		added.Number = m.raft.lastNumber + 1
		return m.raft.propose(append(slices.Clone(m.raft.members), added), change(raftpb.ConfChangeAddLearnerNode, added.ID))
	})
	if err != nil {
		return err
	}
	return m.await(ctx, func() bool { return contains(m.log.State().Members, added.ID) })
}

// abandoned returns the unreachable learner at an address that an interrupted command has
// left behind. The member that the repeated command adds takes its place.
func (r *raftLoop) abandoned(address string) (learner raftlog.MemberInfo, ok bool) {
	learners := r.core.Status().Config.Learners
	i := slices.IndexFunc(r.members, func(k raftlog.MemberInfo) bool {
		return k.Address == address && hasKey(learners, k.ID) && !r.isReachable(k.ID)
	})
	if i < 0 {
		return learner, false
	}
	return r.members[i], true
}

// Remove removes a member, which can be dead. Its directory is unusable afterwards.
func (m *Member) Remove(ctx context.Context, id uint64) error {
	err := m.changeMembers(func() error {
		if !m.raft.isMember(id) {
			return fmt.Errorf("%w: %d", ErrNotMember, id)
		}
		if voters := m.raft.core.Status().Config.Voters[0]; len(voters) == 1 && hasKey(voters, id) {
			return errors.New("cluster: the last voter cannot be removed")
		}
		return m.raft.propose(m.raft.members, change(raftpb.ConfChangeRemoveNode, id))
	})
	if err != nil {
		return err
	}
	return m.await(ctx, func() bool { return !contains(m.log.State().Members, id) })
}

// changeMembers runs f in the raft loop if this member is the active leader.
func (m *Member) changeMembers(f func() error) (err error) {
	if !m.inLoop(func() {
		switch {
		case m.raft.core.Lead().Epoch == 0:
			err = ErrNotLeader
		case m.raft.transfer.to != 0:
			err = ErrBusy
		default:
			err = f()
		}
	}) {
		return ErrStopped
	}
	if errors.Is(err, core.ErrChanging) {
		return ErrBusy
	}
	return err
}

// change returns the change of one member's role.
func change(kind raftpb.ConfChangeType, id uint64) *raftpb.ConfChangeSingle {
	return &raftpb.ConfChangeSingle{Type: kind.Enum(), NodeId: &id}
}

// propose proposes changes of roles, together with the list of members.
func (r *raftLoop) propose(members []raftlog.MemberInfo, changes ...*raftpb.ConfChangeSingle) error {
	last := r.lastNumber
	for _, k := range members {
		last = max(last, k.Number)
	}
	cc := &raftpb.ConfChangeV2{Changes: changes, Context: encodeMembers(raftlog.Membership{Members: members, LastNumber: last})}
	return r.core.ProposeConf(r.core.Lead().Epoch, cc)
}

// await waits until wanted returns true, or until this member is no longer the leader.
func (m *Member) await(ctx context.Context, wanted func() bool) error {
	for {
		watch := m.Watch()
		if wanted() {
			return nil
		}
		if m.Lead().Leader != m.opt.Self.ID {
			return fmt.Errorf("%w any longer; the change might still happen", ErrNotLeader)
		}
		if err := m.pause(ctx, watch); err != nil {
			if wanted() { // for example, this member was removed
				return nil
			}
			return err
		}
	}
}

func (m *Member) pause(ctx context.Context, watch <-chan struct{}) error {
	select {
	case <-watch:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-m.Failed():
		return ErrStopped
	}
}

func contains(members []raftlog.MemberInfo, id uint64) bool {
	return slices.ContainsFunc(members, func(k raftlog.MemberInfo) bool { return k.ID == id })
}

func without(members []raftlog.MemberInfo, id uint64) []raftlog.MemberInfo {
	return slices.DeleteFunc(slices.Clone(members), func(k raftlog.MemberInfo) bool { return k.ID == id })
}

// withRole returns the members in a list that have a role. A voter that is being replaced
// has a role until the joint configuration ends.
func withRole(members []raftlog.MemberInfo, conf *raftpb.ConfState) []raftlog.MemberInfo {
	ids := slices.Concat(conf.GetVoters(), conf.GetVotersOutgoing(), conf.GetLearners(), conf.GetLearnersNext())
	return slices.DeleteFunc(slices.Clone(members), func(k raftlog.MemberInfo) bool { return !slices.Contains(ids, k.ID) })
}

func hasKey[V any](set map[uint64]V, id uint64) bool {
	_, ok := set[id]
	return ok
}

// manage does the leader's work for the other members, at each tick. It watches snapshots
// even before the epoch starts: the epoch requires a majority that has the leader's first
// entry, and a member of that majority might need a snapshot.
func (r *raftLoop) manage() {
	s := r.core.Status()
	if s.RaftState == raft.StateLeader {
		r.findLags(&s)
		r.watchSnapshots(&s)
	} else {
		for _, p := range r.peers {
			p.goalSince, p.reached, p.late = 0, false, false
		}
	}
	if r.core.Lead().Epoch != 0 {
		r.promote(&s)
		r.recordPeers()
	}
}

// findLags sets minMatch and minReachable.
func (r *raftLoop) findLags(s *raft.Status) {
	r.minMatch, r.minReachable = s.GetCommit(), s.GetCommit()
	for id, p := range s.Progress {
		r.peer(id).follow(p.Match, s.GetCommit(), r.m.opt.Now())
		r.minMatch = min(r.minMatch, p.Match)
		if r.isReachable(id) {
			r.minReachable = min(r.minReachable, p.Match)
		}
	}
}

// catchUpTime is the maximum age of entries that an up-to-date member can lack, in
// nanoseconds. A new leader has no such entries. A member counts as late if it does not
// acknowledge the first goal within firstGoalTime.
const (
	catchUpTime   = 3_000_000_000
	firstGoalTime = 500_000_000
)

// follow updates a member's progress, at a tick of the leader. commit is the leader's
// last committed entry.
func (p *peer) follow(match, commit uint64, now int64) {
	switch {
	case p.goalSince == 0:
		p.goal, p.goalSince = commit, now-catchUpTime+firstGoalTime
	case match >= p.goal:
		p.goal, p.goalSince, p.reached, p.late = commit, now, true, false
	case now-p.goalSince > catchUpTime:
		p.late = true
	}
}

// promote makes a learner a voter when it has all entries that were committed when it
// joined, or when this member became the leader.
func (r *raftLoop) promote(s *raft.Status) {
	for id := range s.Config.Learners {
		if !r.peer(id).reached || !r.isReachable(id) {
			continue
		}
		if err := r.makeVoter(id); err != nil {
			r.m.opt.Logger.Debug("cannot make a learner a voter yet", "member", id, "err", err)
		}
		return
	}
}

// makeVoter makes a learner a voter, and removes the member that it replaces.
func (r *raftLoop) makeVoter(id uint64) error {
	changes := []*raftpb.ConfChangeSingle{change(raftpb.ConfChangeAddNode, id)}
	members := slices.Clone(r.members)
	for i := range members {
		if k := &members[i]; k.ID == id {
			if r.isMember(k.Replaces) {
				changes = append(changes, change(raftpb.ConfChangeRemoveNode, k.Replaces))
			}
			k.Replaces = 0
		}
	}
	return r.propose(members, changes...)
}

// recordPeers periodically records the acknowledgments of the other members. With these
// records, this member detects a rolled-back disk even after its own restart.
func (s *peerTable) recordPeers() {
	for id, p := range s.peers {
		if p.acknowledged.Index >= p.recorded.Acknowledged.Index+recordEvery {
			s.record(id, p)
		}
	}
}

// recordEvery is the number of acknowledged entries between two records.
const recordEvery = 10_000

// applyRoles applies the members and roles after a change of configuration.
func (r *raftLoop) applyRoles(changed *core.Roles) {
	members := r.members
	if len(changed.Context) > 0 {
		list, err := decodeMembers(changed.Context)
		if err != nil {
			r.m.fail(fmt.Errorf("cluster: the members of entry %d: %w", changed.Index, err))
			return
		}
		members, r.lastNumber = list.Members, list.LastNumber
	}
	r.members = withRole(members, changed.Conf)
	r.note() // before the disk: Add returns when the disk has the members, and Status must list them
	r.m.disk.setMembership(r.membership())
	r.connect()
	if !r.isMember(r.m.opt.Self.ID) {
		r.m.disk.leave()
	}
}

// membership returns the members after the last applied change of configuration.
func (r *raftLoop) membership() raftlog.Membership {
	roles, index := r.core.Conf()
	return raftlog.Membership{Roles: roles, RolesIndex: index, Members: r.members, LastNumber: r.lastNumber}
}

// encodeMembers returns the context of a change of configuration, and the data of a
// snapshot. It has no line breaks.
func encodeMembers(list raftlog.Membership) []byte {
	text, err := json.Marshal(list)
	if err != nil {
		panic(err) // all fields are numbers and texts
	}
	return text
}

func decodeMembers(text []byte) (list raftlog.Membership, err error) {
	return list, json.Unmarshal(text, &list)
}
