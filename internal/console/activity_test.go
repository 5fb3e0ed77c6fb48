package console

import (
	"regexp"
	"strings"
	"testing"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/engine"
)

// What was done is said in sentences, and can be filtered by who, what and tube.
func TestChangesInWords(t *testing.T) {
	r := start(t, nil, Options{})
	request := &request{console: r.Console, site: r.sites[0]}
	for want, c := range map[string]admin.Change{
		"moved 450000 jobs of big to elsewhere": {Operation: "endTask", About: map[string]any{"do": "move", "count": 450000, "tube": "big", "to": "elsewhere", "task": 1}},
		"buried 2 jobs of big":                  {Operation: "endTask", About: map[string]any{"do": "bury", "count": 2, "tube": "big"}},
		"began to kick buried jobs of big":      {Operation: "startTask", About: map[string]any{"do": "kick", "state": "buried", "tube": "big"}},
		"kicked job 7":                          {Operation: "kickJob", About: map[string]any{"job": 7}},
		"paused mail for 60 s":                  {Operation: "pauseTube", About: map[string]any{"tube": "mail", "seconds": 60}},
		"set policy max_reserved 3 name mail":   {Operation: "setPolicy", About: map[string]any{"name": "mail", "max_reserved": 3}},
		"put job 1 into a{b}|c":                 {Operation: "putJob", About: map[string]any{"job": 1, "tube": "a{b}|c"}},
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
	if text := r.page(200, "/console/activity"); !strings.Contains(text, "<span>the last one; the log") {
		t.Error(text)
	}
	r.follow(map[string][]string{"do": {"bury-job"}, "job": {"2"}})
	if text := r.page(200, "/console/activity?q=Mail+buried"); !strings.Contains(text, ">mail</a>") || strings.Contains(text, ">news</a>") {
		t.Error(text)
	}
	if text := r.page(200, "/console/activity?q=nobody"); !strings.Contains(text, "No change has these words.") {
		t.Error(text)
	}
}

// Work that goes on is shown where it was begun, and the page is live with it.
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

// A number leads to its job, and a name to its tube; what may be several things, to a choice.
func TestFind(t *testing.T) {
	r := start(t, nil, Options{})
	r.put("mail", "x")
	r.put("mail-bulk", "x")
	for q, want := range map[string]string{"84625": "/console/job/84625", "%237": "/console/job/7", "mail": "/console/tube/mail", "mai": "", "": ""} {
		w := r.send("GET", "/console/find?q="+q, nil)
		if got := w.Header().Get("Location"); got != want || (want == "") != (w.Code == 200) {
			t.Errorf("%q: %d %s, want %s", q, w.Code, got, want)
		}
	}
	text := r.page(200, "/console/find?q=mail&list=1")
	for _, want := range []string{`href="/console/tube/mail"`, `href="/console/tube/mail-bulk"`, `href="/console/search?q=mail"`} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %s in %s", want, text)
		}
	}
	if text := r.page(200, "/console/find?q=act"); !strings.Contains(text, `href="/console/activity"`) {
		t.Error(text)
	}
}

// Times are typed as people say them.
func TestInSeconds(t *testing.T) {
	for text, want := range map[string]string{"90": "90", "90s": "90", "10 min": "600", "10m": "600", "1 h": "3600", "2 days": "172800", "until resumed": "4294967295", "soon": "soon", "1.5 h": "5400", "1 h 30 min": "5400", "100ms": "100ms", "5 minutes": "300", "-1 s": "-1 s"} {
		if got := inSeconds(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	r := start(t, nil, Options{})
	r.put("mail", "x")
	r.follow(map[string][]string{"do": {"pause-tube"}, "tube": {"mail"}, "seconds": {"until resumed"}})
	if text := r.page(200, "/console/tubes"); !strings.Contains(text, ">paused until resumed<") {
		t.Error(text)
	}
}

// A file is called as what is in it.
func TestFileName(t *testing.T) {
	for want, of := range map[string][2]string{"mail-buried": {"mail", "buried"}, "mail_bulk": {"mail/bulk", ""}, "jobs-ready": {"..", "ready"}, "a_b": {"a\"\r\nb", ""}} {
		if got := fileName(of[0], of[1]); got != want {
			t.Errorf("%q: %s, want %s", of, got, want)
		}
	}
}
