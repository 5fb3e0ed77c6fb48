package engine

import "math"

// A gate closes a tube while its policy permits no reservation. A policy can limit the
// number of reserved jobs or the rate of reservations, or pause the tube. The gate is
// also shut if the head of the tube has more stale jobs (policy_stale.go) than a turn can
// end.
//
// I24. A tube is shut if it is paused or its gate is shut. While a gate is open, the
// number of reserved jobs is below the limit. A shut gate opens when a reservation ends,
// or at opensAt.
type gate struct {
	shut    bool
	counts  bool  // whether the gate counts reservations; see passGate
	opensAt int64 // time in ns at which a shut gate opens; Never if a reservation must end first

	// spent is the time at which the token bucket will be full again, at most one bucket
	// after now. Each reservation adds Policy.Interval (the generic cell rate algorithm).
	spent int64 // ns
	byLog bool  // whether the Log refused a record that the policy needs
}

// neverSpent is the value of spent for a full bucket.
const neverSpent = math.MinInt64 / 2

// needsGate reports whether the policy needs a gate.
func (p *Policy) needsGate() bool {
	return p != nil && (p.MaxReserved > 0 || p.Interval > 0 || p.PausedUntil != 0 || p.TTL > 0 || p.singleAttempt())
}

// burst returns the number of jobs that can be reserved at once after a quiet period.
func (p *Policy) burst() int64 {
	if p.Burst > 0 {
		return int64(p.Burst)
	}
	return max(1, second/p.Interval)
}

// owed returns spent, limited to the time at which an empty bucket would be full.
func (p *Policy) owed(now, spent int64) int64 {
	if p == nil || p.Interval == 0 {
		return neverSpent
	}
	return min(spent, now+p.burst()*p.Interval)
}

// room returns the number of further reservations that are permitted in a tube with the
// given number of reserved jobs.
func (p *Policy) room(reserved int) uint64 {
	room := uint64(math.MaxUint64)
	if p != nil && p.MaxReserved > 0 {
		room = uint64(max(0, int64(p.MaxReserved)-int64(reserved)))
	}
	if p != nil && p.Interval > 0 {
		room = min(room, uint64(p.burst()))
	}
	return room
}

// gateShut reports whether the gate of a tube is shut.
func (t *tube) gateShut() bool { return t.gate != nil && t.gate.shut }

// setPolicy sets or removes the policy of a tube. If the gate must open, Tick opens it. A
// new rate starts with a debt of at most one bucket.
func (e *Engine) setPolicy(t *tube, p *Policy) {
	e.countStales(t.policy, p)
	e.changeKey(t, p)
	if e.opt.Logged && p.singleAttempt() && !t.policy.singleAttempt() && t.jobs() > 0 && !e.policies.restored {
		e.jobPass.beginAttempts()
	}
	t.policy = p
	if t.gate == nil && p.needsGate() {
		t.gate = &gate{spent: neverSpent, opensAt: Never}
	}
	if t.gate != nil {
		t.gate.spent = p.owed(e.now, t.gate.spent)
		t.gate.counts = p != nil && (p.MaxReserved > 0 || p.Interval > 0 || p.singleAttempt())
		if !e.closeGate(e.now, t) {
			e.reopenGate(t)
		}
	}
}

// closedUntil returns the time at which the policy of a tube permits a reservation again.
// It is Never if a reservation must end first. closed is false if the policy permits a
// reservation now.
func (e *Engine) closedUntil(now int64, t *tube) (at int64, closed bool) {
	switch p := t.policy; {
	case p == nil:
	case p.pausedAt(now + e.opt.Epoch):
		return p.pauseEnds(e.opt.Epoch), true
	case p.MaxReserved > 0 && t.reserved >= int(p.MaxReserved):
		return Never, true
	case p.Interval > 0:
		at = t.gate.spent - (p.burst()-1)*p.Interval
		return at, at > now
	}
	return 0, false
}

// passGate records the reservation of a job in a tube whose gate counts reservations.
func (e *Engine) passGate(now int64, t *tube, i slot, j *job, wasReady bool) {
	p := t.policy
	if p.singleAttempt() {
		e.emitState(i, j)
	}
	if wasReady && p.Interval > 0 {
		t.gate.spent = p.owed(now, max(t.gate.spent, now)+p.Interval)
	}
	e.closeGate(now, t)
}

// closeGate shuts the gate of a tube if its policy permits no reservation, and reports
// whether it did.
func (e *Engine) closeGate(now int64, t *tube) bool {
	at, closed := e.closedUntil(now, t)
	if closed {
		e.shutGate(t, at)
		t.gate.byLog = false
	}
	return closed
}

// shutGate shuts the gate of a tube until a time.
func (e *Engine) shutGate(t *tube, until int64) {
	t.gate.shut, t.gate.opensAt, t.shut = true, until, true
	e.arm(&t.timer, until)
}

// shutByLog shuts the gate of a tube for a second because the Log refuses a record that
// the policy needs.
func (e *Engine) shutByLog(t *tube) {
	e.shutGate(t, e.now+second)
	t.gate.byLog = true
}

// reopenGate opens the gate of a tube if no reason to keep it shut remains. If sessions
// wait for ready jobs, Tick opens it and serves them before later sessions.
func (e *Engine) reopenGate(t *tube) {
	g := t.gate
	if !g.shut || e.closeGate(e.now, t) {
		return
	}
	if !t.paused && t.ready.n > 0 && t.waiters.first != nil {
		g.opensAt = e.now
		e.arm(&t.timer, e.now)
		return
	}
	g.shut, g.byLog, g.opensAt, t.shut = false, false, Never, t.paused
}

// openGate opens the gate of a tube when it is due and serves the waiting sessions. If
// they are too many for one turn, the next turn continues.
func (e *Engine) openGate(now int64, t *tube) {
	g := t.gate
	if e.closeGate(now, t) {
		return
	}
	g.shut, g.byLog, g.opensAt, t.shut = false, false, Never, t.paused
	if t.shut {
		return
	}
	for n := 0; t.ready.n > 0; n++ {
		if i := t.ready.top(); e.reservable(now, t, i, e.jobs.at(i), n) {
			break
		}
		if n >= minSlice && e.tickSpent() && t.ready.n > 0 {
			e.shutGate(t, now)
		}
		if t.shut {
			return
		}
	}
	for n := 0; !t.shut && e.serve(now, t); n++ {
		if n >= minSlice && e.tickSpent() && !t.shut {
			e.shutGate(t, now)
		}
	}
}
