package list

import "slices"

// A First keeps the first N of the elements passed to Show, in the order of Compare.
type First[T any] struct {
	N       int
	Compare func(a, b T) int

	kept []T
	full bool // N elements have been sorted: the first N of kept are the first of all earlier elements
}

// Wants reports whether x can be among the first elements.
func (f *First[T]) Wants(x T) bool { return !f.full || f.Compare(x, f.kept[f.N-1]) < 0 }

// Show adds an element.
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

// Sorted returns the first elements in order.
func (f *First[T]) Sorted() []T {
	slices.SortStableFunc(f.kept, f.Compare)
	f.kept = f.kept[:min(f.N, len(f.kept))]
	return f.kept
}
