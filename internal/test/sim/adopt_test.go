package sim

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/journal"
	"github.com/beanpole-mq/beanpole/internal/journal/binlog"
	"github.com/beanpole-mq/beanpole/internal/test/faultfs"
	"github.com/beanpole-mq/beanpole/internal/test/memfs"
	"github.com/beanpole-mq/beanpole/internal/test/seeds"
)

// After a restart, the server imports beanstalkd's files completely. This holds for each
// operation that a power cut or a failing call can interrupt.
func TestAdopt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		theirs := filesOfBeanstalkd(t)
		start := func(name string, seed uint64) *world {
			w := newWorld(t, name, seed, journal.Options{SegmentSize: 4096})
			w.disk = theirs.Crash(nil)
			w.fsys = faultfs.New(w.disk)
			return w
		}
		w := start("undisturbed", 0)
		want, err := w.start()
		if err != nil {
			w.fatalf("%v", err)
		}
		if len(want.jobs) < 30 {
			w.fatalf("only %d jobs were adopted", len(want.jobs))
		}
		calls := w.disk.Ops()
		w.kill()

		first, step := seeds.Step(4)
		for n := first; n <= calls; n += step {
			for seed := range uint64(2) {
				w := start(fmt.Sprintf("power cut at %d, seed %d", n, seed), seed)
				w.disk.CutAt(n)
				w.mustAdopt(want, memfs.ErrPowerCut)
			}
		}
		for _, how := range []faultfs.How{faultfs.Before, faultfs.After, faultfs.Short} {
			first, step := seeds.Step(4)
			for n, fired := first, true; fired; n += step {
				fault := faultfs.Fault{Op: faultfs.Any, N: n, How: how}
				w := start(fmt.Sprintf("%+v", fault), 0)
				w.fsys.Set(fault)
				fired = w.mustAdopt(want, syscall.EIO)
			}
		}
	})
}

// filesOfBeanstalkd returns a disk with beanstalkd's files, which contain jobs in all
// states.
func filesOfBeanstalkd(t *testing.T) *memfs.FS {
	t.Helper()
	rng, eng := newRand(3), engine.New(engine.Options{})
	workload := newWorkload(eng, habits{largest: 300, many: 60})
	for now := range int64(1500) {
		workload.act(rng, eng, now*int64(time.Millisecond))
	}
	workload.leave(eng, 0)
	fsys := memfs.New()
	_, err := binlog.Write(fsys, dir, binlog.Options{Epoch: time.Now().UnixNano(), FileSize: 4096}, eng)
	if err != nil {
		t.Fatal(err)
	}
	return fsys
}

// mustAdopt starts servers until a start succeeds, with power cuts or a fault. It reports
// whether the first start failed. The successful start and the next one must find the
// state want.
func (w *world) mustAdopt(want *state, cause error) (hindered bool) {
	w.t.Helper()
	found, err := w.start()
	if hindered = err != nil; hindered {
		if !errors.Is(err, cause) {
			w.fatalf("%v, want %v", err, cause)
		}
		w.fsys.Set()
		if w.dark() {
			w.crash()
		}
		if found, err = w.start(); err != nil {
			w.fatalf("start after the fault: %v", err)
		}
	}
	hindered = hindered || w.fsys.Fired() > 0 || w.dark()
	for range 2 {
		if !want.explains(found, time.Now(), false) || found.last != want.last {
			w.fatalf("state after an undisturbed (-) and this (+) adoption:\n%s", want.diff(found, time.Now()))
		}
		if w.dark() {
			w.powerCut()
		} else {
			w.kill()
		}
		if found, err = w.start(); err != nil {
			w.fatalf("second start: %v", err)
		}
	}
	w.keepsTheirFiles()
	w.kill()
	return hindered
}

// keepsTheirFiles checks that beanstalkd's files were renamed and are otherwise
// unchanged.
func (w *world) keepsTheirFiles() {
	w.t.Helper()
	names, err := w.disk.List(dir)
	if err != nil {
		w.fatalf("%v", err)
	}
	kept := 0
	for _, name := range names {
		if strings.HasPrefix(name, "binlog.") {
			w.fatalf("%s was not renamed", name)
		}
		if strings.HasPrefix(name, "beanstalkd-binlog.") {
			kept++
		}
	}
	if kept < 3 {
		w.fatalf("%d beanstalkd files are kept: %v", kept, names)
	}
}
