package engine

// A PageSearch finds the first jobs behind a cursor in a list, and reports them. It does
// the same as JobList.Page and Listed together, but within turns, as many as it takes.
type PageSearch struct {
	list  JobList
	left  int // jobs to tell of
	first firstEntries

	// How far it has come.
	page, at  int  // what is left of the list to look at begins at list.pages[page][at]
	sorting   bool // all were looked at
	reporting bool // the first ones are in order
	reported  int  // of them
}

// lookStep is how many entries of a list are a step of a search.
const lookStep = 64

// BeginPage prepares to tell of up to n jobs of a tube in a state behind a cursor.
// Nothing is done before ContinuePage.
func (e *Engine) BeginPage(tube []byte, state State, after Cursor, n int) (PageSearch, Outcome) {
	l, o := e.BeginList(tube, state)
	return PageSearch{list: l, left: n, first: firstEntries{after: after, n: n}}, o
}

// ContinuePage does a slice of a search and reports whether there is more to do. It calls
// each with the present stats of the jobs, in their order, and with the place behind each.
// It skips jobs that are no longer in the state, or have another place in the order, and
// goes on to the next. So if there are fewer than n, the list has no more.
func (e *Engine) ContinuePage(now int64, p *PageSearch, each func(st JobStats, at Cursor)) (more bool) {
	if e.ContinueList(&p.list) {
		return true
	}
	for n := 0; p.left > 0; n++ {
		if e.enough(n) {
			return true
		}
		switch {
		case p.reporting && p.reported < len(p.first.heap):
			x := p.first.heap[p.reported]
			p.reported++
			if st, o := e.Listed(now, &p.list, Listed{x}); o == OK {
				each(st, x.cursor())
				p.left--
			}
		case p.reporting && len(p.first.heap) < p.first.n:
			return false // that was the end of the list
		case p.reporting:
			last := p.first.heap[len(p.first.heap)-1]
			*p = PageSearch{list: p.list, left: p.left, first: firstEntries{after: last.cursor(), n: p.left}}
		case p.sorting:
			e.turnWork++
			p.reporting = !p.first.sort()
		default:
			e.look(p)
		}
	}
	return false
}

// look looks at some entries of the list.
func (e *Engine) look(p *PageSearch) {
	e.turnWork += lookStep / looksPerUnit
	for range lookStep {
		for p.page < len(p.list.pages) && p.at == len(p.list.pages[p.page]) {
			p.page, p.at = p.page+1, 0
		}
		if p.page == len(p.list.pages) {
			p.sorting = true
			return
		}
		if p.first.show(p.list.pages[p.page][p.at]) {
			e.turnWork++
		}
		p.at++
	}
}
