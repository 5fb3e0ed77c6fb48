package cluster

import (
	"errors"
	"fmt"
	"slices"

	"github.com/beanpole-mq/beanpole/client/admin/apitype"
	"github.com/beanpole-mq/beanpole/internal/cluster/raftlog"
	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// An Inspection is the content of a member's directory.
type Inspection struct {
	Term    uint64            `json:"term"`    // highest term that the member has seen
	Commit  uint64            `json:"commit"`  // last entry that it has recorded as committed
	Cut     raftlog.Position  `json:"cut"`     // the log begins after this entry
	Last    raftlog.Position  `json:"last"`    // the last entry of the log
	Applied raftlog.Position  `json:"applied"` // last entry whose changes are in the journal
	Members []InspectedMember `json:"members"` // empty if the log cannot be read, and then only Applied is known
}

// An InspectedMember is a member listed in a directory.
type InspectedMember struct {
	ID      uint64       `json:"id"`
	Address string       `json:"address"`
	Role    apitype.Role `json:"role"` // Voter or Learner; a directory does not record the leader
}

// logError returns the error for a log that cannot be opened.
func logError(err error) error {
	if raftlog.IsDamage(err) {
		return fmt.Errorf("%w: the cluster's log is damaged: %w", ErrDamaged, err)
	}
	return fmt.Errorf("cluster: %w", err)
}

// logIsGone returns the error for a log without members. Init and Join always write them.
func logIsGone(dir string) error {
	return fmt.Errorf("%w: the cluster's log is missing: %s has no members", ErrDamaged, LogDir(dir))
}

// journalIsBehind returns the error for a journal that lacks entries that were removed
// from the log.
func journalIsBehind(applied, cut raftlog.Position) error {
	return fmt.Errorf("%w: the journal ends with entry %d, but the cluster's log starts after entry %d", ErrDamaged, applied.Index, cut.Index)
}

// Inspect reads a member's directory without changing it. If a server uses the directory,
// the newest entries can be missing from i. The error describes damage; i contains the
// readable rest.
func Inspect(fsys vfs.FS, dir string) (i Inspection, err error) {
	i.Members = []InspectedMember{} // a list in JSON, even if it is empty
	err = i.readLog(fsys, dir)
	s, markerErr := readMarker(fsys, dir)
	var journalErr error
	if s != nil && s.Position == i.Cut { // the next start will install the snapshot
		i.Applied = i.Cut
	} else {
		i.Applied, journalErr = appliedOf(fsys, dir)
	}
	if err = errors.Join(err, markerErr, journalErr); err == nil && i.Applied.Index < i.Cut.Index {
		err = journalIsBehind(i.Applied, i.Cut)
	}
	return i, err
}

func (i *Inspection) readLog(fsys vfs.FS, dir string) error {
	log, err := raftlog.Open(fsys, LogDir(dir), raftlog.Options{ReadOnly: true})
	if err != nil {
		return logError(err)
	}
	defer log.Close() // the log was only read
	s := log.State()
	if len(s.Members) == 0 {
		return logIsGone(dir)
	}
	i.Term, i.Commit = s.Hard.GetTerm(), s.Hard.GetCommit()
	i.Cut, i.Last = s.Cut, log.Last()
	for _, m := range s.Members {
		role := apitype.Voter
		if slices.Contains(s.Roles.GetLearners(), m.ID) {
			role = apitype.Learner
		}
		i.Members = append(i.Members, InspectedMember{m.ID, m.Address, role})
	}
	if s.FatalReason != "" {
		return fatalError(s.FatalReason)
	}
	return nil
}
