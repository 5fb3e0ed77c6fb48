package engine

import (
	"hash/maphash"
	"math"
)

// An Outcome is the result of a command.
type Outcome uint8

const (
	OK           Outcome = iota
	NotFound             // no such job or tube, or the job is in the wrong state for this command
	Waiting              // the Waiter will receive the answer later
	TimedOut             // no job became available in time
	DeadlineSoon         // the TTR of a job that the session holds expires within a second
	Draining             // the server rejects puts
	OutOfMemory          // the Log has no space for the change, or Limits refuse it; nothing has changed
	TooBig               // Limits forbid a job of this size, even if there is no other job
	Failed               // the Log does not work; nothing has changed
	Duplicate            // the put is a duplicate, according to the tube's policy
)

// Never is a time that is never reached. Forever is a timeout that never expires.
const (
	Never   = math.MaxInt64
	Forever = int64(-1)
)

// Options configures an Engine. The zero value emits no changes.
type Options struct {
	// Logged makes the engine emit Changes. The caller must then call TakeChanges at the
	// end of each turn, and should call RecycleChanges after writing them.
	Logged bool

	// Admit, if not nil, is called before each logged change except TubeGone. An outcome
	// other than OK refuses the change and is the outcome of the command. tube is the
	// name of the tube, and body is the length of the job's body in bytes.
	Admit func(kind ChangeKind, tube string, body int) Outcome

	// Limits apply until SetLimits is called.
	Limits Limits

	// LimitReached is called for each refusal by a limit, with the name of the tube. It
	// must not block. It can be nil.
	LimitReached func(l Limit, tube string)

	// Policies apply until SetPolicies is called. They can be nil.
	Policies Policies

	// Schedules contains the configured definitions until SetSchedules is called.
	// CompileSchedule returns the schedule of a definition, or nil if this version cannot
	// read it. If CompileSchedule is nil, no schedule runs.
	Schedules       map[string]string
	CompileSchedule func(name, text string) *Schedule

	// Epoch is the time at which the engine's clock is 0, in ns since 1970. Policies that
	// pause a tube until a given time need it.
	Epoch int64

	// Claims makes the engine wait for claims of an earlier leader's clients until
	// EndClaims. Until then, it reserves no job and keeps stale jobs.
	Claims bool

	// PolicyActed, if not nil, is called for each action of a policy. It must not block.
	PolicyActed func(PolicyAct)
}

// An Engine is the state of one server. It is not safe for concurrent use.
//
// I6. stats contains the sums of the counts of tubes and sessions.
type Engine struct {
	opt Options

	jobs   jobSlab
	bodies *bodies
	ids    index
	lastID uint64 // highest id assigned
	buried int64  // rank of the last buried job

	tubes       []*tube // by number; nil if free
	tubeNums    []uint32
	names       nameList // in the order of list-tubes
	byName      map[string]*tube
	defaultTube *tube

	sessions    []*Session // by number; nil if free
	sessionNums []uint32

	limits    Limits
	limitsAge int  // number of changes of the limits
	limited   bool // whether the limits can refuse a put

	origins  table[uint64, string]     // of jobs; see setOrigin
	failures table[slot, failurePlace] // of jobs; see failureOf

	failureBuf      []byte // scratch
	changedFailures []byte // records that changes refer to
	takenFailures   []byte // records of the changes that TakeChanges returned, for RecycleChanges

	policies      policies
	policyCounts  PolicyCounts
	staleSweep    staleSweep
	jobPass       jobPass
	keys          keyIndex
	schedules     schedules
	duplicatePuts int // number of duplicate puts in this turn; their answers rely on earlier puts

	turnWork   int // work done in this turn, in the unit of maxTurnWork
	turnLogged int // bytes of the bodies that were moved and logged in this turn
	workLimit  int // maxTurnWork, or less in tests
	slice      int // maxSlice or maxLoggedSlice, or less in tests

	timers     timers
	timersMade uint64
	changes    []Change
	stats      Stats
	draining   bool
	claiming   bool // see Options.Claims

	now       int64            // time of the turn's start in ns, as passed to Tick
	times     Times            // durations of jobs
	refused   Refusals         // refusals by the limits
	refusedAt [numLimits]int64 // time of the last refusal by each limit; 0 means never
}

// New returns an engine that contains only the default tube.
func New(opt Options) *Engine {
	e := &Engine{
		opt:        opt,
		jobs:       newJobSlab(),
		bodies:     newBodies(),
		byName:     make(map[string]*tube),
		workLimit:  maxTurnWork,
		slice:      maxSlice,
		staleSweep: staleSweep{due: Never, pass: stalePass, most: maxLoggedSlice},
		keys:       keyIndex{seed: maphash.MakeSeed(), mask: 1<<32 - 1},
	}
	e.claiming = opt.Claims
	e.policies.configure(opt.Policies)
	e.SetSchedules(opt.Schedules)
	if opt.Logged {
		e.slice = maxLoggedSlice
	}
	e.ids = newIndex(&e.jobs)
	e.SetLimits(opt.Limits)
	e.defaultTube = e.tubeNamed(DefaultTube)
	return e
}

// Drain makes the engine refuse puts.
func (e *Engine) Drain() { e.draining = true }

// Undrain makes the engine accept puts again. beanstalkd has no equivalent.
func (e *Engine) Undrain() { e.draining = false }

// IsDraining reports whether puts are refused.
func (e *Engine) IsDraining() bool { return e.draining }

// Settings contains the settings of a running engine and the counters of its policies.
type Settings struct {
	limits       Limits
	policies     Policies // policies without those set at run time
	policyCounts PolicyCounts
	schedules    map[string]string // configured schedules
}

// Settings returns the settings for [Engine.Inherit].
func (e *Engine) Settings() Settings {
	return Settings{e.limits, e.policies.configured, e.policyCounts, e.schedules.configured}
}

// Inherit copies the settings of another engine, and ends draining, which applies only to
// the leader's engine.
func (e *Engine) Inherit(s Settings) {
	e.SetLimits(s.limits)
	e.SetPolicies(s.policies)
	e.SetSchedules(s.schedules)
	e.policyCounts = s.policyCounts
	e.draining = false
}

// assignNumber assigns a number to x, which job records can store. It reuses a free
// number if there is one.
func assignNumber[T any](all *[]*T, free *[]uint32, x *T) uint32 {
	if last := len(*free) - 1; last >= 0 {
		n := (*free)[last]
		*free = (*free)[:last]
		(*all)[n] = x
		return n
	}
	*all = append(*all, x)
	return uint32(len(*all) - 1)
}

// admit asks the Log to admit a change.
func (e *Engine) admit(kind ChangeKind, t *tube, body uint32) Outcome {
	if e.opt.Admit == nil {
		return OK
	}
	return e.opt.Admit(kind, t.name, int(body))
}

// tubeOfJob returns the tube of a job.
func (e *Engine) tubeOfJob(j *job) *tube { return e.tubes[j.tube()] }

// body returns the body of a job.
func (e *Engine) body(j *job) []byte { return e.bodies.get(j.bodySlot, j.bodyLen) }

// lookup returns a job by id, or none and nil.
func (e *Engine) lookup(id uint64) (slot, *job) {
	i := e.ids.find(id)
	if i == none {
		return none, nil
	}
	return i, e.jobs.at(i)
}

// lookupHeld returns a job that the session has reserved, or none and nil.
func (e *Engine) lookupHeld(s *Session, id uint64) (slot, *job) {
	i, j := e.lookup(id)
	if i == none || j.state() != Reserved || e.jobs.held(j).holder != s.num {
		return none, nil
	}
	return i, j
}

// attach inserts a job into the queue or heap of its state, and counts it. The job's
// state and fields must be set.
func (e *Engine) attach(t *tube, i slot, j *job) {
	e.turnWork++
	if t.keyed {
		e.noteKey(t, i, j)
	}
	switch j.state() {
	case Ready:
		t.ready.push(readyKey(j), i, j)
		e.stats.Ready++
		if j.pri < UrgentPri {
			t.urgent++
			e.stats.Urgent++
		}
	case Delayed:
		when := e.jobs.when(j)
		t.delayed.push(dueKey(when, j.id), i, j)
		e.stats.Delayed++
		e.arm(&t.timer, when)
	case Buried:
		t.buried.push(dueKey(e.jobs.when(j), j.id), i, j)
		e.stats.Buried++
	case Reserved:
		c := e.jobs.held(j)
		s := e.sessions[c.holder]
		due := c.when + int64(j.ttr)*second
		c.due = due
		s.reserved.push(dueKey(due, j.id), i, j)
		s.held.push(&e.jobs, i, c)
		c.touches = 0
		t.reserved++
		e.stats.Reserved++
		e.arm(&s.timer, due)
	}
}

// detach removes a job from its queue and subtracts it from the counts.
func (e *Engine) detach(t *tube, i slot, j *job) {
	e.turnWork++
	switch j.state() {
	case Ready:
		t.ready.remove(i, j)
		e.stats.Ready--
		if j.pri < UrgentPri {
			t.urgent--
			e.stats.Urgent--
		}
	case Delayed:
		t.delayed.remove(i, j)
		e.stats.Delayed--
	case Buried:
		t.buried.remove(i, j)
		e.stats.Buried--
	case Reserved:
		c := e.jobs.held(j)
		s := e.sessions[c.holder]
		s.reserved.remove(i, j)
		s.held.remove(&e.jobs, c)
		t.reserved--
		e.stats.Reserved--
		if t.gateShut() {
			e.reopenGate(t)
		}
	}
}

// offer attaches a job. If it is ready, a waiting session of the tube gets a job.
func (e *Engine) offer(now int64, t *tube, i slot, j *job) {
	e.attach(t, i, j)
	if j.state() == Ready {
		e.match(now, t)
	}
}

// requeue makes a reserved job ready after its session has lost it, regardless of the
// policy.
func (e *Engine) requeue(now int64, i slot) {
	j := e.jobs.at(i)
	t := e.tubeOfJob(j)
	e.detach(t, i, j)
	e.jobs.held(j).when = now
	j.setState(Ready)
	e.offer(now, t, i, j)
}

// endReservation makes a reserved job ready at a time, which can be now. The Log must
// have admitted the change.
func (e *Engine) endReservation(now int64, t *tube, i slot, j *job, at int64) {
	e.detach(t, i, j)
	e.jobs.held(j).when = at
	j.setState(Ready)
	if at > now {
		j.setState(Delayed)
	}
	e.emitState(i, j)
	e.offer(now, t, i, j)
}

// addJob adds a job to the index and to its tube, and stores the body. The job's fields
// must be set. The job is in no queue yet; see attach.
func (e *Engine) addJob(i slot, j *job, t *tube, body []byte) {
	j.setTube(t.num)
	j.bodyLen = uint32(len(body))
	j.bodySlot = e.bodies.put(body)
	e.ids.insert(i, j.id)
	t.bytes += int64(j.bodyLen)
	e.stats.Bytes += uint64(j.bodyLen)
}

// removeJob deletes a detached job.
func (e *Engine) removeJob(i slot, j *job) {
	t := e.tubeOfJob(j)
	e.detach(t, i, j)
	t.bytes -= int64(j.bodyLen)
	e.stats.Bytes -= uint64(j.bodyLen)
	e.ids.remove(j.id)
	e.setOrigin(j.id, "")
	if len(e.failures.of) > 0 {
		e.setFailure(i, nil)
	}
	e.bodies.free(j.bodySlot, j.bodyLen)
	if e.keys.held > 0 {
		e.keys.remove(i)
	}
	if e.jobs.free(i, j) {
		e.keys.links.freePage(i)
	}
	e.removeIfUnused(t)
}
