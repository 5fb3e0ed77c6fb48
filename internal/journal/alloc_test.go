package journal

import (
	"testing"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// append appends changes, as a turn of the broker does.
func (b *bench) append() error {
	changes := b.eng.TakeChanges()
	defer b.eng.RecycleChanges(changes)
	return b.log.Append(changes)
}

// Logging a job's changes allocates nothing in the steady state.
func TestAllocations(t *testing.T) {
	b := newBench(t, Options{SegmentSize: 64 << 20})
	body := make([]byte, 64)
	spec := engine.Spec{TTR: 60}
	kept, _ := b.eng.Put(b.now, b.s, spec, body)
	for name, do := range map[string]func(){
		"put, delete": func() {
			id, _ := b.eng.Put(b.now, b.s, spec, body)
			b.eng.Delete(b.s, id)
		},
		"put, then delete": func() {
			id, _ := b.eng.Put(b.now, b.s, spec, body)
			if err := b.append(); err != nil {
				t.Fatal(err)
			}
			b.eng.Delete(b.s, id)
		},
		"release": func() {
			b.eng.ReserveJob(b.now, b.s, kept)
			b.eng.Release(b.now, b.s, kept, 1, 0)
		},
	} {
		turn := func() {
			do()
			if err := b.append(); err != nil {
				t.Fatal(err)
			}
		}
		for range 2000 { // until the buffers have grown
			turn()
		}
		if err := b.log.commit(); err != nil {
			t.Fatal(err)
		}
		for range 1000 {
			turn()
		}
		if n := testing.AllocsPerRun(500, turn); n != 0 {
			t.Errorf("%s: %v allocations, want none", name, n)
		}
	}
}
