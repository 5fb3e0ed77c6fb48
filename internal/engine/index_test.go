package engine

import (
	"errors"
	"math/rand/v2"
	"testing"
)

// idPatterns generate the ids of the remaining jobs, which are consecutive or have gaps.
var idPatterns = map[string]func(k uint64) uint64{
	"consecutive":           func(k uint64) uint64 { return k + 1 },
	"consecutive from 2^40": func(k uint64) uint64 { return 1<<40 + k },
	"every 1024":            func(k uint64) uint64 { return k << 10 },
	"every 2^20":            func(k uint64) uint64 { return k<<20 + 7 },
	"every 2^32":            func(k uint64) uint64 { return k << 32 },
	"pairs":                 func(k uint64) uint64 { return k>>1<<32 | k&1 },
	"highest":               func(k uint64) uint64 { return ^k },
	"mixed":                 func(k uint64) uint64 { return k * 0x94D049BB133111EB },
}

// An indexTwin is an index and a map with the same contents.
type indexTwin struct {
	t    *testing.T
	e    Engine
	x    *index
	twin map[uint64]slot
	ids  []uint64 // keys of twin
}

func newIndexTwin(t *testing.T) *indexTwin {
	w := &indexTwin{t: t, twin: make(map[uint64]slot)}
	w.e.jobs = newJobSlab()
	w.e.ids = newIndex(&w.e.jobs)
	w.x = &w.e.ids
	return w
}

func (w *indexTwin) insert(id uint64) {
	if w.twin[id] != 0 {
		return
	}
	i, j := w.e.jobs.alloc()
	for i == 0 { // so that a zero in the map is unique
		i, j = w.e.jobs.alloc()
	}
	j.id = id
	j.ttr = 1
	w.e.lastID = max(w.e.lastID, id)
	w.x.insert(i, id)
	w.twin[id] = i
	w.ids = append(w.ids, id)
}

func (w *indexTwin) remove(k int) {
	id := w.ids[k]
	w.x.remove(id)
	w.e.jobs.free(w.twin[id], w.e.jobs.at(w.twin[id]))
	delete(w.twin, id)
	w.ids[k] = w.ids[len(w.ids)-1]
	w.ids = w.ids[:len(w.ids)-1]
}

// check finds every existing job and no other, and checks the nodes.
func (w *indexTwin) check() {
	w.t.Helper()
	for id, i := range w.twin {
		if got := w.x.find(id); got != i {
			w.t.Fatalf("job %d: found slot %d, want %d", id, got, i)
		}
		for bit := range 64 {
			if other := id ^ 1<<bit; w.twin[other] == 0 && w.x.find(other) != none {
				w.t.Fatalf("found job %d, which does not exist", other)
			}
		}
	}
	c := checker{e: &w.e}
	n := 0
	c.index(func(slot) { n++ })
	if n != len(w.twin) || w.x.n != uint64(n) {
		c.assert(false, "the index has %d jobs and counts %d, want %d", n, w.x.n, len(w.twin))
	}
	if err := errors.Join(c.broken...); err != nil {
		w.t.Fatal(err)
	}
}

func TestIndex(t *testing.T) {
	for name, id := range idPatterns {
		t.Run(name, func(t *testing.T) {
			const most = 2000
			rng := rand.New(rand.NewPCG(3, 4))
			w := newIndexTwin(t)
			for k := uint64(0); len(w.ids) < most; k++ {
				w.insert(id(k))
				if rng.IntN(4) == 0 {
					w.remove(rng.IntN(len(w.ids)))
				}
				if k%1000 == 0 {
					w.check()
				}
			}
			w.check()
			for len(w.ids) > 0 {
				w.remove(rng.IntN(len(w.ids)))
				if len(w.ids)%1000 == 0 {
					w.check()
				}
			}
			w.check()
			if nodes := used(&w.x.nodes.slots); nodes > 64/idBits {
				t.Errorf("drained, it keeps %d nodes", nodes)
			}
		})
	}
}

// A queue with few jobs at a time creates one node for sixteen ids. The index takes few
// bytes, even if the ids are far apart.
func TestIndexNodes(t *testing.T) {
	w := newIndexTwin(t)
	w.insert(5) // this job stays
	made := 0
	for id := uint64(1_000_000); id < 1_001_600; id++ {
		before := w.x.recent
		w.insert(id)
		w.insert(id + 1600)
		w.remove(2)
		w.remove(1)
		made += int(count(before != w.x.recent))
	}
	if made > 500 {
		t.Errorf("%d times other nodes for 3200 ids", made)
	}
	w.check()
	for name, id := range idPatterns {
		w := newIndexTwin(t)
		for k := range uint64(5000) {
			w.insert(id(k))
		}
		most := 5000.0 / 15 * 1.1
		switch name {
		case "consecutive", "consecutive from 2^40":
		case "pairs":
			most = 5000 / 2 * 10
		default:
			most = 5000
		}
		if nodes := used(&w.x.nodes.slots); float64(nodes) > most+64/idBits {
			t.Errorf("%s: %d nodes for 5000 ids, want %.0f at most", name, nodes, most)
		}
	}
}
