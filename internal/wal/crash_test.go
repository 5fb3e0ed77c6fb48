package wal

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/test/faultfs"
	"github.com/beanpole-mq/beanpole/internal/test/memfs"
	"github.com/beanpole-mq/beanpole/internal/test/seeds"
	"pgregory.net/rapid"
)

const workSteps = 120

// The power is cut at every operation of a run, and again during the next Open. The log
// contains all durable records in order, and no record that was never written.
func TestPowerCut(t *testing.T) {
	seeds.Each(t, 3, func(t *testing.T, seed uint64) {
		first, step := seeds.Step(3)
		for cut := first; ; cut += step {
			fsys := memfs.New()
			fsys.CutAt(cut)
			m := &machine{fsys: fsys, opt: testOptions}
			err := m.open()
			if err == nil {
				err = m.work(newRand(seed), workSteps, false)
			}
			if err == nil {
				break // the run ended before the cut
			}
			if !errors.Is(err, memfs.ErrPowerCut) {
				t.Fatalf("seed %d, cut at %d: %v", seed, cut, err)
			}
			for again := range uint64(3) {
				name := fmt.Sprintf("seed %d, cut at %d, crash %d", seed, cut, again)
				after := *m
				after.records = append([]Pos(nil), m.records...)
				disk := fsys.Crash(newRand(seed<<32 | uint64(cut)<<8 | again))
				after.fsys = disk
				disk.CutAt(int(again) * 2) // 0 means no cut
				if err := after.open(); errors.Is(err, memfs.ErrPowerCut) {
					after.fsys = disk.Crash(newRand(again))
					err = after.open()
					if err != nil {
						t.Fatalf("%s: after a second crash: %v", name, err)
					}
				} else if err != nil {
					t.Fatalf("%s: %v", name, err)
				} else {
					disk.CutAt(0)
				}
				if err := after.work(newRand(again), 30, false); err != nil && !errors.Is(err, memfs.ErrPowerCut) {
					t.Fatalf("%s: then: %v", name, err)
				}
				if err := after.open(); err != nil && !errors.Is(err, memfs.ErrPowerCut) {
					t.Fatalf("%s: opened again: %v", name, err)
				}
			}
		}
	})
}

// Every file operation fails once, in each mode. Either the log heals, or the next Open
// finds all durable records. Then the power is also cut.
func TestEveryCallFails(t *testing.T) {
	seeds.Each(t, 1, func(t *testing.T, seed uint64) {
		for _, how := range []faultfs.How{faultfs.Before, faultfs.After, faultfs.Short} {
			for _, sticky := range []bool{false, true} {
				first, step := seeds.Step(3)
				for n := first; ; n += step {
					fault := faultfs.Fault{Op: faultfs.Any, N: n, How: how, Sticky: sticky, Err: syscall.EIO}
					if !failOnce(t, seed, fault) {
						break
					}
				}
			}
		}
	})
}

// failOnce reports whether the fault occurred.
func failOnce(t *testing.T, seed uint64, fault faultfs.Fault) bool {
	t.Helper()
	disk := memfs.New()
	fsys := faultfs.New(disk, fault)
	m := &machine{fsys: fsys, opt: testOptions}
	fatal := func(what string, err error) {
		t.Helper()
		t.Fatalf("seed %d, %v: %s: %v", seed, fault, what, err)
	}
	err := m.open()
	if err == nil {
		err = m.work(newRand(seed), workSteps, true)
		mustNotBreak(t, err)
	}
	if fsys.Fired() == 0 {
		if err != nil {
			fatal("no call failed", err)
		}
		return false
	}
	if err != nil && !errors.Is(err, syscall.EIO) {
		fatal("run", err)
	}
	if err != nil && m.log != nil && m.log.Err() != ErrClosed && m.log.Err() != nil {
		// The disk works again from here, so the log must heal.
		fsys.Set()
		if err := m.recover(); err != nil {
			fatal("recover", err)
		}
		if err := m.work(newRand(seed+1), 20, false); err != nil {
			fatal("after recovery", err)
		}
	}

	crashed := *m
	crashed.records = append([]Pos(nil), m.records...)
	crashed.fsys = disk.Crash(newRand(seed))
	if err := crashed.open(); err != nil {
		fatal("opened after a power cut", err)
	}

	if m.log != nil {
		m.log.Close()
	}
	m.fsys = disk
	if err := m.open(); err != nil {
		fatal("opened again", err)
	}
	return true
}

// A process that ends between a failure and the end of healing loses no durable record.
func TestDeathWhileFailed(t *testing.T) {
	seeds.Each(t, 2, func(t *testing.T, seed uint64) {
		for n := 1; n < 60; n++ {
			for heal := 1; heal < 12; heal++ {
				disk := memfs.New()
				fsys := faultfs.New(disk, faultfs.Fault{Op: faultfs.Change, N: n, Err: syscall.EIO, How: faultfs.How(seed % 3)})
				m := &machine{fsys: fsys, opt: testOptions}
				if err := m.open(); err != nil {
					continue
				}
				err := m.work(newRand(seed), workSteps, false)
				if err == nil || m.log.Err() == nil || m.log.Err() == ErrClosed {
					break
				}
				disk.CutAt(disk.Ops() + heal)
				if err := m.recover(); err == nil {
					m.flush()
				}
				m.fsys = disk.Crash(newRand(uint64(heal)))
				if err := m.open(); err != nil {
					t.Fatalf("seed %d, failure at %d, cut at %d of healing: %v", seed, n, heal, err)
				}
			}
		}
	})
}

// Random use with crashes, faults and reopening in any order loses no durable record.
func TestRandomUse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		disk := memfs.New()
		fsys := faultfs.New(disk)
		opt := testOptions
		opt.SegmentSize = rapid.Int64Range(0, 4).Draw(t, "size")*256 + 512
		m := &machine{fsys: fsys, opt: opt}
		faulty := false
		try := func(err error) {
			t.Helper()
			if err != nil && (!faulty || !errors.Is(err, syscall.EIO)) {
				t.Fatal(err)
			}
		}
		reopen := func() {
			fsys.Set()
			faulty = false
			try(m.open())
		}
		reopen()
		t.Repeat(map[string]func(*rapid.T){
			"append":  func(t *rapid.T) { try(m.append()) },
			"append2": func(t *rapid.T) { try(m.append()) },
			"flush":   func(t *rapid.T) { try(m.flush()) },
			"sync":    func(t *rapid.T) { try(m.sync()) },
			"prepare": func(t *rapid.T) { try(m.prepare()) },
			"reserve": func(t *rapid.T) { try(m.reserve()) },
			"remove":  func(t *rapid.T) { try(m.remove()) },
			"reread":  func(t *rapid.T) { try(m.reread()) },
			"recover": func(t *rapid.T) { try(m.recover()) },
			"fault": func(t *rapid.T) {
				faulty = true
				fsys.Set(faultfs.Fault{
					Op:     faultfs.Change,
					N:      rapid.IntRange(1, 4).Draw(t, "n"),
					How:    faultfs.How(rapid.IntRange(0, 2).Draw(t, "how")),
					Sticky: rapid.Bool().Draw(t, "sticky"),
				})
			},
			"mend": func(t *rapid.T) {
				fsys.Set()
				try(m.recover())
				m.log.RetryRoom()
				faulty = m.log.Err() != nil
			},
			"crash": func(t *rapid.T) {
				disk = disk.Crash(newRand(rapid.Uint64().Draw(t, "seed")))
				fsys = faultfs.New(disk)
				m.fsys = fsys
				reopen()
			},
			"close": func(t *rapid.T) {
				if err := m.close(); err != nil {
					try(err)
				}
				reopen()
			},
			"": func(t *rapid.T) {
				if err := errors.Join(m.log.check(), m.agree()); err != nil {
					t.Fatal(err)
				}
			},
		})
	})
}

// Reserved records can be appended on a full disk, in any order with others. A refused
// Reserve changes nothing.
func TestFullDisk(t *testing.T) {
	for seed := range uint64(40) {
		rng := newRand(seed)
		disk := memfs.New()
		disk.SetLimit(64 << 10)
		opt := testOptions
		opt.SegmentSize = 512 << rng.IntN(6)
		m := &machine{fsys: disk, opt: opt}
		if err := m.open(); err != nil {
			t.Fatal(err)
		}
		var held []int // sizes of the held reservations
		for {
			n := 1 + rng.IntN(60)
			if rng.IntN(10) == 0 {
				n = 1 + rng.IntN(6000)
			}
			before := m.log.reserved.Load()
			err := m.log.Reserve(Cost(n))
			if errors.Is(err, syscall.ENOSPC) {
				if m.log.reserved.Load() != before {
					t.Fatalf("seed %d: a refused Reserve reserved something", seed)
				}
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			held = append(held, n)
			if rng.IntN(4) == 0 { // not reserved
				if _, err := m.log.Append(make([]byte, 1+rng.IntN(300))); err != nil && !errors.Is(err, syscall.ENOSPC) {
					t.Fatal(err)
				}
			}
			if err := m.log.check(); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
		disk.SetLimit(1) // other programs used the remaining space
		rng.Shuffle(len(held), func(i, j int) { held[i], held[j] = held[j], held[i] })
		for i, n := range held {
			m.log.Unreserve(Cost(n))
			if _, err := m.log.Append(make([]byte, n)); err != nil {
				t.Fatalf("seed %d: append %d of %d, %d bytes: %v", seed, i, len(held), n, err)
			}
			if rng.IntN(3) == 0 {
				if err := errors.Join(m.log.Flush(), m.log.Sync()); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
			}
			if err := m.log.check(); err != nil {
				t.Fatalf("seed %d: append %d: %v", seed, i, err)
			}
		}
		if m.log.reserved.Load() != 0 {
			t.Errorf("seed %d: %d still reserved", seed, m.log.reserved.Load())
		}
		if _, err := m.log.Append(make([]byte, 40<<10)); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("seed %d: append to a full disk: %v", seed, err)
		}
		disk.SetLimit(0)
		m.log.RetryRoom()
		if err := m.log.Reserve(Cost(8000)); err != nil {
			t.Errorf("seed %d: reserve after there is space again: %v", seed, err)
		}
		if err := m.log.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
