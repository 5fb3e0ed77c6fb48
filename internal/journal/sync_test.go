package journal

import (
	"math/rand/v2"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/test/faultfs"
	"github.com/beanpole-mq/beanpole/internal/test/memfs"
)

// A sync that fails beside the turns fails what is flushed later, too. Changes are
// refused from then on, and when the log has healed all that was appended is
// there, also what was admitted before the failure was known.
func TestSyncFailsBesideTurns(t *testing.T) {
	disk := memfs.New()
	fsys := faultfs.New(disk)
	j := New(Options{SegmentSize: 64 << 10})
	eng := engine.New(engine.Options{Logged: true, Admit: j.Admit})
	if _, err := j.Open(fsys, "/", eng); err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	s := eng.Open(nil)
	put := func(body string) engine.Outcome {
		_, o := eng.Put(0, s, engine.Spec{TTR: 60}, []byte(body))
		return o
	}
	flush := func() error {
		if err := j.Append(eng.TakeChanges()); err != nil {
			t.Fatal(err)
		}
		durable, err := j.Flush()
		if durable {
			t.Error("Flush promises what only Sync can")
		}
		return err
	}

	put("is synced")
	if err := flush(); err != nil {
		t.Fatal(err)
	}
	if err := j.Sync(); err != nil {
		t.Fatal(err)
	}
	put("is flushed when the sync fails")
	if err := flush(); err != nil {
		t.Fatal(err)
	}
	if o := put("is admitted when the sync fails"); o != engine.OK {
		t.Fatal("put: outcome", o)
	}
	fsys.Set(faultfs.Fault{Op: faultfs.Sync, Sticky: true})
	if j.Sync() == nil {
		t.Fatal("the sync does not fail")
	}
	if o := put("is refused"); o != engine.Failed {
		t.Errorf("a put after the failure: outcome %d", o)
	}
	if flush() == nil {
		t.Error("a flush after the failure does not fail")
	}
	if j.Sync() == nil {
		t.Error("a second sync hides the failure")
	}

	fsys.Set()
	j.Housekeep(1)
	if o := put("comes after healing"); o != engine.OK {
		t.Fatal("a put after healing: outcome", o)
	}
	if err := flush(); err != nil {
		t.Fatal(err)
	}
	if err := j.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := j.Check(); err != nil {
		t.Error(err)
	}

	j.preparing.wait()
	b := &bench{tb: t, log: j}
	b.reopen(disk.Crash(rand.New(rand.NewPCG(1, 1))))
	defer b.log.Close()
	if n := b.eng.Stats().Ready; n != 4 {
		t.Errorf("after a power cut there are %d jobs, want 4", n)
	}
}
