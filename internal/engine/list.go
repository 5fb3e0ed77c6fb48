package engine

import (
	"fmt"
	"slices"
)

// A JobList is the jobs of a tube in one state as they were at one moment, in
// their order: ready ones by (pri, id), delayed and reserved ones by the time when
// that ends, buried ones as they were buried. It never changes, so that any
// goroutine may read it while the engine goes on. What there is to tell of a job,
// if it is still there, the engine says: see Listed.
//
// It costs little to make, however many jobs there are: the engine copies a page
// of its heap, of 1024 jobs, when it writes to it for the first time after that.
type JobList struct {
	tube  string
	state State
	pages [][]entry // in no order
	held  *heldJobs // nil when the list is ready
}

// heldJobs is how far the search for the reserved jobs of a tube has come: they
// are in the heaps of the sessions that hold them.
type heldJobs struct {
	session int       // those with a number below were looked at
	pages   [][]entry // what is left to look at of what the last of them held
}

// A Cursor is a place in a list, behind a job; the zero value is the beginning. It
// holds for later lists of the same tube and state too: who goes from page to page
// sees a job exactly once that has been there all the time and has kept its place
// in the order.
type Cursor struct {
	hi     uint64
	lo     uint32
	behind bool // a job; else it is the beginning
}

// String returns the cursor as text: hexadecimal digits and a dot, or nothing for
// the beginning.
func (c Cursor) String() string {
	if !c.behind {
		return ""
	}
	return fmt.Sprintf("%x.%x", c.hi, c.lo)
}

// ParseCursor is the reverse of String.
func ParseCursor(text string) (Cursor, error) {
	c := Cursor{behind: text != ""}
	if c.behind {
		fmt.Sscanf(text, "%x.%x", &c.hi, &c.lo)
	}
	if c.String() != text {
		return Cursor{}, fmt.Errorf("engine: %q is not a cursor: take one that came with a page, or none", text)
	}
	return c, nil
}

// A Listed is a job as a list knows it.
type Listed struct{ x entry }

// BeginList begins a list, which is ready when ContinueList has said so.
func (e *Engine) BeginList(tube []byte, state State) (JobList, Outcome) {
	t := e.byName[string(tube)]
	if t == nil {
		return JobList{}, NotFound
	}
	l := JobList{tube: t.name, state: state}
	switch h := t.heapOf(state); {
	case h != nil:
		l.pages = h.snapshot()
	case state == Reserved:
		l.pages = [][]entry{nil}
		l.held = new(heldJobs)
	default:
		return JobList{}, NotFound
	}
	return l, OK
}

// ContinueList does as much as a turn should bear, and reports whether there is
// more to do: there may be if the list is of reserved jobs, which are looked for
// among all that sessions hold. Those that are reserved all the while are found.
func (e *Engine) ContinueList(l *JobList) (more bool) {
	if l.held == nil {
		return false
	}
	for n := 0; !e.enough(n); n++ {
		e.work++
		h := l.held
		switch {
		case len(h.pages) > 0 && len(h.pages[0]) == 0:
			h.pages = h.pages[1:]
		case len(h.pages) > 0:
			x := h.pages[0][0]
			h.pages[0] = h.pages[0][1:]
			if e.listed(l, x) != nil {
				l.pages[0] = append(l.pages[0], x)
			}
		case h.session < len(e.sessions):
			if s := e.sessions[h.session]; s != nil && s.reserved.n > 0 {
				h.pages = s.reserved.snapshot()
			}
			h.session++
		default:
			l.held = nil
			return false
		}
	}
	return true
}

// Page returns the first jobs behind a cursor, n of them (at least 1) or fewer at
// the end, and the cursor behind them. It takes no turn, but time
// proportional to the length of the list: a few milliseconds for a million jobs.
func (l *JobList) Page(after Cursor, n int) (page []Listed, next Cursor) {
	n = max(n, 1)
	var best []entry                              // at most 2n
	last := entry{hi: ^uint64(0), lo: ^uint32(0)} // no job behind it is on the page
	begin := entry{hi: after.hi, lo: after.lo}
	for _, p := range l.pages {
		for _, x := range p {
			if after.behind && !begin.before(x) || last.before(x) {
				continue
			}
			if best = append(best, x); len(best) == 2*n {
				best = firstEntries(best, n)
				last = best[n-1]
			}
		}
	}
	next = after
	for _, x := range firstEntries(best, n) {
		page = append(page, Listed{x})
		next = Cursor{x.hi, x.lo, true}
	}
	return page, next
}

// firstEntries returns the first n in order, or all if they are fewer.
func firstEntries(all []entry, n int) []entry {
	slices.SortFunc(all, func(a, b entry) int {
		switch {
		case a.before(b):
			return -1
		case b.before(a):
			return 1
		}
		return 0
	})
	return all[:min(n, len(all))]
}

// Listed returns what there is to tell of a job on a list, or NotFound if it is
// not there any more: it is gone, in another tube or state, or has another place
// in the order.
func (e *Engine) Listed(now int64, l *JobList, x Listed) (JobStats, Outcome) {
	e.work++
	j := e.listed(l, x.x)
	if j == nil {
		return JobStats{}, NotFound
	}
	return e.JobStats(now, j.id)
}

// listed returns a job that is as a list says, or nil.
func (e *Engine) listed(l *JobList, x entry) *job {
	if page := int(x.slot / slotsPerPage); page >= len(e.jobs.pages) || e.jobs.pages[page] == nil {
		return nil
	}
	j := e.jobs.at(x.slot) // which may be of another job, or of none
	if e.ids.find(j.id) != x.slot || j.state != l.state || e.tubeOfJob(j).name != l.tube {
		return nil
	}
	if now := e.entryOf(x.slot, j); now != x {
		return nil
	}
	return j
}
