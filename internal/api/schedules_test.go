package api

import (
	"slices"
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
	// A run that the server refuses is a finding until the next attempt.
	attempt := func(drains bool, after time.Duration) (found admin.Attention) {
		r.in(func(e *engine.Engine, now int64) {
			if e.Drain(); !drains {
				e.Undrain()
			}
			e.RunSchedules(now, time.Now().Add(after).UnixNano())
		})
		r.want(200, "GET", "/attention", "", &found)
		return found
	}
	if found := attempt(true, 48*time.Hour); found.Kinds["schedule"] != 1 || !slices.ContainsFunc(found.Findings, func(f admin.Finding) bool {
		return f.Text == "schedule nightly cannot put its job: the server is draining and rejects new jobs"
	}) {
		r.t.Errorf("%+v", found)
	}
	if found := attempt(false, 49*time.Hour); found.Kinds["schedule"] != 0 {
		r.t.Errorf("%+v", found)
	}
	r.want(204, "DELETE", "/schedules/nightly", "", nil)
	r.want(404, "DELETE", "/schedules/nightly", "", nil)
}
