package sim

import (
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/journal"
	"github.com/beanpole-mq/beanpole/internal/test/memfs"
	"github.com/beanpole-mq/beanpole/internal/test/seeds"
)

// eachSeed runs a life for each seed, each in its own bubble. A seed always gives the
// same life, because the test uses a single processor.
func eachSeed(t *testing.T, usual int, life func(t *testing.T, name string, seed uint64), failed ...uint64) {
	t.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	seeds.Each(t, usual, func(t *testing.T, seed uint64) {
		synctest.Test(t, func(t *testing.T) { life(t, t.Name(), seed) })
	}, failed...)
}

func anyOptions(seed uint64) journal.Options {
	rng := newRand(^seed)
	opt := journal.Options{SegmentSize: 512 << rng.IntN(8)}
	switch rng.IntN(5) {
	case 0:
		opt.Sync = time.Duration(1+rng.IntN(200)) * time.Millisecond
	case 1:
		opt.Sync = -1
	}
	return opt
}

// A server goes through five power cuts, kills and shutdowns. After each of them, all
// acknowledged changes are present.
func TestPower(t *testing.T) {
	eachSeed(t, 8, func(t *testing.T, name string, seed uint64) {
		w := newWorld(t, name, seed, anyOptions(seed))
		if seed%2 > 0 {
			w.policies = anyPolicies(w.rng)
		}
		for range 5 {
			w.bootThroughPowerCuts()
			end := w.rng.IntN(8)
			if end > 1 {
				w.disk.CutAt(w.disk.Ops() + 1 + w.rng.IntN(120))
			}
			w.live(40)
			switch {
			case w.dark():
				w.powerCut()
			case end == 0:
				w.kill()
			case end == 1:
				if err := w.stop(); err != nil {
					w.fatalf("shutdown: %v", err)
				}
			default: // the power can fail during the shutdown
				if err := w.stop(); err != nil && !errors.Is(err, memfs.ErrPowerCut) {
					w.fatalf("shutdown: %v", err)
				}
				w.powerCut()
			}
		}
		w.bootThroughPowerCuts()
		w.kill()
	})
}

// bootThroughPowerCuts starts the server. A power cut can interrupt the start.
func (w *world) bootThroughPowerCuts() {
	w.t.Helper()
	for range w.rng.IntN(3) {
		w.disk.CutAt(w.disk.Ops() + 1 + w.rng.IntN(12))
		err := w.boot()
		w.disk.CutAt(0)
		if err == nil && !w.dark() {
			return
		}
		if err != nil && !errors.Is(err, memfs.ErrPowerCut) {
			w.fatalf("start: %v", err)
		}
		if err == nil {
			w.powerCut()
		} else {
			w.crash()
		}
	}
	w.mustBoot()
}

// Even after cleaning has removed all records with the highest ids, new ids are higher.
func TestIDsContinue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "", 1, journal.Options{SegmentSize: 4096})
		w.mustBoot()
		var old uint64
		do := func(f func(e *engine.Engine, s *engine.Session, now int64)) {
			if err := w.broker.Call(func(e *engine.Engine, now int64) {
				s := e.Open(nil)
				f(e, s, now)
				e.Close(now, s)
			}); err != nil {
				w.fatalf("%v", err)
			}
			synctest.Wait()
		}
		do(func(e *engine.Engine, s *engine.Session, now int64) {
			old, _ = e.Put(now, s, engine.Spec{TTR: 1}, nil)
			for range 100 {
				id, _ := e.Put(now, s, engine.Spec{TTR: 1}, nil)
				e.Delete(s, id)
			}
		})
		for range 1000 {
			do(func(e *engine.Engine, s *engine.Session, now int64) {
				e.ReserveJob(now, s, old)
				e.Release(now, s, old, 0, 0)
			})
		}
		if st := w.stats(); st.Oldest < 5 {
			w.fatalf("too little was cleaned: %+v", st)
		}
		for _, end := range []func(){w.kill, w.powerCut, func() { w.stop() }} {
			end()
			w.mustBoot()
			do(func(e *engine.Engine, s *engine.Session, now int64) {
				if last := e.LastID(); last != old+100 {
					w.fatalf("last id after a restart: %d, want %d", last, old+100)
				}
			})
		}
		w.kill()
	})
}
