package cluster

import (
	"errors"
	"fmt"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/beanpole-mq/beanpole/internal/cluster/raftlog"
	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// Recover converts the directory of a stopped member into the directory of the only
// member of a new cluster. All entries in its log count as committed; last is the last of
// them. Later entries on other members are lost. The id in self must be new, so that the
// member receives no messages from the old cluster.
func Recover(fsys vfs.FS, dir string, self raftlog.MemberInfo) (last raftlog.Position, err error) {
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
	if err := errors.Join(log.Append(hard, nil), log.SetMembership(with), log.SetFatalReason(""), log.Sync()); err != nil {
		return last, fmt.Errorf("cluster: %w", err)
	}
	return last, nil
}
