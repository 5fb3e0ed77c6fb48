package engine

import (
	"slices"
	"testing"
)

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

// Jobs that are removed loosely all go, with the pages, and a snapshot does not see it.
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
	if len(h.pages) > 1 {
		t.Errorf("the drained heap keeps %d pages", len(h.pages))
	}
}
