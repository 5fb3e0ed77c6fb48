package sim

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/journal"
)

// fill puts jobs until the disk is full, and returns the number of puts. The outcome of a
// refused put is OutOfMemory.
func (w *world) fill(size int) (n int) {
	w.t.Helper()
	for outcome := engine.OK; outcome == engine.OK; n++ {
		err := w.broker.Call(func(e *engine.Engine, now int64) {
			w.t.Helper()
			if n%64 == 0 {
				w.check(e)
			}
			s := e.Open(nil)
			_, outcome = e.Put(now, s, engine.Spec{TTR: 1}, make([]byte, size))
			e.Close(now, s)
		})
		synctest.Wait()
		if err != nil {
			w.fatalf("put: %v", err)
		}
		if outcome != engine.OK && outcome != engine.OutOfMemory {
			w.fatalf("a put to a full disk: %v", outcome)
		}
	}
	return n - 1
}

// deleteAll deletes all jobs except those that keep selects, a few in each turn, in
// random order.
func (w *world) deleteAll(keep func(c engine.Change) bool) {
	w.t.Helper()
	var ids []uint64
	w.broker.Call(func(e *engine.Engine, now int64) {
		w.workload.leave(e, now) // the sessions of the workload hold some jobs
		w.workload = nil
		for c := range e.Snapshots {
			if !keep(c) {
				ids = append(ids, c.ID)
			}
		}
	})
	w.rng.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	for len(ids) > 0 {
		err := w.broker.Call(func(e *engine.Engine, now int64) {
			w.t.Helper()
			if len(ids)%16 == 0 {
				w.check(e)
			}
			s := e.Open(nil)
			for range min(len(ids), 1+w.rng.IntN(5)) {
				if o := e.Delete(s, ids[0]); o != engine.OK {
					w.fatalf("a delete on a full disk, %d jobs left: outcome %d, %+v", len(ids), o, w.journal.Stats())
				}
				ids = ids[1:]
			}
			e.Close(now, s)
		})
		synctest.Wait()
		if err != nil {
			w.fatalf("delete: %v", err)
		}
	}
}

// none and some select the jobs that deleteAll keeps. A job that is larger than a segment
// can prevent cleaning, because the space reserved for cleaning is too small for it.
func none(engine.Change) bool   { return false }
func some(c engine.Change) bool { return c.ID%50 == 0 && c.BodyLen < 1000 }

// A full disk refuses only puts and changes of state, until jobs are deleted. The disk
// becomes full several times, with all kinds of restarts in between. Some jobs are larger
// than a segment.
func TestFullDisk(t *testing.T) {
	eachSeed(t, 3, func(t *testing.T, name string, seed uint64) {
		w := newWorld(t, name, seed, journal.Options{SegmentSize: 2048 << (seed % 3)})
		w.history.anyPauses = true
		w.disk.SetLimit(128 << 10)
		w.mustBoot()
		for range 4 {
			w.fill(1 + w.rng.IntN(1000<<w.rng.IntN(5)))
			w.restartWhileFull()
			w.turn(20) // the server can refuse commands, but must not fail
			w.deleteAll(some)
			time.Sleep(5 * time.Second) // cleaning frees space
			synctest.Wait()
			if n := w.fill(200); n < 150 {
				w.fatalf("only %d jobs fit after all were deleted: %+v", n, w.stats())
			}
			w.deleteAll(none)
		}
		w.kill()
	})
}

func (w *world) mustBoot() {
	w.t.Helper()
	if err := w.boot(); err != nil {
		w.fatalf("start: %v", err)
	}
}

// restartWhileFull stops the server in a random way and starts it again, or does nothing.
func (w *world) restartWhileFull() {
	w.t.Helper()
	switch w.rng.IntN(4) {
	case 0:
		return
	case 1:
		w.kill()
	case 2:
		w.powerCut()
	case 3:
		if err := w.stop(); err != nil {
			w.fatalf("shutdown: %v", err)
		}
	}
	w.mustBoot()
}

// Other programs fill the disk and free it again. The server refuses only puts, and only
// while the disk is full.
func TestOthersFillDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "", 1, journal.Options{SegmentSize: 4096})
		w.mustBoot()
		w.live(50)
		for range 5 {
			w.disk.SetLimit(1)
			w.fill(500)
			if !w.logged("no space for the journal") {
				w.fatalf("the log has no message that the disk is full")
			}
			w.deleteAll(none)
			w.disk.SetLimit(0)
			w.live(30)
		}
		if !w.logged("journal has space again") {
			w.fatalf("the log has no message that the journal has space again")
		}
		w.kill()
		w.mustBoot()
		w.kill()
	})
}

// The journal has space for admitted jobs, even jobs larger than a segment, if other
// programs fill the disk before the write.
func TestAdmittedJobHasSpace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "", 1, journal.Options{SegmentSize: 4096})
		w.mustBoot()
		for _, size := range []int{0, 1, 3000, 4000, 4001, 5000, 9999, 60000} {
			w.disk.SetLimit(0)
			err := w.broker.Call(func(e *engine.Engine, now int64) {
				s := e.Open(nil)
				_, o := e.Put(now, s, engine.Spec{TTR: 1}, make([]byte, size))
				if o != engine.OK {
					w.fatalf("put of %d bytes: outcome %d", size, o)
				}
				e.Close(now, s)
				w.disk.SetLimit(1)
			})
			if err != nil {
				w.fatalf("put of %d bytes: %v", size, err)
			}
			synctest.Wait()
		}
		w.kill()
		w.mustBoot()
		w.kill()
	})
}
