package cluster

import (
	"fmt"
	"slices"

	"github.com/beanpole-mq/beanpole/internal/cluster/raftlog"
	"github.com/beanpole-mq/beanpole/internal/cluster/status"
	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// An Inspection is what the directory of a member has.
type Inspection struct {
	Term    uint64 // the highest that the member has heard of
	Commit  uint64 // the last entry that it knows to be agreed on
	Cut     raftlog.Position
	Last    raftlog.Position
	Members []InspectedMember // as the member knows them

	Applied raftlog.Position // the last entry whose facts are in the journal

	Torn    bool // the end of the log was cut off by a crash, most likely
	Partial bool // the member was receiving the whole queue from another one, and does not have all of it
}

// An InspectedMember is one that a directory tells of.
type InspectedMember struct {
	ID      uint64
	Address string
	Role    status.Role // Voter or Learner: who leads is in no directory
}

// Inspect reads the directory of a member and changes nothing. If a server uses it, its newest entries may be
// missing. An error says what is damaged; what could be read before is returned with it.
func Inspect(fsys vfs.FS, dir string) (i Inspection, err error) {
	log, found, err := raftlog.Open(fsys, LogDir(dir), raftlog.Options{ReadOnly: true})
	if err != nil {
		return i, fmt.Errorf("cluster: the log: %w", err)
	}
	defer log.Close() // it was only read
	s := log.State()
	i.Term, i.Commit = s.Hard.GetTerm(), s.Hard.GetCommit()
	i.Cut, i.Last, i.Torn = s.Cut, log.Last(), found.Torn
	for _, m := range s.Members {
		role := status.Voter
		if slices.Contains(s.Conf.GetLearners(), m.ID) {
			role = status.Learner
		}
		i.Members = append(i.Members, InspectedMember{m.ID, m.Address, role})
	}
	if i.Partial, err = isPartial(fsys, dir); err != nil {
		return i, err
	}
	i.Applied, err = appliedOf(fsys, dir)
	if i.Applied.Index < i.Cut.Index && i.Cut == begun {
		i.Applied = i.Cut // what is in the journal of a single server
	}
	return i, err
}
