package console

import (
	"fmt"
	"html/template"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/admin/api"
	"github.com/beanpole-mq/beanpole/internal/engine"
)

// When there is more to look at than the overview has room for, one buried job is not hidden by many tubes without workers.
func TestManyFindings(t *testing.T) {
	r := start(t, nil, Options{})
	for i := range 30 {
		r.put(fmt.Sprint("tenant-", i), "x")
		r.put(fmt.Sprint("tenant-", i), "x")
	}
	r.in(func(e *engine.Engine, now int64) { e.Pause(now, []byte("tenant-1"), 30) })
	html := r.page(200, "/console/")
	for _, want := range []string{`href="/console/tubes?has=unwatched">without workers <span id="k-unwatched" class="strong">30<`, `href="/console/tubes?has=paused">paused <span id="k-paused" class="strong">1<`} {
		if !strings.Contains(html, want) {
			t.Errorf("there is no %s in\n%s", want, html)
		}
	}
	if strings.Contains(html, `id="k-buried"`) {
		t.Error("there is a kind of which there is nothing")
	}
}

// Settings that nobody has set, and refusals that there were none of, take no room.
func TestServerIsShort(t *testing.T) {
	r := startWith(t, nil, Options{}, func(*api.API) []Server { return nil }, func(o *api.Options) {
		o.Facts = func() api.ServerFacts {
			return api.ServerFacts{Settings: []api.Setting{{Name: "port", Value: `"11301"`, From: "command line"}, {Name: "compat", Value: `"1.13"`, From: "default"}}}
		}
	})
	html := r.page(200, "/console/server")
	chosen, others, ok := strings.Cut(html, `<details class="defaults">`)
	if !ok || !strings.Contains(chosen, "11301") || strings.Contains(chosen, "1.13") || !strings.Contains(others, "1.13") || !strings.Contains(html, "Nothing was refused.") {
		t.Error(html)
	}
	r.talk("nonsense")
	if html := r.page(200, "/console/server"); strings.Contains(html, "Nothing was refused.") || !strings.Contains(html, "UNKNOWN_COMMAND") || strings.Contains(html, "OUT_OF_MEMORY") {
		t.Error(html)
	}
}

// A page whose stream tells of no other rows shows, with the values of the stream, what it would show if it were loaded again.
func TestLivePagesAreTrue(t *testing.T) {
	r := start(t, nil, Options{})
	r.put("mail", "x")
	paths := []string{"", "tubes", "tube/mail", "tube/news", "job/1", "job/2", "connections", "server"}
	before := make(map[string]string)
	load := func() {
		for _, path := range paths {
			before[path] = r.send("GET", "/console/"+path, nil).Body.String()
		}
	}
	for _, step := range []struct {
		name string
		do   func()
	}{
		{"put", func() { r.put("mail", "y") }},
		{"the job that waits longest is another", func() {
			r.put("news", "z")
			r.in(func(e *engine.Engine, now int64) { e.DeleteJob(1); e.DeleteJob(2) })
		}},
		{"pause", func() { r.in(func(e *engine.Engine, now int64) { e.Pause(now, []byte("news"), 1000) }) }},
		{"time goes by", func() { r.in(func(e *engine.Engine, now int64) { e.Pause(now, []byte("news"), 2000) }) }},
		{"watch", func() { r.talk("watch news", "watch mail") }},
		{"resume", func() { r.in(func(e *engine.Engine, now int64) { e.Pause(now, []byte("news"), 0) }) }},
		{"bury", func() { r.in(func(e *engine.Engine, now int64) { e.BuryJob(3, 7) }) }},
		{"drain", func() { r.in(func(e *engine.Engine, now int64) { e.Drain() }) }},
		{"delete", func() { r.in(func(e *engine.Engine, now int64) { e.DeleteJob(3) }) }},
	} {
		load()
		step.do()
		// A change through the API, even one that fails, lets the lists of tubes be made anew.
		r.api.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", "/api/v1/tubes/none/resume", nil))
		for _, path := range paths {
			asked, page, err := r.viewOf(httptest.NewRequest("GET", "/console/events?view=/console/"+path, nil))
			if err != nil {
				t.Fatal(err)
			}
			live, err := r.live.values(asked, page)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(before[path], `data-shape="`+live.Shape+`"`) {
				continue // it is loaded again
			}
			got, want := live.applied(before[path]), live.applied(r.send("GET", "/console/"+path, nil).Body.String())
			if got != want {
				t.Errorf("after %s, %q shows\n%s\nand loaded again\n%s", step.name, path, got, want)
			}
		}
	}
}

// applied returns the part of a page that is loaded again, with the values of a stream.
func (v *liveValues) applied(html string) string {
	_, html, _ = strings.Cut(html, "<main")
	html, _, _ = strings.Cut(html, "</main>")
	for id, one := range v.Texts {
		span := regexp.MustCompile(`id="` + regexp.QuoteMeta(id) + `" class="[^"]*"([^>]*)>[^<]*<`)
		html = span.ReplaceAllLiteralString(html, `id="`+id+`" class="`+one.Class+`">`+template.HTMLEscapeString(one.Text)+"<")
	}
	return html
}

// What a stream says of a page is what stands in its HTML.
func TestLiveValues(t *testing.T) {
	r := start(t, nil, Options{})
	r.put("mail", "x")
	r.put("news", "<&>")
	for _, path := range []string{"", "tubes", "tube/mail", "job/1", "connections", "activity", "server"} {
		asked, page, err := r.viewOf(httptest.NewRequest("GET", "/console/events?view=/console/"+path, nil))
		if err != nil {
			t.Fatal(err)
		}
		live, err := r.live.values(asked, page)
		if err != nil {
			t.Fatal(err)
		}
		html := r.page(200, "/console/"+path)
		if len(live.Texts) == 0 && path != "activity" && path != "connections" {
			t.Errorf("nothing changes on %q", path)
		}
		for id, v := range live.Texts {
			if want := `id="` + id + `" class="` + v.Class + `"`; !strings.Contains(html, want) {
				t.Errorf("%q has no %s", path, want)
			}
		}
		for id := range live.Lines {
			if !strings.Contains(html, `id="`+id+`" d="`) {
				t.Errorf("%q has no line %s", path, id)
			}
		}
		if !strings.Contains(html, `data-shape="`+live.Shape+`"`) {
			t.Errorf("%q has another shape than %s", path, live.Shape)
		}
	}
}

// Of buried jobs it is said how many more there are, and since when: the server may have begun a minute ago.
func TestGrown(t *testing.T) {
	for want, f := range map[string]api.Finding{
		"": {}, ", 3 more than 100\u202fs ago": {More: 3, Over: 100}, ", 3 more than 10\u202fmin ago": {More: 3, Over: 600}, ", 3 more than before": {More: 3},
	} {
		if got := (&attention{Finding: f}).Grown(); got != want {
			t.Errorf("%+v: %q, want %q", f, got, want)
		}
	}
	if got := (&attention{Finding: api.Finding{More: -3, Over: 100}}).Grown(); got != "" {
		t.Errorf("fewer: %q", got)
	}
}

// The legend of a chart has the value of now, as the figures above it, and not the mean that the last point of the line is.
func TestLegend(t *testing.T) {
	burst := make([]*uint64, 600)
	for i := range burst {
		burst[i] = new(uint64)
	}
	*burst[599] = 3416
	calm := burst[:540]
	all := func(step int64, of []*uint64) *api.History {
		return &api.History{Step: step, Series: map[string][]*uint64{"put": of, "ready": of}}
	}
	for name, c := range map[string]struct {
		h, lately *api.History
		want      string
	}{
		"ten minutes":                    {all(1, burst), all(1, burst[540:]), "3\u202f416"},
		"a day":                          {all(60, calm), all(1, burst[540:]), "3\u202f416"},
		"a server that says only a part": {all(1, calm), new(api.History), "0"},
	} {
		charts := overviewCharts(c.h, c.lately, "")
		if flow, jobs := charts[0].Lines[0], charts[2].Lines[0]; flow.Name != "put" || flow.Now != c.want || jobs.Name != "ready" || jobs.Now != c.want || charts[2].Max != c.want {
			t.Errorf("%s: %s %s, want %s", name, flow.Now, jobs.Now, c.want)
		}
	}
}
