// Package heap keeps a slice as a heap whose elements know their places, so that any of
// them can be moved or taken out. It is container/heap for elements of one type, which
// say themselves what comes first.
package heap

// An Element of a heap of elements of type T, usually a pointer.
type Element[T any] interface {
	// Before reports whether the element comes before another.
	Before(T) bool

	// Moved tells the element that it is at a place of the heap now; -1: in none.
	Moved(place int)
}

// Push adds an element.
func Push[S ~[]T, T Element[T]](h *S, x T) {
	*h = append(*h, x)
	up(*h, len(*h)-1, x)
}

// Pop takes the first element out.
func Pop[S ~[]T, T Element[T]](h *S) T { return Remove(h, 0) }

// Remove takes the element at a place out.
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

// Fix moves the element at a place to where it belongs after it has changed.
func Fix[S ~[]T, T Element[T]](h S, place int) {
	if x := h[place]; place > 0 && x.Before(h[(place-1)/2]) {
		up(h, place, x)
	} else {
		down(h, place, x)
	}
}

// up puts an element at a place or, while it comes before its parent, above it.
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

// down puts an element at a place or, while a child comes before it, below it.
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
