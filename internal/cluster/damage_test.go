package cluster

import (
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/internal/cluster/raftlog"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/journal"
	"github.com/beanpole-mq/beanpole/internal/test/memfs"
)

// A member that has lost its log, or a journal without which its log is useless, does not
// start, and Inspect reports the same error.
func TestLost(t *testing.T) {
	self := raftlog.MemberInfo{ID: 1, Address: "10.0.0.1:11400"}
	for name, test := range map[string]struct {
		make func(t *testing.T, fs *memfs.FS)
		want string
	}{
		"log": {func(t *testing.T, fs *memfs.FS) {
			must(t, Init(fs, dir, self))
			names, err := fs.List(LogDir(dir))
			must(t, err)
			for _, name := range names {
				if strings.HasSuffix(name, ".wal") {
					must(t, fs.Remove(filepath.Join(LogDir(dir), name)))
				}
			}
		}, "the cluster's log is missing: /cluster/log has no members"},
		"journal": {func(t *testing.T, fs *memfs.FS) {
			must(t, Init(fs, dir, self))
			log, err := raftlog.Open(fs, LogDir(dir), raftlog.Options{})
			must(t, err)
			must(t, log.Cut(raftlog.Position{Index: 7, Term: 2}))
			must(t, errors.Join(log.Sync(), log.Close()))
		}, "the journal ends with entry 0, but the cluster's log starts after entry 7"},
		"journal of a single server": {func(t *testing.T, fs *memfs.FS) {
			j := journal.New(journal.Options{})
			_, err := j.Open(fs, dir, engine.New(engine.Options{Logged: true}))
			must(t, errors.Join(err, j.Close()))
			must(t, Init(fs, dir, self))
			names, err := fs.List(dir)
			must(t, err)
			for _, name := range names {
				if strings.HasSuffix(name, ".wal") {
					must(t, fs.Remove(filepath.Join(dir, name)))
				}
			}
		}, "the journal ends with entry 0, but the cluster's log starts after entry 1"},
	} {
		t.Run(name, func(t *testing.T) {
			fs := emptyDisk()
			test.make(t, fs)
			_, inspected := Inspect(fs, dir)
			_, opened := Open(Options{FS: fs, Dir: dir, Self: self})
			for _, err := range []error{inspected, opened} {
				if !errors.Is(err, ErrDamaged) || !strings.HasSuffix(err.Error(), test.want) {
					t.Errorf("%v", err)
				}
			}
		})
	}
}

// If a leader cannot read an entry that another member needs, it stops with that error.
// The others continue.
func TestUnreadableLog(t *testing.T) {
	inSmallSimulation(t, func(t *testing.T, sim *simulation) {
		time.Sleep(time.Second)
		l := sim.leader()
		away := sim.nodes[l.opt.Self.ID%3]
		away.kill(false)
		sim.mustPut(l, 20, large[:1<<10]) // more than stays in memory, and less than the log keeps for the member
		m := sim.nodeOf(l)
		m.trouble.spoil(isOfLog)
		away.boot()
		sim.until("the leader has ended", func() bool { return errors.Is(l.Err(), syscall.EIO) })
		m.trouble.spoil(nil)
		m.kill(false)
		m.boot()
		sim.mustPut(sim.leader(), 1, "after it")
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// An Init with a single server's journal that was interrupted at its very end can be
// repeated.
func TestInitAgain(t *testing.T) {
	fs, self := emptyDisk(), raftlog.MemberInfo{ID: 1, Address: "10.0.0.1:11400"}
	j := journal.New(journal.Options{})
	_, err := j.Open(fs, dir, engine.New(engine.Options{Logged: true}))
	must(t, errors.Join(err, j.Close(), Init(fs, dir, self)))
	names, err := fs.List(LogDir(dir))
	must(t, err)
	for _, name := range names { // as a command does before it restarts
		must(t, fs.Remove(filepath.Join(LogDir(dir), name)))
	}
	must(t, Init(fs, dir, self))
	if i, err := Inspect(fs, dir); err != nil || i.Applied != i.Cut || i.Cut.Index != 1 {
		t.Errorf("%+v, %v", i, err)
	}
}
