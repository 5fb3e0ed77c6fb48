package engine

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// The ids of jobs that stay behind: consecutive, or what others left of that.
var idPatterns = map[string]func(k uint64) uint64{
	"consecutive": func(k uint64) uint64 { return k + 1 },
	"every 1024":  func(k uint64) uint64 { return k << 10 },
	"every 2^20":  func(k uint64) uint64 { return k<<20 + 7 },
	"every 2^32":  func(k uint64) uint64 { return k << 32 },
	"highest":     func(k uint64) uint64 { return ^k },
	"mixed":       func(k uint64) uint64 { return k * 0x94D049BB133111EB },
}

func TestIndex(t *testing.T) {
	for name, id := range idPatterns {
		t.Run(name, func(t *testing.T) {
			const most = 20000
			rng := rand.New(rand.NewPCG(3, 4))
			jobs := newJobSlab()
			x := newIndex(&jobs)
			twin := make(map[uint64]slot)
			var present []uint64
			insert := func(k uint64) {
				i, j := jobs.alloc()
				j.id = id(k)
				x.insert(i, j)
				twin[j.id] = i
				present = append(present, j.id)
			}
			remove := func() {
				k := rng.IntN(len(present))
				i := twin[present[k]]
				x.remove(i, jobs.at(i))
				jobs.free(i)
				delete(twin, present[k])
				present[k] = present[len(present)-1]
				present = present[:len(present)-1]
			}
			for k := uint64(0); len(present) < most; k++ {
				insert(k)
				if rng.IntN(4) == 0 {
					remove()
				}
				if k%3000 == 0 {
					checkIndex(t, &x, twin, id)
				}
			}
			checkIndex(t, &x, twin, id)
			if x.buckets < most/2 {
				t.Errorf("%d buckets for %d jobs: it did not grow", x.buckets, most)
			}
			for len(present) > 0 {
				remove()
				if len(present)%3000 == 0 {
					checkIndex(t, &x, twin, id)
				}
			}
			if x.buckets != minBuckets || len(x.pages) != minBuckets/bucketsPerPage {
				t.Errorf("drained, it keeps %d buckets in %d pages", x.buckets, len(x.pages))
			}
		})
	}
}

// An index that expects jobs has their buckets before they come, finds those that
// were there already, and shrinks as ever.
func TestIndexExpects(t *testing.T) {
	id := func(k uint64) uint64 { return k }
	jobs := newJobSlab()
	x := newIndex(&jobs)
	twin := make(map[uint64]slot)
	insert := func(k uint64) {
		i, j := jobs.alloc()
		j.id = k
		x.insert(i, j)
		twin[k] = i
	}
	for k := range uint64(3000) {
		insert(k)
	}
	for _, n := range []uint64{0, 100, 20000, 50} {
		x.expect(n)
		checkIndex(t, &x, twin, id)
	}
	if x.buckets != 20000 {
		t.Errorf("%d buckets, expected were 20000 jobs", x.buckets)
	}
	for k := range uint64(17000) {
		insert(3000 + k)
	}
	checkIndex(t, &x, twin, id)
	if x.buckets != 20000 {
		t.Errorf("%d buckets for the 20000 jobs that were expected", x.buckets)
	}
	for k, i := range twin {
		x.remove(i, jobs.at(i))
		delete(twin, k)
	}
	checkIndex(t, &x, twin, id)
	if x.buckets != minBuckets {
		t.Errorf("drained, it keeps %d buckets", x.buckets)
	}
}

// checkIndex finds each job that is there and none that is not, and looks at
// the length of the chains.
func checkIndex(t *testing.T, x *index, twin map[uint64]slot, id func(uint64) uint64) {
	t.Helper()
	if x.n != uint64(len(twin)) {
		t.Fatalf("the index counts %d, want %d", x.n, len(twin))
	}
	for id, i := range twin {
		if got := x.find(id); got != i {
			t.Fatalf("job %d: found slot %d, want %d", id, got, i)
		}
	}
	for k := range uint64(1000) {
		if _, ok := twin[id(k<<1)]; !ok && x.find(id(k<<1)) != none {
			t.Fatalf("found job %d, which is not there", id(k<<1))
		}
	}
	if err := x.checkMask(); err != nil {
		t.Fatal(err)
	}
	for b := range x.buckets {
		length := 0
		for i := *x.bucket(b); i != none; i = x.jobs.at(i).chain {
			length++
		}
		if length > 48 { // sixteen is what ids with the same low bits have on average
			t.Fatalf("a chain of %d jobs, with %d jobs in %d buckets", length, x.n, x.buckets)
		}
	}
}

func (x *index) checkMask() error {
	switch size := x.mask + 1; {
	case size&x.mask != 0, x.buckets < size, x.buckets > 2*size:
		return fmt.Errorf("%d buckets with mask %#x", x.buckets, x.mask)
	case uint64(len(x.pages)) != (x.buckets+bucketsPerPage-1)/bucketsPerPage:
		return fmt.Errorf("%d buckets in %d pages", x.buckets, len(x.pages))
	}
	return nil
}
