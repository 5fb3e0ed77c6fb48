package api

import "slices"

// firstOf keeps the first n things in an order, of those that it is shown. All others are forgotten on the way.
type firstOf[T any] struct {
	n       int
	compare func(a, b T) int
	kept    []T
	full    bool // there were more than n: the first n of kept are in order, and are the first of all that had come by then
}

// wants reports whether something could be one of the first.
func (f *firstOf[T]) wants(x T) bool { return !f.full || f.compare(x, f.kept[f.n-1]) < 0 }

func (f *firstOf[T]) show(x T) {
	if !f.wants(x) {
		return
	}
	f.kept = append(f.kept, x)
	if len(f.kept) >= 2*f.n {
		f.sorted()
		f.full = true
	}
}

// sorted returns the first ones, in their order.
func (f *firstOf[T]) sorted() []T {
	slices.SortStableFunc(f.kept, f.compare)
	f.kept = f.kept[:min(f.n, len(f.kept))]
	return f.kept
}
