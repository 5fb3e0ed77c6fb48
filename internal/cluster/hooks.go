package cluster

import (
	"errors"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// Observe lets f hear, within turns, of the last entry that was applied and no changes,
// and then of each entry that is applied and what it changes. It takes the place of the
// one before; nil: nobody hears of them.
func (m *Member) Observe(f func(entry uint64, changes []engine.Change)) error {
	err := errLeadershipEnds
	m.broker.Look(func(*engine.Engine, int64) {
		if m.turn.observe, err = f, nil; f != nil {
			f(m.turn.applied.Index, nil)
		}
	})
	return err
}

// View calls f in a turn with an engine that has what the entries say which were applied
// or, at a leader, what it has decided after them. If it is settled View returns when
// nothing of that can be lost any more, and an entry that none of it comes after.
func (m *Member) View(settled bool, f func(*engine.Engine)) (until uint64, err error) {
	t, whole, decides := &m.turn, false, false
	look := func(e *engine.Engine, _ int64) {
		if whole = t.isWhole(); whole {
			f(e)
			until, decides = t.applied.Index, t.epoch != 0
		}
	}
	if settled {
		err = m.broker.Call(look)
	} else {
		m.broker.Look(look)
	}
	switch {
	case err != nil:
		return 0, err
	case !whole:
		return 0, errLeadershipEnds
	case settled && decides && !m.inLoop(func() { until = max(until, m.raft.core.Status().GetCommit()) }):
		return 0, ErrStopped
	}
	return until, nil
}

var errLeadershipEnds = errors.New("cluster: the member's leadership ends at the moment; try again")

// Time returns the cluster's time, and what it was when the engine's clock showed 0.
func (m *Member) Time() (now, zero int64) { return m.clock.time(), m.clock.zero }
