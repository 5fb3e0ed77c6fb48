package api

import (
	"strings"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/engine"
)

// schedules is the part of TestStory about schedules.
func (r *rig) schedules() {
	var s admin.Schedule
	r.want(400, "PUT", "/schedules/nightly", `{"settings":{"cron":"30 25 * * *","tube":"reports"}}`, nil)
	r.want(200, "PUT", "/schedules/nightly", `{"settings":{"cron":"30 3 * * *","timezone":"Europe/Berlin","tube":"reports","body":"{name}"}}`, &s)
	if next := time.Unix(s.Next[0], 0); s.Source != "runtime" || len(s.Next) != 5 || next.Minute() != 30 || time.Until(next) > 25*time.Hour || time.Until(next) < 0 {
		r.t.Errorf("%+v", s)
	}
	r.want(404, "POST", "/schedules/none/run", "", nil)
	id := strings.Trim(strings.TrimPrefix(r.want(201, "POST", "/schedules/nightly/run", "", nil), `{"id":`), "}")
	r.want(204, "POST", "/schedules/nightly/pause", "", nil)
	if r.want(200, "GET", "/schedules/nightly", "", &s); !s.Paused || s.Runs != 1 || s.Outcome != "ready" || s.Settings["body"] != "{name}" {
		r.t.Errorf("%+v", s)
	}
	r.want(204, "POST", "/schedules/nightly/resume", "", nil)
	var j admin.Job
	if r.want(200, "GET", "/jobs/"+id, "", &j); *j.Body != "nightly" || j.Tube != "reports" {
		r.t.Errorf("%+v", j)
	}
	r.want(204, "DELETE", "/jobs/"+id, "", nil)
	var all admin.Schedules
	if r.want(200, "GET", "/schedules", "", &all); len(all.Schedules) != 1 || all.Schedules[0].Outcome != "deleted" {
		r.t.Errorf("%+v", all)
	}
	// A schedule is reported as a finding if the server refuses its job, or if five runs
	// in a row found the previous job still present.
	for _, test := range []struct {
		hours  time.Duration
		drains bool
		want   string
	}{
		{48, true, "schedule nightly cannot put its job: the server is draining and rejects new jobs"},
		{49, false, ""}, {73, false, ""}, {97, false, ""}, {121, false, ""}, {145, false, ""},
		{169, false, "the jobs of schedule nightly pile up: the last 5 runs found the previous job ready, delayed or reserved"},
		{193, false, ""}, // without the previous job
	} {
		r.in(func(e *engine.Engine, now int64) {
			if e.Drain(); !test.drains {
				e.Undrain()
			}
			if test.hours == 193 {
				e.DeleteJob(e.LastID())
			}
			e.RunSchedules(now, time.Now().Add(test.hours*time.Hour).UnixNano())
		})
		var found admin.Attention
		r.want(200, "GET", "/attention", "", &found)
		text := ""
		for _, f := range found.Findings {
			if f.Kind == "schedule" {
				text += f.Text
			}
		}
		if text != test.want {
			r.t.Errorf("after %d h: %q, want %q", test.hours, text, test.want)
		}
	}
	r.want(204, "DELETE", "/schedules/nightly", "", nil)
	r.want(404, "DELETE", "/schedules/nightly", "", nil)
}
