package engine

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
)

// used returns the number of slots in use.
func used(s *slots) int {
	n := 0
	for i := range s.pages {
		if s.pages[i].storage {
			n += int(s.perPage - s.pages[i].nfree)
		}
	}
	return n
}

func checkSlots(s *slots) error {
	var c checker
	c.slots("slots", s)
	return errors.Join(c.broken...)
}

// TestSlots compares slots with a plain record of the used slots and of the pages that
// have storage.
func TestSlots(t *testing.T) {
	for _, atMost := range []int{1, 2, 3, 64, 65, slotsPerPage} {
		rng := rand.New(rand.NewPCG(uint64(atMost), 1))
		s := newSlots(atMost)
		perPage := int(s.perPage)
		if perPage > atMost || 2*perPage <= atMost {
			t.Errorf("%d in a page, at most %d fit", perPage, atMost)
		}
		taken := make(map[uint32]bool)
		storage := make(map[uint32]bool)
		var list []uint32
		for step := range 30000 {
			if growing := step/6000%2 == 0; len(list) == 0 || rng.IntN(100) < 35+30*int(count(growing)) {
				i, fresh := s.alloc()
				page := i / uint32(perPage)
				if taken[i] || fresh == storage[page] {
					t.Fatalf("perPage %d: alloc returned slot %d (in use %v), fresh %v with storage %v", perPage, i, taken[i], fresh, storage[page])
				}
				taken[i], storage[page] = true, true
				list = append(list, i)
				continue
			}
			k := rng.IntN(len(list))
			i := list[k]
			list = slices.Delete(list, k, k+1)
			delete(taken, i)
			page, gone := s.free(i)
			if page != i/uint32(perPage) {
				t.Fatalf("slot %d is in page %d, free returned %d", i, i/uint32(perPage), page)
			}
			if gone {
				for j := range taken {
					if j/uint32(perPage) == page {
						t.Fatalf("perPage %d: page %d was freed, but slot %d is in use", perPage, page, j)
					}
				}
				delete(storage, page)
			}
			if step%100 == 0 {
				if err := checkSlots(&s); err != nil || used(&s) != len(list) {
					t.Fatalf("perPage %d: %d used of %d: %v", perPage, used(&s), len(list), err)
				}
			}
		}
		for _, i := range list {
			if page, gone := s.free(i); gone {
				delete(storage, page)
			}
		}
		if len(storage) != 1 || s.empty != 1 {
			t.Errorf("perPage %d: after all frees, %d pages have storage and %d count as empty, want one", perPage, len(storage), s.empty)
		}
	}
}
