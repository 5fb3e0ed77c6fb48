package cluster

import (
	"errors"
	"fmt"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/beanpole-mq/beanpole/internal/cluster/raftlog"
	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// Recover makes the directory of a member, which must not run, that of the only one of a
// cluster. All entries of its log count as agreed on; where it ends is returned. What
// others had beyond that is lost. The id must be a new one, so that no other member of
// the old cluster is heard.
func Recover(fsys vfs.FS, dir string, self raftlog.Member) (last raftlog.Position, err error) {
	log, err := raftlog.Open(fsys, LogDir(dir), raftlog.Options{})
	if err != nil {
		return last, fmt.Errorf("cluster: %w", err)
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	self.Number = log.State().LastNumber + 1
	last = log.Last()
	term := max(last.Term, log.State().Hard.GetTerm())
	hard := &raftpb.HardState{Term: &term, Vote: new(uint64), Commit: &last.Index}
	with := alone(self)
	with.RolesIndex = last.Index
	if err := errors.Join(log.Append(hard, nil), log.SetMembership(with), log.SetVerdict(""), log.Sync()); err != nil {
		return last, fmt.Errorf("cluster: %w", err)
	}
	return last, nil
}
