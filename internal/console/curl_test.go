package console

import (
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/api"
	"github.com/beanpole-mq/beanpole/internal/engine"
)

var shownCurl = regexp.MustCompile(`(?s)<details class="curl">.*?<code tabindex="0">(.*?)</code>`)

// The shell commands on the pages work as described.
func TestCurl(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed")
	}
	r := start(t, nil, Options{})
	mux := http.NewServeMux()
	mux.Handle(api.Prefix+"/", r.api)
	mux.Handle(Prefix, r)
	srv := httptest.NewServer(mux)
	defer srv.Close()
	run := func(path string) string {
		t.Helper()
		h := httptest.NewRequest("GET", srv.URL+"/console/"+path, nil)
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, h)
		shown := shownCurl.FindStringSubmatch(w.Body.String())
		if shown == nil {
			t.Fatalf("%s shows no command: %d %s", path, w.Code, w.Body)
		}
		out, err := exec.Command("sh", "-c", html.UnescapeString(shown[1])).CombinedOutput()
		if err != nil || strings.Contains(string(out), `"status":4`) {
			t.Errorf("%s: %v, %s", shown[1], err, out)
		}
		return string(out)
	}
	state := func(id uint64, want string) {
		t.Helper()
		var j admin.Job
		w := r.apiGet(fmt.Sprintf("/jobs/%d", id), &j)
		if got := j.State + " " + j.Tube; w == 200 && got != want || w != 200 && want != "" {
			t.Errorf("job %d is %d %q, want %q", id, w, got, want)
		}
	}

	const odd = `it's "odd": $(touch x) ; \n` + "\n<&>"
	ids := []uint64{r.put("mail", odd), r.put("mail", "\x00\xff"), r.put("mail", "z")}
	run("tube/mail/put?from=1")
	run("tube/a%2Fb%3Bc/put?from=2")
	r.in(func(e *engine.Engine, _ int64) {
		for id, body := range map[uint64]string{4: odd, 5: "\x00\xff"} {
			if j, o := e.Peek(id); o != engine.OK || string(j.Keep()) != body {
				t.Errorf("job %d has another body", id)
			}
		}
	})
	state(5, "ready a/b;c")
	run("confirm?do=bury-job&job=1&job=2&job=3")
	for _, id := range ids {
		state(id, "buried mail")
	}
	run("confirm?do=kick-job&job=1&job=2")
	state(2, "ready mail")
	run("confirm?do=change-job&job=1&delay=1000")
	state(1, "delayed mail")
	run("confirm?do=move-job&job=2&to=other")
	state(2, "ready other")
	run("confirm?do=delete-job&job=2")
	state(2, "")
	run("confirm?do=pause-tube&tube=mail&tube=a%2Fb%3Bc&seconds=60")
	r.in(func(e *engine.Engine, now int64) {
		for _, tube := range []string{"mail", "a/b;c"} {
			if st, _ := e.TubeStats(now, []byte(tube)); st.Pause != 60 {
				t.Errorf("%s is paused for %d s", tube, st.Pause)
			}
		}
	})
	if got := run("tubes"); !strings.Contains(got, `"name":"other"`) && !strings.Contains(got, `"name":"mail"`) {
		t.Errorf("the list of tubes is %s", got)
	}
	run("confirm?do=delete-job&job=1&all=yes&tube=mail&state=buried") // the bar, with "all buried"
	until(t, func() bool { return r.apiGet("/jobs/3", new(admin.Job)) == 404 })

	many := r.page(200, "/console/confirm?do=delete-job"+strings.Repeat("&job=1&job=3", 20))
	if n := strings.Count(many, "curl -s -X DELETE"); n != shownCurls || !strings.Contains(many, "for 28 more") {
		t.Errorf("%d of 40 commands are shown", n)
	}
}

// A running task can be cancelled. The confirmation shows the command.
func TestCancel(t *testing.T) {
	r := start(t, nil, Options{})
	p := newPage("activity", "Activity", "activity", &activityView{Tasks: []taskRow{newTaskRow(admin.Task{ID: 7, Status: "deleting"}), newTaskRow(admin.Task{ID: 8, Status: "done", Ended: "2026-01-01T00:00:00Z"})}})
	p.site, p.Path, p.Me = r.sites[0], Prefix+"activity", &admin.Me{Anywhere: []string{"manage"}}
	var text strings.Builder
	if err := templates["activity"]().Execute(&text, p); err != nil {
		t.Fatal(err)
	}
	links := regexp.MustCompile(`<a class="button small" data-dialog href="([^"]*)">Stop…</a>`).FindAllStringSubmatch(text.String(), -1)
	if len(links) != 1 {
		t.Fatalf("%d cancel links for one task: %s", len(links), text.String())
	}
	if asked := r.page(200, html.UnescapeString(links[0][1])); !strings.Contains(asked, "Stop task 7?") || !strings.Contains(asked, "curl -s -X DELETE http://example.com/api/v1/tasks/7") {
		t.Error(asked)
	}
}
