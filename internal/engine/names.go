package engine

import "slices"

// Names is a snapshot of a list of tube names. It never changes, so any goroutine
// may read it while the engine goes on. The reply to a list-tubes of 100,000 tubes
// has over a megabyte: it is formatted from a snapshot, outside of turns.
type Names struct {
	names []string
	bytes int
}

// Len returns how many names there are.
func (l Names) Len() int { return len(l.names) }

// Bytes returns how long the names are together, in bytes.
func (l Names) Bytes() int { return l.bytes }

// At returns a name by its place, from 0 to Len-1.
func (l Names) At(i int) string { return l.names[i] }

// A nameList is a list that changes, and of which snapshot makes a Names. What is added
// comes after all that a snapshot has. So only a removal has to copy the list: the first
// one after a snapshot.
type nameList struct {
	Names
	shared bool // the last snapshot has the same array
}

// snapshot returns the list as it is now.
func (l *nameList) snapshot() Names {
	l.shared = true
	return l.Names
}

// push adds a name at the end.
func (l *nameList) push(name string) {
	l.names = append(l.names, name)
	l.bytes += len(name)
}

// remove removes the name at place i. The last name takes its place, and is
// returned; it may be the removed name itself.
func (l *nameList) remove(i int) (last string) {
	if l.shared || len(l.names) < cap(l.names)/4 {
		l.names, l.shared = slices.Clone(l.names), false
	}
	end := len(l.names) - 1
	last = l.names[end]
	l.bytes -= len(l.names[i])
	l.names[i], l.names[end] = last, ""
	l.names = l.names[:end]
	return last
}
