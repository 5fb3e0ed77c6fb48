package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/cluster"
	"github.com/beanpole-mq/beanpole/internal/cluster/control"
	"github.com/beanpole-mq/beanpole/internal/cluster/directory"
	"github.com/beanpole-mq/beanpole/internal/cluster/raftlog"
	"github.com/beanpole-mq/beanpole/internal/cluster/transport"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/journal"
	"github.com/beanpole-mq/beanpole/internal/test/faultfs"
	"github.com/beanpole-mq/beanpole/internal/vfs"
	"github.com/beanpole-mq/beanpole/internal/wal"
)

// A trial is a command on a directory that was created for it.
type trial struct {
	args   []string
	dir    string
	single bool // afterwards the directory belongs to a single server
	joins  bool // the member has received the jobs from other members
}

// A command that fails or is killed at any of its file operations can be repeated. The
// repeated command finishes, and no job is lost.
func TestInterrupted(t *testing.T) {
	fsys = fast
	t.Cleanup(func() { fsys = vfs.OS })
	home := newHome(t)
	for name, prepare := range map[string]func(t *testing.T) trial{
		"init": func(t *testing.T) trial {
			dir := withJob(t)
			return trial{args: []string{"init", dir, "--listen", home.address}, dir: dir}
		},
		"recover": func(t *testing.T) trial {
			dir := withJob(t)
			run(t, "init", dir, "--listen", home.address)
			d, err := directory.Open(fast, dir)
			must(t, err)
			log, err := raftlog.Open(fast, cluster.LogDir(dir), raftlog.Options{})
			must(t, err)
			with := log.State().Membership
			with.Members = append(with.Members, raftlog.MemberInfo{ID: 2, Address: "10.0.0.2:1", Number: 2}, raftlog.MemberInfo{ID: 3, Address: "10.0.0.3:1", Number: 3})
			with.Roles.Voters = append(with.Roles.Voters, 2, 3)
			must(t, errors.Join(log.SetMembership(with), log.Sync(), log.Close(), d.SetContacts([]string{"10.0.0.2:1", "10.0.0.3:1"})))
			return trial{args: []string{"recover", "--force-new-cluster", dir}, dir: dir}
		},
		"leave": func(t *testing.T) trial {
			dir := withJob(t)
			run(t, "init", dir, "--listen", home.address)
			d, err := directory.Open(fast, dir)
			must(t, err)
			must(t, d.Leave()) // the running member would retry failing operations forever
			return trial{args: []string{"leave", dir}, dir: dir, single: true}
		},
		"join": func(t *testing.T) trial {
			dir := filepath.Join(t.TempDir(), "queue")
			return trial{args: []string{"join", dir, home.address, "--join-token-file", home.token(t), "--listen", freshAddress()}, dir: dir, joins: true}
		},
		"replace": func(t *testing.T) trial {
			old := filepath.Join(t.TempDir(), "old")
			listen := freshAddress()
			run(t, "join", old, home.address, "--join-token-file", home.token(t), "--listen", listen)
			d, err := directory.Open(fast, old)
			must(t, err)
			dir := filepath.Join(t.TempDir(), "queue")
			return trial{args: []string{"join", "--replace", fmt.Sprint(d.ID), dir, home.address, "--join-token-file", home.token(t), "--listen", listen}, dir: dir, joins: true}
		},
		"rejoin": func(t *testing.T) trial {
			dir := filepath.Join(t.TempDir(), "queue")
			run(t, "join", dir, home.address, "--join-token-file", home.token(t), "--listen", freshAddress())
			must(t, os.WriteFile(filepath.Join(dir, "beanpole.0000000000000001.wal"), []byte("damaged"), 0o600))
			return trial{args: []string{"rejoin", dir}, dir: dir, joins: true}
		},
	} {
		t.Run(name, func(t *testing.T) {
			count := faultfs.New(fast, faultfs.Fault{Op: faultfs.Any, N: 1 << 30})
			tr := prepare(t)
			fsys = count
			err := execute(t, tr.args...)
			fsys = fast
			must(t, err)
			home.check(t, tr)
			calls := count.Seen()
			if calls < 10 {
				t.Fatalf("%d file operations", calls)
			}
			for n := 1; n <= calls; n++ {
				for i, fault := range []faultfs.Fault{
					{Op: faultfs.Any, N: n},
					{Op: faultfs.Any, N: n, How: faultfs.After},
					{Op: faultfs.Any, N: n, How: faultfs.Short, Err: syscall.ENOSPC},
					{Op: faultfs.Any, N: n, Sticky: true}, // as a kill
				} {
					if testing.Short() && (n%3 != 0 || n%4 != i) {
						continue
					}
					tr := prepare(t)
					fsys = faultfs.New(fast, fault)
					failed := execute(t, tr.args...)
					fsys = fast
					if failed != nil {
						err = home.again(t, tr)
					}
					switch {
					case failed == nil, err == nil:
					case strings.Contains(err.Error(), "already belongs to a member"), tr.single && errors.Is(err, directory.ErrNone):
						// all was done
					default:
						t.Fatalf("%v: %v\nagain: %v", fault, failed, err)
					}
					home.check(t, tr)
					if t.Failed() {
						t.Fatalf("%v: %v\nagain: %v", fault, failed, err)
					}
				}
			}
		})
	}
}

// fast is the operating system's file system without syncs.
var fast vfs.FS = fastFS{vfs.OS}

type fastFS struct{ vfs.FS }

func (fastFS) SyncDir(string) error                      { return nil }
func (f fastFS) Create(name string) (vfs.File, error)    { return quick(f.FS.Create(name)) }
func (f fastFS) OpenWrite(name string) (vfs.File, error) { return quick(f.FS.OpenWrite(name)) }

func quick(f vfs.File, err error) (vfs.File, error) { return fastFile{f}, err }

type fastFile struct{ vfs.File }

func (fastFile) Sync() error                 { return nil }
func (f fastFile) Preallocate(n int64) error { return f.Truncate(n) } // only of new files, here

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func run(t *testing.T, args ...string) {
	t.Helper()
	must(t, execute(t, args...))
}

var addresses int

// freshAddress returns an address that no member has used and on which nothing listens.
func freshAddress() string {
	addresses++
	return fmt.Sprintf("127.%d.%d.%d:1", 1+addresses>>16, addresses>>8&255, addresses&255)
}

// withJob returns a directory with the journal of a single server with one job.
func withJob(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	j := journal.New(journal.Options{SegmentSize: 1 << 20})
	eng := engine.New(engine.Options{Logged: true})
	_, err := j.Open(fast, dir, eng)
	must(t, err)
	eng.PutInto(0, []byte("mail"), engine.Spec{TTR: 60}, []byte("a job"))
	must(t, j.Append(eng.TakeChanges()))
	_, err = j.Flush()
	must(t, errors.Join(err, j.Close()))
	return dir
}

// A home is a cluster with one member, which others join.
type home struct {
	control   *control.Control
	directory *directory.Directory
	address   string
}

func newHome(t *testing.T) *home {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	dir := t.TempDir()
	h := &home{address: l.Addr().String()}
	run(t, "init", dir, "--listen", h.address)
	h.directory, err = directory.Open(fast, dir)
	must(t, err)
	h.control = &control.Control{Directory: h.directory}
	tr := transport.New(transport.Options{
		Listener: l, Credentials: h.directory.Credentials, Request: h.control.Request,
		Join: func(ctx context.Context, _ net.Addr, body []byte) ([]byte, error) { return h.control.Join(ctx, body) },
	})
	m, err := cluster.Open(cluster.Options{FS: fast, Dir: dir, Self: raftlog.MemberInfo{ID: h.directory.ID, Address: h.address}, Transport: transport.NoPeers{}})
	must(t, err)
	h.control.Member, h.control.Transport = m, tr
	tr.Start(m)
	t.Cleanup(func() {
		tr.Close()
		must(t, m.Close())
	})
	return h
}

func (h *home) token(t *testing.T) (file string) {
	t.Helper()
	token, err := h.directory.NewToken()
	must(t, err)
	file = filepath.Join(t.TempDir(), "token")
	must(t, os.WriteFile(file, []byte(token.String()), 0o600))
	return file
}

// again repeats a command. If the token of a join was used, it is repeated with a new
// token, as its error advises.
func (h *home) again(t *testing.T, tr trial) error {
	t.Helper()
	err := execute(t, tr.args...)
	if err == nil || !errors.Is(err, directory.ErrToken) && !strings.Contains(err.Error(), "unknown token") {
		return err
	}
	for i, arg := range tr.args {
		if arg == "--join-token-file" {
			tr.args[i+1] = h.token(t)
		}
	}
	return execute(t, tr.args...)
}

// check checks the result of a command.
func (h *home) check(t *testing.T, tr trial) {
	t.Helper()
	is, err := directory.Exists(fast, tr.dir)
	if err != nil || is == tr.single {
		t.Errorf("it is a member's: %v, %v", is, err)
	}
	if !tr.joins {
		job := false
		_, err := journal.Records(fast, tr.dir, func(_ wal.Pos, c *engine.Change) error {
			job = job || c.ID == 1
			return nil
		})
		if err != nil || !job {
			t.Errorf("the job exists: %v, %v", job, err)
		}
	}
	if tr.single {
		if _, at, err := journal.ReadApplied(fast, tr.dir); err != nil || at != (journal.Applied{}) {
			t.Errorf("a single server can serve the journal: %v, %v", at, err)
		}
		return
	}
	d, err := directory.Open(fast, tr.dir)
	must(t, err)
	found, err := cluster.Inspect(fast, tr.dir)
	must(t, err)
	self := 0
	for _, m := range found.Members {
		if m.ID == d.ID {
			self++
		}
	}
	if self != 1 || !tr.joins && len(found.Members) != 1 {
		t.Errorf("the log of member %d has the members %v", d.ID, found.Members)
	}
	if !tr.joins {
		return
	}
	s, err := h.control.Status()
	must(t, err)
	at := 0
	for _, m := range s.Members {
		if m.Address == d.Listen {
			at++
		}
	}
	if text, _ := json.Marshal(s.Members); at != 1 {
		t.Errorf("%d members at %s: %s", at, d.Listen, text)
	}
	for err = cluster.ErrBusy; errors.Is(err, cluster.ErrBusy); { // replacing a learner takes two steps
		changed := h.control.Member.Watch()
		if err = h.control.Member.Remove(t.Context(), d.ID); errors.Is(err, cluster.ErrBusy) {
			<-changed
		}
	}
	must(t, err)
}
