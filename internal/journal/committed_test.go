package journal

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/journal/record"
	"github.com/beanpole-mq/beanpole/internal/test/memfs"
	"github.com/beanpole-mq/beanpole/internal/vfs"
	"github.com/beanpole-mq/beanpole/internal/wal"
)

// sent returns changes as another member receives them.
func sent(t testing.TB, changes []engine.Change) (got []engine.Change) {
	t.Helper()
	for i := range changes {
		c, err := record.Decode(append(record.Append(nil, &changes[i], epoch), changes[i].Body...), epoch, make(map[string]string))
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, c)
	}
	return got
}

func openMember(t testing.TB, fsys vfs.FS, dir string) (*Journal, *engine.Engine) {
	t.Helper()
	j := New(Options{SegmentSize: segment, Epoch: epoch, Member: true, Sync: 1})
	eng := engine.New(engine.Options{Logged: true, Admit: j.Admit})
	if _, err := j.Open(fsys, dir, eng); err != nil {
		t.Fatal(err)
	}
	return j, eng
}

// A lateLeader is a leader whose entries are appended two turns late.
type lateLeader struct {
	*bench
	entries [][]engine.Change
	at      Applied
}

func newLateLeader(t *testing.T, disk *memfs.FS) *lateLeader {
	t.Helper()
	j, eng := openMember(t, disk, "/")
	return &lateLeader{bench: &bench{tb: t, log: j, eng: eng, s: eng.Open(nil)}}
}

// turn executes do, and appends the changes of the turn before the previous one.
func (l *lateLeader) turn(do func()) {
	l.tb.Helper()
	l.now += int64(cleanPause)
	do()
	changes := l.eng.TakeChanges()
	l.entries = append(l.entries, sent(l.tb, changes))
	l.log.Stage(changes)
	if len(l.entries) > 2 {
		l.append(l.entries[0])
		l.entries = l.entries[1:]
	}
	if err := errors.Join(l.log.files.Flush(), l.log.files.Sync()); err != nil {
		l.tb.Fatal(err)
	}
	l.log.Housekeep(l.now)
	l.log.preparer.wait()
	l.log.syncer.wait()
}

func (l *lateLeader) append(changes []engine.Change) {
	l.tb.Helper()
	l.at = Applied{Index: l.at.Index + 1, Term: 1, Stamp: l.now}
	if err := l.log.AppendCommitted(changes, l.at); err != nil {
		l.tb.Fatal(err)
	}
}

// A job that has an uncommitted change in every turn blocks neither cleaning nor
// rewriting. Both write the job's last committed state.
func TestHotJob(t *testing.T) {
	disk := memfs.New()
	l := newLateLeader(t, disk)
	var hot uint64
	l.turn(func() { hot = l.put(engine.Spec{}, 100) })
	begins := l.log.Stats().Oldest
	buried := false
	toggle := func() {
		l.turn(func() {
			if buried = !buried; buried {
				l.eng.ReserveJob(l.now, l.s, hot)
				l.eng.Bury(l.s, hot, uint32(l.now))
			} else {
				l.eng.KickJob(l.now, hot)
			}
			l.eng.Delete(l.s, l.put(engine.Spec{}, 1000))
		})
	}
	for range 500 {
		toggle()
	}
	if st := l.log.Stats(); st.Oldest < begins+3 {
		t.Errorf("cleaning does not continue: the oldest segment is %d, was %d", st.Oldest, begins)
	}
	l.log.Rewrite()
	for range 51 {
		toggle()
	}
	if l.log.rewrite != nil {
		t.Error("the rewrite does not end")
	}
	if err := l.log.Check(); err != nil {
		t.Fatal(err)
	}
	_, eng := openMember(t, disk.Crash(rand.New(rand.NewPCG(1, 2))), "/")
	c, ok := eng.Snapshot(hot)
	now, _ := l.eng.Snapshot(hot)
	if !ok || c.State != engine.Buried || now.State != engine.Buried || c.Pri == now.Pri {
		t.Errorf("after a restart the job is %+v; in the engine, which is two turns ahead, it is %+v", c, now)
	}
}

// On a full disk, a follower applies deletions, but stops at the first put. When the disk
// has space again, it continues.
func TestFullFollower(t *testing.T) {
	disk := memfs.New()
	j, eng := openMember(t, disk, "/")
	put := func(id uint64) []engine.Change {
		return sent(t, []engine.Change{
			{Kind: engine.JobPut, State: engine.Ready, ID: id, TTR: 1, Tube: "default", Body: make([]byte, 5000)},
			{Kind: engine.JobState, State: engine.Ready, ID: id, TTR: 1, Counts: engine.Counts{Kicks: uint32(id)}},
		})
	}
	disk.SetLimit(disk.Used() + 10*segment)
	at := Applied{Term: 1}
	for {
		at.Index++
		if err := j.AppendCommitted(put(at.Index), at); err != nil {
			at.Index--
			break
		}
	}
	if at.Index == 0 || j.Applied() != at {
		t.Fatalf("applied %+v, want %+v", j.Applied(), at)
	}
	if err := j.Check(); err != nil {
		t.Fatal(err)
	}
	full := at
	full.Index++
	disk.SetLimit(0)
	if err := j.AppendCommitted(put(full.Index), full); err != nil {
		t.Fatal(err)
	}
	disk.SetLimit(1)
	at = full
	for id := range full.Index {
		at.Index++
		if err := j.AppendCommitted([]engine.Change{{Kind: engine.JobDeleted, ID: id + 1}}, at); err != nil {
			t.Fatalf("on a full disk job %d cannot be deleted: %v", id+1, err)
		}
	}
	if st := eng.Stats(); st.Ready != 0 || j.Applied() != at {
		t.Errorf("%d jobs are left, and applied is %+v, want %+v", st.Ready, j.Applied(), at)
	}
	if err := errors.Join(j.Check(), j.Close()); err != nil {
		t.Error(err)
	}
}

// A single server refuses a member's journal and does not change it until Release
// converts it.
func TestLeaveCluster(t *testing.T) {
	disk := memfs.New()
	j, _ := openMember(t, disk, "/")
	at := Applied{Index: 7, Term: 3, Stamp: epoch}
	if err := errors.Join(j.AppendCommitted(nil, at), j.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := New(Options{}).Open(disk, "/", engine.New(engine.Options{})); !errors.Is(err, ErrOfMember) {
		t.Fatalf("a single server opened it: %v", err)
	}
	if _, last, err := ReadApplied(disk, "/"); err != nil || last != at {
		t.Fatalf("after that: %+v, %v", last, err)
	}
	for range 2 { // the second call has no effect
		if _, err := Release(disk, "/"); err != nil {
			t.Fatal(err)
		}
	}
	single := New(Options{SegmentSize: segment})
	if _, err := single.Open(disk, "/", engine.New(engine.Options{Logged: true, Admit: single.Admit})); err != nil {
		t.Fatal(err)
	}
	if err := single.Close(); err != nil {
		t.Fatal(err)
	}
	again, _ := openMember(t, disk, "/")
	if again.Applied() != (Applied{}) {
		t.Errorf("the journal of a cluster of one has %+v", again.Applied())
	}
	again.Close()
}

// The last Applied survives a rewrite, for any position of its record in a segment.
func TestAppliedIsRewritten(t *testing.T) {
	for n := range uint64(40) {
		disk := memfs.New()
		j := New(Options{SegmentSize: wal.MinSegmentSize, Epoch: epoch, Member: true, Sync: 1})
		if _, err := j.Open(disk, "/", engine.New(engine.Options{Logged: true})); err != nil {
			t.Fatal(err)
		}
		at := Applied{Term: 3, Stamp: epoch}
		for at.Index <= n {
			at.Index++
			if err := j.AppendCommitted(nil, at); err != nil {
				t.Fatal(err)
			}
		}
		j.Rewrite()
		for now := int64(0); j.rewrite != nil; now += healPause {
			j.Housekeep(now)
			j.Flush()
			j.syncer.wait()
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		if _, last, err := ReadApplied(disk, "/"); err != nil || last != at {
			t.Fatalf("it has %+v, want %+v: %v", last, at, err)
		}
	}
}
