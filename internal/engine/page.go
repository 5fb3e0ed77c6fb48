package engine

import (
	"fmt"
	"strconv"

	"github.com/beanpole-mq/beanpole/internal/engine/heap"
)

// A PageSearch finds the first jobs of a tube in one state after a cursor. It can take
// several turns.
type PageSearch struct {
	tube  string
	state State
	after key
	left  int // number of jobs to report

	// The queues of sessions hold the reserved jobs. A search for reserved jobs first
	// collects their keys.
	session int // number of the next session to examine
	from    key // key of the last job that was examined in that session
	found   heldKeys
}

// heldKeys is a heap of keys.
type heldKeys []key

// Moved implements heap.Element. A key has no position.
func (key) Moved(int) {}

// maxReported is the maximum number of jobs that a slice of a search reports. Processing
// a job takes several times as long as finding it: 500 jobs delayed all other clients by
// 0.2 ms.
const maxReported = 64

// A Cursor is a position in a list, after a job. The zero value is the beginning. A
// cursor is also valid for later lists of the same tube and state: a reader that goes
// from page to page sees each job exactly once that stays in the list and keeps its key.
type Cursor struct{ after key }

// String returns the cursor as text: hexadecimal digits and a dot, or "" for the
// beginning.
func (c Cursor) String() string { return string(c.Append(nil)) }

// Append appends the cursor as text.
func (c Cursor) Append(dst []byte) []byte {
	if c == (Cursor{}) {
		return dst
	}
	dst = append(strconv.AppendUint(dst, c.after.first, 16), '.')
	return strconv.AppendUint(dst, c.after.id, 16)
}

// ParseCursor parses the text that String returns.
func ParseCursor(text string) (c Cursor, err error) {
	if text != "" {
		fmt.Sscanf(text, "%x.%x", &c.after.first, &c.after.id)
	}
	if c.String() != text {
		return Cursor{}, fmt.Errorf("engine: invalid cursor %q; use the cursor of a page, or none", text)
	}
	return c, nil
}

// BeginPage prepares a search for up to n jobs of a tube in a state after a cursor.
// ContinuePage executes the search. Ready jobs are ordered by (pri, id), and buried jobs
// in the order of burying. Delayed and reserved jobs are ordered by the end of their
// delay or TTR.
func (e *Engine) BeginPage(tube []byte, state State, after Cursor, n int) (PageSearch, Outcome) {
	t := e.byName[string(tube)]
	if t == nil || state != Reserved && t.queueOf(state) == nil {
		return PageSearch{}, NotFound
	}
	return PageSearch{tube: t.name, state: state, after: after.after, left: n, from: after.after}, OK
}

// Memory returns the memory of the search, in bytes. For reserved jobs, it grows with the
// number of reserved jobs in the tube.
func (p *PageSearch) Memory() int64 { return int64(cap(p.found)) * 16 }

// ContinuePage executes a slice of a search and reports whether more remains. It calls
// each with the current stats of the jobs, in order, and the cursor after each job. If it
// reports fewer than n jobs, the list has no more jobs.
func (e *Engine) ContinuePage(now int64, p *PageSearch, each func(st JobStats, at Cursor)) (more bool) {
	t := e.byName[p.tube]
	if t == nil {
		return false
	}
	if p.state == Reserved {
		return e.continueHeld(now, t, p, each)
	}
	n := 0
	for i := range t.queueOf(p.state).after(p.after) {
		if p.left == 0 {
			break
		}
		if n == maxReported || e.enough(n) {
			return true
		}
		n++
		e.report(now, p, e.jobs.at(i), each)
	}
	return false
}

// continueHeld is ContinuePage for reserved jobs. It skips jobs that were touched or
// returned since it found them.
func (e *Engine) continueHeld(now int64, t *tube, p *PageSearch, each func(st JobStats, at Cursor)) (more bool) {
	n := 0
	for ; p.session < len(e.sessions); n, p.session, p.from = n+1, p.session+1, p.after {
		if e.enough(n) {
			return true
		}
		s := e.sessions[p.session]
		if s == nil {
			continue
		}
		for i := range s.reserved.after(p.from) {
			if e.enough(n) {
				return true
			}
			n++
			e.turnWork++
			j := e.jobs.at(i)
			if p.from = e.jobs.keyOf(j); j.tube() == t.num {
				heap.Push(&p.found, p.from)
			}
		}
	}
	for reported := 0; p.left > 0 && len(p.found) > 0; n++ {
		if reported == maxReported || e.enough(n) {
			return true
		}
		k := heap.Pop(&p.found)
		if i, j := e.lookup(k.id); i != none && j.state() == Reserved && j.tube() == t.num && e.jobs.keyOf(j) == k {
			e.report(now, p, j, each)
			reported++
		}
	}
	return false
}

// report calls each with a job of a search.
func (e *Engine) report(now int64, p *PageSearch, j *job, each func(st JobStats, at Cursor)) {
	e.turnWork++
	p.after = e.jobs.keyOf(j)
	p.left--
	st, _ := e.JobStats(now, j.id)
	each(st, Cursor{p.after})
}
