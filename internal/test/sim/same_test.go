package sim

import (
	"errors"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/journal"
	"github.com/beanpole-mq/beanpole/internal/test/memfs"
	"github.com/google/go-cmp/cmp"
)

// The same work gives the same replies in memory and with journals of all kinds. After a
// restart, the journals contain the same jobs.
func TestSameAnswers(t *testing.T) {
	eachSeed(t, 2, func(t *testing.T, name string, seed uint64) {
		want, had, end := answers(t, name, seed, nil)
		for _, opt := range []journal.Options{
			{SegmentSize: 512},
			{SegmentSize: 1 << 20},
			{SegmentSize: 2048, Sync: time.Second},
			{SegmentSize: 2048, Sync: -1},
		} {
			got, has, _ := answers(t, name, seed, &opt)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%s, %+v: replies in memory (-) and with a journal (+):\n%s", name, opt, diff)
			}
			if !had.explains(has, end, false) {
				t.Fatalf("%s, %+v: in memory (-), after a restart (+):\n%s", name, opt, had.diff(has, end))
			}
		}
	})
}

// answers runs the engine without a broker, with its own clock. It returns the replies
// and the final state; with a journal, the final state is that after a restart.
func answers(t *testing.T, name string, seed uint64, opt *journal.Options) (all []string, had *state, end time.Time) {
	const epoch = int64(time.Hour)
	rng, fsys := newRand(seed), memfs.New()
	var log *journal.Journal
	eng := engine.New(engine.Options{})
	if opt != nil {
		eng, log = open(t, fsys, opt, epoch)
	}
	workload := newWorkload(eng, habits{largest: 300, many: 40})
	now := int64(0)
	for range 200 {
		now += rng.Int64N(int64(2 * time.Second))
		eng.Tick(now)
		for range 1 + rng.IntN(4) {
			now++
			all = append(all, workload.act(rng, eng, now))
		}
		if log != nil {
			if err := errors.Join(eng.Check(), log.Append(eng.TakeChanges()), commit(log)); err != nil {
				t.Fatalf("%s, %+v: %v", name, opt, err)
			}
			log.Housekeep(now)
		}
	}
	workload.leave(eng, now)
	had = stateOf(eng, epoch)
	had.exact = true
	end = time.Unix(0, epoch+now)
	if log != nil {
		if err := errors.Join(log.Append(eng.TakeChanges()), log.Close()); err != nil {
			t.Fatalf("%s, %+v: %v", name, opt, err)
		}
		eng, log = open(t, fsys, opt, epoch)
		defer log.Close()
		if has := stateOf(eng, epoch); !had.explains(has, end, false) {
			t.Fatalf("%s, %+v: before a restart (-) and after (+):\n%s", name, opt, had.diff(has, end))
		}
	}
	return all, had, end
}

func open(t *testing.T, fsys *memfs.FS, opt *journal.Options, epoch int64) (*engine.Engine, *journal.Journal) {
	t.Helper()
	withEpoch := *opt
	withEpoch.Epoch = epoch
	log := journal.New(withEpoch)
	eng := engine.New(engine.Options{Logged: true, Admit: log.Admit})
	if _, err := log.Open(fsys, dir, eng); err != nil {
		t.Fatal(err)
	}
	return eng, log
}

// commit commits appended changes as a broker does.
func commit(j *journal.Journal) error {
	durable, err := j.Flush()
	if err != nil || durable {
		return err
	}
	return j.Sync()
}
