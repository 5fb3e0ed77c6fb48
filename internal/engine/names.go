package engine

import "slices"

// Names is an immutable snapshot of a list of tube names. It is safe for concurrent use
// while the engine continues. The reply to list-tubes for 100,000 tubes is larger than a
// megabyte, so it is formatted from a snapshot outside turns.
type Names struct {
	pages []namePage // all full but the last of the n names
	n     int
	bytes int
}

// namesPerPage is a compromise. The first change after a snapshot copies the headers of
// all pages, and the first change of a page copies the page.
const namesPerPage = 256

// Len returns the number of names.
func (l Names) Len() int { return l.n }

// Bytes returns the total length of the names.
func (l Names) Bytes() int { return l.bytes }

// At returns the i-th name, from 0 to Len-1.
func (l Names) At(i int) string { return l.pages[i/namesPerPage].names[i%namesPerPage] }

// A nameList is a mutable list of names. Pages are copied on write, so that a snapshot is
// free and a later change of a long list is cheap.
type nameList struct {
	Names
	epoch  uint64 // number of snapshots so far
	shared bool   // the last snapshot shares the slice of pages
}

type namePage struct {
	names []string
	epoch uint64 // epoch of the list when names was created; later snapshots can share names
}

// snapshot returns the current list.
func (l *nameList) snapshot() Names {
	l.epoch++
	l.shared = true
	return l.Names
}

// unshare makes a private copy of the slice of pages if it is shared.
func (l *nameList) unshare() {
	if l.shared {
		l.pages = slices.Clone(l.pages)
		l.shared = false
	}
}

// push appends a name.
func (l *nameList) push(name string) {
	l.unshare()
	p := l.n / namesPerPage
	switch {
	case p == len(l.pages) && p == 0: // small at first, for the few tubes that a session watches
		l.pages = append(l.pages, namePage{epoch: l.epoch})
	case p == len(l.pages):
		l.pages = append(l.pages, namePage{make([]string, 0, namesPerPage), l.epoch})
	}
	page := l.writable(p)
	page.names = append(page.names, name)
	l.n++
	l.bytes += len(name)
}

// remove removes name i and moves the last name to its place. It returns the last name,
// which can be the removed name.
func (l *nameList) remove(i int) (last string) {
	l.unshare()
	l.bytes -= len(l.At(i))
	l.n--
	page := l.writable(l.n / namesPerPage)
	k := l.n % namesPerPage
	last = page.names[k]
	page.names[k] = ""
	page.names = page.names[:k]
	if i < l.n {
		l.writable(i / namesPerPage).names[i%namesPerPage] = last
	}
	l.trim()
	return last
}

// trim frees empty pages, except one after the last page in use.
func (l *nameList) trim() {
	if keep := usedPages(l.n) + 1; len(l.pages) > keep {
		clear(l.pages[keep:])
		l.pages = l.pages[:keep]
	}
}

func usedPages(n int) int { return (n + namesPerPage - 1) / namesPerPage }

// writable returns page p, after copying it if a snapshot shares it. The list must be
// unshared.
func (l *nameList) writable(p int) *namePage {
	page := &l.pages[p]
	if page.epoch != l.epoch {
		page.names = append(make([]string, 0, cap(page.names)), page.names...)
		page.epoch = l.epoch
	}
	return page
}
