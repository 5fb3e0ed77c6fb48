package console

import (
	"html"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// TestSchedules sets, runs, pauses and removes a schedule, and shows its next runs while
// the user types.
func TestSchedules(t *testing.T) {
	r := start(t, nil, Options{})
	w := r.send("POST", "/console/schedule", url.Values{"name": {"nightly"}, "cron": {"30 25 * * *"}, "tube": {"mail"}, "timezone": {"Europe/Berln"}})
	for _, want := range []string{`value="30 25 * * *"`, `Unknown time zone &#34;Europe/Berln&#34;; did you mean &#34;Europe/Berlin&#34;?`} {
		if w.Code != 422 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%d, without %s: %s", w.Code, want, w.Body)
		}
	}
	for query, want := range map[string]string{
		"cron=30+25+*+*+*": "Column 4: bad hour", "cron=30+3+*+*+*&timezone=Asia/Tokyo": "03:30:00 JST", "every=5m": "UTC", "cron=1+1+1+1+1&every=5m": "Want one of cron and every.",
	} {
		if text := r.page(200, "/console/schedule/next?"+query); !strings.Contains(text, want) || strings.Contains(want, ":30:") && strings.Count(text, "<li") < 5 {
			t.Errorf("%s lacks %s: %s", query, want, text)
		}
	}
	if w = r.send("POST", "/console/schedule", url.Values{"name": {"nightly"}, "cron": {"30 3 * * *"}, "tube": {"mail"}, "body": {"a\r\nb"}, "missed": {"once"}}); w.Code != 303 {
		t.Fatal(w.Code, w.Body)
	}
	for do, want := range map[string]string{"pause-schedule": "Schedule nightly paused.", "resume-schedule": "Schedule nightly resumed.", "run-schedule": "Schedule nightly has put its job."} {
		if note := r.follow(url.Values{"do": {do}, "schedule": {"nightly"}, "back": {"/console/schedules"}}); !strings.Contains(note, want) {
			t.Errorf("%s: %s", do, note)
		}
	}
	var mark engine.Mark
	r.in(func(e *engine.Engine, _ int64) {
		for _, st := range e.Schedules() {
			mark = st.Mark
		}
		if c, ok := e.Snapshot(mark.Job); !ok || string(c.Body) != "a\nb" {
			t.Errorf("the job is %+v", c)
		}
	})
	list := r.page(200, "/console/schedules")
	for _, link := range regexp.MustCompile(`/console/confirm[^"]+`).FindAllString(list, -1) {
		if text := r.page(200, html.UnescapeString(link)); !strings.Contains(text, " schedule nightly?") {
			t.Errorf("%s: %s", link, text)
		}
	}
	if !strings.Contains(list, "nightly") || !strings.Contains(list, "ready") || strings.Count(list, "/console/confirm") != 3 {
		t.Error(list)
	}
	if text := r.page(200, "/console/schedule?name=nightly"); !strings.Contains(text, `value="30 3 * * *"`) || strings.Count(text, "<li") < 5 {
		t.Error(text)
	}
	r.page(404, "/console/schedule?name=none")
	r.follow(url.Values{"do": {"remove-schedule"}, "schedule": {"nightly"}})
	if text := r.page(200, "/console/schedules"); !strings.Contains(text, "No schedules.") {
		t.Error(text)
	}
}
