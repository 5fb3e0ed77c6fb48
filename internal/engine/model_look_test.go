package engine

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// next returns the time of the first due event, and the function that executes it.
func (m *model) next() (at int64, do func(now int64)) {
	at = Never
	for _, t := range slices.SortedFunc(slices.Values(m.tubes), func(a, b *modelTube) int { return cmp.Compare(a.born, b.born) }) {
		due := int64(Never)
		if delayed := m.inTube(Delayed, t.name); len(delayed) > 0 {
			due = delayed[0].due
		}
		if t.paused {
			due = min(due, t.pauseEnds)
		}
		if t.closed {
			due = min(due, t.opensAt)
		}
		if due < at {
			at, do = due, func(now int64) { m.tubeDue(now, t) }
		}
	}
	for _, s := range m.sessions { // the sessions are in the order of their start
		due := int64(Never)
		if held := m.heldBy(s); len(held) > 0 {
			due = held[0].due
		}
		if s.waiting {
			if due != Never {
				due -= second
			}
			due = min(due, s.timeout)
		}
		if due < at {
			at, do = due, func(now int64) { m.sessionDue(now, s) }
		}
	}
	return at, do
}

func (m *model) tubeDue(now int64, t *modelTube) {
	if delayed := m.inTube(Delayed, t.name); len(delayed) > 0 && delayed[0].due <= now {
		m.makeReady(now, delayed[0].due, delayed[0])
		return
	}
	if t.paused && t.pauseEnds <= now {
		t.paused = false
	} else {
		m.reopen(now, t)
	}
	m.match(now)
}

func (m *model) sessionDue(now int64, s *modelSession) {
	held := m.heldBy(s)
	switch {
	case s.waiting && len(held) > 0 && held[0].due <= now+second:
		m.tell(s, nil, DeadlineSoon)
	case s.waiting:
		m.tell(s, nil, TimedOut)
	default:
		held[0].timeouts++
		m.find(held[0].tube).timeouts++
		m.stats.Timeouts++
		m.lose(now, held[0], Timeout)
	}
}

// tickTo processes due events. places contains the jobs in the order of the engine's
// storage.
func (m *model) tickTo(now int64, places []uint64) {
	m.turn = now
	for at, do := m.next(); at <= now; at, do = m.next() {
		do(now)
	}
	if m.sweepAt <= now && !m.stales() {
		m.sweepAt = Never
	}
	if m.sweepAt <= now {
		for _, id := range places {
			if j := m.jobs[id]; j != nil {
				m.stale(now, j)
			}
		}
		m.sweepAt = now + modelPass
	}
}

// tubeStats recounts all values.
func (m *model) tubeStats(now int64, t *modelTube) TubeStats {
	st := TubeStats{TubeCounts: TubeCounts{TotalJobs: t.puts, Deletes: t.deletes, Pauses: t.stop, Timeouts: t.timeouts, Releases: t.releases, Buries: t.buries, Failed: t.failed, Exhausted: t.exhausted, Duplicates: t.duplicates, Queued: t.queued, Worked: t.worked}}
	for _, j := range m.jobs {
		if j.tube == t.name {
			st.Bytes += uint64(len(j.body))
			st.Urgent += count(j.state == Ready && j.pri < 1024)
			st.Ready += count(j.state == Ready)
			st.Reserved += count(j.state == Reserved)
			st.Delayed += count(j.state == Delayed)
			st.Buried += count(j.state == Buried)
		}
	}
	for _, s := range m.sessions {
		st.Using += count(s.use == t.name)
		st.Watching += count(slices.Contains(s.watches, t.name))
		st.Waiting += count(s.waiting && slices.Contains(s.watches, t.name))
	}
	if ready := m.inTube(Ready, t.name); len(ready) > 0 {
		st.OldestReady = now - ready[0].since
		st.Dead = ready[0].origin != ""
	}
	if buried := m.inTube(Buried, t.name); len(buried) > 0 {
		st.Dead = st.Dead || buried[0].origin != ""
	}
	if t.paused {
		st.Pause, st.PauseLeft = int64(t.pause), max(0, t.pauseEnds-now)/second
	}
	if until := m.policyOf(t.name).PausedUntil; until != 0 && until > now {
		if left := min(until-now, math.MaxUint32*second) / second; left >= st.PauseLeft {
			st.Pause, st.PauseLeft = max(left, 1), left
		}
	}
	return st
}

func (m *model) allStats(now int64) Stats {
	st := m.stats
	for _, t := range m.tubes {
		ts := m.tubeStats(now, t)
		st.Bytes += ts.Bytes
		st.Urgent += ts.Urgent
		st.Ready += ts.Ready
		st.Reserved += ts.Reserved
		st.Delayed += ts.Delayed
		st.Buried += ts.Buried
		st.Tubes++
	}
	for _, s := range m.sessions {
		st.Sessions++
		st.Producers += count(s.producer)
		st.Workers += count(s.worker)
		st.Waiting += count(s.waiting)
	}
	return st
}

func (m *model) jobStats(now int64, j *modelJob) JobStats {
	st := JobStats{
		ID: j.id, Tube: j.tube, Origin: j.origin, State: j.state, Pri: j.pri, Delay: j.delay, TTR: j.ttr, Age: (now - j.created) / second,
		Counts: Counts{j.reserves, j.timeouts, j.releases, j.buries, j.kicks}, Size: uint32(len(j.body)),
	}
	if j.failed {
		st.Failed = string(j.failure.Append(nil))
	}
	if j.holder != nil {
		st.Holder = uint64(j.holder.num) + 1
		st.Held, st.Touches = now-j.since, j.touches
	}
	if j.state == Reserved || j.state == Delayed {
		st.TimeLeft = max(0, j.due-now) / second
	}
	return st
}

func (m *model) ids() []uint64 { return slices.Sorted(maps.Keys(m.jobs)) }
