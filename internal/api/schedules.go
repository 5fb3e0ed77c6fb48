package api

import (
	"net/http"
	"slices"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/schedule"
)

// schedules returns all schedules.
func (r *request) schedules() (all []engine.ScheduleStatus, err error) {
	err = r.turn(func(e *engine.Engine, _ int64) error {
		all = e.Schedules()
		return nil
	})
	return all, err
}

// scheduleNamed returns a schedule, if the client has the required rights on its tube.
func (r *request) scheduleNamed(name string) (st engine.ScheduleStatus, err error) {
	if err := schedule.CheckName(name); err != nil {
		return st, badRequest("%v", err)
	}
	all, err := r.schedules()
	if err != nil {
		return st, err
	}
	i := slices.IndexFunc(all, func(st engine.ScheduleStatus) bool { return st.Name == name })
	if i < 0 {
		return st, problemf(http.StatusNotFound, "there is no schedule %.100s; 'beanpole schedule list' lists all", name)
	}
	need := statsNamed
	if r.op.changes() {
		need = runsNamed
	}
	tube := schedule.Parse(all[i].Text)["tube"]
	return all[i], r.permittedOn(need, "the tube "+tube, tube)
}

// scheduleOf returns a schedule as the client sees it.
func (r *request) scheduleOf(st *engine.ScheduleStatus) admin.Schedule {
	m := &st.Mark
	s := admin.Schedule{Name: st.Name, Source: "file", Settings: schedule.Parse(st.Text), Paused: m.Paused, Next: []int64{},
		LastRun: m.Ran, LastJob: m.Job, Runs: m.Runs, Missed: m.Missed, Skipped: m.Skipped, Behind: m.Behind}
	if st.Runtime {
		s.Source = "runtime"
	}
	switch {
	case st.Unreadable:
		s.Problem = "this version of beanpole cannot read the definition"
	case st.Refusal != engine.OK:
		s.Problem = outcomeProblem(st.Refusal).Error()
	}
	switch {
	case st.Exists:
		s.Outcome = st.LastJob.String()
	case m.Job > 0:
		s.Outcome = "deleted"
	}
	if compiled, err := schedule.Compile(st.Name, s.Settings); err == nil && !m.Paused {
		done := m.At
		if due := compiled.Due(done, time.Now().Unix(), 1); len(due) > 0 {
			done = due[0]
		}
		s.Next = schedule.Upcoming(compiled, done)
	}
	if !r.caller.Identity.Meets(bodiesNamed, s.Settings["tube"]) {
		delete(s.Settings, "body")
	}
	return s
}

func (r *request) listSchedules(*admin.None) (list admin.Schedules, err error) {
	all, err := r.schedules()
	list.Schedules = []admin.Schedule{}
	for i := range all {
		if s := r.scheduleOf(&all[i]); r.caller.Identity.Meets(statsNamed, s.Settings["tube"]) {
			list.Schedules = append(list.Schedules, s)
		}
	}
	return list, err
}

func (r *request) getSchedule(in *admin.OfSchedule) (s admin.Schedule, err error) {
	st, err := r.scheduleNamed(in.Name)
	if err != nil {
		return s, err
	}
	return r.scheduleOf(&st), nil
}

func (r *request) setSchedule(in *admin.SetSchedule) (s admin.Schedule, err error) {
	compiled, err := schedule.Compile(in.Name, in.Settings)
	if err != nil {
		return s, badRequest("%v", err)
	}
	if err := r.permittedOn(runsNamed, "the tube "+compiled.Tube, compiled.Tube); err != nil {
		return s, err
	}
	st, err := r.scheduleNamed(in.Name)
	if err != nil && admin.StatusOf(err) != http.StatusNotFound {
		return s, err
	}
	text := schedule.Text(in.Settings)
	r.note("before", withoutBody(st.Text))
	r.note("after", withoutBody(text))
	if err := r.turn(func(e *engine.Engine, _ int64) error {
		if o := e.SetSchedule(in.Name, text); o == engine.TooBig {
			return problemf(http.StatusInsufficientStorage, "the limit of %d schedules is reached; remove some ('beanpole schedule list' shows them)", engine.MaxSchedules)
		} else if o != engine.OK {
			return outcomeProblem(o)
		}
		return nil
	}); err != nil {
		return s, err
	}
	return r.getSchedule(&in.OfSchedule)
}

// withoutBody returns a definition without its body, as one line, for the audit.
func withoutBody(text string) string {
	settings := schedule.Parse(text)
	delete(settings, "body")
	return oneLine(schedule.Text(settings))
}

func (r *request) removeSchedule(in *admin.OfSchedule) (none admin.None, err error) {
	st, err := r.scheduleNamed(in.Name)
	if err != nil {
		return none, err
	}
	if !st.Runtime {
		return none, problemf(http.StatusConflict, "the schedule %s is in the configuration file; remove it there, or pause it", in.Name)
	}
	return none, r.changeSchedule(in.Name, func(e *engine.Engine, _ int64) engine.Outcome { return e.SetSchedule(in.Name, "") })
}

func (r *request) pauseSchedule(in *admin.OfSchedule) (admin.None, error) {
	return r.setPaused(in, true)
}

func (r *request) resumeSchedule(in *admin.OfSchedule) (admin.None, error) {
	return r.setPaused(in, false)
}

func (r *request) setPaused(in *admin.OfSchedule, paused bool) (none admin.None, err error) {
	return none, r.changeSchedule(in.Name, func(e *engine.Engine, _ int64) engine.Outcome {
		return e.PauseSchedule(time.Now().UnixNano(), in.Name, paused)
	})
}

func (r *request) runSchedule(in *admin.OfSchedule) (done admin.Inserted, err error) {
	err = r.changeSchedule(in.Name, func(e *engine.Engine, now int64) (o engine.Outcome) {
		done.ID, o = e.RunSchedule(now, time.Now().UnixNano(), in.Name)
		return o
	})
	return done, err
}

// changeSchedule changes a schedule in a turn, if the client has the rights.
func (r *request) changeSchedule(name string, do func(e *engine.Engine, now int64) engine.Outcome) error {
	if _, err := r.scheduleNamed(name); err != nil {
		return err
	}
	return r.turn(func(e *engine.Engine, now int64) error {
		o := do(e, now)
		if o == engine.NotFound {
			return problemf(http.StatusNotFound, "the schedule was removed")
		}
		return outcomeIn(e, o)
	})
}
