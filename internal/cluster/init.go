package cluster

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/beanpole-mq/beanpole/internal/cluster/raftlog"
	"github.com/beanpole-mq/beanpole/internal/journal"
	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// begun is where the log of a cluster begins that was made of a single server's journal:
// other members cannot have from the log what was there before.
var begun = raftlog.Position{Index: 1, Term: 1}

// Init makes a directory that of the first member of a cluster. It may have the journal
// of a single server, which must not be running; no job of it is touched.
func Init(fsys vfs.FS, dir string, self raftlog.Member) error {
	self.Number = 1
	g := Group{Members: []raftlog.Member{self}, Numbers: self.Number}
	var err error
	if g.Conf, err = proto.Marshal(&raftpb.ConfState{Voters: []uint64{self.ID}}); err != nil {
		return err
	}
	if err := CheckInit(fsys, dir); err != nil {
		return err
	}
	var from raftlog.Position
	if has, err := hasJournal(fsys, dir); err != nil {
		return err
	} else if has {
		from = begun
	}
	return makeLog(fsys, dir, g, from)
}

// CheckInit returns an error if a directory has the journal of a member, whose cluster
// may go on: there would be another one with the same jobs.
func CheckInit(fsys vfs.FS, dir string) error {
	at, err := appliedOf(fsys, dir)
	if err == nil && at.Index > 0 {
		err = journal.ErrOfMember
	}
	if err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	return nil
}

// hasJournal reports whether a directory has files of a journal.
func hasJournal(fsys vfs.FS, dir string) (bool, error) {
	names, err := fsys.List(dir)
	if err != nil {
		return false, fmt.Errorf("cluster: %w", err)
	}
	return slices.ContainsFunc(names, func(n string) bool { return strings.HasSuffix(n, ".wal") }), nil
}

// appliedOf returns the last entry whose facts are in a journal, as that says.
func appliedOf(fsys vfs.FS, dir string) (raftlog.Position, error) {
	_, at, err := journal.ReadApplied(fsys, dir)
	return raftlog.Position{Index: at.Index, Term: at.Term}, err
}

// Release makes the journal of the last member, which does not run, that of a single
// server.
func Release(fsys vfs.FS, dir string) error {
	_, err := journal.Release(fsys, dir)
	return err
}

// IsUnused reports whether the journal in a directory has no record: no job was ever put
// there.
func IsUnused(fsys vfs.FS, dir string) (bool, error) {
	used := errors.New("used")
	_, err := journal.Dump(fsys, dir, func(journal.Entry) error { return used })
	if errors.Is(err, used) {
		return false, nil
	}
	return err == nil, err
}

// A Group is who the members are, and in which roles, after the change of configuration
// at an index.
type Group struct {
	Conf    []byte // a ConfState of Raft
	Index   uint64
	Members []raftlog.Member
	Numbers uint64 // the highest Number that a member was ever given
}

// Join makes an empty directory that of a member which was added to a cluster. The group
// is that of a member that knows of it; see [Member.Group].
func Join(fsys vfs.FS, dir string, g Group) error {
	return makeLog(fsys, dir, g, raftlog.Position{})
}

// makeLog makes the log of a new member.
func makeLog(fsys vfs.FS, dir string, g Group, from raftlog.Position) (err error) {
	conf := new(raftpb.ConfState)
	if err := proto.Unmarshal(g.Conf, conf); err != nil {
		return fmt.Errorf("cluster: the group: %w", err)
	}
	for _, d := range []string{filepath.Dir(LogDir(dir)), LogDir(dir)} {
		if _, err := fsys.List(d); err != nil {
			if err := fsys.Mkdir(d); err != nil {
				return fmt.Errorf("cluster: %w", err)
			}
			if err := fsys.SyncDir(filepath.Dir(d)); err != nil {
				return fmt.Errorf("cluster: %w", err)
			}
		}
	}
	log, _, err := raftlog.Open(fsys, LogDir(dir), raftlog.Options{})
	if err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	if len(log.State().Members) > 0 {
		return fmt.Errorf("cluster: %s is a member's directory already", dir)
	}
	if from.Index > 0 {
		hard := &raftpb.HardState{Term: &from.Term, Vote: new(uint64), Commit: &from.Index}
		if err := errors.Join(log.Cut(from), log.Append(hard, nil)); err != nil {
			return fmt.Errorf("cluster: %w", err)
		}
	}
	if err := errors.Join(log.SetGroup(conf, g.Index, g.Members, g.Numbers), log.Sync()); err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	return nil
}

// Group returns who the members are, as this member has recorded it.
func (m *Member) Group() Group {
	s := m.log.State()
	conf, err := proto.Marshal(s.Conf)
	if err != nil {
		panic(err) // numbers and booleans
	}
	return Group{Conf: conf, Index: s.ConfIndex, Members: slices.Clone(s.Members), Numbers: s.Numbers}
}
