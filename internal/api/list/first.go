package list

import "slices"

// First keeps the first n elements in an order, of those passed to Show.
type First[T any] struct {
	N       int
	Compare func(a, b T) int

	kept []T
	full bool // N elements have been sorted: the first N of kept are the first of all elements until then
}

// Wants reports whether x can be one of the first.
func (f *First[T]) Wants(x T) bool { return !f.full || f.Compare(x, f.kept[f.N-1]) < 0 }

// Show passes an element.
func (f *First[T]) Show(x T) {
	if !f.Wants(x) {
		return
	}
	f.kept = append(f.kept, x)
	if len(f.kept) >= 2*f.N {
		f.Sorted()
		f.full = true
	}
}

// Sorted returns the first elements in their order.
func (f *First[T]) Sorted() []T {
	slices.SortStableFunc(f.kept, f.Compare)
	f.kept = f.kept[:min(f.N, len(f.kept))]
	return f.kept
}
