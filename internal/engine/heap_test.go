package engine

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestHeap compares a heap with a slice that is sorted each time.
func TestHeap(t *testing.T) {
	for _, state := range []State{Ready, Delayed} {
		t.Run(state.String(), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, uint64(state)))
			jobs := newJobSlab()
			key := func(i slot) entry {
				if state == Ready {
					return readyEntry(i, jobs.at(i))
				}
				return dueEntry(i, jobs.at(i), jobs.when(jobs.at(i)))
			}
			first := func(a, b slot) int { // the order that is wanted, said without entries
				x, y := jobs.at(a), jobs.at(b)
				if state == Ready {
					return cmp.Or(cmp.Compare(x.pri, y.pri), cmp.Compare(x.id, y.id))
				}
				return cmp.Or(cmp.Compare(jobs.when(x), jobs.when(y)), cmp.Compare(x.id, y.id))
			}
			var h jobHeap
			var twin []slot
			for step := range 6000 {
				if grow := step < 4000; len(twin) == 0 || rng.IntN(100) < 25+60*int(count(grow)) {
					i, j := jobs.alloc()
					j.id = uint64(step) + 1
					if state == Ready {
						j.id = j.id + rng.Uint64N(3)<<32 // the order is by the whole id
					}
					j.pri = rng.Uint32N(5)
					j.created = rng.Int64N(1000) - 500
					if rng.IntN(10) == 0 {
						j.pri = 1<<32 - 1
						j.created = Never
					}
					h.push(&jobs, key(i))
					twin = append(twin, i)
				} else {
					k := rng.IntN(len(twin))
					if rng.IntN(3) == 0 {
						k = slices.Index(twin, h.top())
					}
					i := twin[k]
					h.remove(&jobs, int(jobs.at(i).pos))
					jobs.free(i, jobs.at(i))
					twin = slices.Delete(twin, k, k+1)
				}
				checkHeap(t, &h, &jobs, twin, first)
			}
			for len(twin) > 0 {
				slices.SortFunc(twin, first)
				if h.top() != twin[0] {
					t.Fatalf("the top is job %+v, want %+v", jobs.at(h.top()), jobs.at(twin[0]))
				}
				if state == Delayed && h.due() != jobs.when(jobs.at(twin[0])) {
					t.Fatalf("due is %d, want %d", h.due(), jobs.when(jobs.at(twin[0])))
				}
				h.remove(&jobs, 0)
				twin = twin[1:]
			}
			if h.n != 0 || h.top() != none || h.due() != Never {
				t.Errorf("the drained heap has %d jobs, top %d, due %d", h.n, h.top(), h.due())
			}
			if len(h.pages) > 1 {
				t.Errorf("the drained heap keeps %d pages", len(h.pages))
			}
		})
	}
}

// checkHeap checks the places and the top; now and then the whole order.
func checkHeap(t *testing.T, h *jobHeap, jobs *jobSlab, twin []slot, first func(a, b slot) int) {
	t.Helper()
	if h.n != len(twin) {
		t.Fatalf("the heap has %d jobs, want %d", h.n, len(twin))
	}
	if h.n%50 != 0 {
		return
	}
	for k := range h.n {
		i := h.at(k).slot
		if jobs.at(i).pos != uint32(k) {
			t.Fatalf("job at %d has pos %d", k, jobs.at(i).pos)
		}
		if k > 0 && first(i, h.at((k-1)/4).slot) < 0 {
			t.Fatalf("entry %d is before its parent", k)
		}
	}
	if h.n > 0 && h.top() != slices.MinFunc(twin, first) {
		t.Fatal("the top is not the first")
	}
	if want := (h.n + entriesPerPage - 1) / entriesPerPage; len(h.pages) > want+1 {
		t.Fatalf("%d pages for %d entries", len(h.pages), h.n)
	}
}

// Entries in the due order may be equal in all but the high half of the id:
// what must not happen is that one gets lost.
func TestHeapEqualKeys(t *testing.T) {
	jobs := newJobSlab()
	var h jobHeap
	for k := range uint64(50) {
		i, j := jobs.alloc()
		j.id = k << 32
		h.push(&jobs, dueEntry(i, j, j.created))
	}
	seen := make(map[uint64]bool)
	for h.n > 0 {
		i := h.top()
		seen[jobs.at(i).id] = true
		h.remove(&jobs, 0)
	}
	if len(seen) != 50 {
		t.Errorf("got %d different jobs back, want 50", len(seen))
	}
}

// Whoever removes jobs loosely gets all of them, and a snapshot does not see it.
func TestHeapRemoveLoosely(t *testing.T) {
	jobs := newJobSlab()
	rng := seeded(t)
	var h jobHeap
	left := make(map[slot]bool)
	for k := range uint64(5 * entriesPerPage) {
		i, j := jobs.alloc()
		j.id = k
		h.push(&jobs, dueEntry(i, j, rng.Int64()))
		left[i] = true
	}
	pages := h.snapshot()
	before := slices.Concat(pages...)
	for len(left) > 0 {
		i := h.at(rng.IntN(h.n)).slot
		if rng.IntN(2) == 0 {
			i = h.at(0).slot
		}
		if !left[i] {
			t.Fatalf("job %d is there twice", jobs.at(i).id)
		}
		delete(left, i)
		h.removeLoosely(&jobs, int(jobs.at(i).pos))
		for k := 0; k < h.n; k += 1 + h.n/8 {
			if got := jobs.at(h.at(k).slot).pos; got != uint32(k) {
				t.Fatalf("the job at %d has pos %d", k, got)
			}
		}
	}
	if h.n != 0 || !slices.Equal(slices.Concat(pages...), before) {
		t.Errorf("%d jobs are left, or the snapshot has changed", h.n)
	}
}
