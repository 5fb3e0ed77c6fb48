package journal

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/journal/binlog"
	"github.com/beanpole-mq/beanpole/internal/test/memfs"
	"github.com/beanpole-mq/beanpole/internal/vfs"
	"github.com/beanpole-mq/beanpole/internal/wal"
)

// writeTheirs writes beanstalkd files that contain jobs with the given ids.
func writeTheirs(t *testing.T, fsys vfs.FS, dir string, ids ...uint64) {
	t.Helper()
	eng := engine.New(engine.Options{})
	for _, id := range ids {
		body := fmt.Appendf(nil, "%s %d%s", dir, id, strings.Repeat(" ", 200))
		eng.Restore(engine.Change{Kind: engine.JobPut, State: engine.Ready, ID: id, TTR: 1, Tube: "a", Body: body, BodyLen: len(body)})
	}
	if _, err := binlog.Write(fsys, dir, binlog.Options{FileSize: 400}, eng); err != nil {
		t.Fatal(err)
	}
}

// jobsIn opens a journal, returns its jobs, and closes it.
func jobsIn(t *testing.T, fsys vfs.FS, dir string) (jobs string, err error) {
	t.Helper()
	j := New(Options{SegmentSize: segment})
	eng := engine.New(engine.Options{Logged: true, Admit: j.Admit})
	if _, err := j.Open(fsys, dir, eng); err != nil {
		return "", err
	}
	if err := errors.Join(eng.Check(), j.Check(), j.Close()); err != nil {
		t.Fatal(err)
	}
	return jobsOf(eng), nil
}

func jobsOf(eng *engine.Engine) string {
	var all []string
	for c := range eng.Snapshots {
		all = append(all, fmt.Sprintf("%d %s", c.ID, bytes.TrimSpace(c.Body)))
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

func wantJobs(t *testing.T, fsys vfs.FS, dir, want string) {
	t.Helper()
	switch got, err := jobsIn(t, fsys, dir); {
	case err != nil:
		t.Fatal(err)
	case got != want:
		t.Fatalf("jobs are %q, want %q", got, want)
	}
}

func removeTheirs(t *testing.T, fsys vfs.FS, dir string) {
	t.Helper()
	names, err := binlog.Files(fsys, dir)
	for _, name := range names {
		err = errors.Join(err, fsys.Remove(dir+"/"+name))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// interruptAdoption returns the disk after a power cut during the adoption, when the
// journal contains only some of the jobs.
func interruptAdoption(t *testing.T, disk *memfs.FS) *memfs.FS {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	for n := 1; ; n++ {
		fsys := disk.Crash(rng) // a copy, because everything is synced
		fsys.CutAt(n)
		j := New(Options{SegmentSize: wal.MinSegmentSize})
		eng := engine.New(engine.Options{Logged: true, Admit: j.Admit})
		if _, err := j.Open(fsys, "/", eng); !errors.Is(err, memfs.ErrPowerCut) {
			t.Fatalf("power cut at %d: %v", n, err)
		}
		after, records := fsys.Crash(rng), 0
		_, err := wal.Check(after, "/", func([]byte) error { records++; return nil })
		if err == nil && records > 1 && errors.Is(CheckAdoption(after, "/"), ErrAdopting) {
			return after
		}
	}
}

// A beanstalkd that starts after an interrupted import deletes jobs and files. These jobs
// do not return.
func TestAdoptAfterBeanstalkdContinued(t *testing.T) {
	fsys := memfs.New()
	writeTheirs(t, fsys, "/", 1, 2, 3)
	fsys = interruptAdoption(t, fsys)
	removeTheirs(t, fsys, "/")
	writeTheirs(t, fsys, "/", 3, 4)
	wantJobs(t, fsys, "/", "3 / 3, 4 / 4")
	wantJobs(t, fsys, "/", "3 / 3, 4 / 4")
}

// After an interrupted import, the journal is incomplete. It is not read, and without
// beanstalkd's files no server starts.
func TestAdoptFilesMissing(t *testing.T) {
	fsys := memfs.New()
	writeTheirs(t, fsys, "/", 1, 2, 3)
	fsys = interruptAdoption(t, fsys)
	removeTheirs(t, fsys, "/")
	if jobs, err := jobsIn(t, fsys, "/"); !errors.Is(err, ErrAdopting) {
		t.Errorf("jobs %q, %v, want ErrAdopting", jobs, err)
	}
	records := 0
	if _, err := wal.Check(fsys, "/", func([]byte) error { records++; return nil }); err != nil || records == 0 {
		t.Errorf("the refused start removed the journal: %v", err)
	}
	if _, err := Load(fsys, "/", engine.New(engine.Options{}), 0); !errors.Is(err, ErrAdopting) {
		t.Errorf("Load: %v, want ErrAdopting", err)
	}
	writeTheirs(t, fsys, "/", 1, 2, 3)
	wantJobs(t, fsys, "/", "1 / 1, 2 / 2, 3 / 3")
}

// If there is already a journal, beanstalkd files next to it prevent the start. A file
// that was adopted earlier is not overwritten.
func TestAdoptOtherFiles(t *testing.T) {
	fsys := memfs.New()
	writeTheirs(t, fsys, "/", 1)
	wantJobs(t, fsys, "/", "1 / 1")

	writeTheirs(t, fsys, "/", 6)
	if jobs, err := jobsIn(t, fsys, "/"); !errors.Is(err, ErrMixed) {
		t.Fatalf("jobs %q, %v, want ErrMixed", jobs, err)
	}

	names, _ := fsys.List("/")
	for _, name := range names {
		if strings.HasSuffix(name, ".wal") {
			fsys.Remove("/" + name)
		}
	}
	wantJobs(t, fsys, "/", "6 / 6")
	for name, id := range map[string]string{"/beanstalkd-binlog.1": "/ 1 ", "/beanstalkd-binlog.1.2": "/ 6 "} {
		if b, err := vfs.ReadFile(fsys, name); err != nil || !strings.Contains(string(b), id) {
			t.Errorf("%s lacks the job %q: %v", name, id, err)
		}
	}
}
