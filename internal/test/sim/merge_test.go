package sim

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/journal"
	"github.com/beanpole-mq/beanpole/internal/journal/binlog"
	"github.com/beanpole-mq/beanpole/internal/test/seeds"
	"github.com/beanpole-mq/beanpole/internal/vfs"
	"github.com/beanpole-mq/beanpole/internal/vfs/faultfs"
	"github.com/beanpole-mq/beanpole/internal/vfs/memfs"
)

const otherDir = "/other"

// A merge is done wholly or not at all, at whatever operation it is interrupted
// by a power cut or by a call that fails, and can be repeated. A server that is
// started in between finds what there was before.
func TestMerge(t *testing.T) {
	for name, fill := range map[string]func(*world){"beanstalkd": fillFromBeanstalkd, "journal": fillFromJournal} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				both := newWorld(t, name, 0, journal.Options{SegmentSize: 4096})
				if err := both.disk.Mkdir(otherDir); err != nil {
					both.fatalf("%v", err)
				}
				fill(both)
				both.mustBoot()
				both.live(150)
				if err := both.stop(); err != nil {
					both.fatalf("%v", err)
				}
				had := both.history.base
				start := func(name string, seed uint64) *world {
					w := newWorld(t, name, seed, journal.Options{SegmentSize: 4096})
					w.disk = both.disk.Crash(newRand(0)) // a copy: all is synced
					w.fsys = faultfs.New(w.disk)
					return w
				}

				w := start("undisturbed", 0)
				if err := w.merges(); err != nil {
					w.fatalf("%v", err)
				}
				calls := w.disk.Ops()
				want := w.found()
				if len(had.jobs) < 15 || len(want.jobs) < len(had.jobs)+15 {
					w.fatalf("%d jobs, and with the others only %d", len(had.jobs), len(want.jobs))
				}

				first, step := seeds.Step(12)
				for n := first; n <= calls; n += step {
					w := start(fmt.Sprintf("power cut at %d", n), uint64(n))
					w.disk.CutAt(n)
					if err := w.merges(); !errors.Is(err, memfs.ErrPowerCut) {
						w.fatalf("%v, want a power cut", err)
					}
					w.disk = w.disk.Crash(w.rng)
					w.fsys = faultfs.New(w.disk)
					w.mustRepeat(had, want, n%2 == 0)
				}
				for _, how := range []faultfs.How{faultfs.Before, faultfs.After} {
					first, step := seeds.Step(12)
					for n, fired := first, true; fired; n += step {
						fault := faultfs.Fault{Op: faultfs.Any, N: n, How: how}
						w := start(fault.String(), 0)
						w.fsys.Set(fault)
						if err := w.merges(); err != nil && !errors.Is(err, syscall.EIO) {
							w.fatalf("%v", err)
						}
						fired = w.fsys.Fired() > 0
						w.fsys.Set()
						w.mustRepeat(had, want, n%2 == 0)
					}
				}
			})
		})
	}
}

func fillFromBeanstalkd(w *world) {
	files := filesOfBeanstalkd(w.t)
	names, err := files.List(dir)
	if err != nil {
		w.fatalf("%v", err)
	}
	for _, name := range names {
		copyFile(w, files, dir+name, otherDir+"/"+name)
	}
}

func fillFromJournal(w *world) {
	eng := engine.New(engine.Options{})
	files := filesOfBeanstalkd(w.t)
	if _, err := binlog.Read(files, dir, binlog.Options{}, func(c engine.Change) error {
		eng.Restore(c)
		return nil
	}); err != nil {
		w.fatalf("%v", err)
	}
	fillFromBeanstalkd(w)
	// A server that is started there makes it a journal.
	j := journal.New(journal.Options{SegmentSize: 4096, Epoch: time.Now().UnixNano()})
	e := engine.New(engine.Options{Logged: true, Admit: j.Admit})
	if _, err := j.Open(w.disk, otherDir, e); err != nil {
		w.fatalf("%v", err)
	}
	if err := j.Close(); err != nil {
		w.fatalf("%v", err)
	}
}

func copyFile(w *world, from vfs.FS, name, as string) {
	w.t.Helper()
	f, err := from.Open(name)
	if err != nil {
		w.fatalf("%v", err)
	}
	size, _ := f.Size()
	b := make([]byte, size)
	if _, err := f.ReadAt(b, 0); err != nil {
		w.fatalf("%v", err)
	}
	g, err := w.disk.Create(as)
	if err != nil {
		w.fatalf("%v", err)
	}
	_, err = g.WriteAt(b, 0)
	if err = errors.Join(err, g.Sync(), w.disk.SyncDir(otherDir)); err != nil {
		w.fatalf("%v", err)
	}
}

func (w *world) merges() error {
	opt := w.opt
	opt.Epoch = time.Now().UnixNano()
	_, err := journal.Merge(w.fsys, dir, otherDir, opt)
	return err
}

// found returns what a server finds that is started now.
func (w *world) found() *state {
	w.t.Helper()
	found, err := w.start()
	if err != nil {
		w.fatalf("start: %v", err)
	}
	w.broker.Call(func(e *engine.Engine, _ int64) { w.check(e) })
	synctest.Wait()
	w.kill()
	return found
}

// mustRepeat merges again what was interrupted, perhaps with a server started
// in between.
func (w *world) mustRepeat(had, want *state, startBetween bool) {
	w.t.Helper()
	now := time.Now()
	between := had
	if startBetween {
		between = w.found()
		if !had.explains(between, now, false) && !want.explains(between, now, false) {
			w.fatalf("before the merge (-) and after it was interrupted (+):\n%s", had.diff(between, now))
		}
	}
	err := w.merges()
	done := errors.Is(err, journal.ErrMerged)
	if err != nil && !done {
		w.fatalf("repeated: %v", err)
	}
	if startBetween && done != (len(between.jobs) == len(want.jobs)) {
		w.fatalf("%d jobs were there, and to repeat it gives %v", len(between.jobs), err)
	}
	found := w.found()
	// A server in between may have given out ids, so that there are other clashes.
	if startBetween && !done {
		if !slices.Equal(bodies(found), bodies(want)) {
			w.fatalf("other jobs:\n%s", want.diff(found, now))
		}
	} else if !want.explains(found, now, false) || found.last != want.last {
		w.fatalf("undisturbed (-) and repeated (+):\n%s", want.diff(found, now))
	}
	w.tablesTell(had, found)
}

func bodies(s *state) []string {
	var all []string
	for j := range maps.Values(s.jobs) {
		all = append(all, fmt.Sprint(j.Tube, j.State, j.Pri, j.TTR, j.Created, j.Body))
	}
	slices.Sort(all)
	return all
}

// tablesTell wants a table to name all jobs that have come, and no others.
func (w *world) tablesTell(had, found *state) {
	w.t.Helper()
	names, err := w.disk.List(dir)
	if err != nil {
		w.fatalf("%v", err)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, "merge-") })
	for _, name := range names {
		f, err := w.disk.Open(dir + name)
		if err != nil {
			w.fatalf("%v", err)
		}
		size, _ := f.Size()
		b := make([]byte, size)
		f.ReadAt(b, 0)
		told := make(map[uint64]bool)
		for line := range strings.Lines(string(b)) {
			var from, to uint64
			if n, _ := fmt.Sscanf(line, "%d\t%d\n", &from, &to); n == 2 {
				told[to] = true
			}
		}
		complete := true
		for id := range found.jobs {
			_, before := had.jobs[id]
			complete = complete && (before || told[id])
		}
		if complete && len(told) == len(found.jobs)-len(had.jobs) {
			return
		}
	}
	w.fatalf("no table of %v tells the new ids", names)
}
