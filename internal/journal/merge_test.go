package journal

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/journal/record"
	"github.com/beanpole-mq/beanpole/internal/vfs/memfs"
)

func newDirs(t *testing.T) *memfs.FS {
	t.Helper()
	fsys := memfs.New()
	for _, dir := range []string{"/a", "/b"} {
		if err := fsys.Mkdir(dir); err != nil {
			t.Fatal(err)
		}
	}
	return fsys
}

// Only ids that the journal may have given out are changed.
func TestMergeIDs(t *testing.T) {
	fsys := newDirs(t)
	writeTheirs(t, fsys, "/a", 3, 5)
	writeTheirs(t, fsys, "/b", 1, 3, 5, 6, 9)
	report, err := Merge(fsys, "/a", "/b", Options{})
	if err != nil || report.Jobs != 5 || report.NewIDs != 3 {
		t.Fatalf("%+v, %v, want 5 jobs, 3 with new ids", report, err)
	}
	wantJobs(t, fsys, "/a", "10 /b 1, 11 /b 3, 12 /b 5, 3 /a 3, 5 /a 5, 6 /b 6, 9 /b 9")
	f, err := fsys.Open(report.Table)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 1000)
	n, _ := f.ReadAt(b, 0)
	if got, want := string(b[:n]), "# old id\tnew id\n1\t10\n3\t11\n5\t12\n6\t6\n9\t9\n"; got != want {
		t.Errorf("the table is %q, want %q", got, want)
	}
}

// An id that only a fault can have set is not kept, and later ones do not follow it.
func TestMergeUnsafeIDs(t *testing.T) {
	fsys := newDirs(t)
	writeTheirs(t, fsys, "/b", 5, 9, engine.MaxSafeID+1, engine.MaxID)
	report, err := Merge(fsys, "/a", "/b", Options{})
	if err != nil || report.Jobs != 4 || report.NewIDs != 2 {
		t.Fatalf("%+v, %v, want 4 jobs, 2 with new ids", report, err)
	}
	wantJobs(t, fsys, "/a", fmt.Sprintf("10 /b %d, 11 /b %d, 5 /b 5, 9 /b 9", uint64(engine.MaxSafeID+1), uint64(engine.MaxID)))
	eng := engine.New(engine.Options{})
	if _, err := Load(fsys, "/a", eng, 0); err != nil || eng.LastID() != 11 {
		t.Errorf("the last id is %d, want 11; %v", eng.LastID(), err)
	}
}

// All that a job has is kept; buried jobs come after those that were buried here.
func TestMergeKeeps(t *testing.T) {
	fsys := newDirs(t)
	fill := func(dir string) {
		j := New(Options{})
		eng := engine.New(engine.Options{Logged: true, Admit: j.Admit})
		if _, err := j.Open(fsys, dir, eng); err != nil {
			t.Fatal(err)
		}
		s := eng.Open(nil)
		for range 3 {
			id, _ := eng.Put(1e9, s, engine.Spec{Pri: 7, TTR: 11}, []byte("x"))
			eng.ReserveJob(2e9, s, id)
			eng.Bury(s, id, 8)
		}
		eng.Put(3e9, s, engine.Spec{Pri: 9, Delay: 100, TTR: 12}, []byte("later"))
		eng.Pause(4e9, []byte("default"), 50)
		if err := errors.Join(j.Append(eng.TakeChanges()), j.Close()); err != nil {
			t.Fatal(err)
		}
	}
	fill("/a")
	fill("/b")
	report, err := Merge(fsys, "/a", "/b", Options{Epoch: 77})
	if err != nil || report.Jobs != 4 || len(report.LeftOut) != 1 || report.LeftOut[0].Due != 54e9 {
		t.Fatalf("%+v, %v", report, err)
	}
	eng := engine.New(engine.Options{})
	if _, err := Load(fsys, "/a", eng, 0); err != nil {
		t.Fatal(err)
	}
	for id := uint64(1); id <= 4; id++ {
		here, _ := eng.Snapshot(id)
		came, _ := eng.Snapshot(id + 4)
		if here.State == engine.Buried && came.Due <= 3 {
			t.Errorf("job %d has rank %d", came.ID, came.Due)
		}
		came.ID, came.Segment, came.Slot = here.ID, here.Segment, here.Slot
		if here.State == engine.Buried {
			came.Due -= 3
		}
		if jobLine(here) != jobLine(came) {
			t.Errorf("%s, want %s", jobLine(came), jobLine(here))
		}
	}
	s := eng.Open(nil)
	var order []uint64
	for range 6 {
		j, _ := eng.PeekState(s, engine.Buried)
		order = append(order, j.ID)
		eng.Kick(0, s, 1)
	}
	if want := []uint64{1, 2, 3, 5, 6, 7}; !slices.Equal(order, want) {
		t.Errorf("buried jobs come in the order %v, want %v", order, want)
	}
}

func jobLine(c engine.Change) string { return string(record.Append(nil, &c, 0)) + string(c.Body) }

// A merge for which the disk has no room leaves nothing, and the disk
// has room to undo it.
func TestMergeWithoutRoom(t *testing.T) {
	disk := newDirs(t)
	var ids []uint64
	for id := range uint64(400) {
		ids = append(ids, id+1)
	}
	writeTheirs(t, disk, "/b", ids...)
	writeTheirs(t, disk, "/a", 1000)
	wantJobs(t, disk, "/a", "1000 /a 1000")
	used, refused := disk.Used(), 0
	fsys := disk
	for limit := used; limit < used+1<<20; limit += 4096 {
		fsys = disk.Crash(rand.New(rand.NewPCG(1, 2))) // a copy: all is synced
		fsys.SetLimit(limit)
		_, err := Merge(fsys, "/a", "/b", Options{SegmentSize: 4096})
		if err == nil {
			break
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
		refused++
		j := New(Options{SegmentSize: 4096})
		eng := engine.New(engine.Options{Logged: true, Admit: j.Admit})
		if _, err := j.Open(fsys, "/a", eng); err != nil {
			t.Fatalf("start with %d bytes on a full disk: %v", limit-used, err)
		}
		if got := jobsOf(eng); got != "1000 /a 1000" {
			t.Fatalf("jobs are %q", got)
		}
		if err := errors.Join(eng.Check(), j.Check(), j.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if refused < 10 {
		t.Errorf("only %d merges were refused", refused)
	}
	if jobs, err := jobsIn(t, fsys, "/a"); err != nil || strings.Count(jobs, "/b") != 400 {
		t.Errorf("%d jobs were merged, %v", strings.Count(jobs, "/b"), err)
	}
}
