package engine

import "unsafe"

// A PageSearch finds the first jobs of a tube in one state after a cursor. It can take
// several turns.
type PageSearch struct {
	list   jobList
	left   int // jobs to report
	search viewSearch
}

// maxTold is the maximum number of jobs that a slice of a search reports. Processing a
// job takes several times as long as finding it: 500 jobs delayed all other clients by
// 0.2 ms.
const maxTold = 64

// BeginPage prepares a search for up to n jobs of a tube in a state after a cursor. Ready
// jobs are ordered by (pri, id), delayed and reserved jobs by the end of their delay or
// TTR, and buried jobs in the order of burying. ContinuePage executes the search.
func (e *Engine) BeginPage(tube []byte, state State, after Cursor, n int) (PageSearch, Outcome) {
	l, o := e.list(tube, state, after)
	return PageSearch{l, n, newViewSearch(after, n)}, o
}

// Memory returns the memory of the search, in bytes. It grows with n and, for reserved
// jobs, with the number of reserved jobs in the tube.
func (p *PageSearch) Memory() int64 {
	entries := cap(p.search.first.entries)
	if p.list.state == Reserved {
		entries += p.list.jobs.heap.n
	}
	return int64(entries) * int64(unsafe.Sizeof(entry{}))
}

// ContinuePage executes a slice of a search and reports whether more remains. It calls
// each with the current stats of the jobs, in order, and the cursor after each. It skips
// jobs that have changed their state or position. So if it reports fewer than n jobs, the
// list has no more.
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
