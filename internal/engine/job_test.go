package engine

import (
	"reflect"
	"testing"
	"unsafe"
)

// Records are most of the memory of a queue with ten million small jobs, so their sizes
// are fixed here.
func TestRecordSizes(t *testing.T) {
	if n := unsafe.Sizeof(job{}); n != 48 {
		t.Errorf("a job takes %d bytes, want 48", n)
	}
	if n := unsafe.Sizeof([slotsPerPage]job{}); n%8192 != 0 {
		t.Errorf("a page of jobs takes %d bytes, want a multiple of a memory page", n)
	}
	if n := unsafe.Sizeof(coldJob{}); n > 56 {
		t.Errorf("a cold part takes %d bytes, want at most 56", n)
	}
}

func buryOften(e *Engine, s *Session, id uint64, times int) {
	for range times {
		e.ReserveJob(0, s, id)
		e.Bury(s, id, 0)
	}
}

// A job has a cold part after its first reserve or kick, even after a restart. A buried
// job has none, unless its numbers are large.
func TestColdPart(t *testing.T) {
	for _, test := range []struct {
		name string
		do   func(e *Engine, s *Session, id uint64)
		cold bool
	}{
		{"put", func(*Engine, *Session, uint64) {}, false},
		{"its delay ends", func(e *Engine, _ *Session, _ uint64) { e.Tick(9 * second) }, false},
		{"move", func(e *Engine, _ *Session, _ uint64) {
			w, _ := e.BeginMove([]byte(DefaultTube), []byte("other"), Delayed, 0)
			e.ContinueSweep(0, &w)
		}, false},
		{"kick", func(e *Engine, _ *Session, id uint64) { e.KickJob(1, id) }, true},
		{"bury", func(e *Engine, _ *Session, id uint64) { e.BuryJob(id, 0) }, false},
		{"seven times reserve and bury", func(e *Engine, s *Session, id uint64) { buryOften(e, s, id, 7) }, false},
		{"eight times reserve and bury", func(e *Engine, s *Session, id uint64) { buryOften(e, s, id, 8) }, true},
		{"bury with a delay of two days", func(e *Engine, s *Session, id uint64) {
			e.ReserveJob(0, s, id)
			e.Release(0, s, id, 0, 2*86400)
			e.BuryJob(id, 0)
		}, true},
		{"bury with a delay of a day", func(e *Engine, s *Session, id uint64) {
			e.ReserveJob(0, s, id)
			e.Release(0, s, id, 0, 86400)
			e.BuryJob(id, 0)
		}, false},
		{"bury after very many others", func(e *Engine, _ *Session, id uint64) { e.buried = 1 << 31; e.BuryJob(id, 0) }, true},
		{"bury, reserve", func(e *Engine, s *Session, id uint64) { e.BuryJob(id, 0); e.ReserveJob(0, s, id) }, true},
		{"reserve and release", func(e *Engine, s *Session, id uint64) {
			e.ReserveJob(1, s, id)
			e.Release(2, s, id, 0, 9)
		}, true},
	} {
		e, back := New(Options{Logged: true}), New(Options{Logged: true})
		s := e.Open(nil)
		id, _ := e.Put(0, s, Spec{Delay: 9, TTR: 1}, nil)
		test.do(e, s, id)
		for _, c := range e.TakeChanges() {
			back.Restore(c)
		}
		back.Tick(e.now)
		for _, e := range []*Engine{e, back} {
			if got := e.jobs.coldCount == 1; got != test.cold {
				t.Errorf("%s: a cold part: %v, want %v", test.name, got, test.cold)
			}
			if err := e.Check(); err != nil {
				t.Error(err)
			}
		}
		want, _ := e.Snapshot(id)
		got, _ := back.Snapshot(id)
		if got.Slot, want.Slot = 0, 0; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: after a restart it is %+v, want %+v", test.name, got, want)
		}
		e.Delete(s, id)
		if e.jobs.coldCount > 0 {
			t.Errorf("%s, delete: the cold part was not freed", test.name)
		}
	}
}
