package engine

import (
	"bytes"
	"iter"
	"maps"
	"slices"
	"strings"
)

// ChangeKind is the kind of a Change.
type ChangeKind uint8

const (
	NoChange     ChangeKind = iota // checks whether the Log works; only for Options.Admit
	JobPut                         // a whole job: all fields and the body
	JobState                       // a job's new state: all fields except Tube and Body
	JobDeleted                     // a deletion: only ID, Tube and BodyLen are set
	TubePaused                     // a pause: Tube, Delay in seconds, and Due, the end of the pause
	LastID                         // only ID: the highest id assigned
	JobMoved                       // a whole job, like JobPut; its previous tube is From, and its previous body had FromLen bytes
	TubeGone                       // only Tube, which was paused. Options.Admit is not asked, because no client waits for an answer
	PolicySet                      // Tube is a pattern, Body its run-time settings; empty if they were removed. See IsNamed
	ScheduleSet                    // Tube is the name of a schedule, Body its definition at run time
	ScheduleMark                   // Tube is the name of a schedule, Body its Mark
)

// IsNamed reports whether a change of this kind sets the text of a name. The name is in
// Tube, the text in Body. An empty text removes the name.
func (k ChangeKind) IsNamed() bool {
	return k == PolicySet || k == ScheduleSet || k == ScheduleMark
}

// A Change is one durable effect. Changes are idempotent by job id: a JobPut or JobMoved
// overwrites the job, and a JobState or JobDeleted of an unknown id does nothing.
// Therefore a snapshot made while the server runs, followed by the later log, restores
// the right state. Times are on the engine's clock.
type Change struct {
	Kind  ChangeKind
	State State // Ready, Delayed or Buried; a reserved job is Ready
	ID    uint64
	Pri   uint32
	Delay uint32 // s
	TTR   uint32 // s

	Created int64 // ns
	Due     int64 // in ns. Delayed: time at which the job becomes ready. Buried: rank in the order of burying. Otherwise 0

	Counts

	Tube    string
	From    string        // JobMoved: the previous tube. JobPut: the schedule that put the job; see MarkOf
	Origin  string        // tube from which a policy moved the job, or empty; not logged in a JobState
	Was     string        // JobMoved: the previous Origin. JobPut: the Mark of From
	Failure FailureRecord // failure of the job; valid as long as Body
	Body    []byte        // valid until the end of the turn
	BodyLen int           // in bytes; set even if Body is not
	FromLen int           // length of the previous body of a JobMoved
	Segment uint32        // Log segment with the job's record when the change was made; see SetSegment
	Slot    uint32        // current or former slot of the job; see SetSegment
}

// MarkOf returns the ScheduleMark that a JobPut contains if a schedule put the job.
func (c *Change) MarkOf() (mark Change, ok bool) {
	return named(ScheduleMark, c.From, c.Was), c.Kind == JobPut && c.From != ""
}

// MarkLen returns the maximum length of the mark in a record of the change.
func (c *Change) MarkLen() int {
	if c.Kind != JobPut {
		return 0
	}
	return markLen(c.From, c.Was)
}

func markLen(schedule, mark string) int {
	if schedule == "" {
		return 0
	}
	return 1 + len(schedule) + 3 + len(mark)
}

func named(kind ChangeKind, name, text string) Change {
	return Change{Kind: kind, Tube: name, Body: []byte(text), BodyLen: len(text)}
}

// setNamed sets the text of a name, and emits the Change.
func (e *Engine) setNamed(kind ChangeKind, name, text string) Outcome {
	if e.opt.Admit != nil {
		if o := e.opt.Admit(kind, name, len(text)); o != OK {
			return o
		}
	}
	e.storeNamed(kind, name, text)
	e.emit(named(kind, name, text))
	return OK
}

func (e *Engine) storeNamed(kind ChangeKind, name, text string) {
	if kind == PolicySet {
		e.policies.put(name, text)
	} else {
		e.schedules.store(kind, name, text)
	}
}

// restoreNamed applies a logged change of a name.
func (e *Engine) restoreNamed(c *Change) {
	name := strings.Clone(c.Tube)
	e.storeNamed(c.Kind, name, string(c.Body))
	if c.Kind == PolicySet {
		e.policies.restored = true
	} else {
		e.schedules.restored(e.now, name)
	}
}

// Named yields a change for each text of a name: the policies, the definitions of
// schedules and their marks.
func (e *Engine) Named() iter.Seq[Change] {
	return func(yield func(Change) bool) {
		for _, pattern := range slices.Sorted(maps.Keys(e.policies.set.of)) {
			if !yield(named(PolicySet, pattern, e.policies.set.of[pattern])) {
				return
			}
		}
		for _, d := range e.schedules.list {
			for _, c := range [...]Change{named(ScheduleSet, d.Name, d.set), named(ScheduleMark, d.Name, d.Mark.text())} {
				if c.BodyLen > 0 && !yield(c) {
					return
				}
			}
		}
	}
}

// TakeChanges returns the changes since the last call, in order. The caller owns them.
// The engine does not keep the bodies that they refer to alive.
func (e *Engine) TakeChanges() []Change {
	changes := e.changes
	e.changes, e.duplicatePuts = nil, 0
	e.takenFailures, e.changedFailures = e.changedFailures[:0], nil
	return changes
}

// RecycleChanges returns a slice from TakeChanges to the engine for reuse. Calling it is
// optional and saves one allocation per turn.
func (e *Engine) RecycleChanges(changes []Change) {
	clear(changes)
	if e.changes == nil && cap(changes) <= maxKeptChanges {
		e.changes = changes[:0]
		if cap(e.takenFailures) <= maxKeptFailures {
			e.changedFailures = e.takenFailures
		}
	}
}

// maxKeptChanges and maxKeptFailures are the largest capacities that RecycleChanges
// keeps.
const (
	maxKeptChanges  = maxTurnWork
	maxKeptFailures = 32 * maxTurnWork // bytes
)

// Promises returns the number of pending changes plus the number of duplicate puts since
// the last TakeChanges. If a command increases this number, its reply must wait until the
// log is durable.
func (e *Engine) Promises() int { return len(e.changes) + e.duplicatePuts }

func (e *Engine) emitState(i slot, j *job) {
	if e.opt.Logged {
		j.packing &^= unlogged
		c := e.changeOf(JobState, i, j)
		c.Failure = e.loggedFailure(i)
		e.changes = append(e.changes, c)
	}
}

func (e *Engine) emitPut(i slot, j *job, body []byte) {
	if e.opt.Logged {
		c := e.changeOf(JobPut, i, j)
		c.Body, c.From, c.Was = body, e.schedules.firing.name, e.schedules.firing.mark
		e.changes = append(e.changes, c)
	}
}

// emitMoved emits the change of a job that has a new tube or a new body. It clears the
// job's segment, because the change creates a new record. was is the job's previous
// origin.
func (e *Engine) emitMoved(i slot, j *job, from *tube, fromLen int, was string) {
	if e.opt.Logged {
		c := e.changeOf(JobMoved, i, j)
		c.From, c.FromLen, c.Was = from.name, fromLen, was
		c.Failure = e.loggedFailure(i)
		c.Body = bytes.Clone(e.body(j)) // the job can be deleted, and its slot reused, before the turn ends
		e.changes = append(e.changes, c)
		j.packing &^= unlogged
		e.jobs.segments.set(i, 0)
	}
}

// emit emits a change that does not concern a job.
func (e *Engine) emit(c Change) {
	if e.opt.Logged {
		e.changes = append(e.changes, c)
	}
}

func pauseOf(t *tube) Change {
	return Change{Kind: TubePaused, Tube: t.name, Delay: t.pauseLen, Due: t.unpauseAt}
}

// emitDeleted emits the deletion of a job, before the job is removed.
func (e *Engine) emitDeleted(t *tube, i slot, j *job) {
	if e.opt.Logged {
		e.changes = append(e.changes, Change{Kind: JobDeleted, ID: j.id, Tube: t.name, Origin: e.origins.of[j.id], BodyLen: int(j.bodyLen), Segment: e.jobs.segments.at(i), Slot: i})
	}
}

// changeOf returns the change that describes a job, without its body. Its Failure is
// valid until the next call of the engine.
func (e *Engine) changeOf(kind ChangeKind, i slot, j *job) Change {
	cold := e.jobs.coldOf(j)
	c := Change{
		Kind:    kind,
		State:   j.state(),
		ID:      j.id,
		Pri:     j.pri,
		Delay:   j.delay(),
		TTR:     j.ttr,
		Created: j.created,
		Counts:  cold.Counts,
		Origin:  e.origins.of[j.id],
		Failure: e.failureOf(i),
		Tube:    e.tubeOfJob(j).name,
		BodyLen: int(j.bodyLen),
		Segment: e.jobs.segments.at(i),
		Slot:    i,
	}
	switch j.state() {
	case Delayed, Buried:
		c.Due = cold.when
	case Reserved:
		c.State = Ready
	}
	return c
}

// Snapshot returns the JobPut that would restore a job. ok is false if the job does not
// exist. The body is valid until the next call of the engine.
func (e *Engine) Snapshot(id uint64) (Change, bool) {
	i, j := e.lookup(id)
	if i == none {
		return Change{}, false
	}
	return e.snapshot(i, j), true
}

func (e *Engine) snapshot(i slot, j *job) Change {
	c := e.changeOf(JobPut, i, j)
	c.Body = e.body(j)
	return c
}

// Snapshots yields a Snapshot of every job, in no particular order. The engine must not
// change during the iteration.
func (e *Engine) Snapshots(yield func(Change) bool) {
	e.each(func(i slot, j *job) bool { return yield(e.snapshot(i, j)) })
}

// NextSnapshot iterates over all jobs in several turns. It returns a Snapshot of the
// first job at or after place, and the place after it. The first place is 0. A negative
// next marks the end. If ok is false, the examined places contain no job, and the caller
// continues at next. A job that exists throughout the iteration is returned exactly once.
func (e *Engine) NextSnapshot(place int64) (c Change, next int64, ok bool) {
	if place >= int64(e.jobs.places()) {
		return Change{}, -1, false
	}
	i, after, ok := e.jobs.next(slot(place))
	if ok {
		c = e.snapshot(i, e.jobs.at(i))
	}
	return c, int64(after), ok
}

// Unlogged yields a JobState for each job that was reserved or timed out since its last
// Change, so that its counters differ from the log's. The engine must not change during
// the iteration.
func (e *Engine) Unlogged(yield func(Change) bool) {
	e.each(func(i slot, j *job) bool {
		return j.packing&unlogged == 0 || yield(e.changeOf(JobState, i, j))
	})
}

// each calls f for every job until f returns false.
func (e *Engine) each(f func(slot, *job) bool) {
	for place := slot(0); place < e.jobs.places(); {
		i, next, ok := e.jobs.next(place)
		if ok && !f(i, e.jobs.at(i)) {
			return
		}
		place = next
	}
}

// Pauses yields a TubePaused for each paused tube. It examines all tubes, so it is for
// tools and tests only.
func (e *Engine) Pauses(yield func(Change) bool) {
	for _, t := range e.tubes {
		if t != nil && t.paused && !yield(pauseOf(t)) {
			return
		}
	}
}

// PauseOf returns the TubePaused of a tube, or false if the tube is not paused.
func (e *Engine) PauseOf(tube string) (Change, bool) {
	t := e.byName[tube]
	if t == nil || !t.paused {
		return Change{}, false
	}
	return pauseOf(t), true
}

// LastID returns the highest id assigned so far.
func (e *Engine) LastID() uint64 { return e.lastID }

// SetSegment stores the number of the Log segment that contains the record of a Change's
// job. It returns the previous segment. ok is false if the job no longer exists.
func (e *Engine) SetSegment(c *Change, segment uint32) (before uint32, ok bool) {
	if !e.jobs.slots.isUsed(c.Slot) || e.jobs.at(c.Slot).id != c.ID {
		return 0, false
	}
	before = e.jobs.segments.at(c.Slot)
	e.jobs.segments.set(c.Slot, segment)
	return before, true
}

// Restore applies a logged change. It makes no decisions and needs no clock. The engine
// must have no sessions.
func (e *Engine) Restore(c Change) {
	switch c.Kind {
	case JobPut, JobMoved:
		e.restorePut(c)
		if mark, ok := c.MarkOf(); ok {
			e.restoreNamed(&mark)
		}
	case JobState:
		if i, j := e.lookup(c.ID); i != none {
			t := e.tubeOfJob(j)
			e.detach(t, i, j)
			e.restoreFields(j, c)
			e.setFailure(i, c.Failure)
			e.attach(t, i, j)
		}
	case JobDeleted:
		if i, j := e.lookup(c.ID); i != none {
			e.removeJob(i, j)
		}
	case PolicySet, ScheduleSet, ScheduleMark:
		e.restoreNamed(&c)
	case TubeGone:
		if t := e.byName[c.Tube]; t != nil && t.paused {
			e.unpause(c.Due, t)
		}
	case TubePaused:
		t := e.tubeNamed(c.Tube)
		t.keptByPause = c.Delay > 0
		e.pause(t, c.Due, c.Delay)
		if c.Delay == 0 {
			e.unpause(c.Due, t)
		}
	}
	e.lastID = max(e.lastID, c.ID)
}

func (e *Engine) restorePut(c Change) {
	if c.ID <= e.lastID { // a higher id is new, so no job can have it
		if i, j := e.lookup(c.ID); i != none {
			e.removeJob(i, j)
		}
	}
	t := e.tubeNamed(c.Tube)
	i, j := e.jobs.alloc()
	j.id = c.ID
	e.jobs.segments.set(i, c.Segment)
	e.restoreFields(j, c)
	e.addJob(i, j, t, c.Body)
	e.setFailure(i, c.Failure)
	e.setOrigin(c.ID, c.Origin)
	e.attach(t, i, j)
}

func (e *Engine) restoreFields(j *job, c Change) {
	if j.packed() {
		e.jobs.cold(j) // the delay no longer shares its field
	}
	j.setState(c.State)
	j.created = c.Created
	j.pri, j.delayAndCounts, j.ttr = c.Pri, c.Delay, c.TTR
	past := coldJob{when: c.Due, Counts: c.Counts}
	switch {
	case c.State == Buried:
		e.buried = max(e.buried, c.Due)
	case c.State == Ready && c.Reserves+c.Kicks == 0:
		past.when = j.afterDelay() // otherwise, the time at which it became ready is unknown: assume the start of the clock
	}
	if j.cold != none || c.State == Buried || past != (coldJob{when: j.afterDelay()}) {
		cold := e.jobs.cold(j)
		*cold = past
		if c.State == Buried {
			e.jobs.pack(j, cold)
		}
	}
}
