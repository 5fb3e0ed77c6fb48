package cluster

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/beanpole-mq/beanpole/internal/cluster/raftlog"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/test/memfs"
)

// When the Raft log fills the disk, it is cut, even if an absent member still needs it.
// That member then receives the whole queue. The log is also cut if it leaves no space
// for the journal.
func TestLogFillsDisk(t *testing.T) {
	if testing.Short() {
		t.Skip("long under the race detector")
	}
	for name, limit := range map[string]func(m *node){
		"the log has no room": func(m *node) {
			m.trouble.fill(func(name string) bool {
				files, err := m.disk.List(filepath.Dir(name))
				return isOfLog(name) && (err != nil || len(files) >= 8)
			})
		},
		"nothing has room": func(m *node) { m.disk.SetLimit(600 << 10) },
	} {
		t.Run(name, func(t *testing.T) {
			set := func(sim *simulation) {
				sim.small()
				sim.opt.Keep = 1 << 20 // more than fits on the disks
			}
			inSimulationOf(t, 3, set, func(t *testing.T, sim *simulation) {
				time.Sleep(time.Second)
				l := sim.leader()
				away := sim.nodes[l.opt.Self.ID%3]
				away.kill(false)
				for _, m := range sim.nodes {
					if m != away {
						limit(m)
					}
				}
				const puts = 300
				for range puts {
					if _, err := sim.put(sim.leader(), "mail", engine.Spec{TTR: 60}, large); err != nil {
						time.Sleep(100 * time.Millisecond) // another member can become the leader
					}
					sim.delete(sim.leader()) // otherwise, the journal fills the disk
				}
				if n := sim.acknowledged(); n < puts*2/3 {
					t.Errorf("%d puts of %d were acknowledged", n, puts)
				}
				if n := sim.logged("of the cluster's log ahead of time"); n > 4 {
					t.Errorf("%d log lines about the full disk", n)
				}
				away.boot()
			})
		})
	}
}

// A leader whose journal has no room for jobs cuts the log even if an absent member still
// needs it: the log occupies the space that the journal needs.
func TestLogYieldsSpaceToJournal(t *testing.T) {
	set := func(sim *simulation) {
		sim.small()
		sim.opt.Keep, sim.opt.Log.SegmentSize = 2<<20, 256<<10 // so that it does not soon need another one
	}
	inSimulationOf(t, 3, set, func(t *testing.T, sim *simulation) {
		time.Sleep(time.Second)
		l := sim.leader()
		away := sim.nodes[l.opt.Self.ID%3]
		away.kill(false)
		for range 150 {
			_, err := sim.put(l, "mail", engine.Spec{TTR: 60}, large)
			sim.must(errors.Join(err, sim.delete(l)))
		}
		time.Sleep(time.Second)
		const size, left = 4 << 20, 32 << 10
		for _, m := range sim.nodes {
			if m != away {
				m.disk.SetLimit(size)
				free, err := m.disk.Free(dir)
				sim.must(err)
				m.disk.SetLimit(size - free + left)
			}
		}
		refused := 0
		for began := time.Now(); sim.acknowledged() < 200 && time.Since(began) < time.Minute; {
			if _, err := sim.put(sim.leader(), "mail", engine.Spec{TTR: 60}, large); err != nil {
				refused++
				time.Sleep(100 * time.Millisecond)
			}
		}
		if n := sim.acknowledged(); n < 200 {
			t.Errorf("only %d puts were acknowledged, %d were refused", n-150, refused)
		}
		away.boot()
	})
}

// makeRoom cuts the log before the first role change that is not recorded yet. A later
// cut would lose the change in a crash.
func TestMakeRoomKeepsRoles(t *testing.T) {
	log, err := raftlog.Open(memfs.New(), "/", raftlog.Options{SegmentSize: 4096})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	for index := range uint64(40) {
		if err := log.Append(nil, []*raftpb.Entry{{Index: new(index + 1), Term: new(uint64(1)), Data: make([]byte, 500)}}); err != nil {
			t.Fatal(err)
		}
	}
	m := &Member{log: log}
	m.opt.setDefaults()
	d := newDisk(m)
	d.setMembership(raftlog.Membership{RolesIndex: 20})
	d.cut(40, 0, 0)
	d.makeRoom()
	if cut := log.State().Cut.Index; cut != 19 {
		t.Errorf("the log is cut at %d, want 19", cut)
	}
}
