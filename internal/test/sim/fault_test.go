package sim

import (
	"errors"
	"fmt"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/journal"
	"github.com/beanpole-mq/beanpole/internal/test/faultfs"
	"github.com/beanpole-mq/beanpole/internal/test/seeds"
)

// In each run, one file call of a server's life fails, in every possible way.
// Acknowledged changes survive kill -9 and power cuts. When the disk works again, a
// restarted server has the state that was in memory.
func TestEveryCallFails(t *testing.T) {
	for _, sync := range []time.Duration{0, 20 * time.Millisecond} {
		for _, errno := range []syscall.Errno{syscall.EIO, syscall.ENOSPC} {
			for _, how := range []faultfs.How{faultfs.Before, faultfs.After, faultfs.Short} {
				for _, sticky := range []bool{false, true} {
					if (sync > 0 || how == faultfs.Short || errno == syscall.ENOSPC && sticky && how != faultfs.After) && !seeds.Long() {
						continue
					}
					fault := faultfs.Fault{Op: faultfs.Any, How: how, Sticky: sticky, Err: errno}
					t.Run(fmt.Sprintf("%v-%v-%v-%v", sync, errno, how, sticky), func(t *testing.T) {
						first, step := seeds.Step(12)
						fault.N = first - step
						for fired := true; fired && !t.Failed(); {
							fault.N += step
							synctest.Test(t, func(t *testing.T) { fired = lifeWithFault(t, sync, fault) })
						}
						t.Logf("%d calls failed", fault.N/step)
					})
				}
			}
		}
	}
}

// lifeWithFault reports whether the fault occurred.
func lifeWithFault(t *testing.T, sync time.Duration, fault faultfs.Fault) (fired bool) {
	w := newWorld(t, fmt.Sprintf("%+v", fault), 32, journal.Options{SegmentSize: 1024, Sync: sync})
	w.habits = habits{largest: 20, many: 12}
	w.fsys.Set(fault)
	if err := w.boot(); err != nil {
		w.mustBeOf(fault, err)
		w.fsys.Set()
		w.mustBoot()
		w.kill()
		return true
	}
	w.workWithFaults(fault, 60)
	fired = w.fsys.Fired() > 0
	if st := w.stats(); !fired && (st.Migrated < 5 || st.Oldest < 3) {
		w.fatalf("without a fault there is too little cleaning: %+v", st)
	}
	if sync == 0 {
		w.lookAfterPowerCut()
	}
	w.fsys.Set()
	w.heals()

	w.fsys.Set(fault) // also during the shutdown
	w.stopOrFail(fault)
	fired = fired || w.fsys.Fired() > 0
	w.fsys.Set()
	w.mustBoot()
	w.kill()
	return fired
}

func (w *world) mustBeOf(fault faultfs.Fault, err error) {
	w.t.Helper()
	if !errors.Is(err, fault.Err) {
		w.fatalf("%v, want %v", err, fault.Err)
	}
}

// workWithFaults runs some turns, which can fail.
func (w *world) workWithFaults(fault faultfs.Fault, turns int) {
	w.t.Helper()
	for range turns {
		if err := w.turn(3); err != nil {
			w.mustBeOf(fault, err)
			if !w.logged("level=ERROR") {
				w.fatalf("a turn failed and nothing was logged: %v", err)
			}
		}
		w.rest()
	}
}

// lookAfterPowerCut starts a second server on a copy of the disk as it would be after a
// power cut now.
func (w *world) lookAfterPowerCut() {
	w.t.Helper()
	other := *w
	other.disk = w.disk.Crash(w.rng)
	other.fsys = faultfs.New(other.disk)
	l := new(history)
	w.within(func() { *l = *w.history })
	l.sure = l.acked
	other.history = l
	other.mustBoot()
	other.kill()
}

// heals checks that the server recovers within two seconds without help, and that disk
// and memory then agree.
func (w *world) heals() {
	w.t.Helper()
	time.Sleep(2 * time.Second)
	synctest.Wait()
	w.lookAfterPowerCut()
	w.live(10)
	w.deleteAll(none)
	time.Sleep(2 * time.Second)
	synctest.Wait()
	if st := w.stats(); st.Bytes > 3*w.opt.SegmentSize {
		w.fatalf("cleaning does not continue: %+v", st)
	}
	var outcome engine.Outcome
	err := w.broker.Call(func(e *engine.Engine, now int64) {
		w.check(e)
		s := e.Open(nil)
		_, outcome = e.Put(now, s, engine.Spec{TTR: 1}, []byte("I am well"))
		e.Close(now, s)
	})
	if err != nil || outcome != engine.OK {
		w.fatalf("a put after the disk recovered: %v, %v", outcome, err)
	}
	if w.logged("journal write failed") && !w.logged("journal recovered") {
		w.fatalf("the log has no message that the journal recovered")
	}
	had := w.state()
	w.within(func() { w.history.acked = len(w.history.facts) }) // including failed changes, which are in memory
	w.kill()
	w.mustBoot()
	if has := w.state(); !has.explains(had, time.Now(), false) {
		w.fatalf("memory (-) and disk (+) disagree:\n%s", had.diff(has, time.Now()))
	}
}

func (w *world) state() (s *state) {
	w.broker.Call(func(e *engine.Engine, _ int64) { s = stateOf(e, w.epoch) })
	synctest.Wait()
	return s
}

// stopOrFail shuts the server down. Even if the shutdown fails, the next server must find
// all acknowledged changes.
func (w *world) stopOrFail(fault faultfs.Fault) {
	w.t.Helper()
	if err := w.stop(); err != nil {
		w.mustBeOf(fault, err)
		w.history.killed()
	}
	synctest.Wait()
}

// A pause ends with its tube while nothing can be written, because calls fail or the disk
// is full. A restart does not bring the pause back.
func TestPauseEndsWithTube(t *testing.T) {
	for name, hinder := range map[string]func(w *world, on bool){
		"failing disk": func(w *world, on bool) {
			w.fsys.Set()
			if on {
				w.fsys.Set(faultfs.Fault{Op: faultfs.Change, Sticky: true})
			}
		},
		"full disk": func(w *world, on bool) {
			w.disk.SetLimit(0)
			if on {
				w.disk.SetLimit(1)
				w.fill(100)
				for range 200 { // uses the space for other changes
					w.broker.Call(func(e *engine.Engine, now int64) { e.Pause(now, []byte("mail"), 5000) })
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, "", 1, journal.Options{SegmentSize: 4096})
				w.mustBoot()
				var s *engine.Session
				w.broker.Call(func(e *engine.Engine, now int64) {
					s = e.Open(nil)
					e.Use(s, []byte("mail"))
					if o := e.Pause(now, []byte("mail"), 3600); o != engine.OK {
						w.fatalf("pause: outcome %d", o)
					}
				})
				hinder(w, true)
				w.broker.Call(func(e *engine.Engine, now int64) {
					e.Put(now, e.Open(nil), engine.Spec{}, nil) // this fails in one way or another
				})
				w.broker.Call(func(e *engine.Engine, _ int64) { e.Use(s, []byte("default")) })
				hinder(w, false)
				time.Sleep(2 * time.Second)
				synctest.Wait()
				w.kill()
				w.mustBoot()
				if st := w.state(); len(st.pauses) > 0 {
					w.fatalf("the pause is back: %v", st.pauses)
				}
				w.kill()
			})
		})
	}
}
