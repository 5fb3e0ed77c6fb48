package engine

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strings"
)

// A Schedule is the compiled definition of a schedule. Its times are wall-clock times, in
// seconds since 1970. Unlike the engine's clock, the wall clock can be set back.
type Schedule struct {
	Timing      string // text of the times; if it changes, missed runs are forgotten
	Tube        string
	Spec        Spec
	Missed      Missed
	SkipOverlap bool

	Body func(moment int64) []byte
	Next func(after int64) int64                             // returns the first run after a time, or NeverRuns
	Due  func(after, upto int64, most int) (moments []int64) // returns the times of due runs, the latest first
}

// NeverRuns is the time of a run that never comes.
const NeverRuns = math.MaxInt64

// Missed defines which runs are made up after downtime.
type Missed uint8

const (
	RunOnce Missed = iota // a single run for all missed runs
	RunNone
	RunAll // all runs of the last day, at most MaxMissed
)

const (
	// MaxSchedules is the maximum number of schedules.
	MaxSchedules = 1000

	// MaxMissed is the maximum number of missed runs that are put or counted.
	MaxMissed = 100

	onTime = 60           // seconds that a run can be late without being missed
	oldRun = 24 * 60 * 60 // age in seconds from which RunAll omits a run

	scheduleRecheck = 10 * second // because the wall clock can be set
	scheduleRetry   = 1           // seconds between attempts of a run whose job was refused

	compileWork  = 200 // units for compiling a definition
	scheduleWork = 60  // units for running a schedule, in addition to its put
)

// A Mark is the durable progress of a schedule. Its times are in seconds since 1970.
type Mark struct {
	At      int64  `json:"at"`               // runs up to this time are done, or missed
	Ran     int64  `json:"ran,omitempty"`    // time of the last run that put a job
	Job     uint64 `json:"job,omitempty"`    // id of the last job
	Runs    uint64 `json:"runs,omitempty"`   // number of jobs
	Missed  uint64 `json:"missed,omitempty"` // number of runs without a job
	Skipped uint64 `json:"skipped,omitempty"`
	Behind  uint64 `json:"behind,omitempty"` // number of last runs that found the previous job unfinished
	Paused  bool   `json:"paused,omitempty"`
	Timing  string `json:"timing"`
}

// schedules contains the schedules of an engine.
type schedules struct {
	configured map[string]string // see SetSchedules
	list       []*scheduled      // by name
	cursor     int               // index in list of the schedule that ran last
	due        int64             // time of the next RunSchedules, on the engine's clock
	wall       int64             // wall-clock time of the last RunSchedules
	counts     ScheduleCounts
	firing     struct{ name, mark string } // the schedule and the mark of the put in progress; empty if no schedule puts a job
}

// ScheduleCounts contains numbers of runs since the engine was created. Refused is a
// number of attempts.
type ScheduleCounts struct{ Runs, Missed, Skipped, Refused uint64 }

// scheduled is a schedule, or the mark of a schedule that no longer exists.
type scheduled struct {
	ScheduleStatus            // Schedules completes it
	configured, set string    // definitions in the configuration, and set at run time; Text is the effective one
	def             *Schedule // nil until compiled
	next            int64     // seconds since 1970
}

// SetSchedules replaces the configured definitions, by name. Definitions that were set at
// run time take precedence.
func (e *Engine) SetSchedules(configured map[string]string) {
	s := &e.schedules
	s.configured, s.due = configured, e.now
	for name := range configured {
		s.entry(name)
	}
	for _, d := range s.list {
		d.define(configured[d.Name], d.set)
	}
}

// entry returns the entry of a name, and creates it if necessary.
func (s *schedules) entry(name string) *scheduled {
	i, found := slices.BinarySearchFunc(s.list, name, compareName)
	if !found {
		s.list = slices.Insert(s.list, i, &scheduled{ScheduleStatus: ScheduleStatus{Name: name}})
	}
	return s.list[i]
}

func compareName(d *scheduled, name string) int { return strings.Compare(d.Name, name) }

// define replaces the definitions.
func (d *scheduled) define(configured, set string) {
	d.configured, d.set, d.Runtime = configured, set, set != ""
	if text := cmp.Or(set, configured); text != d.Text {
		d.Text, d.def, d.Unreadable, d.Refusal, d.next = text, nil, false, OK, 0
	}
}

// isGone reports whether the schedule has neither a definition nor a Mark.
func (d *scheduled) isGone() bool { return d.Text == "" && d.Mark == Mark{} }

// store stores the text of a ScheduleSet or ScheduleMark.
func (s *schedules) store(kind ChangeKind, name, text string) {
	d := s.entry(name)
	if kind == ScheduleSet {
		d.define(d.configured, text)
		return
	}
	d.Mark = Mark{}
	_ = json.Unmarshal([]byte(text), &d.Mark) // the text is empty if the mark is removed
}

// restored completes the store of a change from the log.
func (s *schedules) restored(now int64, name string) {
	d := s.entry(name)
	if d.next, s.due = 0, now; d.isGone() {
		s.list = slices.DeleteFunc(s.list, (*scheduled).isGone)
	}
}

// nextSchedules returns the time of the next RunSchedules, or Never.
func (e *Engine) nextSchedules() int64 {
	s := &e.schedules
	if e.opt.CompileSchedule == nil || len(s.list) == 0 {
		return Never
	}
	return s.due
}

// SchedulesDue reports whether RunSchedules must be called now.
func (e *Engine) SchedulesDue(now int64) bool { return e.nextSchedules() <= now }

// RunSchedules puts the jobs of the schedules that are due. wall is the time in ns since
// 1970. Like Tick it leaves the rest of many runs to the next turns.
func (e *Engine) RunSchedules(now, wall int64) {
	s := &e.schedules
	e.turnWork += len(s.list) / stepsPerUnit
	if wall < s.wall { // the clock was set back
		for _, d := range s.list {
			d.next = 0
		}
	}
	s.wall = wall
	at := wall / second
	next, ran := int64(NeverRuns), 0
	for range s.list {
		s.cursor = (s.cursor + 1) % len(s.list)
		for d := s.list[s.cursor]; d.next <= at; ran++ {
			if ran > 0 && (e.tickSpent() || e.turnLogged >= maxLogged) {
				s.cursor += len(s.list) - 1 // the schedule will be the first in the next turn
				s.due = now
				return
			}
			e.runSchedule(now, at, d)
		}
		next = min(next, s.list[s.cursor].next)
	}
	s.list = slices.DeleteFunc(s.list, (*scheduled).isGone)
	if s.due = now + scheduleRecheck; next < at+scheduleRecheck/second {
		s.due = now + next*second - wall
	}
}

// runSchedule executes the next due run of a schedule, if any, and sets the time at which
// it must be called again.
func (e *Engine) runSchedule(now, at int64, d *scheduled) {
	e.turnWork += scheduleWork
	if d.Text == "" {
		if d.next = NeverRuns; !d.isGone() && e.mark(d, Mark{}) != OK {
			d.next = at + scheduleRetry
		}
		return
	}
	if !e.compile(d) || d.Mark.Paused {
		d.next = NeverRuns
		return
	}
	if m := d.Mark; m.Timing != d.def.Timing {
		m.At, m.Timing = at, d.def.Timing
		if d.next = d.def.Next(at); e.mark(d, m) != OK {
			d.next = at + scheduleRetry
		}
		return
	}
	due := d.def.Due(d.Mark.At, at, MaxMissed+1)
	e.turnWork += len(due)
	if len(due) == 0 {
		d.next = d.def.Next(d.Mark.At)
		return
	}
	m := d.Mark
	run, missed := d.def.choose(due, at)
	if m.At, m.Missed = due[0], m.Missed+missed; run > 0 {
		m.At = run
	}
	o := OK
	switch waits := e.isWaiting(m.Job); {
	case run == 0:
		o = e.mark(d, m)
	case waits && d.def.SkipOverlap:
		m.Skipped++
		m.Behind++
		if o = e.mark(d, m); o == OK {
			e.schedules.counts.Skipped++
		}
	default:
		if m.Behind++; !waits {
			m.Behind = 0
		}
		_, o = e.fire(now, d, run, m)
	}
	if o != OK {
		e.schedules.counts.Refused++
		d.Refusal, d.next = o, at+scheduleRetry
		return
	}
	e.schedules.counts.Missed += missed
	d.Refusal, d.next = OK, d.def.Next(m.At)
}

// compile compiles the definition of a schedule, unless it is already compiled. It
// reports whether this version can read the definition.
func (e *Engine) compile(d *scheduled) bool {
	if d.def == nil && !d.Unreadable && e.opt.CompileSchedule != nil {
		e.turnWork += compileWork
		d.def = e.opt.CompileSchedule(d.Name, d.Text)
		d.Unreadable = d.def == nil
	}
	return d.def != nil
}

// choose returns the time of the run to do next, or 0, and the number of missed runs that
// will not be done. due contains the times of the due runs, the latest first.
func (s *Schedule) choose(due []int64, at int64) (run int64, missed uint64) {
	n := len(due)
	switch {
	case s.Missed == RunAll:
		i := min(n, MaxMissed)
		for i > 0 && at-due[i-1] > oldRun {
			i--
		}
		if i == 0 {
			return 0, uint64(n)
		}
		return due[i-1], uint64(n - i)
	case s.Missed == RunNone && at-due[0] > onTime:
		return 0, uint64(n)
	}
	return due[0], uint64(n - 1)
}

// isWaiting reports whether a job is ready, delayed or reserved.
func (e *Engine) isWaiting(id uint64) bool {
	i, j := e.lookup(id)
	return i != none && j.state() != Buried
}

// fire puts the job of a run. The put and the mark are one Change, so that a crash cannot
// separate them.
func (e *Engine) fire(now int64, d *scheduled, run int64, m Mark) (id uint64, o Outcome) {
	if e.draining {
		return 0, Draining // without using up an id
	}
	m.Job, m.Ran = e.lastID+1, run
	m.Runs++
	s := &e.schedules
	s.firing.name, s.firing.mark = d.Name, m.text()
	body := d.def.Body(run)
	id, o = e.PutInto(now, []byte(d.def.Tube), d.def.Spec, body)
	s.firing.name, s.firing.mark = "", ""
	e.turnLogged += len(body)
	switch o {
	case OK:
		d.Mark = m
	case Duplicate: // the existing job counts as the job of this run, even if a crash repeats the run
		m.Job = id
		o = e.mark(d, m)
	}
	if o == OK {
		s.counts.Runs++
	}
	return id, o
}

func (m *Mark) text() string {
	if *m == (Mark{}) {
		return ""
	}
	text, _ := json.Marshal(m)
	return string(text)
}

// mark makes a mark durable that no put contains.
func (e *Engine) mark(d *scheduled, m Mark) Outcome {
	return e.setNamed(ScheduleMark, d.Name, m.text())
}

// SetSchedule sets or replaces the definition of a schedule; an empty text removes it.
// The caller must have checked the text. The outcome is TooBig if there are already
// MaxSchedules schedules.
func (e *Engine) SetSchedule(name, text string) Outcome {
	if text != "" && e.scheduleNamed(name) == nil && len(e.Schedules()) >= MaxSchedules {
		return TooBig
	}
	e.schedules.due = e.now
	return e.setNamed(ScheduleSet, name, text)
}

// PauseSchedule starts or ends the pause of a schedule. wall is the time in ns since
// 1970. Runs during the pause do not count as missed.
func (e *Engine) PauseSchedule(wall int64, name string, paused bool) Outcome {
	d := e.scheduleNamed(name)
	if d == nil {
		return NotFound
	}
	m := d.Mark
	if m.Paused == paused {
		return OK
	}
	if m.Paused = paused; !paused {
		m.At = max(m.At, wall/second)
	}
	o := e.mark(d, m)
	d.next, e.schedules.due = 0, e.now
	return o
}

// RunSchedule puts the job of a schedule now, in addition to its regular runs. wall is
// the time in ns since 1970.
func (e *Engine) RunSchedule(now, wall int64, name string) (id uint64, o Outcome) {
	d := e.scheduleNamed(name)
	if d == nil {
		return 0, NotFound
	}
	if !e.compile(d) {
		return 0, Failed
	}
	return e.fire(now, d, wall/second, d.Mark)
}

// scheduleNamed returns a schedule that has a definition, or nil.
func (e *Engine) scheduleNamed(name string) *scheduled {
	list := e.schedules.list
	if i, found := slices.BinarySearchFunc(list, name, compareName); found && list[i].Text != "" {
		return list[i]
	}
	return nil
}

// A ScheduleStatus describes a schedule.
type ScheduleStatus struct {
	Name, Text string
	Runtime    bool // set at run time, not configured
	Mark       Mark
	Refusal    Outcome // outcome of the last put if it was refused; otherwise OK
	Unreadable bool    // this version cannot compile Text
	LastJob    State   // state of the last job, if it exists
	Exists     bool
}

// Schedules returns all schedules, by name.
func (e *Engine) Schedules() (all []ScheduleStatus) {
	for _, d := range e.schedules.list {
		if d.Text == "" {
			continue
		}
		st := d.ScheduleStatus
		if i, j := e.lookup(d.Mark.Job); i != none {
			st.Exists, st.LastJob = true, j.state()
		}
		all = append(all, st)
	}
	return all
}

// ScheduleCounts returns the counts of all schedules.
func (e *Engine) ScheduleCounts() ScheduleCounts { return e.schedules.counts }
