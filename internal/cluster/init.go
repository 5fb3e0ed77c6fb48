package cluster

import (
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/beanpole-mq/beanpole/internal/cluster/raftlog"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/journal"
	"github.com/beanpole-mq/beanpole/internal/vfs"
	"github.com/beanpole-mq/beanpole/internal/wal"
)

// Init turns a directory into the first member's directory. It can contain the journal of
// a single server, which must not be running. Init does not change jobs.
func Init(fsys vfs.FS, dir string, self raftlog.MemberInfo) error {
	self.Number = 1
	if err := CheckInit(fsys, dir); err != nil {
		return err
	}
	names, err := fsys.List(dir)
	if err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	if !slices.ContainsFunc(names, wal.IsFileName) {
		return makeLog(fsys, dir, alone(self), raftlog.Position{})
	}
	// The log does not contain the jobs of the journal. It starts after an entry that
	// represents them, so that other members need a snapshot.
	first := raftlog.Position{Index: 1, Term: 1}
	if err := makeLog(fsys, dir, alone(self), first); err != nil {
		return err
	}
	return journal.SetApplied(fsys, dir, journal.Applied{Index: first.Index, Term: first.Term})
}

// alone returns the membership of a cluster with one member.
func alone(self raftlog.MemberInfo) raftlog.Membership {
	return raftlog.Membership{
		Roles: &raftpb.ConfState{Voters: []uint64{self.ID}}, Members: []raftlog.MemberInfo{self}, LastNumber: self.Number,
	}
}

// CheckInit returns an error if Init cannot use the directory, because its journal
// belongs to a cluster member.
func CheckInit(fsys vfs.FS, dir string) error {
	at, err := appliedOf(fsys, dir)
	if err == nil && at.Index > 1 { // if it is 1, an Init was interrupted
		err = journal.ErrOfMember
	}
	if err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	return nil
}

// appliedOf returns the last entry whose changes a journal contains.
func appliedOf(fsys vfs.FS, dir string) (raftlog.Position, error) {
	_, at, err := journal.ReadApplied(fsys, dir)
	return raftlog.Position{Index: at.Index, Term: at.Term}, err
}

// Release converts the journal of the last, stopped member into a single server's
// journal.
func Release(fsys vfs.FS, dir string) error {
	_, err := journal.Release(fsys, dir)
	return err
}

// IsUnused reports whether the journal in a directory has no records.
func IsUnused(fsys vfs.FS, dir string) (bool, error) {
	used := errors.New("used")
	_, err := journal.Records(fsys, dir, func(wal.Pos, *engine.Change) error { return used })
	if errors.Is(err, used) {
		return false, nil
	}
	return err == nil, err
}

// Join turns an empty directory into the directory of a member that was added to a
// cluster. with is an existing member's [Member.Membership].
func Join(fsys vfs.FS, dir string, with raftlog.Membership) error {
	return makeLog(fsys, dir, with, raftlog.Position{})
}

// makeLog creates the log of a new member in its existing directory.
func makeLog(fsys vfs.FS, dir string, with raftlog.Membership, from raftlog.Position) (err error) {
	log, err := raftlog.Open(fsys, LogDir(dir), raftlog.Options{})
	if err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	if len(log.State().Members) > 0 {
		return fmt.Errorf("cluster: %s already belongs to a member", dir)
	}
	if from.Index > 0 {
		hard := &raftpb.HardState{Term: &from.Term, Vote: new(uint64), Commit: &from.Index}
		if err := errors.Join(log.Cut(from), log.Append(hard, nil)); err != nil {
			return fmt.Errorf("cluster: %w", err)
		}
	}
	if err := errors.Join(log.SetMembership(with), log.Sync()); err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	return nil
}

// Membership returns the members as recorded by this member. The caller must not change
// it.
func (m *Member) Membership() raftlog.Membership { return m.log.State().Membership }
