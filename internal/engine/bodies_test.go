package engine

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// The class of a body is the smallest one in which the body fits. Above 128 bytes, at
// most an eighth of a slot is wasted.
func TestClasses(t *testing.T) {
	for n := 1; n <= maxClassed; n++ {
		c := classOf(uint32(n))
		size := classSize(c)
		if n > size || c > 0 && n <= classSize(c-1) {
			t.Fatalf("%d bytes are in class %d of %d bytes", n, c, size)
		}
		if n > 128 && 8*(size-n) > size {
			t.Fatalf("%d bytes waste %d of %d", n, size-n, size)
		}
	}
	if got := classSize(numClasses - 1); got != maxClassed {
		t.Errorf("the last class has %d bytes, want %d", got, maxClassed)
	}
	for c := range numClasses {
		if got := classOf(uint32(classSize(c))); got != c {
			t.Errorf("class %d of %d bytes maps to class %d", c, classSize(c), got)
		}
	}
}

func TestBodies(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	b := newBodies()
	type stored struct {
		slot uint32
		body []byte
	}
	var twin []stored
	size := func() int {
		switch rng.IntN(8) {
		case 0:
			return 0
		case 1:
			return classSize(rng.IntN(40)) + rng.IntN(3) - 1
		case 2:
			return maxClassed - 1 + rng.IntN(3)
		}
		return rng.IntN(300)
	}
	free := func(k int) {
		x := twin[k]
		if got := b.get(x.slot, uint32(len(x.body))); !bytes.Equal(got, x.body) || cap(got) != len(got) {
			t.Fatalf("a body of %d bytes differs, or has capacity %d", len(x.body), cap(got))
		}
		b.free(x.slot, uint32(len(x.body)))
		twin[k] = twin[len(twin)-1]
		twin = twin[:len(twin)-1]
	}
	for step := range 8000 {
		if grow := step < 5000; len(twin) == 0 || rng.IntN(100) < 30+30*int(count(grow)) {
			body := bytes.Repeat([]byte{byte(step)}, size())
			twin = append(twin, stored{b.put(body), body})
		} else {
			free(rng.IntN(len(twin)))
		}
	}
	for len(twin) > 0 {
		free(len(twin) - 1)
	}
	for i := range b.classes {
		if kept := pagesKept(b.classes[i].pages); kept > 1 {
			t.Errorf("drained, class %d keeps %d pages", i, kept)
		}
		if err := checkSlots(&b.classes[i].slots); err != nil {
			t.Error(err)
		}
	}
	if kept := pagesKept(b.large.pages); kept != 0 {
		t.Errorf("drained, %d large bodies are kept", kept)
	}
}

func pagesKept(pages [][]byte) int {
	kept := 0
	for _, p := range pages {
		kept += int(count(p != nil))
	}
	return kept
}

// TestMemoryIsReturned fills and drains an engine, and checks the remaining memory.
func TestMemoryIsReturned(t *testing.T) {
	e := New(Options{})
	s := e.Open(nil)
	const n = 50000
	body := make([]byte, 200)
	for k := range n {
		e.Put(0, s, Spec{Delay: uint32(k % 2)}, body)
	}
	full := e.Memory()
	for id := range uint64(n) {
		e.Delete(s, id+1)
	}
	if kept := e.Memory(); full < n*200 || kept > full/10 {
		t.Errorf("%d jobs take %d bytes, and an empty engine %d", n, full, kept)
	}
	if err := e.Check(); err != nil {
		t.Fatal(err)
	}
	jobs := 0
	for _, p := range e.jobs.pages {
		jobs += int(count(p != nil))
	}
	bodies := pagesKept(e.bodies.class(200).pages)
	leaves := e.jobs.leaves.slots.stored()
	if jobs > 1 || bodies > 1 || leaves > 2 || e.ids.nodes.slots.stored() > 3 {
		t.Errorf("kept: %d pages of jobs, %d of bodies, %d of leaves, %d of the index; want one each, two of leaves, and three of the index",
			jobs, bodies, leaves, e.ids.nodes.slots.stored())
	}
}
