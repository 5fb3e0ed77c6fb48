package cluster

import (
	"errors"
	"fmt"
	"slices"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/cluster/raftlog"
	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// An Inspection is what the directory of a member has.
type Inspection struct {
	Term    uint64 // the highest that the member has heard of
	Commit  uint64 // the last entry that it knows to be agreed on
	Cut     raftlog.Position
	Last    raftlog.Position
	Members []InspectedMember // as the member knows them; none: its log cannot be read, and all above is unknown

	Applied raftlog.Position // the last entry whose changes are in the journal

	Torn bool // the end of the log was cut off by a crash, most likely
}

// An InspectedMember is a member that a directory knows.
type InspectedMember struct {
	ID      uint64     `json:"id"`
	Address string     `json:"address"`
	Role    admin.Role `json:"role"` // Voter or Learner: no directory says which one leads
}

// logError is the error of a log that cannot be opened.
func logError(err error) error {
	if raftlog.IsDamage(err) {
		return fmt.Errorf("%w: the cluster's log is damaged: %w", ErrDamaged, err)
	}
	return fmt.Errorf("cluster: %w", err)
}

// logIsGone is the error of a log without members: init and join write them.
func logIsGone(dir string) error {
	return fmt.Errorf("%w: the cluster's log is gone: %s has no members", ErrDamaged, LogDir(dir))
}

// journalIsBehind is the error of a journal that has lost entries which the log does not
// have any more.
func journalIsBehind(applied, cut raftlog.Position) error {
	return fmt.Errorf("%w: the journal has the entries up to %d, and the cluster's log begins after %d", ErrDamaged, applied.Index, cut.Index)
}

// Inspect reads the directory of a member and changes nothing. If a server uses the
// directory, the newest entries may be missing. An error says what is damaged, beside what
// could be read.
func Inspect(fsys vfs.FS, dir string) (i Inspection, err error) {
	err = i.readLog(fsys, dir)
	s, sealErr := readSeal(fsys, dir)
	var journalErr error
	if s != nil && s.Position == i.Cut { // the next start goes on to install it
		i.Applied = i.Cut
	} else {
		i.Applied, journalErr = appliedOf(fsys, dir)
	}
	if err = errors.Join(err, sealErr, journalErr); err == nil && i.Applied.Index < i.Cut.Index {
		err = journalIsBehind(i.Applied, i.Cut)
	}
	return i, err
}

func (i *Inspection) readLog(fsys vfs.FS, dir string) error {
	log, err := raftlog.Open(fsys, LogDir(dir), raftlog.Options{ReadOnly: true})
	if err != nil {
		return logError(err)
	}
	defer log.Close() // it was only read
	s := log.State()
	if len(s.Members) == 0 {
		return logIsGone(dir)
	}
	i.Term, i.Commit = s.Hard.GetTerm(), s.Hard.GetCommit()
	i.Cut, i.Last, i.Torn = s.Cut, log.Last(), log.Torn()
	for _, m := range s.Members {
		role := admin.Voter
		if slices.Contains(s.Roles.GetLearners(), m.ID) {
			role = admin.Learner
		}
		i.Members = append(i.Members, InspectedMember{m.ID, m.Address, role})
	}
	if s.Verdict != "" {
		return verdictError(s.Verdict)
	}
	return nil
}
