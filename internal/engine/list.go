package engine

import (
	"fmt"
	"strconv"
)

// A jobList contains the jobs that a tube had in one state when the list was made. Making
// it is cheap for any number of jobs, because it is a view of their queue. Reserved jobs
// are collected from the sessions that hold them.
type jobList struct {
	tube    string
	state   State
	jobs    queueView     // unordered if the jobs are reserved
	pending *reservedScan // nil when the list is complete
}

// A reservedScan is the progress of collecting a tube's reserved jobs from the heaps of
// all sessions.
type reservedScan struct {
	session int       // the number of the next session to look at
	pages   [][]entry // unexamined pages of the previous session
}

// A Cursor is a position in a list, after a job. The zero value is the start. It stays
// valid for later lists of the same tube and state. A reader of all pages sees each job
// exactly once if the job stays there and keeps its position.
type Cursor struct {
	hi    uint64
	lo    uint32
	after bool // after a job; otherwise the start
}

// String returns the cursor as text: hexadecimal digits and a dot. The start is the empty
// string.
func (c Cursor) String() string { return string(c.Append(nil)) }

// Append appends the text of the cursor to dst.
func (c Cursor) Append(dst []byte) []byte {
	if !c.after {
		return dst
	}
	dst = append(strconv.AppendUint(dst, c.hi, 16), '.')
	return strconv.AppendUint(dst, uint64(c.lo), 16)
}

// ParseCursor parses the result of String.
func ParseCursor(text string) (Cursor, error) {
	c := Cursor{after: text != ""}
	if c.after {
		fmt.Sscanf(text, "%x.%x", &c.hi, &c.lo)
	}
	if c.String() != text {
		return Cursor{}, fmt.Errorf("engine: %q is not a cursor: take one that came with a page, or none", text)
	}
	return c, nil
}

// list starts listing the jobs after a cursor. Call continueList until it returns false.
// Until then, the result can contain other jobs.
func (e *Engine) list(tube []byte, state State, after Cursor) (jobList, Outcome) {
	t := e.byName[string(tube)]
	if t == nil {
		return jobList{}, NotFound
	}
	l := jobList{tube: t.name, state: state}
	switch q := t.queueOf(state); {
	case q != nil:
		l.jobs = q.view(&e.jobs, after)
		e.turnWork += l.jobs.cost()
	case state == Reserved:
		l.pending = new(reservedScan)
	default:
		return jobList{}, NotFound
	}
	return l, OK
}

// continueList processes a slice of a list and reports whether more remains. Only a list
// of reserved jobs can need several turns: it examines all jobs that sessions hold, and
// finds those that stay reserved until then.
func (e *Engine) continueList(l *jobList) (more bool) {
	if l.pending == nil {
		return false
	}
	for n := 0; !e.enough(n); n++ {
		e.turnWork++
		h := l.pending
		switch {
		case len(h.pages) > 0 && len(h.pages[0]) == 0:
			h.pages = h.pages[1:]
		case len(h.pages) > 0:
			x := h.pages[0][0]
			h.pages[0] = h.pages[0][1:]
			if e.listed(l, x) != nil {
				l.jobs.add(x)
			}
		case h.session < len(e.sessions):
			if s := e.sessions[h.session]; s != nil && s.reserved.n > 0 {
				h.pages = s.reserved.snapshot()
			}
			h.session++
		default:
			l.pending = nil
			return false
		}
	}
	return true
}

// before reports whether x is after the cursor.
func (c Cursor) before(x entry) bool { return !c.after || entry{hi: c.hi, lo: c.lo}.before(x) }

// cursor returns the cursor after an entry.
func (a entry) cursor() Cursor { return Cursor{a.hi, a.lo, true} }

// listed returns the job of an entry, or nil if the job has changed since it was listed.
func (e *Engine) listed(l *jobList, x entry) *job {
	if page := int(x.slot / slotsPerPage); page >= len(e.jobs.pages) || e.jobs.pages[page] == nil {
		return nil
	}
	j := e.jobs.at(x.slot) // the slot can contain another job now, or none
	if e.ids.find(j.id) != x.slot || j.state() != l.state || e.tubeOfJob(j).name != l.tube {
		return nil
	}
	now := e.jobs.entryOf(x.slot, j)
	if j.state() == Reserved {
		now = dueEntry(x.slot, j, e.ttrEnds(j))
	}
	if now != x {
		return nil
	}
	return j
}
