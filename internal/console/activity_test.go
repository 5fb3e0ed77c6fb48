package console

import (
	"html"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/engine"
)

// Each change links to its object, and changes can be filtered by words.
func TestChanges(t *testing.T) {
	r := start(t, nil, Options{})
	r.put("mail", "x")
	r.put("news", "x")
	r.follow(map[string][]string{"do": {"bury-job"}, "job": {"1"}})
	if text := r.page(200, "/console/activity"); !strings.Contains(text, "<span>The last 1 change. The server's log") {
		t.Error(text)
	}
	r.follow(map[string][]string{"do": {"bury-job"}, "job": {"2"}})
	if text := r.page(200, "/console/activity?q=Mail+bury"); !strings.Contains(text, "<b>bury job</b>") || !strings.Contains(text, ">mail</a>") || strings.Contains(text, ">news</a>") {
		t.Error(text)
	}
	if text := r.page(200, "/console/activity?q=nobody"); !strings.Contains(text, "No change matches.") {
		t.Error(text)
	}
}

// The page that started a task shows the task while it runs, and updates live.
func TestNoteUpdates(t *testing.T) {
	r := start(t, nil, Options{})
	r.in(func(e *engine.Engine, now int64) { e.PutInto(now, []byte("mail"), engine.Spec{TTR: 9}, nil) })
	r.follow(map[string][]string{"do": {"bury-jobs"}, "tube": {"mail"}, "state": {"ready"}})
	word := r.notes.add(note{Text: "It is running.", Tasks: []uint64{1}})
	text := r.page(200, "/console/tube/mail?note="+word)
	if !strings.Contains(text, `<span id="going-1" class="strong">1 of 1</span>`) || !regexp.MustCompile(`data-live="[^"]*note=`+word).MatchString(text) {
		t.Error(text)
	}
}

// A number leads to the job with that id, and a name to the tube. Ambiguous input leads
// to a choice.
func TestFind(t *testing.T) {
	r := start(t, nil, Options{})
	r.put("mail", "x")
	r.put("mail-bulk", "x")
	for q, want := range map[string]string{"84625": "/console/job/84625", "%237": "/console/job/7", "mail": "/console/tube/mail", "mai": "", "": "", "needle": "/console/search?q=needle", "user.id%3A17+state%3Aburied": "/console/search?q=user.id%3A17+state%3Aburied", "mai&go=first": "/console/tube/mail", "act&go=first": "/console/activity"} {
		w := r.send("GET", "/console/find?q="+q, nil)
		if got := w.Header().Get("Location"); got != want || (want == "") != (w.Code == 200) {
			t.Errorf("%q: %d %s, want %s", q, w.Code, got, want)
		}
	}
	text := r.page(200, "/console/find?q=mail&list=1")
	for _, want := range []string{`href="/console/tube/mail"`, `href="/console/tube/mail-bulk"`, `href="/console/search?q=mail"`} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing in %s", want, text)
		}
	}
	if text := r.page(200, "/console/find?q=act"); !strings.Contains(text, `href="/console/activity"`) {
		t.Error(text)
	}
}

// inSeconds accepts times in everyday notation.
func TestInSeconds(t *testing.T) {
	for text, want := range map[string]string{"90": "90", "90s": "90", "10m": "600", "1 h": "3600", "2d": "172800", "until resumed": "4294967295", "soon": "soon", "1.5 h": "5400", "1 h 30 m": "5400", "100ms": "100ms", "-1 s": "-1 s", "5 parsecs": "5 parsecs", "9 o'clock": "9 o'clock", "25:00": "25:00"} {
		if got := inSeconds(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	synctest.Test(t, func(t *testing.T) { // the fake time starts at midnight
		time.Sleep(7*time.Hour + 40*time.Minute)
		for text, want := range map[string]string{"9:00": "4800", "until 09:00": "4800", "Until 9:00 UTC": "4800", "7:40": "86400", "07:39": "86340"} {
			if got := inSeconds(text); got != want {
				t.Errorf("%q: %s, want %s", text, got, want)
			}
		}
		time.Sleep(300 * time.Millisecond)
		if got, note := inSeconds("9:00"), pausedUntil("9:00"); got != "4800" || note != " until 2000-01-01 09:00 UTC" {
			t.Error(got, note)
		}
	})
	r := start(t, nil, Options{})
	r.put("mail", "x")
	if note := r.follow(map[string][]string{"do": {"pause-tube"}, "tube": {"mail"}, "seconds": {"until 23:59"}}); !strings.Contains(note, "Tube mail paused until ") || !strings.Contains(note, " 23:59 UTC.") {
		t.Error(note)
	}
	r.follow(map[string][]string{"do": {"pause-tube"}, "tube": {"mail"}, "seconds": {"until resumed"}})
	if text := r.page(200, "/console/tubes"); !strings.Contains(text, ">paused until resumed<") {
		t.Error(text)
	}
}

// A running task can be cancelled.
func TestCancel(t *testing.T) {
	r := start(t, nil, Options{})
	p := newPage("activity", "Activity", "activity", &activityView{Tasks: []taskRow{taskRow{admin.Task{ID: 7, Status: "deleting"}}, taskRow{admin.Task{ID: 8, Status: "done", Ended: "2026-01-01T00:00:00Z"}}}})
	p.site, p.Path, p.Me = r.sites[0], Prefix+"activity", &admin.Me{Anywhere: []string{"manage"}}
	var text strings.Builder
	if err := templates["activity"]().Execute(&text, p); err != nil {
		t.Fatal(err)
	}
	links := regexp.MustCompile(`<a class="button small" data-dialog href="([^"]*)">Stop…</a>`).FindAllStringSubmatch(text.String(), -1)
	if len(links) != 1 {
		t.Fatalf("%d cancel links for one task: %s", len(links), text.String())
	}
	if asked := r.page(200, html.UnescapeString(links[0][1])); !strings.Contains(asked, "Stop task 7?") {
		t.Error(asked)
	}
}
