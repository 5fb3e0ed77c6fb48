package journal

import (
	"fmt"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

const manyTubes = 20_000

// pauseMany pauses tubes that a session watches.
func (b *bench) pauseMany() {
	for n := range manyTubes {
		name := fmt.Appendf(nil, "tube-%d", n)
		b.turn(func() {
			b.eng.Watch(b.s, name)
			b.eng.Pause(b.now, name, 3600)
		})
	}
}

// If a queue contains only pauses, and they fill more than a segment, cleaning still
// ends. When cleaning continues, each turn copies a few pauses.
func TestCarryPauses(t *testing.T) {
	const size = 256 << 10
	b := newBench(t, Options{SegmentSize: size, Epoch: epoch})
	b.pauseMany()
	b.rest()
	if st := b.log.Stats(); st.Bytes < 2*size {
		t.Fatalf("the pauses take only %d bytes", st.Bytes)
	}
	// By putting and deleting jobs, the loop makes each segment the oldest in turn.
	const most = 2 * cleanStep / 32 // maximum number of records in a step
	oldest, last := b.log.Stats().Oldest, b.log.Stats().Written
	for range 8000 {
		b.turn(func() { b.eng.Delete(b.s, b.put(engine.Spec{}, 1000)) })
		written := b.log.Stats().Written
		if written-last > most {
			t.Fatalf("a turn wrote %d records, want at most %d", written-last, most)
		}
		last = written
	}
	if st := b.log.Stats(); st.Oldest < oldest+3 {
		t.Fatalf("little was cleaned: from segment %d to %d", oldest, st.Oldest)
	}
	b.rest()
	n := 0
	for range b.eng.Pauses {
		n++
	}
	if n != manyTubes {
		t.Errorf("%d pauses are left", n)
	}
}

// Cleaning also copies the pauses that a healed log attributes to the oldest segment after
// the first step.
func TestCarryAfterHeal(t *testing.T) {
	b := newBench(t, Options{SegmentSize: 256 << 10, Epoch: epoch})
	b.pauseMany()
	s, oldest := &b.log.persistentState, b.log.Stats().Oldest
	b.turn(func() {
		budget := int64(1)
		if done, err := b.log.copyPersistentState(oldest, &budget); done || err != nil {
			t.Fatalf("the first step: %v, %v", done, err)
		}
		s.moved(oldest)
		budget = 1 << 40
		if done, err := b.log.copyPersistentState(oldest, &budget); !done || err != nil {
			t.Fatalf("the other steps: %v, %v", done, err)
		}
	})
	for key, last := range s.at {
		if last.segment <= oldest {
			t.Fatalf("%s is still in segment %d", key, last.segment)
		}
	}
}

// The settings of patterns survive cleaning, a start and a rewrite; removed settings do
// not return.
func TestCarryPolicies(t *testing.T) {
	b := newBench(t, Options{SegmentSize: segment, Epoch: epoch})
	set := func(pattern, settings string) {
		b.turn(func() {
			if o := b.eng.SetPolicy(pattern, settings); o != engine.OK {
				t.Fatalf("set %s: %v", pattern, o)
			}
		})
	}
	want := ""
	for n := range 50 {
		set(fmt.Sprintf("tube-%02d*", n), "max-attempts=9\n")
		set(fmt.Sprintf("tube-%02d*", n), "max-attempts=5\n")
		if n%2 == 0 {
			set(fmt.Sprintf("tube-%02d*", n), "")
			continue
		}
		want += fmt.Sprintf("tube-%02d* max-attempts=5\n", n)
	}
	found := func(e *engine.Engine) (text string) {
		for c := range e.Named() {
			text += c.Tube + " " + string(c.Body)
		}
		return text
	}
	oldest := b.log.Stats().Oldest
	for range 500 {
		b.turn(func() { b.eng.Delete(b.s, b.put(engine.Spec{}, 1000)) })
	}
	b.rest()
	if st := b.log.Stats(); st.Oldest < oldest+3 {
		t.Fatalf("little was cleaned: from segment %d to %d", oldest, st.Oldest)
	}
	for _, how := range []string{"cleaned", "rewritten"} {
		eng := engine.New(engine.Options{})
		if _, err := Load(b.log.fs, b.log.dir, eng, epoch); err != nil || found(eng) != want || found(b.eng) != want {
			t.Fatalf("%s: %v, found\n%s\nwant\n%s", how, err, found(eng), want)
		}
		b.turn(b.log.Rewrite)
		b.rest()
	}
}

// rest lets time pass until the journal requests no further turn.
func (b *bench) rest() {
	b.tb.Helper()
	for n := 0; ; n++ {
		next := b.turn(func() {})
		if next == engine.Never {
			return
		}
		if n == 10000 {
			b.tb.Fatalf("it never rests: %+v", b.log.Stats())
		}
		b.now = max(b.now, next)
	}
}
