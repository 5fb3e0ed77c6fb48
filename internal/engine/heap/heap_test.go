package heap

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

type number struct {
	value, place int
}

func (n *number) Before(m *number) bool { return n.value < m.value }
func (n *number) Moved(place int)       { n.place = place }

// After any operations, the smallest element comes first, and each element has its right
// position.
func TestHeap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h []*number
		model := map[*number]bool{}
		value := rapid.IntRange(0, 20)
		any := func() *number { return h[rapid.IntRange(0, len(h)-1).Draw(t, "place")] }
		out := func(n *number) {
			if n.place != -1 || !model[n] {
				t.Fatalf("%+v was removed", n)
			}
			delete(model, n)
		}
		for range rapid.IntRange(0, 100).Draw(t, "steps") {
			switch k := rapid.IntRange(0, 4).Draw(t, "do"); {
			case k < 2 || len(h) == 0:
				n := &number{value.Draw(t, "value"), -1}
				model[n] = true
				Push(&h, n)
			case k == 2:
				n := any()
				n.value = value.Draw(t, "value")
				Fix(h, n.place)
			case k == 3:
				out(Remove(&h, any().place))
			default:
				out(Pop(&h))
			}
			for i, n := range h {
				if n.place != i || !model[n] || i > 0 && n.Before(h[(i-1)/2]) {
					t.Fatalf("%+v is at %d", n, i)
				}
			}
			if len(h) != len(model) {
				t.Fatalf("%d elements, want %d", len(h), len(model))
			}
		}
		var values []int
		for len(h) > 0 {
			values = append(values, Pop(&h).value)
		}
		if !slices.IsSorted(values) {
			t.Fatal(values)
		}
	})
}
