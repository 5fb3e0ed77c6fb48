package core

import (
	"fmt"

	"github.com/beanpole-mq/beanpole/internal/test/ledger"
)

// An oracle knows what was committed and what clients were told, and what must follow from it.
type oracle struct {
	wrong        string // what was found first
	ops          uint64
	changes      int    // of the members, proposed
	lastChange   uint64 // index of the last one that was applied
	acknowledged int
	installed    int               // snapshots
	entries      map[uint64]fact   // that were applied anywhere, by index
	epochs       map[uint64]uint64 // by term: who
	jobs         *ledger.Ledger[uint64]
	reads        []*op
}

func newOracle() oracle {
	return oracle{entries: map[uint64]fact{}, epochs: map[uint64]uint64{}, jobs: ledger.New[uint64]()}
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
	o.sent = w.jobs.Now()
	switch o.kind {
	case put:
		w.jobs.Put(o.id)
	case del:
		w.jobs.Delete(o.id)
	}
}

func (w *world) answered(o *op) {
	w.acknowledged++
	switch o.kind {
	case put:
		w.jobs.Inserted(o.id, o.id)
	case del:
		w.jobs.Deleted(o.id)
	case read:
		w.reads = append(w.reads, o)
		if err := w.jobs.Check(ids(o.seen), o.sent); err != nil {
			w.fail("a read that began at %d ms: %v", o.begin/ms, err)
		}
	}
}

// ids is a queue with jobs that are known by their ids.
func ids(all map[uint64]bool) func(func(key, id uint64) bool) {
	return func(yield func(key, id uint64) bool) {
		for id := range all {
			if !yield(id, id) {
				return
			}
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
	if err := w.jobs.Check(ids(jobs), w.jobs.Now()); err != nil {
		w.fail("in the end: %v", err)
	}
	for _, o := range w.reads {
		for id := range o.seen {
			if !ever[id] {
				w.fail("a read at %d ms saw job %d, which nobody ever put", o.begin/ms, id)
			}
		}
	}
}
