package journal

import (
	"math/rand/v2"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/test/faultfs"
)

// After a failed sync in the background, later flushes fail and changes are refused. When
// the log has healed, it contains all appended changes, including changes that were
// admitted before the journal noticed the failure.
func TestSyncFailsDuringTurns(t *testing.T) {
	b := newSickBench(t)
	put := func(body string) (o engine.Outcome) {
		_, o = b.eng.Put(0, b.s, engine.Spec{TTR: 60}, []byte(body))
		return o
	}
	flush := func() error {
		if err := b.append(); err != nil {
			t.Fatal(err)
		}
		durable, err := b.log.Flush()
		if durable {
			t.Error("Flush reports durable changes before a sync")
		}
		return err
	}

	put("is synced")
	if err := flush(); err != nil {
		t.Fatal(err)
	}
	if err := b.log.Sync(); err != nil {
		t.Fatal(err)
	}
	put("is flushed when the sync fails")
	if err := flush(); err != nil {
		t.Fatal(err)
	}
	if o := put("is admitted when the sync fails"); o != engine.OK {
		t.Fatal("put: outcome", o)
	}
	b.fsys.Set(faultfs.Fault{Op: faultfs.Sync, Sticky: true})
	if b.log.Sync() == nil {
		t.Fatal("the sync did not fail")
	}
	if o := put("is refused"); o != engine.Failed {
		t.Errorf("a put after the failure: outcome %d", o)
	}
	if flush() == nil {
		t.Error("a flush after the failure did not fail")
	}
	if b.log.Sync() == nil {
		t.Error("a second sync hides the failure")
	}

	b.fsys.Set()
	b.log.Housekeep(1)
	if o := put("comes after healing"); o != engine.OK {
		t.Fatal("a put after healing: outcome", o)
	}
	if err := flush(); err != nil {
		t.Fatal(err)
	}
	if err := b.log.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := b.log.Check(); err != nil {
		t.Error(err)
	}

	b.log.preparer.wait()
	b.reopen(b.disk.Crash(rand.New(rand.NewPCG(1, 1))))
	if n := b.eng.Stats().Ready; n != 4 {
		t.Errorf("%d jobs after a power cut, want 4", n)
	}
}
