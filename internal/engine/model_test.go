package engine

import (
	"bytes"
	"cmp"
	"math"
	"net/netip"
	"slices"
	"strings"
)

// A model is a naive implementation of beanstalkd's queue: it scans maps and slices each
// time, without heaps, counters or back-pointers. The engine is compared with it, so its
// correctness must be obvious.
//
// It deviates from beanstalkd where the engine deviates intentionally: waiting sessions
// are served first come, first served; a TTR ends exactly when due; due events are
// processed in the order of their times.
type model struct {
	jobs           map[uint64]*modelJob
	tubes          []*modelTube // in the order of list-tubes
	sessions       []*modelSession
	heard          []answer // the results of waits
	stats          Stats    // only cumulative values, such as TotalJobs
	lastID         uint64
	clock          int   // orders reservations, burials, waits and new tubes
	turn           int64 // time of the last tick
	queued, worked Total

	policies func(tube string) *Policy
	acted    PolicyCounts
	sweepAt  int64 // time of the next pass for stale jobs
}

type modelTube struct {
	name          string
	born          int
	paused        bool
	pause         uint32
	pauseEnds     int64
	puts          uint64
	deletes, stop uint64 // delete and pause-tube commands

	timeouts, releases, buries uint64 // of the tube's jobs
	exhausted, duplicates      uint64 // numbers of jobs and of puts
	failed                     uint64 // number of jobs
	queued, worked             Total

	closed  bool // the policy permits no reservation
	opensAt int64
	spent   int64 // time until which the policy permits no reservation
}

type modelSession struct {
	num          int // number of the session in answers
	born         int
	use          string
	watches      []string
	waiting      bool
	waitingSince int
	timeout      int64
	producer     bool
	worker       bool
	halfClosed   bool
}

// fields contains the logged fields of a job.
type fields struct {
	tube, origin                                string
	body                                        []byte
	state                                       State
	pri, delay, ttr                             uint32
	created, due                                int64
	buried                                      int // when it was buried, on the model's clock
	reserves, timeouts, releases, buries, kicks uint32
	failed                                      bool
	failure                                     Failure
}

type modelJob struct {
	fields
	id       uint64
	holder   *modelSession
	reserved int    // when it was reserved, on the model's clock
	since    int64  // time when it became ready or was reserved, in ns
	touches  uint32 // since the job was reserved
	logged   fields // as of the last effect that survives a restart
}

// An answer is a reply to a session, immediate or after a wait.
type answer struct {
	session int
	id      uint64
	body    string
	outcome Outcome
}

func newModel() *model {
	m := &model{jobs: make(map[uint64]*modelJob), sweepAt: Never}
	m.tube(DefaultTube)
	return m
}

func (m *model) tick() int { m.clock++; return m.clock }

// tube returns a tube, and creates it if necessary.
func (m *model) tube(name string) *modelTube {
	if t := m.find(name); t != nil {
		return t
	}
	t := &modelTube{name: name, born: m.tick(), spent: math.MinInt64 / 2, opensAt: Never}
	m.tubes = append(m.tubes, t)
	m.armSweep()
	if until, closed := m.closes(m.turn, t); closed {
		t.closed, t.opensAt = true, until
	}
	return t
}

func (m *model) find(name string) *modelTube {
	for _, t := range m.tubes {
		if t.name == name {
			return t
		}
	}
	return nil
}

// collect removes an unused tube. The last tube takes its place in the list.
func (m *model) collect(name string) {
	for _, s := range m.sessions {
		if s.use == name || slices.Contains(s.watches, name) {
			return
		}
	}
	for _, j := range m.jobs {
		if j.tube == name {
			return
		}
	}
	if i := slices.IndexFunc(m.tubes, func(t *modelTube) bool { return t.name == name }); i > 0 {
		m.tubes[i] = m.tubes[len(m.tubes)-1]
		m.tubes = m.tubes[:len(m.tubes)-1]
	}
}

// in returns the jobs in a state, the first to leave it first.
func (m *model) in(state State, ok func(*modelJob) bool) []*modelJob {
	var found []*modelJob
	for _, j := range m.jobs {
		if j.state == state && ok(j) {
			found = append(found, j)
		}
	}
	slices.SortFunc(found, func(a, b *modelJob) int {
		switch state {
		case Ready:
			return cmp.Or(cmp.Compare(a.pri, b.pri), cmp.Compare(a.id, b.id))
		case Buried:
			return cmp.Compare(a.buried, b.buried)
		}
		return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.id, b.id))
	})
	return found
}

func (m *model) inTube(state State, tube string) []*modelJob {
	return m.in(state, func(j *modelJob) bool { return j.tube == tube })
}

func (m *model) heldBy(s *modelSession) []*modelJob {
	return m.in(Reserved, func(j *modelJob) bool { return j.holder == s })
}

// offered returns the ready jobs that the session can reserve, the best first.
func (m *model) offered(s *modelSession) []*modelJob {
	return m.in(Ready, func(j *modelJob) bool {
		t := m.find(j.tube)
		return slices.Contains(s.watches, j.tube) && !t.paused && !t.closed
	})
}

// match serves the waiting sessions: the best job goes to the session that has waited
// longest for it.
func (m *model) match(now int64) {
	for {
		var job *modelJob
		var to *modelSession
		for _, s := range m.sessions {
			jobs := m.offered(s)
			if !s.waiting || len(jobs) == 0 {
				continue
			}
			j := jobs[0]
			better := job == nil || j.pri < job.pri || j.pri == job.pri && j.id < job.id
			if better || j == job && s.waitingSince < to.waitingSince {
				job, to = j, s
			}
		}
		if job == nil {
			return
		}
		if m.stale(now, job) {
			continue
		}
		m.take(now, to, job)
		m.tell(to, job, OK)
	}
}

// tell ends a wait with its result.
func (m *model) tell(s *modelSession, j *modelJob, outcome Outcome) {
	s.waiting = false
	a := answer{session: s.num, outcome: outcome}
	if j != nil {
		a.id, a.body = j.id, string(j.body)
	}
	m.heard = append(m.heard, a)
}

func (m *model) take(now int64, s *modelSession, j *modelJob) {
	ready := j.state == Ready
	if ready {
		m.queued.add(max(now-j.since, 0))
		m.find(j.tube).queued.add(max(now-j.since, 0))
	}
	j.since, j.touches = now, 0
	j.state, j.holder, j.reserved = Reserved, s, m.tick()
	j.due = now + int64(j.ttr)*second
	j.reserves++
	if m.policyOf(j.tube).MaxAttempts == 1 {
		j.logged = j.fields
		j.logged.state, j.logged.due = Ready, 0
	}
	m.passed(now, m.find(j.tube), ready)
}

func (m *model) makeReady(now, since int64, j *modelJob) {
	j.state, j.holder, j.since = Ready, nil, since
	m.match(now)
}

func (m *model) open() *modelSession {
	s := &modelSession{num: int(m.stats.TotalSessions), born: m.tick(), use: DefaultTube, watches: []string{DefaultTube}}
	m.sessions = append(m.sessions, s)
	m.stats.TotalSessions++
	return s
}

func (m *model) close(now int64, s *modelSession) {
	s.waiting = false
	held := m.heldBy(s)
	slices.SortFunc(held, func(a, b *modelJob) int { return cmp.Compare(a.reserved, b.reserved) })
	for len(s.watches) > 0 {
		name := s.watches[0]
		s.watches = s.watches[1:]
		m.collect(name)
	}
	m.sessions = slices.DeleteFunc(m.sessions, func(x *modelSession) bool { return x == s })
	m.collect(s.use)
	for _, j := range held {
		m.lose(now, j, Lost)
	}
}

func (m *model) halfClose(s *modelSession) {
	s.halfClosed = true
	if s.waiting {
		m.tell(s, nil, TimedOut)
	}
}

func (m *model) useTube(s *modelSession, name string) {
	old := s.use
	s.use = m.tube(name).name
	m.collect(old)
}

func (m *model) watch(s *modelSession, name string) int {
	if !slices.Contains(s.watches, name) {
		s.watches = append(s.watches, m.tube(name).name)
	}
	return len(s.watches)
}

func (m *model) ignore(s *modelSession, name string) (int, bool) {
	i := slices.Index(s.watches, name)
	if i >= 0 && len(s.watches) == 1 {
		return 1, false
	}
	if i >= 0 {
		last := len(s.watches) - 1
		s.watches[i] = s.watches[last]
		s.watches = s.watches[:last]
		m.collect(name)
	}
	return len(s.watches), true
}

func (m *model) putInto(now int64, tube string, spec Spec, body []byte) uint64 {
	m.lastID++
	j := &modelJob{id: m.lastID, fields: fields{
		tube: tube, body: bytes.Clone(body), state: Ready, created: now,
		pri: spec.Pri, delay: spec.Delay, ttr: max(1, spec.TTR),
	}}
	m.jobs[j.id] = j
	m.tube(tube).puts++
	m.stats.TotalJobs++
	m.settle(now, j)
	return j.id
}

// settle makes a new or changed job delayed or ready.
func (m *model) settle(now int64, j *modelJob) {
	m.ready(now, j, int64(j.delay)*second)
	j.logged = j.fields
	m.match(now)
}

func (m *model) reserve(now int64, s *modelSession, timeout int64) (*modelJob, Outcome) {
	s.worker = true
	jobs, held := m.offered(s), m.heldBy(s)
	for len(jobs) > 0 && m.stale(now, jobs[0]) { // stale jobs at the heads of all tubes end
		for _, tube := range s.watches {
			if t := m.find(tube); !t.closed {
				m.endStales(now, t)
			}
		}
		jobs = m.offered(s)
	}
	switch {
	case len(jobs) > 0:
		m.take(now, s, jobs[0])
		return jobs[0], OK
	case len(held) > 0 && held[0].due <= now+second:
		return nil, DeadlineSoon
	case timeout == 0 || s.halfClosed:
		return nil, TimedOut
	}
	s.waiting, s.waitingSince, s.timeout = true, m.tick(), Never
	if timeout != Forever {
		s.timeout = now + timeout*second
	}
	return nil, Waiting
}

func (m *model) reserveJob(now int64, s *modelSession, id uint64) (*modelJob, Outcome) {
	j := m.jobs[id]
	if j == nil || j.state == Reserved {
		return nil, NotFound
	}
	if j.state != Buried && m.stale(now, j) || j.state == Buried && m.policyOf(j.tube).MaxAttempts == 1 && j.reserves > j.allowances() {
		return nil, NotFound
	}
	s.worker = true
	ready := j.state == Ready
	m.take(now, s, j)
	if !ready { // the job was set aside before
		j.logged = j.fields
		j.logged.state, j.logged.due = Ready, 0
	}
	return j, OK
}

// mine returns a job that the session has reserved, or nil.
func (m *model) mine(s *modelSession, id uint64) *modelJob {
	if j := m.jobs[id]; j != nil && j.state == Reserved && j.holder == s {
		return j
	}
	return nil
}

// fail records the end of an attempt, or only a note if the attempt continues.
func (m *model) fail(j *modelJob, end Ends) {
	note := j.failure.Note
	if j.failure.End != 0 || j.failure.Attempt != j.reserves {
		note = ""
	}
	identity, address := workerOf(j.holder.num)
	j.failed = true
	j.failure = Failure{End: end, At: max(m.turn, 0) / 1e6, Took: max(m.turn-j.since, 0) / 1e6, Attempt: j.reserves, Identity: identity, Address: address, Note: note}
}

func (m *model) failBuried(j *modelJob, policy string) {
	now := max(m.turn, 0) / 1e6
	if !j.failed {
		j.failure = Failure{At: now, Attempt: j.reserves}
	}
	j.failed, j.failure.Policy, j.failure.Buried = true, policy, now
}

func (m *model) note(s *modelSession, id uint64, text string) Outcome {
	j := m.mine(s, id)
	if j == nil {
		return NotFound
	}
	m.fail(j, 0)
	j.failure.Note = text
	j.logged = j.fields
	j.logged.state, j.logged.due = Ready, 0
	return OK
}

// workerOf returns the identity and address of a session's client.
func workerOf(num int) (identity string, address netip.AddrPort) {
	if num%3 > 0 {
		address = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, byte(num)}), uint16(num))
	}
	return strings.Repeat("worker", num%3), address
}

// endWork records the time that the holder of a job has worked on it.
func (m *model) endWork(j *modelJob) {
	m.worked.add(max(m.turn-j.since, 0))
	m.find(j.tube).worked.add(max(m.turn-j.since, 0))
}

func (m *model) delete(s *modelSession, id uint64) Outcome {
	j := m.jobs[id]
	if j == nil || j.state == Reserved && j.holder != s {
		return NotFound
	}
	if j.state == Reserved {
		m.endWork(j)
	}
	m.find(j.tube).deletes++
	m.stats.Deletes++
	m.leave(j)
	delete(m.jobs, id)
	m.collect(j.tube)
	return OK
}

func (m *model) release(now int64, s *modelSession, id uint64, pri, delay uint32) Outcome {
	if m.mine(s, id) == nil {
		return NotFound
	}
	return m.releaseJob(now, id, pri, delay, Release)
}

func (m *model) releaseJob(now int64, id uint64, pri, delay uint32, end Ends) Outcome {
	j := m.jobs[id]
	if j == nil || j.state != Reserved {
		return NotFound
	}
	m.endWork(j)
	j.pri, j.delay = pri, delay
	p := m.policyOf(j.tube)
	snoozed := p.Snooze > 0 && int64(delay)*second >= p.Snooze
	if !snoozed {
		m.fail(j, end)
		j.releases++
	} else if j.reserves--; j.failure.End == 0 {
		j.failed, j.failure = false, Failure{}
	}
	m.find(j.tube).releases++
	m.stats.Releases++
	if !snoozed && m.exhaust(now, j, p) {
		return OK
	}
	wait := int64(delay) * second
	if delay == 0 {
		wait = m.retryDelay(j, p, Release)
	}
	m.ready(now, j, wait)
	j.logged = j.fields
	m.match(now)
	return OK
}

func (m *model) bury(s *modelSession, id uint64, pri uint32) Outcome {
	if m.mine(s, id) == nil {
		return NotFound
	}
	return m.buryJob(id, pri, Bury)
}

func (m *model) buryJob(id uint64, pri uint32, end Ends) Outcome {
	j := m.jobs[id]
	if j == nil || j.state == Buried {
		return NotFound
	}
	if j.state == Reserved {
		m.endWork(j)
		m.fails(j.tube)
		m.fail(j, end)
	}
	m.failBuried(j, "")
	j.pri = pri
	j.buries++
	m.find(j.tube).buries++
	m.leave(j)
	j.state, j.buried = Buried, m.tick()
	j.logged = j.fields
	return OK
}

func (m *model) fails(tube string) {
	m.find(tube).failed++
	m.stats.Failed++
}

func (m *model) alterJob(now int64, id uint64, pri, ttr, delay *uint32, body *[]byte) Outcome {
	j := m.jobs[id]
	if j == nil || j.state == Reserved || j.state == Buried && delay != nil {
		return NotFound
	}
	if pri != nil {
		j.pri = *pri
	}
	if ttr != nil {
		j.ttr = max(*ttr, 1)
	}
	if body != nil {
		j.body = bytes.Clone(*body)
	}
	since := j.since
	if j.state == Delayed {
		since = now
	}
	if delay != nil {
		j.delay = *delay
		m.settle(now, j)
		if j.state == Ready {
			j.since = since
		}
		return OK
	}
	j.logged = j.fields
	return OK
}

func (m *model) moveJob(now int64, id uint64, to string) Outcome {
	j := m.jobs[id]
	if j == nil || j.state == Reserved || j.tube == to {
		return NotFound
	}
	from := j.tube
	j.tube, j.origin = m.tube(to).name, ""
	j.logged = j.fields
	m.match(now)
	m.collect(from)
	return OK
}

func (m *model) redrive(now int64, id uint64, to string) Outcome {
	j := m.jobs[id]
	if j == nil || j.state != Buried && j.state != Ready {
		return NotFound
	}
	if to == "" {
		to = j.origin
	}
	if to == "" || to == j.tube {
		return NotFound
	}
	from := j.tube
	j.tube, j.origin = m.tube(to).name, ""
	if j.state == Buried {
		j.kicks++
	}
	j.state, j.since, j.due = Ready, now, 0
	j.logged = j.fields
	m.match(now)
	m.collect(from)
	return OK
}

func (m *model) touch(now int64, s *modelSession, id uint64) Outcome {
	j := m.mine(s, id)
	if j == nil {
		return NotFound
	}
	j.due = now + int64(j.ttr)*second
	j.touches++
	return OK
}

func (m *model) kick(now int64, s *modelSession, n uint32) uint32 {
	from := Buried
	if len(m.inTube(Buried, s.use)) == 0 {
		from = Delayed
	}
	jobs := m.inTube(from, s.use)
	jobs = jobs[:min(int64(len(jobs)), int64(n))]
	for _, j := range jobs {
		m.kickJob(now, j.id)
	}
	return uint32(len(jobs))
}

func (m *model) kickJob(now int64, id uint64) Outcome {
	j := m.jobs[id]
	if j == nil || j.state != Buried && j.state != Delayed {
		return NotFound
	}
	j.kicks++
	j.state, j.since = Ready, now
	j.logged = j.fields
	m.match(now)
	return OK
}

func (m *model) pauseTube(now int64, name string, seconds uint32) Outcome {
	t := m.find(name)
	if t == nil {
		return NotFound
	}
	t.stop++
	t.paused, t.pause, t.pauseEnds = seconds > 0, seconds, now+int64(seconds)*second
	m.match(now)
	return OK
}

func (m *model) clear(name string, state State) (uint64, Outcome) {
	if m.find(name) == nil {
		return 0, NotFound
	}
	jobs := m.inTube(state, name)
	for _, j := range jobs {
		delete(m.jobs, j.id)
	}
	m.collect(name)
	return uint64(len(jobs)), OK
}

func (m *model) move(now int64, from, to string, state State) (uint64, Outcome) {
	if m.find(from) == nil || from == to {
		return 0, NotFound
	}
	jobs := m.inTube(state, from)
	for _, j := range jobs {
		j.tube, j.origin = m.tube(to).name, ""
		j.logged = j.fields
		m.match(now)
	}
	m.collect(from)
	return uint64(len(jobs)), OK
}
