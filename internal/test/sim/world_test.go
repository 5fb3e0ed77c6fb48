package sim

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/journal"
	"github.com/beanpole-mq/beanpole/internal/schedule"
	"github.com/beanpole-mq/beanpole/internal/test/exectest"
	"github.com/beanpole-mq/beanpole/internal/test/faultfs"
	"github.com/beanpole-mq/beanpole/internal/test/memfs"
)

const dir = "/"

// A world is a machine with one disk and, between boot and end, one server. It runs in a
// synctest bubble.
type world struct {
	t      *testing.T
	name   string // identifies the world in failure messages
	rng    *rand.Rand
	disk   *memfs.FS
	fsys   *faultfs.FS // the server's file system, on disk
	opt    journal.Options
	log    *exectest.Log
	habits habits
	lit    time.Time // the power was certainly on before this time

	policies engine.Policies // policies that each server gets

	history *history

	// The following fields belong to the running server.
	journal  *journal.Journal
	broker   *broker.Broker
	epoch    int64 // zero of the server's clock, in ns since 1970
	workload *workload
}

func newWorld(t *testing.T, name string, seed uint64, opt journal.Options) *world {
	w := &world{t: t, name: name, rng: newRand(seed), disk: memfs.New(), opt: opt, habits: habits{largest: 300, many: 60}, log: new(exectest.Log), history: newHistory()}
	w.fsys = faultfs.New(w.disk)
	return w
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

func (w *world) fatalf(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("%s (segments of %d, sync %v): %s\nlog:\n%s", w.name, w.opt.SegmentSize, w.opt.Sync, fmt.Sprintf(format, args...), w.log)
}

// boot starts a server and compares its state with the history.
func (w *world) boot() error {
	w.t.Helper()
	found, err := w.start()
	if err != nil {
		return err
	}
	if err := w.history.check(found, time.Now()); err != nil {
		w.fatalf("after a restart: %v", err)
	}
	return nil
}

// start starts a server and returns the state that it finds on the disk.
func (w *world) start() (*state, error) {
	w.t.Helper()
	start := time.Now()
	w.epoch = start.UnixNano()
	opt := w.opt
	opt.Epoch, opt.Logger = w.epoch, slog.New(slog.NewTextHandler(w.log, nil))
	w.journal = journal.New(opt)
	eng := engine.New(engine.Options{Logged: true, Admit: w.journal.Admit, Policies: w.policies, Epoch: w.epoch, CompileSchedule: schedule.CompileText})
	if _, err := w.journal.Open(w.fsys, dir, eng); err != nil {
		return nil, err
	}
	found := stateOf(eng, w.epoch)
	w.broker = broker.New(eng, broker.Options{
		Log: &recorder{Journal: w.journal, syncs: w.opt.Sync == 0, history: w.history, epoch: w.epoch},
		Now: func() int64 { return int64(time.Since(start)) },
	})
	w.workload = nil
	return found, nil
}

func (w *world) check(e *engine.Engine) {
	w.t.Helper()
	err := e.Check()
	if e.Promises() == 0 { // in other cases, space is already reserved for due changes
		err = errors.Join(err, w.journal.Check())
	}
	if err != nil {
		w.fatalf("%v", err)
	}
}

// turn lets the server perform n random operations in one turn. It returns the error of
// the commit.
func (w *world) turn(n int) error {
	w.t.Helper()
	err := w.broker.Call(func(e *engine.Engine, now int64) {
		w.t.Helper()
		w.check(e)
		if w.workload == nil {
			w.workload = newWorkload(e, w.habits)
		}
		for range n {
			w.workload.act(w.rng, e, now)
		}
	})
	synctest.Wait() // for the journal's goroutines, so that a seed always gives the same life
	return err
}

// live runs some turns, or until the power is cut.
func (w *world) live(turns int) {
	w.t.Helper()
	for range turns {
		err := w.turn(1 + w.rng.IntN(4))
		if w.dark() {
			return
		}
		if err != nil {
			w.fatalf("a turn failed on a disk without faults: %v", err)
		}
		w.rest()
	}
}

// rest lets a random time pass, or none.
func (w *world) rest() {
	w.lit = time.Now()
	switch w.rng.IntN(12) {
	case 0:
		time.Sleep(time.Duration(w.rng.Int64N(int64(20 * time.Second))))
	case 1, 2, 3:
		time.Sleep(time.Duration(w.rng.Int64N(int64(100 * time.Millisecond))))
	}
	synctest.Wait()
}

// dark reports whether the power is cut.
func (w *world) dark() bool {
	_, err := w.disk.List(dir)
	return errors.Is(err, memfs.ErrPowerCut)
}

// stop shuts the server down cleanly. The next server must find the same state, including
// all counters.
func (w *world) stop() error {
	w.t.Helper()
	var had *state
	w.broker.Call(func(e *engine.Engine, now int64) {
		w.workload.leave(e, now)
		had = stateOf(e, w.epoch)
	})
	if err := w.broker.Close(); err != nil {
		return err
	}
	synctest.Wait()
	had.exact = true
	w.history.settled(had)
	return nil
}

// kill stops the server like kill -9. The disk is unchanged.
func (w *world) kill() {
	w.fsys.Set(faultfs.Fault{Op: faultfs.Any, Sticky: true})
	w.broker.Close() // stops the broker's timer and goroutines; the broker cannot write
	synctest.Wait()
	w.fsys.Set()
	w.lit = time.Now() // no syncs from now on
	w.history.killed()
}

// powerCut stops the server and the machine. The disk then contains the data that
// survives the power cut.
func (w *world) powerCut() {
	if !w.dark() {
		w.lit = time.Now()
		w.disk.Cut()
	}
	if w.broker != nil {
		w.broker.Close()
	}
	synctest.Wait()
	w.crash()
}

// end kills the server, or cuts the power.
func (w *world) end() {
	if w.dark() || w.rng.IntN(2) == 0 {
		w.powerCut()
	} else {
		w.disk.CutAt(0)
		w.kill()
	}
}

// crash replaces the disk with the data that survives a power cut.
func (w *world) crash() {
	w.history.powerCut(w.lit, w.opt.Sync)
	w.disk = w.disk.Crash(w.rng)
	w.fsys = faultfs.New(w.disk)
	w.broker = nil
}

// within calls f in a turn, to read data that the server can write.
func (w *world) within(f func()) {
	w.broker.Call(func(*engine.Engine, int64) { f() })
	synctest.Wait()
}

func (w *world) stats() (st journal.Stats) {
	w.within(func() { st = w.journal.Stats() })
	return st
}

// logged reports whether the server's log contains a text.
func (w *world) logged(text string) bool { return strings.Contains(w.log.String(), text) }
