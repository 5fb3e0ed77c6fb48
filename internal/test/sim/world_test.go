package sim

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/journal"
	"github.com/beanpole-mq/beanpole/internal/schedule"
	"github.com/beanpole-mq/beanpole/internal/test/faultfs"
	"github.com/beanpole-mq/beanpole/internal/test/memfs"
)

const dir = "/"

// A world is a machine with one disk and, between boot and its end, one server.
// It lives in a synctest bubble.
type world struct {
	t      *testing.T
	name   string // says in failures which world it was
	rng    *rand.Rand
	disk   *memfs.FS
	fsys   *faultfs.FS // on disk; what the server sees
	opt    journal.Options
	log    *logbook
	habits habits
	lit    time.Time // the power was not cut before

	policies engine.Policies // of each server

	history *history

	// Of the running server.
	journal  *journal.Journal
	broker   *broker.Broker
	epoch    int64 // when its clock was 0, ns since 1970
	workload *workload
}

func newWorld(t *testing.T, name string, seed uint64, opt journal.Options) *world {
	w := &world{t: t, name: name, rng: newRand(seed), disk: memfs.New(), opt: opt, habits: habits{largest: 300, many: 60}, log: new(logbook), history: newHistory()}
	w.fsys = faultfs.New(w.disk)
	return w
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

func (w *world) fatalf(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("%s (segments of %d, sync %v): %s\nlog:\n%s", w.name, w.opt.SegmentSize, w.opt.Sync, fmt.Sprintf(format, args...), w.log)
}

// boot starts a server and holds what it finds against the history.
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

// start starts a server and returns what it finds on the disk.
func (w *world) start() (*state, error) {
	w.t.Helper()
	start := time.Now()
	w.epoch = start.UnixNano()
	opt := w.opt
	opt.Epoch, opt.Logger = w.epoch, slog.New(w.log)
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

// check tests all invariants.
func (w *world) check(e *engine.Engine) {
	w.t.Helper()
	err := e.Check()
	if e.Promises() == 0 { // else something has come due, and has its room already
		err = errors.Join(err, w.journal.Check())
	}
	if err != nil {
		w.fatalf("%v", err)
	}
}

// turn makes the server do n random things at once. The error is that of the
// commit.
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
	synctest.Wait() // the journal's goroutines, so that a seed is always the same life
	return err
}

// live makes the server work for some turns, or until the power is cut.
func (w *world) live(turns int) {
	w.t.Helper()
	for range turns {
		err := w.turn(1 + w.rng.IntN(4))
		if w.dark() {
			return
		}
		if err != nil {
			w.fatalf("a turn fails on a disk without faults: %v", err)
		}
		w.rest()
	}
}

// rest lets some time pass, or not.
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

// dark tells whether the power is cut.
func (w *world) dark() bool {
	_, err := w.disk.List(dir)
	return errors.Is(err, memfs.ErrPowerCut)
}

// stop shuts the server down as it should be. Then what the next one finds is
// what this one had, with all counters.
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

// kill ends the server as kill -9 does: the disk is as it was.
func (w *world) kill() {
	w.fsys.Set(faultfs.Fault{Op: faultfs.Any, Sticky: true})
	w.broker.Close() // its timer and goroutines; it can do nothing
	synctest.Wait()
	w.fsys.Set()
	w.lit = time.Now() // nobody syncs from now on
	w.history.killed()
}

// powerCut ends the server and the machine, which then has what the disk kept.
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

// crash replaces the disk by what a power cut leaves of it.
func (w *world) crash() {
	w.history.powerCut(w.lit, w.opt.Sync)
	w.disk = w.disk.Crash(w.rng)
	w.fsys = faultfs.New(w.disk)
	w.broker = nil
}

// within calls f in a turn, for what the server may be writing.
func (w *world) within(f func()) {
	w.broker.Call(func(*engine.Engine, int64) { f() })
	synctest.Wait()
}

// stats returns those of the journal.
func (w *world) stats() (st journal.Stats) {
	w.within(func() { st = w.journal.Stats() })
	return st
}

// A logbook keeps what the server logs and counts the errors.
type logbook struct {
	mu     sync.Mutex
	errors int
	lines  []string
}

func (l *logbook) Enabled(context.Context, slog.Level) bool { return true }
func (l *logbook) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *logbook) WithGroup(string) slog.Handler            { return l }

func (l *logbook) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.Level >= slog.LevelError {
		l.errors++
	}
	line := r.Message
	r.Attrs(func(a slog.Attr) bool {
		line += " " + a.String()
		return true
	})
	l.lines = append(l.lines, line)
	return nil
}

func (l *logbook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}

func (l *logbook) has(text string) bool { return strings.Contains(l.String(), text) }

func (l *logbook) hasErrors() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.errors > 0
}
