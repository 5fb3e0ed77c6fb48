package engine

import "slices"

// Names is an immutable snapshot of a list of tube names. It is safe for concurrent use
// while the engine continues. The reply to list-tubes for 100,000 tubes is larger than a
// megabyte, so it is formatted from a snapshot outside turns.
type Names struct {
	names []string
	bytes int
}

// Len returns the number of names.
func (l Names) Len() int { return len(l.names) }

// Bytes returns the total length of the names.
func (l Names) Bytes() int { return l.bytes }

// At returns the i-th name, from 0 to Len-1.
func (l Names) At(i int) string { return l.names[i] }

// A nameList is a mutable list of names. It shares its array with its snapshots: push
// writes behind them, and remove copies a shared array first.
type nameList struct {
	Names
	shared bool
}

// snapshot returns the current list.
func (l *nameList) snapshot() Names {
	l.shared = true
	return l.Names
}

// push appends a name.
func (l *nameList) push(name string) {
	l.names = append(l.names, name)
	l.bytes += len(name)
}

// remove removes name i and moves the last name there. It returns the last name, which
// can be the removed name.
func (l *nameList) remove(i int) (last string) {
	if l.shared {
		l.names, l.shared = slices.Clone(l.names), false
	}
	l.bytes -= len(l.names[i])
	end := len(l.names) - 1
	last = l.names[end]
	l.names[i] = last
	l.names[end] = ""
	l.names = l.names[:end]
	return last
}
