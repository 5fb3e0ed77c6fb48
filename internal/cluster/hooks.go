package cluster

import (
	"errors"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// Observe implements consistency.Replica.
func (m *Member) Observe(f func(entry uint64, changes []engine.Change)) error {
	err := errLeadershipEnds
	m.broker.View(func(*engine.Engine, int64) {
		if m.turn.observe, err = f, nil; f != nil {
			f(m.turn.applied.Index, nil)
		}
	})
	return err
}

// View implements consistency.Replica.
func (m *Member) View(settled bool, f func(*engine.Engine)) (until uint64, err error) {
	t, whole, decides := &m.turn, false, false
	look := func(e *engine.Engine, _ int64) {
		// The engine contains the entries up to applied and, on a leader, later changes.
		if whole = m.currentPhase().applies() && (t.epoch != 0 || t.journal.InFlight() == 0); whole {
			f(e)
			until, decides = t.applied.Index, t.epoch != 0
		}
	}
	if settled {
		err = m.broker.Call(look)
	} else {
		m.broker.View(look)
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

var errLeadershipEnds = errors.New("cluster: the member's leadership is ending; try again")

// Time implements consistency.Replica.
func (m *Member) Time() (now, zero int64) { return m.clock.time(), m.clock.zero }
