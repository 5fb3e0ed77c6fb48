package journal

import (
	"errors"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/record"
	"github.com/beanpole-mq/beanpole/internal/vfs"
	"github.com/beanpole-mq/beanpole/internal/vfs/memfs"
)

// sent returns changes as another member gets them.
func sent(t *testing.T, changes []engine.Change) (got []engine.Change) {
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

func openMember(t *testing.T, fsys vfs.FS, dir string) (*Journal, *engine.Engine) {
	t.Helper()
	j := New(Options{SegmentSize: segment, Epoch: epoch, Member: true, Sync: 1})
	eng := engine.New(engine.Options{Logged: true, Admit: j.Admit})
	if _, err := j.Open(fsys, dir, eng); err != nil {
		t.Fatal(err)
	}
	return j, eng
}

// A leader, a follower and both after a restart have what is committed.
func TestCommitted(t *testing.T) {
	disks := []*memfs.FS{memfs.New(), memfs.New()}
	leader, eng := openMember(t, disks[0], "/")
	follower, copied := openMember(t, disks[1], "/")
	s := eng.Open(nil)
	body := []byte("body")
	id, _ := eng.Put(1, s, engine.Spec{TTR: 1}, body)
	gone, _ := eng.Put(2, s, engine.Spec{TTR: 1}, nil)
	eng.Delete(s, gone)
	eng.Use(s, []byte("mail"))
	eng.Pause(3, []byte("mail"), 60)
	first := eng.TakeChanges()
	facts := sent(t, first)
	leader.Executed(first)
	eng.ReserveJob(4, s, id)
	eng.Bury(s, id, 9)
	second := eng.TakeChanges()
	more := sent(t, second)
	leader.Executed(second)
	at := Applied{Index: 1, Term: 1, Stamp: epoch + 3}
	check := func() {
		t.Helper()
		if err := errors.Join(leader.Check(), follower.Check(), eng.Check(), copied.Check()); err != nil {
			t.Fatal(err)
		}
	}
	check()
	commit := func(facts []engine.Change, at Applied) {
		t.Helper()
		if err := errors.Join(leader.AppendCommitted(facts, at), follower.AppendCommitted(sent(t, facts), at)); err != nil {
			t.Fatal(err)
		}
		check()
	}
	restart := func(disk *memfs.FS, dir string, want uint64, at Applied) {
		t.Helper()
		j, e := openMember(t, disk, dir)
		if got := e.Digest(100, epoch); got != want || j.Applied() != at || j.Synced() != at {
			t.Errorf("after a restart the journal has %+v, %+v of it durable, want %+v; the sum is %x, want %x", j.Applied(), j.Synced(), at, got, want)
		}
		if err := errors.Join(j.Check(), j.Close()); err != nil {
			t.Error(err)
		}
	}
	commit(facts, at)
	if got := leader.Applied(); got != at {
		t.Errorf("applied %+v, want %+v", got, at)
	}
	if got := leader.Synced(); got != (Applied{}) {
		t.Errorf("durable is %+v, before a sync", got)
	}
	deposed := copied.Digest(100, epoch)
	if err := leader.Close(); err != nil {
		t.Fatal(err)
	}
	restart(disks[0], "/", deposed, at)

	at.Index++
	if err := follower.AppendCommitted(more, at); err != nil {
		t.Fatal(err)
	}
	if got, want := copied.Digest(100, epoch), eng.Digest(100, epoch); got != want {
		t.Errorf("the sums of the leader and of who follows it are %x and %x", want, got)
	}
	if err := follower.files.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := follower.files.Sync(); err != nil {
		t.Fatal(err)
	}
	if got := follower.Synced(); got != at {
		t.Errorf("durable is %+v after a sync, want %+v", got, at)
	}
	if err := follower.Close(); err != nil {
		t.Fatal(err)
	}
	restart(disks[1], "/", eng.Digest(100, epoch), at)
}
