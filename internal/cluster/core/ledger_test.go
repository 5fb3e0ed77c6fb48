package core

import (
	"fmt"
	"slices"
)

// A ledger knows what clients were told and what was committed, and what must follow from it.
type ledger struct {
	wrong        string // what was found first
	ops          uint64
	changes      int    // of the members, proposed
	lastChange   uint64 // index of the last one that was applied
	acknowledged int
	installed    int               // snapshots
	entries      map[uint64]fact   // that were applied anywhere, by index
	epochs       map[uint64]uint64 // by term: who
	puts, dels   map[uint64]*story // by job
	reads        []*op
}

// A story is one fact of a job as its client knows it.
type story struct {
	begin, acked int64 // acked 0: never, as far as is known
}

func newLedger() ledger {
	return ledger{entries: map[uint64]fact{}, epochs: map[uint64]uint64{}, puts: map[uint64]*story{}, dels: map[uint64]*story{}}
}

func (w *world) fail(format string, args ...any) {
	if w.wrong == "" {
		w.wrong = fmt.Sprintf("at %d ms: ", w.now/ms) + fmt.Sprintf(format, args...)
	}
}

// committed notes that a member has applied a fact: all members apply the same.
func (w *world) committed(m *member, f fact) {
	w.agree(m, f)
	if n := len(m.applied); n > 1 && m.applied[n-2].Index+1 != f.Index {
		w.fail("member %d applied entry %d after %d", m.id, f.Index, m.applied[n-2].Index)
	}
}

// agree holds a fact that a member has against those that others have.
func (w *world) agree(m *member, f fact) {
	old, ok := w.entries[f.Index]
	if ok && old != f {
		w.fail("member %d applied %+v, another one %+v", m.id, f, old)
	}
	if !ok {
		w.entries[f.Index] = f
		if before := w.entries[f.Index-1]; f.kind != 0 && before.kind != 0 && f.stamp <= before.stamp {
			w.fail("entry %+v has a stamp that is not after that of %+v", f, before)
		}
	}
}

func (w *world) active(m *member) {
	_, term := m.core.Leader()
	if other, ok := w.epochs[term]; ok && other != m.id {
		w.fail("members %d and %d are active in term %d", m.id, other, term)
	}
	w.epochs[term] = m.id
}

func (w *world) begun(o *op) {
	switch o.kind {
	case put:
		w.puts[o.id] = &story{begin: o.begin}
	case del:
		if w.dels[o.id] == nil {
			w.dels[o.id] = &story{begin: o.begin}
		}
	}
}

func (w *world) answered(o *op) {
	w.acknowledged++
	switch o.kind {
	case put:
		w.puts[o.id].acked = w.now
	case del:
		w.dels[o.id].acked = w.now
	case read:
		w.checkRead(o)
		w.reads = append(w.reads, o)
	}
}

// checkRead checks that a read saw what was acknowledged before it began.
func (w *world) checkRead(o *op) {
	for id, p := range w.puts {
		if d := w.dels[id]; p.acked != 0 && p.acked < o.begin && d == nil && !slices.Contains(o.seen, id) {
			w.fail("a read that began at %d ms misses job %d, whose put was acknowledged at %d ms", o.begin/ms, id, p.acked/ms)
		}
	}
	for id, d := range w.dels {
		if d.acked != 0 && d.acked < o.begin && slices.Contains(o.seen, id) {
			w.fail("a read that began at %d ms sees job %d, whose delete was acknowledged at %d ms", o.begin/ms, id, d.acked/ms)
		}
	}
}

// checkRoles checks that all who have applied the same have the same members.
func (w *world) checkRoles(most *member) {
	for _, m := range w.members {
		if !m.up || m.gone || most.core == nil || m.core.Applied() != most.core.Applied() {
			continue
		}
		conf, _ := m.core.Conf()
		want, _ := most.core.Conf()
		if err := want.Equivalent(conf); err != nil {
			w.fail("members %d and %d have other roles: %v", m.id, most.id, err)
		}
	}
}

// audit compares what was acknowledged with what is there.
func (w *world) audit() {
	if w.wrong != "" {
		return
	}
	var most *member
	for _, m := range w.members {
		if most == nil || len(m.applied) > len(most.applied) {
			most = m
		}
	}
	w.checkRoles(most)
	jobs, ever := map[uint64]bool{}, map[uint64]bool{}
	for _, f := range most.applied {
		switch f.kind {
		case put:
			jobs[f.id], ever[f.id] = true, true
		case del:
			delete(jobs, f.id)
		}
	}
	for id, p := range w.puts {
		if p.acked != 0 && w.dels[id] == nil && !jobs[id] {
			w.fail("job %d, whose put was acknowledged at %d ms, is gone", id, p.acked/ms)
		}
	}
	for id, d := range w.dels {
		if d.acked != 0 && jobs[id] {
			w.fail("job %d, whose delete was acknowledged at %d ms, is there", id, d.acked/ms)
		}
	}
	for _, o := range w.reads {
		for _, id := range o.seen {
			if !ever[id] {
				w.fail("a read at %d ms saw job %d, which nobody ever put", o.begin/ms, id)
			}
		}
	}
}
