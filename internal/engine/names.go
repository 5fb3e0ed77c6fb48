package engine

import "slices"

// Names is a list of tube names as it was at one moment. It never changes, so
// that any goroutine may read it while the engine goes on: the reply to a
// list-tubes of 100,000 tubes is over a megabyte, and is not formatted within a
// turn.
type Names struct {
	pages []namePage // all full but the last of the n names
	n     int
	bytes int
}

// namesPerPage is a compromise: the first change after a snapshot copies one
// header a page, and the first of each page copies that page.
const namesPerPage = 256

// Len returns how many names there are.
func (l Names) Len() int { return l.n }

// Bytes returns how long the names are together, in bytes.
func (l Names) Bytes() int { return l.bytes }

// At returns a name by its place, from 0 to Len-1.
func (l Names) At(i int) string { return l.pages[i/namesPerPage].names[i%namesPerPage] }

// A nameList is the list as it goes on, from which snapshots are taken: copy on
// write, by pages. So a snapshot costs nothing, and what it costs those who make
// or remove a tube after it depends little on how many there are.
type nameList struct {
	Names
	epoch  uint64 // how many snapshots were taken
	shared bool   // the last of them has the same headers of pages
}

type namePage struct {
	names []string
	epoch uint64 // of the list when the array was made; later snapshots may share it
}

// snapshot returns the list as it is now.
func (l *nameList) snapshot() Names {
	l.epoch++
	l.shared = true
	return l.Names
}

// unshare makes the headers of pages the list's own.
func (l *nameList) unshare() {
	if l.shared {
		l.pages = slices.Clone(l.pages)
		l.shared = false
	}
}

// push adds a name at the end.
func (l *nameList) push(name string) {
	l.unshare()
	p := l.n / namesPerPage
	switch {
	case p == len(l.pages) && p == 0: // it starts small: a session has such a list too
		l.pages = append(l.pages, namePage{epoch: l.epoch})
	case p == len(l.pages):
		l.pages = append(l.pages, namePage{make([]string, 0, namesPerPage), l.epoch})
	}
	page := l.writable(p)
	page.names = append(page.names, name)
	l.n++
	l.bytes += len(name)
}

// remove takes the name at place i out. The last takes its place, and is
// returned: it may be that name itself.
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

// trim gives empty pages back, but for one behind the last in use.
func (l *nameList) trim() {
	if keep := usedPages(l.n) + 1; len(l.pages) > keep {
		clear(l.pages[keep:])
		l.pages = l.pages[:keep]
	}
}

func usedPages(n int) int { return (n + namesPerPage - 1) / namesPerPage }

// writable returns a page that can be changed without changing a snapshot: a copy,
// if a snapshot has the page too. The headers are the list's own already.
func (l *nameList) writable(p int) *namePage {
	page := &l.pages[p]
	if page.epoch != l.epoch {
		page.names = append(make([]string, 0, cap(page.names)), page.names...)
		page.epoch = l.epoch
	}
	return page
}
