// Package heap implements heaps whose elements store their positions, so that any element
// can be moved or removed. It is like container/heap for elements of one type, which
// define their own order.
package heap

// An Element is an element of a heap, usually a pointer.
type Element[T any] interface {
	// Before reports whether the element precedes another.
	Before(T) bool

	// Moved sets the position of the element in the heap, or -1 if it was removed.
	Moved(place int)
}

// Push adds an element.
func Push[S ~[]T, T Element[T]](h *S, x T) {
	*h = append(*h, x)
	up(*h, len(*h)-1, x)
}

// Pop removes and returns the first element.
func Pop[S ~[]T, T Element[T]](h *S) T { return Remove(h, 0) }

// Remove removes and returns the element at a position.
func Remove[S ~[]T, T Element[T]](h *S, place int) T {
	var none T
	out, last := (*h)[place], len(*h)-1
	x := (*h)[last]
	(*h)[last] = none
	*h = (*h)[:last]
	if place < last {
		(*h)[place] = x
		Fix(*h, place)
	}
	out.Moved(-1)
	return out
}

// Fix restores the order after the element at a position has changed.
func Fix[S ~[]T, T Element[T]](h S, place int) {
	if x := h[place]; place > 0 && x.Before(h[(place-1)/2]) {
		up(h, place, x)
	} else {
		down(h, place, x)
	}
}

// up inserts an element at a position, or above it while the element precedes its parent.
func up[S ~[]T, T Element[T]](h S, place int, x T) {
	for place > 0 {
		parent := (place - 1) / 2
		if !x.Before(h[parent]) {
			break
		}
		h[place] = h[parent]
		h[place].Moved(place)
		place = parent
	}
	h[place] = x
	x.Moved(place)
}

// down inserts an element at a position, or below it while a child precedes the element.
func down[S ~[]T, T Element[T]](h S, place int, x T) {
	for {
		child := 2*place + 1
		if child >= len(h) {
			break
		}
		if right := child + 1; right < len(h) && h[right].Before(h[child]) {
			child = right
		}
		if !h[child].Before(x) {
			break
		}
		h[place] = h[child]
		h[place].Moved(place)
		place = child
	}
	h[place] = x
	x.Moved(place)
}
