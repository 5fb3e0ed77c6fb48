package core

import (
	"fmt"

	"github.com/beanpole-mq/beanpole/internal/test/ledger"
)

// An oracle records the commits and the replies to clients, and checks that nothing later
// contradicts them.
type oracle struct {
	wrong        string // the first contradiction
	ops          uint64
	changes      int    // number of proposed changes of the members
	lastChange   uint64 // index of the last applied change
	acknowledged int
	installed    int               // number of installed snapshots
	entries      map[uint64]change // changes applied by any member, by index
	epochs       map[uint64]uint64 // leader by term
	jobs         *ledger.Ledger[uint64]
	reads        []*op
}

func newOracle() oracle {
	return oracle{entries: map[uint64]change{}, epochs: map[uint64]uint64{}, jobs: ledger.New[uint64]()}
}

func (sim *simulation) fail(format string, args ...any) {
	if sim.wrong == "" {
		sim.wrong = fmt.Sprintf("at %d ms: ", sim.now/ms) + fmt.Sprintf(format, args...)
	}
}

// committed records that a member has applied a change. All members must apply the same
// changes.
func (sim *simulation) committed(m *member, f change) {
	sim.agree(m, f)
	if n := len(m.applied); n > 1 && m.applied[n-2].Index+1 != f.Index {
		sim.fail("member %d applied entry %d after %d", m.id, f.Index, m.applied[n-2].Index)
	}
}

// agree compares a change that a member has with the other members' change at that index.
func (sim *simulation) agree(m *member, f change) {
	old, ok := sim.entries[f.Index]
	if ok && old != f {
		sim.fail("member %d applied %+v, another one %+v", m.id, f, old)
	}
	if !ok {
		sim.entries[f.Index] = f
		if before := sim.entries[f.Index-1]; f.kind != 0 && before.kind != 0 && f.stamp <= before.stamp {
			sim.fail("entry %+v has a stamp that is not after that of %+v", f, before)
		}
	}
}

func (sim *simulation) active(m *member) {
	term := m.core.Lead().Term
	if other, ok := sim.epochs[term]; ok && other != m.id {
		sim.fail("members %d and %d are active in term %d", m.id, other, term)
	}
	sim.epochs[term] = m.id
}

func (sim *simulation) begun(o *op) {
	o.sent = sim.jobs.Now()
	switch o.kind {
	case put:
		sim.jobs.Put(o.id)
	case del:
		sim.jobs.Delete(o.id)
	}
}

func (sim *simulation) answered(o *op) {
	sim.acknowledged++
	switch o.kind {
	case put:
		sim.jobs.Inserted(o.id, o.id)
	case del:
		sim.jobs.Deleted(o.id)
	case read:
		sim.reads = append(sim.reads, o)
		if err := sim.jobs.Check(ids(o.seen), o.sent); err != nil {
			sim.fail("a read that began at %d ms: %v", o.begin/ms, err)
		}
	}
}

// ids yields the jobs of a queue whose keys are their ids.
func ids(all map[uint64]bool) func(func(key, id uint64) bool) {
	return func(yield func(key, id uint64) bool) {
		for id := range all {
			if !yield(id, id) {
				return
			}
		}
	}
}

// checkRoles checks that members that have applied the same entries have the same roles.
func (sim *simulation) checkRoles(most *member) {
	for _, m := range sim.members {
		if !m.up || m.gone || most.core == nil || m.core.Applied() != most.core.Applied() {
			continue
		}
		conf, _ := m.core.Conf()
		want, _ := most.core.Conf()
		if err := want.Equivalent(conf); err != nil {
			sim.fail("members %d and %d have other roles: %v", m.id, most.id, err)
		}
	}
}

// audit compares the jobs in the queue with the acknowledged jobs.
func (sim *simulation) audit() {
	if sim.wrong != "" {
		return
	}
	var most *member
	for _, m := range sim.members {
		if most == nil || len(m.applied) > len(most.applied) {
			most = m
		}
	}
	sim.checkRoles(most)
	jobs, ever := map[uint64]bool{}, map[uint64]bool{}
	for _, f := range most.applied {
		switch f.kind {
		case put:
			jobs[f.id], ever[f.id] = true, true
		case del:
			delete(jobs, f.id)
		}
	}
	if err := sim.jobs.Check(ids(jobs), sim.jobs.Now()); err != nil {
		sim.fail("in the end: %v", err)
	}
	for _, o := range sim.reads {
		for id := range o.seen {
			if !ever[id] {
				sim.fail("a read at %d ms saw job %d, which nobody ever put", o.begin/ms, id)
			}
		}
	}
}
