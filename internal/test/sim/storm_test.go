package sim

import (
	"errors"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/internal/test/faultfs"
	"github.com/beanpole-mq/beanpole/internal/wal"
)

// All faults occur together. Calls of all kinds fail in all ways, even while the journal
// heals. Files are lost, the disk is full, and the power is cut or the server killed.
// Acknowledged changes survive.
func TestStorm(t *testing.T) {
	eachSeed(t, 3, func(t *testing.T, name string, seed uint64) {
		w := newWorld(t, name, seed, anyOptions(seed))
		w.history.anyPauses = true // the end of a pause cannot be refused
		w.habits.largest = 1 << w.rng.IntN(9)
		for range 4 {
			w.bootThroughFaults()
			w.storm(80)
			if w.opt.Sync != 0 {
				w.calm() // because acknowledged changes can be lost while the disk fails
			}
			switch w.rng.IntN(4) {
			case 0:
				w.kill()
			case 1:
				w.powerCut()
			case 2:
				w.calm()
				if err := w.stop(); err != nil {
					w.fatalf("shutdown: %v", err)
				}
			case 3: // the power fails during the shutdown, or after it
				w.fsys.Set()
				w.disk.CutAt(w.disk.Ops() + 1 + w.rng.IntN(100))
				if err := w.stop(); err != nil {
					w.history.killed()
				}
				w.powerCut()
			}
			w.fsys.Set()
		}
		w.mustBoot()
		w.calm()
		w.kill()
	}, 3483442258)
}

// bootThroughFaults starts the server while calls can fail.
func (w *world) bootThroughFaults() {
	w.t.Helper()
	for range w.rng.IntN(4) {
		fault := w.anyFault()
		w.fsys.Set(fault)
		err := w.boot()
		w.fsys.Set()
		if err == nil {
			return
		}
		if !errors.Is(err, fault.Err) {
			w.fatalf("start: %v, want %v", err, fault.Err)
		}
	}
	w.mustBoot()
}

func (w *world) anyFault() faultfs.Fault {
	ops := []faultfs.Op{faultfs.Any, faultfs.Change, faultfs.Create, faultfs.OpenWrite, faultfs.Rename, faultfs.Remove, faultfs.SyncDir,
		faultfs.Write, faultfs.Truncate, faultfs.Preallocate, faultfs.Sync}
	return faultfs.Fault{
		Op:     ops[w.rng.IntN(len(ops))],
		N:      1 + w.rng.IntN(12),
		How:    faultfs.How(w.rng.IntN(3)),
		Sticky: w.rng.IntN(2) == 0,
		Err:    []syscall.Errno{syscall.EIO, syscall.EIO, syscall.ENOSPC}[w.rng.IntN(3)],
	}
}

// storm runs some turns with random faults.
func (w *world) storm(turns int) {
	w.t.Helper()
	for range turns {
		if err := w.turn(1 + w.rng.IntN(4)); err != nil && !w.logged("level=ERROR") {
			w.fatalf("a turn failed and nothing was logged: %v", err)
		}
		w.rest()
		switch w.rng.IntN(16) {
		case 0, 1:
			w.fsys.Set(w.anyFault())
		case 2:
			w.fsys.Set(w.anyFault(), w.anyFault())
		case 3, 4:
			w.fsys.Set()
		case 5:
			w.fsys.Set()
			time.Sleep(2 * time.Second)
			synctest.Wait()
		case 6:
			w.disk.SetLimit(w.disk.Used() + w.rng.Int64N(8<<10) + 1)
		case 7, 8:
			w.disk.SetLimit(0)
		case 9, 10:
			if w.opt.Sync == 0 {
				w.disk.SetLimit(0) // memfs does not count the space of a restored file
				w.lookAfterPowerCut()
			}
		case 11:
			w.loseFile()
		}
	}
	w.disk.SetLimit(0)
}

// loseFile removes or cuts a file of the journal, requests a rewrite, as an operator
// would, and waits for it. On its own, the server notices only the loss of the current
// file.
func (w *world) loseFile() {
	w.t.Helper()
	current := w.stats().Current
	names, err := w.disk.List(dir)
	if err != nil {
		w.fatalf("%v", err)
	}
	if len(names) == 0 { // the lock file was lost before
		return
	}
	name := dir + names[w.rng.IntN(len(names))]
	// The next write can restore the length of the current file.
	if w.rng.IntN(2) == 0 || name >= dir+wal.FileName(current) {
		err = w.disk.Remove(name)
	} else {
		err = w.cut(name)
	}
	if err != nil {
		w.fatalf("%v", err)
	}
	w.within(w.journal.Rewrite)
	w.calm()
}

func (w *world) cut(name string) error {
	f, err := w.disk.OpenWrite(name)
	if err != nil {
		return err
	}
	defer f.Close()
	size, _, err := f.Stat()
	if err != nil {
		return err
	}
	return f.Truncate(w.rng.Int64N(size + 1))
}

// calm waits until the journal is healthy. With schedules, this takes longer, because
// their jobs make the journal prepare a file that was lost. The problem lasts until the
// file is current.
func (w *world) calm() {
	w.t.Helper()
	w.fsys.Set()
	w.disk.SetLimit(0)
	for n := 0; n < 4 || n < 60 && w.stats().Health != nil; n++ {
		time.Sleep(6 * time.Second)
		w.within(func() {})
	}
	if err := w.stats().Health; err != nil {
		w.fatalf("the disk has recovered, but the journal reports: %v", err)
	}
}
