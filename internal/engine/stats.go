package engine

import (
	"math"
	"unsafe"
)

// Stats contains the current counts of the engine, and the numbers of events since it was
// created. As in beanstalkd, TotalJobs excludes jobs restored from a log.
type Stats struct {
	Urgent, Ready, Reserved, Delayed, Buried uint64 // current numbers of jobs

	Bytes uint64 // current size of all bodies

	Sessions  uint64 // current number
	Producers uint64 // current number of sessions that have put
	Workers   uint64 // current number of sessions that have reserved
	Waiting   uint64 // current number of sessions that wait in a reserve
	Tubes     uint64 // current number

	TotalJobs     uint64 // number of puts
	TotalSessions uint64
	Timeouts      uint64 // expired TTRs

	Deletes, Releases, Failed uint64 // as in TubeStats
}

// Stats returns the counts of the whole engine.
func (e *Engine) Stats() Stats {
	st := e.stats
	st.Tubes = uint64(e.names.Len())
	return st
}

// Memory returns the memory of the records and bodies of jobs, in bytes. Unlike
// Limits.Memory, it includes free slots. It falls when the queue drains.
func (e *Engine) Memory() int64 {
	return e.bodies.bytes() + int64(e.jobs.slots.stored())*int64(unsafe.Sizeof([slotsPerPage]job{})) +
		int64(e.jobs.colds.slots.stored())*int64(unsafe.Sizeof([slotsPerPage]coldJob{})) +
		int64(len(e.failures.of))*failureBytes
}

// TubeCounts contains numbers of events since a tube was created.
type TubeCounts struct {
	TotalJobs  uint64 // puts
	Deletes    uint64 // successful commands, like Pauses
	Pauses     uint64
	Timeouts   uint64 // expired TTRs
	Releases   uint64
	Buries     uint64
	Failed     uint64 // reserved jobs that were buried or exhausted
	Exhausted  uint64 // jobs that reached a limit of the tube's policy
	Duplicates uint64 // puts that found a duplicate

	Queued Total // time from ready to reserved; see Times
	Worked Total // time from reserved to delete, release or bury
}

// TubeStats contains the values of stats-tube, and more.
type TubeStats struct {
	TubeCounts

	Urgent, Ready, Reserved, Delayed, Buried uint64 // current numbers of jobs

	Bytes                    uint64 // current size of the tube's bodies
	Using, Watching, Waiting uint64 // current numbers of sessions
	Pause, PauseLeft         int64  // in seconds; 0 if not paused

	// Gate is the time in ns for which the tube's policy permits no reservation. It is
	// Never if a reservation must end first. GateByLog reports whether the reason is that
	// the Log refuses a record that the policy needs.
	Gate      int64
	GateByLog bool

	// Reservable is the number of ready jobs that workers can reserve now. It is 0 if the
	// tube is paused, and at most the number that the policy permits.
	Reservable uint64

	// OldestReady is the time in ns for which the next job to be reserved has been ready,
	// or 0 if no job is ready. The next job is the oldest job with the most urgent
	// priority. The time starts when a job is put, released, kicked or timed out, or when
	// the engine starts if that is later.
	OldestReady int64

	// Dead reports whether the next ready or buried job has an origin, which makes the
	// tube a dead tube.
	Dead bool

	// WorkP95 is the 95th percentile of Worked in ns, since the measurement of the tube
	// started. It is zero if the tube is not measured; see MeasureTube.
	WorkP95 int64
}

// TubeStats returns the counts of a tube.
func (e *Engine) TubeStats(now int64, name []byte) (TubeStats, Outcome) {
	t := e.byName[string(name)]
	if t == nil {
		return TubeStats{}, NotFound
	}
	return e.tubeStats(now, t), OK
}

func (e *Engine) tubeStats(now int64, t *tube) TubeStats {
	st := TubeStats{
		TubeCounts: t.counts,
		Urgent:     uint64(t.urgent),
		Ready:      uint64(t.ready.n),
		Reserved:   uint64(t.reserved),
		Delayed:    uint64(t.delayed.n),
		Buried:     uint64(t.buried.n),
		Bytes:      uint64(t.bytes),
		Using:      uint64(t.using),
		Watching:   uint64(t.watching),
		Waiting:    uint64(t.waiting),
		Dead:       e.hasOrigin(t.ready.top()) || e.hasOrigin(t.buried.top()),
	}
	if t.times != nil {
		st.WorkP95 = int64(t.times.Work.Quantile(0.95))
	}
	if t.ready.n > 0 {
		st.OldestReady = max(0, now-e.jobs.when(e.jobs.at(t.ready.top())))
	}
	if t.paused && !t.resuming {
		st.Pause = int64(t.pauseLen)
		st.PauseLeft = max(0, t.unpauseAt-now) / second
	}
	if p := t.policy; t.gateShut() && p.pausedAt(now+e.opt.Epoch) { // a policy defines the end of a pause, not its length
		if left := min(p.pauseEnds(e.opt.Epoch)-now, math.MaxUint32*second) / second; left >= st.PauseLeft {
			st.Pause, st.PauseLeft = max(left, 1), left
		}
	}
	if st.Pause == 0 {
		st.Reservable = min(st.Ready, t.policy.room(t.reserved))
	}
	if st.Pause == 0 && t.gateShut() && t.gate.opensAt > now { // otherwise the gate opens in the next turn
		if st.Gate = Never; t.gate.opensAt < Never {
			st.Gate = t.gate.opensAt - now
		}
		st.GateByLog = t.gate.byLog
	}
	return st
}

// SurveyTubes calls each with the stats of up to n tubes, starting at position from, and
// returns the next position, or 0 at the end. A tube that exists during the whole survey
// is reported once, and any other tube at most once. It returns early when the turn has
// done enough work.
func (e *Engine) SurveyTubes(now int64, from, n int, each func(name string, st TubeStats)) (next int) {
	for seen := 0; from < len(e.tubes); from++ {
		if seen == n || seen > 0 && e.Spent() {
			return from
		}
		seen++
		e.turnWork++
		if t := e.tubes[from]; t != nil {
			each(t.name, e.tubeStats(now, t))
		}
	}
	return 0
}

// TubeNames returns the names of all tubes in the order of list-tubes: the order of
// creation, except that the last tube replaces a removed one.
func (e *Engine) TubeNames() Names { return e.names.snapshot() }

// JobStats contains the values of stats-job, and more.
type JobStats struct {
	ID       uint64
	Tube     string
	State    State
	Pri      uint32
	Age      int64  // seconds since the put; not negative
	Delay    uint32 // seconds, from the last put or release
	TTR      uint32 // s
	TimeLeft int64  // seconds until a delayed or reserved job becomes ready, rounded down; otherwise 0
	Segment  uint32 // see SetSegment
	Size     uint32 // length of the body in bytes
	Holder   uint64 // id of the session that holds it, see SessionStats; otherwise 0
	Origin   string // tube from which a policy moved the job, or empty
	Held     int64  // ns since the reserve; 0 unless reserved
	Touches  uint32 // number since the reserve; 0 unless reserved
	Failed   string // FailureRecord; empty if there is none

	Counts
}

// Failure returns the end of the job's last attempt. ok is false if there is none.
func (st *JobStats) Failure() (Failure, bool) { return FailureRecord(st.Failed).Decode() }

// TubeOf returns the name of a job's tube, or false if there is no such job.
func (e *Engine) TubeOf(id uint64) (tube string, ok bool) {
	i, j := e.lookup(id)
	if i == none {
		return "", false
	}
	return e.tubeOfJob(j).name, true
}

// JobStats returns the values of stats-job for a job.
func (e *Engine) JobStats(now int64, id uint64) (JobStats, Outcome) {
	i, j := e.lookup(id)
	if i == none {
		return JobStats{}, NotFound
	}
	cold := e.jobs.coldOf(j)
	st := JobStats{
		ID:      j.id,
		Tube:    e.tubeOfJob(j).name,
		State:   j.state(),
		Pri:     j.pri,
		Age:     max(0, now-j.created) / second, // the clock might have been set back before a restart
		Delay:   j.delay(),
		TTR:     j.ttr,
		Segment: e.jobs.segments.at(i),
		Size:    j.bodyLen,
		Counts:  cold.Counts,
		Origin:  e.origins.of[j.id],
		Failed:  string(e.failureOf(i)),
	}
	switch j.state() {
	case Delayed:
		st.TimeLeft = max(0, cold.when-now) / second
	case Reserved:
		st.Holder = e.sessions[cold.holder].id
		st.TimeLeft = max(0, cold.due-now) / second
		st.Held, st.Touches = now-cold.when, cold.touches
	}
	return st, OK
}

// Handed returns the values of stats-job for a job that was reserved in this turn. Unlike
// other methods, a Waiter can call it.
func (e *Engine) Handed(id uint64) JobStats {
	st, _ := e.JobStats(e.now, id)
	return st
}

// Peek returns a job by id, in any state.
func (e *Engine) Peek(id uint64) (Job, Outcome) {
	i, _ := e.lookup(id)
	return e.peek(i)
}

// PeekState returns the next job of the used tube to be reserved (Ready), to become ready
// (Delayed) or to be kicked (Buried).
func (e *Engine) PeekState(s *Session, state State) (Job, Outcome) {
	q := s.use.queueOf(state)
	if q == nil {
		return Job{}, NotFound
	}
	return e.peek(q.top())
}

func (e *Engine) peek(i slot) (Job, Outcome) {
	if i == none {
		return Job{}, NotFound
	}
	j := e.jobs.at(i)
	e.turnWork += int(j.bodyLen) / bytesPerUnit // the caller copies the body
	return Job{j.id, e.body(j)}, OK
}
