package engine

// A PageSearch finds the first jobs of a tube in one state behind a cursor, and reports
// them. It takes as many turns as it needs.
//
// The jobs are in a heap: none is before its parent. So it looks at the heap from the top,
// level by level, and not at what is below a job that is too far behind. What it looks at grows
// with the number of jobs up to the end of the page: the first page of a long list takes a
// tenth of a millisecond, the last page of a million jobs some five. A heap knows no way past the
// jobs before a cursor.
type PageSearch struct {
	list  jobList
	left  int // jobs to report
	first firstEntries

	// How far it has come.
	looks     int      // number of entries that were looked at
	parents   []uint32 // places of entries whose children are to be looked at
	sorting   bool     // all were looked at
	reporting bool     // the first ones are in order
	reported  int      // of them
}

// lookStep is how many families of a heap are a step of a search.
const lookStep = 64

// BeginPage prepares to report up to n jobs of a tube in a state behind a cursor, in
// their order: ready ones by (pri, id), delayed and reserved ones by the end of their delay
// or TTR, buried ones in the order of burying. Nothing is done before ContinuePage.
func (e *Engine) BeginPage(tube []byte, state State, after Cursor, n int) (PageSearch, Outcome) {
	l, o := e.list(tube, state)
	return PageSearch{list: l, left: n, first: firstEntries{after: after, n: n}}, o
}

// ContinuePage does a slice of a search and reports whether there is more to do. It calls
// each with the present stats of the jobs, in their order, and with the place behind each.
// It skips jobs that are no longer in the state, or have another place in the order, and
// goes on to the next. So if there are fewer than n, the list has no more.
func (e *Engine) ContinuePage(now int64, p *PageSearch, each func(st JobStats, at Cursor)) (more bool) {
	if e.continueList(&p.list) {
		return true
	}
	for n := 0; p.left > 0; n++ {
		if e.enough(n) {
			return true
		}
		switch {
		case p.reporting && p.reported < len(p.first.heap):
			e.turnWork++
			x := p.first.heap[p.reported]
			p.reported++
			if j := e.listed(&p.list, x); j != nil {
				st, _ := e.JobStats(now, j.id)
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
	e.turnWork += 4 * lookStep / looksPerUnit
	if p.looks == 0 {
		e.lookAt(p, 0, 1)
	}
	for range lookStep {
		if len(p.parents) == 0 {
			p.sorting = true
			return
		}
		first := 4*int(p.parents[0]) + 1
		p.parents = p.parents[1:]
		e.lookAt(p, first, first+4)
	}
}

// lookAt looks at the entries at some places, as far as there are any, and notes whose
// children to look at.
func (e *Engine) lookAt(p *PageSearch, from, to int) {
	h := &p.list.jobs
	to = min(to, h.n)
	for i := from; i < to; i++ {
		p.looks++
		switch x := *h.at(i); {
		case p.first.passed(x):
		case p.first.show(x):
			e.turnWork++
		case p.list.state != Reserved: // so the list is ordered: the children are further behind
			continue
		}
		if 4*i+1 < h.n {
			p.parents = append(p.parents, uint32(i))
		}
	}
}
