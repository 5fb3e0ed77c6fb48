package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/beanpole-mq/beanpole/internal/cluster/raftlog"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/journal"
	"github.com/beanpole-mq/beanpole/internal/test/faultfs"
	"github.com/beanpole-mq/beanpole/internal/test/memfs"
	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// journalOf creates the journal of a member with some jobs, up to an entry.
func journalOf(fsys vfs.FS, at journal.Applied, jobs ...uint64) (*journal.Journal, error) {
	j := journal.New(journal.Options{SegmentSize: 4 << 10, Member: true, Sync: time.Second})
	if _, err := j.Open(fsys, dir, engine.New(engine.Options{Logged: true})); err != nil {
		return nil, err
	}
	for _, id := range jobs {
		put := engine.Change{Kind: engine.JobPut, ID: id, Tube: "mail", State: engine.Ready, TTR: 60, Body: bytes.Repeat([]byte("x"), 3000)}
		if err := j.AppendCommitted([]engine.Change{put}, at); err != nil {
			return nil, err
		}
	}
	return j, j.Close()
}

// A lagging contains the directory of a lagging member, and the snapshot to install.
type lagging struct {
	disk    *memfs.FS
	archive []byte
}

var (
	oldRoles = &raftpb.ConfState{Voters: []uint64{1, 2}}
	newRoles = &raftpb.ConfState{Voters: []uint64{1, 3}}
)

func newLagging(t *testing.T) lagging {
	l := lagging{disk: emptyDisk()}
	log, err := raftlog.Open(l.disk, LogDir(dir), raftlog.Options{SegmentSize: 2 << 10})
	must(t, err)
	var entries []*raftpb.Entry
	for index, term := uint64(1), uint64(1); index <= 7; index++ {
		entries = append(entries, &raftpb.Entry{Index: new(index), Term: &term})
	}
	must(t, errors.Join(log.SetMembership(raftlog.Membership{Roles: oldRoles, RolesIndex: 3, LastNumber: 2}), log.Append(nil, entries), log.Sync(), log.Close()))
	_, err = journalOf(l.disk, journal.Applied{Index: 5, Term: 1, Stamp: 1}, 1, 2, 3)
	must(t, err)
	must(t, l.disk.SyncDir(dir))
	j, err := journalOf(memfs.New(), journal.Applied{Index: 9, Term: 2, Stamp: 2}, 4, 5, 6, 7)
	must(t, err)
	b, err := j.Backup()
	must(t, err)
	defer b.Close()
	var archive bytes.Buffer
	must(t, b.Write(&archive))
	l.archive = archive.Bytes()
	return l
}

// install installs a snapshot as a member does.
func (l lagging) install(fsys vfs.FS) error {
	at, err := journal.ReadSnapshot(staged{fsys}, dir, bytes.NewReader(l.archive))
	if err != nil {
		return err
	}
	cut := raftlog.Position{Index: at.Index, Term: at.Term}
	if err := commitSnapshot(fsys, dir, cut); err != nil {
		return err
	}
	log, err := raftlog.Open(fsys, LogDir(dir), raftlog.Options{SegmentSize: 2 << 10})
	if err != nil {
		return err
	}
	err = errors.Join(log.Restore(cut, raftlog.Membership{Roles: newRoles, RolesIndex: cut.Index, LastNumber: 3}), log.Sync())
	if log.Close(); err != nil {
		return err
	}
	return settleSnapshot(fsys, dir, cut)
}

// start performs the steps of a start.
func start(fsys vfs.FS) error {
	log, err := raftlog.Open(fsys, LogDir(dir), raftlog.Options{SegmentSize: 2 << 10})
	if err != nil {
		return err
	}
	defer log.Close()
	return settleSnapshot(fsys, dir, log.State().Cut)
}

// checkInstalled checks a directory after a start, and reports whether the snapshot is
// installed.
func checkInstalled(fsys vfs.FS) (installed bool, err error) {
	log, err := raftlog.Open(fsys, LogDir(dir), raftlog.Options{ReadOnly: true})
	if err != nil {
		return false, err
	}
	defer log.Close()
	eng := engine.New(engine.Options{})
	if _, err := journal.Load(fsys, dir, eng, 0); err != nil {
		return false, err
	}
	_, at, err := journal.ReadApplied(fsys, dir)
	if err != nil {
		return false, err
	}
	var jobs []uint64
	for c := range eng.Snapshots {
		jobs = append(jobs, c.ID)
	}
	slices.Sort(jobs)
	state := log.State()
	is := fmt.Sprintf("entry %d, jobs %v, the log from %v to %v, roles %v of %d", at.Index, jobs, state.Cut, log.Last(), state.Roles.GetVoters(), state.RolesIndex)
	switch is {
	case "entry 5, jobs [1 2 3], the log from {0 0} to {7 1}, roles [1 2] of 3":
	case "entry 9, jobs [4 5 6 7], the log from {9 2} to {9 2}, roles [1 3] of 9":
		installed = true
	default:
		return false, errors.New(is)
	}
	names, err := staged{fsys}.List(dir)
	s, markerErr := readMarker(fsys, dir)
	if len(names) > 0 || s != nil {
		err = fmt.Errorf("%v and a seal %v are left", names, s)
	}
	return installed, errors.Join(err, markerErr)
}

// Any call of the disk can fail, together with all later calls, and a power failure can
// keep any part of the writes. The next start finds either the old queue with the old
// log, or the new queue with the new log. The same holds if that start is interrupted.
func TestCrashWhileInstalling(t *testing.T) {
	outcomes := map[bool]int{}
	for n := 1; ; n++ {
		l := newLagging(t)
		fs := faultfs.New(l.disk, faultfs.Fault{Op: faultfs.Change, N: n, Sticky: true})
		failed := l.install(fs) != nil
		for luck := range uint64(2) {
			left := l.disk.Crash(rand.New(rand.NewPCG(luck, uint64(n))))
			for k := 1; ; k++ {
				again := left.Crash(nil)
				fs := faultfs.New(again, faultfs.Fault{Op: faultfs.Change, N: k, Sticky: true})
				interrupted := start(fs) != nil
				again = again.Crash(rand.New(rand.NewPCG(luck, uint64(k))))
				if err := start(again); err != nil {
					t.Fatalf("call %d, luck %d, call %d of the start: %v", n, luck, k, err)
				}
				installed, err := checkInstalled(again)
				if err != nil {
					t.Fatalf("call %d, luck %d, call %d of the start: %v", n, luck, k, err)
				}
				if outcomes[installed]++; !interrupted {
					break
				}
			}
		}
		if !failed {
			break
		}
	}
	if outcomes[false] == 0 || outcomes[true] == 0 {
		t.Errorf("%v", outcomes)
	}
	t.Logf("%d starts with the old queue, %d with the new one", outcomes[false], outcomes[true])
}

// A running member continues an installation when its disk works again.
func TestInstallIsRetried(t *testing.T) {
	for n := 1; ; n++ {
		l := newLagging(t)
		fs := faultfs.New(l.disk, faultfs.Fault{Op: faultfs.Change, N: n})
		err := l.install(fs)
		for tries := 0; err != nil && tries < 3; tries++ {
			if log, openErr := raftlog.Open(fs, LogDir(dir), raftlog.Options{SegmentSize: 2 << 10}); openErr == nil {
				cut := log.State().Cut
				log.Close()
				err = settleSnapshot(fs, dir, cut)
			}
		}
		if err != nil {
			t.Fatalf("call %d: %v", n, err)
		}
		if _, err := checkInstalled(l.disk); err != nil {
			t.Fatalf("call %d: %v", n, err)
		}
		if fs.Fired() == 0 {
			break
		}
	}
}
