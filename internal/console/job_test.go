package console

import (
	"fmt"
	"html"
	"regexp"
	"strings"
	"testing"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/engine"
)

var (
	wayOfJob = regexp.MustCompile(`(?s)<ol class="way".*?</ol>`)
	stepOf   = regexp.MustCompile(`(?s)<li class="([^"]*)"( aria-current="step")?>(.*?)</li>`)
	markup   = regexp.MustCompile(`<[^>]*>`)
)

// way returns the states on the page of a job, in order. The current state is in
// capitals, and states that the job was never in are in brackets.
func (r *rig) way(id uint64) string {
	r.t.Helper()
	return wayOn(r.page(200, fmt.Sprintf("/console/job/%d", id)))
}

func wayOn(page string) string {
	var steps []string
	for _, step := range stepOf.FindAllStringSubmatch(wayOfJob.FindString(page), -1) {
		text := strings.Join(strings.Fields(html.UnescapeString(markup.ReplaceAllString(step[3], " "))), " ")
		text = regexp.MustCompile(`[\d.]+ (µs|ms|s)`).ReplaceAllString(text, "T")
		switch {
		case step[2] != "":
			text = strings.ToUpper(text)
		case strings.HasSuffix(step[1], " never"):
			text = "(" + text + ")"
		}
		steps = append(steps, text)
	}
	return strings.Join(steps, "; ")
}

// The page of a job shows its state, and counts its transitions.
func TestWay(t *testing.T) {
	r := start(t, nil, Options{})
	id := r.put("mail", "x")
	expect := func(want string) {
		t.Helper()
		if got := r.way(id); got != want {
			t.Errorf("the way is\n%s, want\n%s", got, want)
		}
	}
	const fresh = "Put T ago; (Delayed); READY; (reserved 0×); Reserved; (timed out 0×); (released 0×); (buried 0×); Buried; (kicked 0×)"
	expect(fresh)
	r.talk("reserve-job 1")
	if at := r.page(200, "/console/job/1"); !strings.Contains(at, `by <a href="/console/connection/1">connection 1</a>`) {
		t.Error("the page has no link to the connection that holds the job")
	}
	expect("Put T ago; (Delayed); Ready; reserved 1×; RESERVED BY CONNECTION 1 , T LEFT; (timed out 0×); (released 0×); (buried 0×); Buried; (kicked 0×)")
	r.in(func(e *engine.Engine, now int64) { e.ReleaseJob(now, 1, 7, 0) })
	expect("Put T ago; (Delayed); READY; reserved 1×; Reserved; (timed out 0×); released 1×; (buried 0×); Buried; (kicked 0×)")
	r.in(func(e *engine.Engine, now int64) { e.BuryJob(1, 7) })
	expect("Put T ago; (Delayed); Ready; reserved 1×; Reserved; (timed out 0×); released 1×; buried 1×; BURIED; (kicked 0×)")
	r.in(func(e *engine.Engine, now int64) { e.KickJob(now, 1) })
	expect("Put T ago; (Delayed); READY; reserved 1×; Reserved; (timed out 0×); released 1×; buried 1×; Buried; kicked 1×")

	r.in(func(e *engine.Engine, now int64) {
		id, _ = e.PutInto(now, []byte("mail"), engine.Spec{Delay: 99, TTR: 1}, nil)
	})
	expect("Put T ago; DELAYED FOR ANOTHER T; Ready; (reserved 0×); Reserved; (timed out 0×); (released 0×); (buried 0×); Buried; (kicked 0×)")
}

// The page of a job and the list of buried jobs show the end of the last attempt. The
// reason is a worker's text, and can be hostile.
func TestFailure(t *testing.T) {
	r := start(t, nil, Options{})
	id := r.put("mail", "x")
	r.talk("reserve-job 1", "note 1 Sender::Denied: <script>\u202e1</script>", "bury 1 7")
	const reason = "Sender::Denied: &lt;script&gt;\\u202e1&lt;/script&gt;"
	for path, parts := range map[string][]string{
		fmt.Sprintf("/console/job/%d", id):  {"<dt>Reason</dt><dd class=\"late\">" + reason, "<dt>Attempt 1</dt><dd>Was buried<"},
		"/console/tube/mail?state=buried":   {`title="` + reason, "Sender::Denied: &lt;script&gt; 1&lt;/script&gt;"},
		"/console/search?q=tube:mail&job=1": {"Sender::Denied"},
	} {
		page := r.page(200, path)
		for _, part := range parts {
			if !strings.Contains(page, part) {
				t.Errorf("%s lacks %q", path, part)
			}
		}
	}
}

// The page shows each counter next to the arrow of its transition.
func TestCountersOfTransitions(t *testing.T) {
	p := newPage("job", "Job 1", "tubes", &jobView{Job: admin.Job{State: "ready", Delay: 5, Reserves: 15, Timeouts: 1, Releases: 2, Buries: 3, Kicks: 1234}})
	p.site, p.Me = &site{Base: Prefix}, new(admin.Me)
	var text strings.Builder
	if err := templates["job"]().Execute(&text, p); err != nil {
		t.Fatal(err)
	}
	if got, want := wayOn(text.String()), "Put T ago; Delayed; READY; reserved 15×; Reserved; timed out 1×; released 2×; buried 3×; Buried; kicked 1 234×"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// The stream of a page does not decode bodies every second, because they never change.
func TestStreamLeavesBodiesAlone(t *testing.T) {
	r := start(t, nil, Options{})
	id := r.put("mail", `{"displayName":"App\\Jobs\\Send"}`)
	for _, path := range []string{fmt.Sprintf("/console/job/%d", id), "/console/tube/mail"} {
		asked, page := r.viewOf(path)
		for _, asked.live = range []bool{true, false} {
			made, err := asked.page(page)
			if err != nil {
				t.Fatal(err)
			}
			decoded := false
			switch v := made.Data.(type) {
			case *jobView:
				decoded = v.Views != nil || v.Kind != ""
			case *tubeView:
				decoded = v.Jobs.Rows[0].Job.Fields != nil || v.Jobs.Rows[0].Job.Kind != ""
			}
			if decoded == asked.live {
				t.Errorf("%s, live %v: decoded %v", path, asked.live, decoded)
			}
		}
	}
}
