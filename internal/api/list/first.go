package list

import "slices"

// First keeps the first n things in an order, of those that it is shown. All others are forgotten on the way.
type First[T any] struct {
	N       int
	Compare func(a, b T) int

	kept []T
	full bool // there were more than n: the first n of kept are in order, and are the first of all that had come by then
}

// Wants reports whether something could be one of the first.
func (f *First[T]) Wants(x T) bool { return !f.full || f.Compare(x, f.kept[f.N-1]) < 0 }

// Show tells of a thing.
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

// Sorted returns the first ones, in their order.
func (f *First[T]) Sorted() []T {
	slices.SortStableFunc(f.kept, f.Compare)
	f.kept = f.kept[:min(f.N, len(f.kept))]
	return f.kept
}
