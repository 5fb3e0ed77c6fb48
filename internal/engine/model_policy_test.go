package engine

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// policyOf returns the policy of a tube, or a policy that has no effect.
func (m *model) policyOf(tube string) *Policy {
	if m.policies != nil {
		return cmp.Or(m.policies(tube), &Policy{})
	}
	return &Policy{}
}

// lose ends a reservation by a timeout or the end of its session.
func (m *model) lose(now int64, j *modelJob, end Ends) {
	p := m.policyOf(j.tube)
	m.fail(j, end)
	if m.exhaust(now, j, p) {
		return
	}
	m.ready(now, j, m.retryDelay(j, p, end))
	j.logged = j.fields
	m.match(now)
}

// ready makes a job ready at once, or after wait.
func (m *model) ready(now int64, j *modelJob, wait int64) {
	m.leave(j)
	j.state, j.since = Ready, now
	if wait > 0 {
		j.state, j.due = Delayed, now+wait
	}
}

// exhaust ends a job that has exceeded a limit.
func (m *model) exhaust(now int64, j *modelJob, p *Policy) bool {
	cause := -1
	for i, of := range [][2]uint32{{j.reserves, p.MaxAttempts}, {j.timeouts, p.MaxTimeouts}, {j.releases, p.MaxReleases}} {
		allowed := of[1]
		for range min(j.allowances(), 100) {
			allowed += of[1]
		}
		if of[1] > 0 && of[0] >= allowed && cause < 0 {
			cause = i
		}
	}
	if cause < 0 {
		return false
	}
	m.end(PolicyEvent(cause), j, p.Exhausted)
	return true
}

// unlogged reports whether the log lacks the job's last reservation or timeout.
func (j *modelJob) unlogged() bool {
	return j.reserves != j.logged.reserves || j.timeouts != j.logged.timeouts
}

// allowances returns how often a job was kicked while it was buried. Each such kick
// grants the full number of attempts again.
func (j *modelJob) allowances() uint32 {
	if j.state == Buried {
		return min(j.kicks, max(j.buries, 1)-1)
	}
	return min(j.kicks, j.buries)
}

// jobsIn counts the jobs of a tube in all states.
func (m *model) jobsIn(tube string) (n int) {
	for _, j := range m.jobs {
		n += int(count(j.tube == tube))
	}
	return n
}

// end executes the action of a policy on a job.
func (m *model) end(why PolicyEvent, j *modelJob, how Exhausted) {
	m.acted[why]++
	from := j.tube
	if why < Expired {
		m.find(from).exhausted++
		m.fails(from)
	}
	switch how {
	case DeleteExhausted:
		m.leave(j)
		delete(m.jobs, j.id)
		m.collect(from)
		return
	case MoveExhausted:
		dead := strings.ReplaceAll(m.policyOf(from).DeadTube, "{tube}", from)
		m.leave(j)
		if dead == fullTube && dead != from && m.jobsIn(fullTube) >= fullJobs {
			m.acted[DeadTubeFull]++
			break
		}
		if j.origin == "" && dead != from {
			j.origin = from
		}
		j.tube = m.tube(dead).name
	}
	j.buries++
	m.failBuried(j, why.String())
	m.find(j.tube).buries++
	m.leave(j)
	j.state, j.buried = Buried, m.tick()
	j.logged = j.fields
	m.collect(from)
}

// modelPass is the duration of the engine's pass over all jobs in these tests.
const modelPass = 2 * second

// armSweep sets the time of the next pass over all jobs, after a change of tubes or
// policies.
func (m *model) armSweep() {
	if m.sweepAt == Never && m.stales() {
		m.sweepAt = m.turn
	}
}

func (m *model) stales() bool {
	return slices.ContainsFunc(m.tubes, func(t *modelTube) bool { return m.policyOf(t.name).stales() })
}

// whyStale returns the reason why an unreserved job is stale: it has expired, or has used
// its only attempt.
func (m *model) whyStale(now int64, j *modelJob) PolicyEvent {
	p := m.policyOf(j.tube)
	switch age := now - j.created; {
	case j.state == Buried && p.KeepBuried > 0 && age >= p.KeepBuried:
		return BuriedTooLong
	case (j.state == Ready || j.state == Delayed) && p.MaxAttempts == 1 && j.reserves > j.allowances():
		return OutOfAttempts
	case (j.state == Ready || j.state == Delayed) && p.TTL > 0 && age >= p.TTL:
		return Expired
	}
	return NumPolicyEvents
}

// stale ends a stale job.
func (m *model) stale(now int64, j *modelJob) bool {
	p, why, how := m.policyOf(j.tube), m.whyStale(now, j), DeleteExhausted
	switch {
	case why == NumPolicyEvents:
		return false
	case why == OutOfAttempts:
		how = p.Exhausted
	case why == Expired && p.BuryAtTTL:
		how = BuryExhausted
	}
	m.end(why, j, how)
	return true
}

func (m *model) retryDelay(j *modelJob, p *Policy, end Ends) int64 {
	if p.RetryDelay == 0 || p.RetryOn&end == 0 {
		return 0
	}
	m.acted[Retried]++
	n := j.reserves
	for k := uint32(0); k < j.allowances() && p.MaxAttempts > 0 && n > p.MaxAttempts; k++ {
		n -= p.MaxAttempts
	}
	return p.backoff(j.id, n)
}

// leave removes a job from its state. If it was reserved, another job can be reserved.
func (m *model) leave(j *modelJob) {
	was := j.state
	j.state, j.holder = 0, nil
	if was == Reserved {
		m.free(m.find(j.tube))
	}
}

// forgive limits a tube's debt to one bucket.
func (m *model) forgive(now int64, t *modelTube) {
	p := m.policyOf(t.name)
	if p.Interval == 0 {
		t.spent = math.MinInt64 / 2
		return
	}
	t.spent = min(t.spent, now+p.burst()*p.Interval)
}

// closes reports whether a policy forbids reservations from a tube, and when it permits
// them again.
func (m *model) closes(now int64, t *modelTube) (until int64, closed bool) {
	p := m.policyOf(t.name)
	if p.PausedUntil != 0 && p.PausedUntil > now {
		return p.PausedUntil, true
	}
	if p.MaxReserved > 0 && len(m.inTube(Reserved, t.name)) >= int(p.MaxReserved) {
		return Never, true
	}
	if p.Interval == 0 {
		return 0, false
	}
	burst := int64(p.Burst)
	if burst == 0 {
		burst = max(1, second/p.Interval)
	}
	until = t.spent - (burst-1)*p.Interval
	return until, until > now
}

// passed records that a job of a tube was reserved.
func (m *model) passed(now int64, t *modelTube, ready bool) {
	if interval := m.policyOf(t.name).Interval; ready && interval > 0 {
		t.spent = max(t.spent, now) + interval
		m.forgive(now, t)
	}
	if until, closed := m.closes(now, t); closed {
		t.closed, t.opensAt = true, until
	}
}

// free opens a tube unless its policy closes it. If a session waits for a job of the
// tube, the next tick opens it.
func (m *model) free(t *modelTube) {
	if !t.closed {
		return
	}
	if until, closed := m.closes(m.turn, t); closed {
		t.opensAt = until
		return
	}
	waited := slices.ContainsFunc(m.sessions, func(s *modelSession) bool { return s.waiting && slices.Contains(s.watches, t.name) })
	if waited && !t.paused && len(m.inTube(Ready, t.name)) > 0 {
		t.opensAt = m.turn
		return
	}
	t.closed, t.opensAt = false, Never
}

// reopen opens a tube at the time that closes returned.
func (m *model) reopen(now int64, t *modelTube) {
	t.closed, t.opensAt = false, Never
	if until, closed := m.closes(now, t); closed {
		t.closed, t.opensAt = true, until
		return
	}
	m.endStales(now, t)
}

// endStales ends the stale jobs at the head of a tube that is not paused.
func (m *model) endStales(now int64, t *modelTube) {
	for jobs := m.inTube(Ready, t.name); !t.paused && len(jobs) > 0 && m.stale(now, jobs[0]); jobs = m.inTube(Ready, t.name) {
	}
}

// byFirst and byBody are keys: the first byte of a body, and the whole body.
var (
	byFirst = &Key{"first", func(_ *[]byte, body []byte) ([]byte, bool) { return body[:min(1, len(body))], len(body) > 0 }}
	byBody  = &Key{"body", func(buf *[]byte, body []byte) ([]byte, bool) {
		*buf = append((*buf)[:0], body...)
		return *buf, true
	}}
)

// equal returns the jobs of which a put is a duplicate.
func (m *model) equal(now int64, tube string, spec Spec, body []byte) (ids []uint64) {
	p := m.policyOf(tube)
	if p.Unique == nil || spec.Again {
		return nil
	}
	key, ok := p.Unique.Of(new([]byte), body)
	if !ok {
		m.acted[WithoutKey]++
		return nil
	}
	for _, j := range m.jobs {
		other, ok := p.Unique.Of(new([]byte), j.body)
		counts := j.state == Ready || j.state == Delayed || j.state == Reserved && p.UniqueWhile != WhileWaiting || j.state == Buried && p.UniqueWhile == WhilePresent
		if j.tube == tube && ok && string(key) == string(other) && counts && m.whyStale(now, j) == NumPolicyEvents {
			ids = append(ids, j.id)
		}
	}
	return ids
}

// duplicate applies the effect of a duplicate put to a job.
func (m *model) duplicate(now int64, j *modelJob, spec Spec, body []byte) {
	m.acted[Deduplicated]++
	m.find(j.tube).duplicates++
	pri, delay, mode := min(spec.Pri, j.pri), &spec.Delay, m.policyOf(j.tube).UniqueMode
	if j.state == Buried || mode != Debounce {
		delay = nil
	}
	switch {
	case j.state == Reserved || mode == KeepFirst && pri == j.pri:
	case mode == KeepFirst:
		m.alterJob(now, j.id, &pri, nil, nil, nil)
	default:
		m.alterJob(now, j.id, &spec.Pri, &spec.TTR, delay, &body)
	}
}

// setPolicies sets, replaces or removes the policies of some tubes.
func (tw *twins) setPolicies() {
	var policies func(string) *Policy
	if tw.src.intn("policies", 5) > 0 {
		of := make(map[string]*Policy)
		for _, name := range append(tubeNames, "a.dead", "t3", "t7") {
			if tw.src.intn("of tube", 4) > 0 {
				of[name] = tw.newPolicy()
			}
		}
		policies = func(name string) *Policy { return of[name] }
	}
	tw.e.SetPolicies(tw.planted(policies))
	for tw.e.turnWork = 0; tw.e.outdated(); tw.e.turnWork = 0 {
		tw.e.updatePolicies()
	}
	once := make(map[string]bool) // tubes that already permitted only one attempt
	for _, t := range tw.m.tubes {
		once[t.name] = tw.m.policyOf(t.name).singleAttempt()
	}
	tw.m.policies = policies
	for _, j := range tw.m.jobs { // a job that was already reserved has used its attempt
		if tw.m.policyOf(j.tube).singleAttempt() && !once[j.tube] && j.unlogged() {
			j.logged = j.fields
			if j.state == Reserved {
				j.logged.state, j.logged.due = Ready, 0
			}
		}
	}
	tw.m.armSweep()
	for _, t := range tw.m.tubes {
		tw.m.forgive(tw.m.turn, t)
		if until, closed := tw.m.closes(tw.m.turn, t); closed {
			t.closed, t.opensAt = true, until
		} else {
			tw.m.free(t)
		}
	}
}

// planted returns the policies, with the planted mistake if there is one.
func (tw *twins) planted(policies func(string) *Policy) Policies {
	return PolicyFunc(func(tube string) *Policy {
		if policies == nil {
			return nil
		}
		p := policies(tube)
		if p == nil || tw.plant == nil {
			return p
		}
		wrong := *p
		tw.plant(&wrong)
		return &wrong
	})
}

// fullTube is a dead tube that can hold fullJobs jobs.
const (
	fullTube = "full"
	fullJobs = 2
)

func limitsOfTwins(tube string) (l TubeLimits) {
	if tube == fullTube {
		l.Jobs = fullJobs
	}
	return l
}

func (tw *twins) newPolicy() *Policy {
	few, ages := []uint32{0, 0, 1, 2, 3}, []int64{0, 0, 0, 0, 0, 3 * second, 7 * second, 30 * second}
	return &Policy{
		MaxAttempts: pick(tw.src, "max-attempts", few), MaxTimeouts: pick(tw.src, "max-timeouts", few), MaxReleases: pick(tw.src, "max-releases", few),
		Exhausted: Exhausted(tw.src.intn("exhausted", 3)), DeadTube: pick(tw.src, "dead-tube", []string{"{tube}.dead", "d", "new", fullTube}),
		RetryDelay: pick(tw.src, "retry-delay", []int64{0, 0, second, second / 3}), RetryMax: pick(tw.src, "retry-max", []int64{second, 9 * second}),
		RetryFactor: float64(1 + tw.src.intn("retry-factor", 3)), RetryJitter: pick(tw.src, "retry-jitter", []float64{0, 0.25, 1}),
		PausedUntil: pick(tw.src, "paused", []int64{0, 0, 0, 0, 0, tw.m.turn + second, Never}),
		RetryOn:     Ends(tw.src.intn("retry-on", 8)), Snooze: pick(tw.src, "snooze", []int64{0, 0, second, 2 * second}),
		TTL: pick(tw.src, "ttl", ages), BuryAtTTL: tw.src.intn("expired", 2) > 0, KeepBuried: pick(tw.src, "keep-buried", ages), MaxReserved: pick(tw.src, "max-reserved", few),
		Unique: pick(tw.src, "unique", []*Key{nil, nil, byFirst, byBody}), UniqueWhile: While(tw.src.intn("unique-while", 3)), UniqueMode: UniqueMode(tw.src.intn("unique-mode", 3)),
		Interval: pick(tw.src, "rate", []int64{0, 0, 0, 2 * second, second / 2, second / 3}), Burst: pick(tw.src, "burst", few),
	}
}
