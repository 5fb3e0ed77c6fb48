package console

import (
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/engine"
)

// Changes are shown as sentences, and can be filtered by user, operation and tube.
func TestChangesInWords(t *testing.T) {
	r := start(t, nil, Options{})
	request := &request{console: r.Console, site: r.sites[0]}
	for want, c := range map[string]admin.Change{
		"moved 450 000 jobs of big to elsewhere":   {Operation: "endTask", About: map[string]any{"do": "move", "count": 450000, "tube": "big", "to": "elsewhere", "task": 1}},
		"buried 2 jobs of big":                     {Operation: "endTask", About: map[string]any{"do": "bury", "count": 2, "tube": "big"}},
		"started to kick buried jobs of big":       {Operation: "startTask", About: map[string]any{"do": "kick", "state": "buried", "tube": "big"}},
		"kicked job 7":                             {Operation: "kickJob", About: map[string]any{"job": 7}},
		"paused mail for 60 s":                     {Operation: "pauseTube", About: map[string]any{"tube": "mail", "seconds": 60}},
		"changed the policy of mail-*, now rate=9": {Operation: "setPolicy", About: map[string]any{"pattern": "mail-*", "before": "", "after": "rate=9"}},
		"kicked 1 job of mail":                     {Operation: "kick", About: map[string]any{"tube": "mail", "count": 1, "via": "protocol"}},
		"new operation job 7":                      {Operation: "newOperation", About: map[string]any{"job": 7}},
		"put job 1 into a{b}|c":                    {Operation: "putJob", About: map[string]any{"job": 1, "tube": "a{b}|c"}},
	} {
		c.Result = "ok"
		row := changeRow{c, request.says(&c)}
		text := ""
		for _, p := range row.Says {
			text += p.Text
		}
		if text = strings.Join(strings.Fields(text), " "); text != want {
			t.Errorf("%v: %q, want %q", c, text, want)
		}
	}
	r.put("mail", "x")
	r.put("news", "x")
	r.follow(map[string][]string{"do": {"bury-job"}, "job": {"1"}})
	if text := r.page(200, "/console/activity"); !strings.Contains(text, "<span>The last 1 change. The log") {
		t.Error(text)
	}
	r.follow(map[string][]string{"do": {"bury-job"}, "job": {"2"}})
	if text := r.page(200, "/console/activity?q=Mail+buried"); !strings.Contains(text, ">mail</a>") || strings.Contains(text, ">news</a>") {
		t.Error(text)
	}
	if text := r.page(200, "/console/activity?q=nobody"); !strings.Contains(text, "No change matches.") {
		t.Error(text)
	}
}

// Each operation and each command in the audit log has a sentence.
func TestEveryChangeHasASentence(t *testing.T) {
	r := start(t, nil, Options{})
	w := httptest.NewRecorder()
	r.api.ServeHTTP(w, httptest.NewRequest("GET", "/api/v1/openapi.yaml", nil))
	changes := []string{"kick", "pause-tube", "flush-tube", "move-jobs", "endTask"}
	for _, m := range regexp.MustCompile(`(?m)^    (get|post|patch|delete):\n      operationId: (\w+)`).FindAllStringSubmatch(w.Body.String(), -1) {
		if m[1] != "get" {
			changes = append(changes, m[2])
		}
	}
	if len(changes) < 20 {
		t.Fatal(changes)
	}
	for _, name := range changes {
		if sentences[name] == "" {
			t.Errorf("%s has no sentence", name)
		}
	}
}

// A running task is shown on the page that started it, and the page updates live.
func TestNoteGoesOn(t *testing.T) {
	r := start(t, nil, Options{})
	r.in(func(e *engine.Engine, now int64) { e.PutInto(now, []byte("mail"), engine.Spec{TTR: 9}, nil) })
	r.follow(map[string][]string{"do": {"bury-jobs"}, "tube": {"mail"}, "state": {"ready"}})
	word := r.notes.add(note{Text: "It goes on.", Tasks: []uint64{1}})
	text := r.page(200, "/console/tube/mail?note="+word)
	if !strings.Contains(text, `<span id="going-1" class="strong">1 of 1</span>`) || !regexp.MustCompile(`data-live="[^"]*note%3D`+word).MatchString(text) {
		t.Error(text)
	}
}

// A number leads to its job and a name to its tube. An ambiguous input leads to a choice.
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

// Users can type times in everyday notation.
func TestInSeconds(t *testing.T) {
	for text, want := range map[string]string{"90": "90", "90s": "90", "10 min": "600", "10m": "600", "1 h": "3600", "2 days": "172800", "until resumed": "4294967295", "soon": "soon", "1.5 h": "5400", "1 h 30 min": "5400", "100ms": "100ms", "5 minutes": "300", "-1 s": "-1 s", "5 parsecs": "5 parsecs", "90 secs": "90", "9 o'clock": "9 o'clock", "25:00": "25:00"} {
		if got := inSeconds(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	synctest.Test(t, func(t *testing.T) { // at midnight
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

// Exported files are named after their contents.
func TestFileName(t *testing.T) {
	for want, of := range map[string][2]string{"mail-buried": {"mail", "buried"}, "mail_bulk": {"mail/bulk", ""}, "jobs-ready": {"..", "ready"}, "a_b": {"a\"\r\nb", ""}} {
		if got := fileName(of[0], of[1]); got != want {
			t.Errorf("%q: %s, want %s", of, got, want)
		}
	}
}
