package engine

// A PageSearch finds the first jobs of a tube in one state after a cursor, and reports
// them. It takes as many turns as it needs.
//
// The jobs that are in runs it finds at once. Those that are in the heap are not before their
// parents. So it looks at the heap from the top, level by level, and not at what is below a job
// that is too far behind. What it looks at there grows with the number of jobs up to the end of
// the page: the last page of a million jobs in a heap takes some five milliseconds. A heap knows
// no way past the jobs before a cursor.
type PageSearch struct {
	list  jobList
	left  int          // jobs to report
	first firstEntries // of the heap

	// How far it has come.
	looks     int    // number of entries that were looked at
	ahead     []span // places to look at, in order; few, for most are side by side
	sorting   bool   // all were looked at
	reporting bool   // the first ones are in order
	reported  int    // of them
}

// A span is places of a heap that are side by side.
type span struct{ from, to uint32 }

// maxTold is how many jobs a slice of a search reports at most. What is done with one takes several
// times as long as to find it: 500 of them kept every other client waiting for 0.2 ms.
const maxTold = 64

// lookStep is how many entries of a list are a step of a search.
const lookStep = 256

// BeginPage prepares to report up to n jobs of a tube in a state after a cursor, in
// their order: ready ones by (pri, id), delayed and reserved ones by the end of their delay
// or TTR, buried ones in the order of burying. Nothing is done before ContinuePage.
func (e *Engine) BeginPage(tube []byte, state State, after Cursor, n int) (PageSearch, Outcome) {
	l, o := e.list(tube, state, after)
	return PageSearch{list: l, left: n, first: firstEntries{after: after, n: n}}, o
}

// ContinuePage does a slice of a search and reports whether there is more to do. It calls
// each with the present stats of the jobs, in their order, and with the place after each.
// It skips jobs that are no longer in the state, or have another place in the order, and
// goes on to the next. So if there are fewer than n, the list has no more.
func (e *Engine) ContinuePage(now int64, p *PageSearch, each func(st JobStats, at Cursor)) (more bool) {
	if e.continueList(&p.list) {
		return true
	}
	for n, told := 0, 0; p.left > 0; n++ {
		if e.enough(n) || told == maxTold {
			return true
		}
		switch {
		case p.reporting:
			e.turnWork++
			switch x, ok := p.next(&e.jobs); {
			case ok:
				if j := e.listed(&p.list, x); j != nil {
					st, _ := e.JobStats(now, j.id)
					each(st, x.cursor())
					p.left--
					told++
				}
			case len(p.first.heap) < p.first.n:
				return false // that was the end of the list
			default:
				last := p.first.heap[len(p.first.heap)-1]
				*p = PageSearch{list: p.list, left: p.left, first: firstEntries{after: last.cursor(), n: p.left}}
			}
		case p.sorting:
			e.turnWork++
			p.reporting = !p.first.sort()
		default:
			e.look(p)
		}
	}
	return false
}

// next returns the next entry to report and goes past it; ok is false when the rest of the
// heap has to be searched, if there is any.
func (p *PageSearch) next(jobs *jobSlab) (x entry, ok bool) {
	r := p.list.jobs.firstRun(jobs)
	if p.reported < len(p.first.heap) {
		if x := p.first.heap[p.reported]; r == nil || x.before(r.x) {
			p.reported++
			return x, true
		}
	} else if len(p.first.heap) == p.first.n {
		r = nil // what is next in the heap may be before it
	}
	if r == nil {
		return entry{}, false
	}
	r.at++
	return r.x, true
}

// look looks at some entries of the heap.
func (e *Engine) look(p *PageSearch) {
	h := &p.list.jobs.heap
	if p.looks == 0 {
		p.ahead = []span{{0, uint32(min(h.n, 1))}}
	}
	parents := (h.n + 2) / 4 // places with children; most entries are leaves
	e.turnWork += lookStep / looksPerUnit
	for end := p.looks + lookStep; p.looks < end; {
		if len(p.ahead) == 0 {
			p.sorting = true
			return
		}
		from, to := int(p.ahead[0].from), int(p.ahead[0].to)
		if from == to {
			p.ahead = p.ahead[1:]
			continue
		}
		page, at := h.pages[from/entriesPerPage], from%entriesPerPage
		entries := page[at:min(at+to-from, at+end-p.looks, len(page))]
		for i, x := range entries {
			if on := !p.first.after.before(x) || e.show(p, x); on && from+i < parents {
				p.open(from + i)
			}
		}
		p.ahead[0].from += uint32(len(entries))
		p.looks += len(entries)
	}
}

// show shows an entry to the first ones, and reports whether its children may be among
// them, too.
func (e *Engine) show(p *PageSearch, x entry) bool {
	if p.first.show(x) {
		e.turnWork++
		return true
	}
	return p.list.state == Reserved // without order
}

// open adds the children of an entry to what is to be looked at.
func (p *PageSearch) open(parent int) {
	children := span{uint32(4*parent + 1), uint32(min(4*parent+5, p.list.jobs.heap.n))}
	if last := len(p.ahead) - 1; p.ahead[last].to == children.from {
		p.ahead[last].to = children.to
	} else {
		p.ahead = append(p.ahead, children)
	}
}
