package engine

import "unsafe"

// A PageSearch finds the first jobs of a tube in one state after a cursor, and reports
// them. It takes as many turns as it needs.
type PageSearch struct {
	list   jobList
	left   int // jobs to report
	search viewSearch
}

// maxTold is the maximum number of jobs that a slice of a search reports. Processing a
// job takes several times as long as finding it: 500 jobs delayed all other clients by
// 0.2 ms.
const maxTold = 64

// BeginPage prepares to report up to n jobs of a tube in a state after a cursor, in
// their order: ready ones by (pri, id), delayed and reserved ones by the end of their delay
// or TTR, buried ones in the order of burying. Nothing is done before ContinuePage.
func (e *Engine) BeginPage(tube []byte, state State, after Cursor, n int) (PageSearch, Outcome) {
	l, o := e.list(tube, state, after)
	return PageSearch{l, n, newViewSearch(after, n)}, o
}

// Memory returns the memory of the search, in bytes. It grows with the number of jobs to
// report, and with all reserved jobs of the tube if those are searched.
func (p *PageSearch) Memory() int64 {
	entries := cap(p.search.first.entries)
	if p.list.state == Reserved {
		entries += p.list.jobs.heap.n
	}
	return int64(entries) * int64(unsafe.Sizeof(entry{}))
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
		if !p.search.over {
			e.turnWork += p.search.step(&p.list.jobs, p.list.state != Reserved)
			if e.Spent() {
				return true // a step looks at 256 entries
			}
			continue
		}
		e.turnWork++
		switch x, ok := p.search.next(&p.list.jobs, &e.jobs); {
		case ok:
			if j := e.listed(&p.list, x); j != nil {
				st, _ := e.JobStats(now, j.id)
				each(st, x.cursor())
				p.left--
				told++
			}
		case p.search.atEnd():
			return false
		default:
			p.search = newViewSearch(p.search.last(), p.left)
		}
	}
	return false
}
