package console

import (
	"fmt"
	"html"
	"html/template"
	"io/fs"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/api"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/server"
)

// Equal findings of many tubes share a line with a link to these tubes. The page of a
// tube explains why it is stuck.
func TestFindingsInWords(t *testing.T) {
	r := start(t, nil, Options{})
	for i := range 1100 {
		r.put(fmt.Sprint("tenant-", i), "x")
	}
	for _, name := range []string{"mail", "sms", "push", "fax"} {
		r.put(name, "x")
	}
	html := r.page(200, "/console/")
	for _, want := range []string{">4 tubes without workers: 4 jobs are ready (fax, mail, push and 1 more)<", `href="/console/tubes?has=unwatched"`, ">1,100 tubes without workers: 1,100 jobs are ready<", `href="/console/tubes?has=unwatched&amp;q=tenant-%2A"`} {
		if !strings.Contains(html, want) {
			t.Errorf("%s is missing in\n%s", want, html)
		}
	}
	if html := r.page(200, "/console/tube/tenant-7"); !strings.Contains(html, `class="warning">No workers: 1 job is ready`) {
		t.Error(html)
	}
}

// The server page omits default settings, and refusals with a count of 0.
func TestServerIsShort(t *testing.T) {
	r := startWith(t, nil, Options{}, func(*api.API) []Server { return nil }, func(o *api.Options) {
		o.Facts = func() admin.Server {
			return admin.Server{Settings: []admin.Setting{{Name: "port", Value: `"11301"`, From: "command line"}, {Name: "compat", Value: `"1.13"`, From: "default"}}}
		}
	})
	html := r.page(200, "/console/server")
	chosen, others, ok := strings.Cut(html, `<details class="defaults">`)
	if !ok || !strings.Contains(chosen, "11301") || strings.Contains(chosen, "1.13") || !strings.Contains(others, "1.13") || !strings.Contains(html, "No command was refused.") {
		t.Error(html)
	}
	r.talk("nonsense")
	if html := r.page(200, "/console/server"); strings.Contains(html, "No command was refused.") || !strings.Contains(html, "UNKNOWN_COMMAND") || strings.Contains(html, "OUT_OF_MEMORY") {
		t.Error(html)
	}
}

// After a live page has applied the stream's values, it equals the reloaded page, unless
// the stream announces that the rows have changed.
func TestLivePagesAreTrue(t *testing.T) {
	synctest.Test(t, testLivePages)
}

func testLivePages(t *testing.T) {
	r := start(t, nil, Options{})
	r.put("mail", "x")
	paths := []string{"", "tubes", "tube/mail", "tube/news", "job/1", "job/2", "working", "connections", "server"}
	before, compared := make(map[string]string), make(map[string]int)
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
		{"a second passes", func() { time.Sleep(time.Second) }},
		{"the job that waits longest is another", func() {
			r.put("news", "z")
			r.in(func(e *engine.Engine, now int64) { e.DeleteJob(1); e.DeleteJob(2) })
		}},
		{"pause", func() { r.in(func(e *engine.Engine, now int64) { e.Pause(now, []byte("news"), 1000) }) }},
		{"time passes", func() { r.in(func(e *engine.Engine, now int64) { e.Pause(now, []byte("news"), 2000) }) }},
		{"watch", func() { r.talk("watch news", "watch mail") }},
		{"reserve", func() { r.put("mail", "w"); r.talk("reserve-job 4") }},
		{"resume", func() { r.in(func(e *engine.Engine, now int64) { e.Pause(now, []byte("news"), 0) }) }},
		{"bury", func() { r.in(func(e *engine.Engine, now int64) { e.BuryJob(3, 7) }) }},
		{"drain", func() { r.in(func(e *engine.Engine, now int64) { e.Drain() }) }},
		{"delete", func() { r.in(func(e *engine.Engine, now int64) { e.DeleteJob(3) }) }},
	} {
		load()
		step.do()
		// A change through the API, even a failed one, refreshes the lists of tubes.
		r.api.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", "/api/v1/tubes/none/resume", nil))
		for _, path := range paths {
			live, err := r.live.values(r.viewOf("/console/" + path))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(before[path], `data-shape="`+live.Shape+`"`) {
				continue // it will be reloaded
			}
			compared[path]++
			for id := range live.Texts {
				if !strings.Contains(before[path], `id="`+id+`" class="`) {
					t.Errorf("after %s, %q has no text %s", step.name, path, id)
				}
			}
			for id := range live.Lines {
				if !strings.Contains(before[path], `id="`+id+`" d="`) {
					t.Errorf("after %s, %q has no line %s", step.name, path, id)
				}
			}
			got, want := live.applied(before[path]), live.applied(r.send("GET", "/console/"+path, nil).Body.String())
			if got != want {
				t.Errorf("after %s, %q shows\n%s\nand loaded again\n%s", step.name, path, got, want)
			}
		}
	}
	for _, path := range paths {
		if compared[path] == 0 {
			t.Errorf("%q was loaded again after each step", path)
		}
	}
}

// applied returns the part of a page that is reloaded, after applying the values of a
// stream.
func (v *liveValues) applied(html string) string {
	_, html, _ = strings.Cut(html, "<main")
	html, _, _ = strings.Cut(html, "</main>")
	for id, one := range v.Texts {
		span := regexp.MustCompile(`id="` + regexp.QuoteMeta(id) + `" class="[^"]*"([^>]*)>[^<]*<`)
		html = span.ReplaceAllLiteralString(html, `id="`+id+`" class="`+one.Class+`">`+template.HTMLEscapeString(one.Text)+"<")
	}
	return html
}

// The legend of a chart shows the current levels, like the figures above it, not the
// average of the last point. A rate is the average of the last point.
func TestLegend(t *testing.T) {
	burst := make([]*float64, 600)
	for i := range burst {
		burst[i] = new(float64)
	}
	*burst[599] = 3416
	all := func(step int64, of []*float64) *admin.History {
		return &admin.History{Step: step, Series: map[string][]*float64{"put": of, "ready": of}}
	}
	for name, c := range map[string]struct {
		h      *admin.History
		levels map[string]uint64
		span   int
		want   string
	}{
		"ten minutes":                    {all(1, burst), map[string]uint64{"ready": 3416}, 0, "flow 569 jobs 3\u202f416 "},
		"a day":                          {all(60, burst), map[string]uint64{"ready": 3416}, 2, "flow 569 jobs 3\u202f416 "},
		"a server without recent events": {all(1, burst[:540]), nil, 0, ""},
	} {
		got := ""
		for _, one := range historyCharts(c.h, c.levels, &spans[c.span]) {
			got += one.ID + " " + one.Lines[0].Now + " "
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// Each column head of the tube list links to the list sorted by that column, and keeps
// all other parameters.
func TestEveryColumnSorts(t *testing.T) {
	r := start(t, nil, Options{})
	r.put("mail", "x")
	text := r.page(200, "/console/tubes?q=mail")
	links := headLinks(text)
	if len(links) < 8 {
		t.Fatalf("%d links", len(links))
	}
	for _, link := range links {
		sorted := r.page(200, link)
		if strings.Count(sorted, "aria-sort=") != 1 || strings.Count(sorted, `scope="col"`) != strings.Count(text, `scope="col"`) || !strings.Contains(sorted, ">mail</a>") {
			t.Errorf("%s: %s", link, sorted)
		}
	}
}

var headLink = regexp.MustCompile(`<th[^>]*><a href="([^"]*)">`)

func headLinks(page string) (links []string) {
	for _, m := range headLink.FindAllStringSubmatch(page, -1) {
		links = append(links, html.UnescapeString(m[1]))
	}
	return links
}

// The overview names the tube whose next job has waited longest. Each state links to its
// tubes.
func TestOldest(t *testing.T) {
	for _, test := range []struct {
		waited []int64 // s
		want   string
	}{
		{nil, ""}, {[]int64{0}, "t0"}, {[]int64{3, 90}, "t1"}, {[]int64{15, 90, 20, 50}, "t1"},
	} {
		r := start(t, nil, Options{})
		r.in(func(e *engine.Engine, now int64) {
			for i, seconds := range test.waited {
				e.PutInto(now-seconds*1e9, fmt.Append(nil, "t", i), engine.Spec{TTR: 9}, nil)
			}
		})
		strip, _, _ := strings.Cut(r.page(200, "/console/"), "</dl>")
		got := ""
		for _, m := range stripTube.FindAllStringSubmatch(strip, -1) {
			got += m[1]
		}
		if got != test.want {
			t.Errorf("waited %v: %q, want %q", test.waited, got, test.want)
		}
		for _, want := range []string{"?has=ready&amp;sort=-oldest_ready", "?has=ready", "?has=reserved&amp;sort=-reserved", "?has=delayed&amp;sort=-delayed", "?has=buried&amp;sort=-buried"} {
			if !strings.Contains(strip, `<a href="/console/tubes`+want+`">`) {
				t.Errorf("%s is missing in %s", want, strip)
			}
		}
	}
}

var stripTube = regexp.MustCompile(`href="/console/tube/(\w+)"`)

// The lines of the templates are short enough to be read.
func TestTemplateLines(t *testing.T) {
	const most = 250
	paths, err := fs.Glob(templateFiles, "templates/*.html")
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	for _, path := range paths {
		text, err := templateFiles.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(text), "\n") {
			if len(line) > most {
				t.Errorf("%s:%d has %d characters", path, i+1, len(line))
			}
		}
	}
}

// An expired certificate is not reported as one that expires soon, times are readable,
// and the overview shows the number of refusals.
func TestDisasterInWords(t *testing.T) {
	r := startWith(t, nil, Options{}, func(*api.API) []Server { return nil }, func(o *api.Options) {
		o.Facts = func() admin.Server {
			return admin.Server{Started: "2026-11-23T07:01:02Z", Certificates: []admin.Certificate{
				{File: "old.crt", Begins: "2001-01-01T00:00:00Z", Ends: "2002-03-04T05:06:07Z", Soon: true},
				{File: "new.crt", Begins: "2001-01-01T00:00:00Z", Ends: "9999-03-04T05:06:07Z", Soon: true},
			}}
		}
	})
	html := r.page(200, "/console/server")
	for _, want := range []string{">2002-03-04 05:06:07 UTC – expired<", ">9999-03-04 05:06:07 UTC – soon<", "since 2026-11-23 07:01:02 UTC,"} {
		if !strings.Contains(html, want) {
			t.Errorf("%s is missing in\n%s", want, html)
		}
	}
	p := newPage("overview", "Overview", "overview", &overview{Attention: []attention{{Finding: admin.Finding{Kind: "refused", Severity: "warning", Count: 2000, Text: "2,000 commands were refused"}}}})
	p.site, p.Me = r.sites[0], new(admin.Me)
	var text strings.Builder
	if err := templates["overview"]().Execute(&text, p); err != nil || !strings.Contains(text.String(), ">2,000 commands were refused</span>") {
		t.Error(err, text.String())
	}
}

// The live values include a failing journal and draining, because a reload of the rows
// does not reload the head.
func TestLiveHead(t *testing.T) {
	health := "ok"
	r := startWith(t, nil, Options{}, func(*api.API) []Server { return nil }, func(o *api.Options) {
		o.Journal = func() server.JournalStats { return server.JournalStats{Health: health} }
	})
	told := func() (journal, draining value) {
		h := httptest.NewRequest("GET", "/console/tubes", nil)
		v, err := r.live.values(r.newRequest(h), tubesPage)
		if err != nil {
			t.Fatal(err)
		}
		return v.Texts["h-journal"], v.Texts["h-draining"]
	}
	if journal, draining := told(); journal != (value{"ok", "strong"}) || draining != (value{}) {
		t.Error(journal, draining)
	}
	r.in(func(e *engine.Engine, _ int64) { health = "no space left on device"; e.Drain() })
	if journal, draining := told(); journal != (value{"failing", "strong bad"}) || draining != (value{"draining", "tag warn"}) {
		t.Error(journal, draining)
	}
}

// The page of a tube shows a state that has jobs, and keeps showing that state as jobs
// come and go.
func TestStateStays(t *testing.T) {
	r := start(t, nil, Options{})
	r.put("mail", "x")
	for path, want := range map[string]string{"tube/mail": "/console/tube/mail?state=ready", "tube/mail?state=buried": "/console/tube/mail?state=buried", "tubes?q=m": "/console/tubes?q=m"} {
		if text := r.page(200, "/console/"+path); !strings.Contains(text, `data-live="`+want+`"`) {
			t.Errorf("%s is not live as %s: %s", path, want, text)
		}
	}
}

// In narrow windows, a column is hidden together with its head.
func TestWideColumns(t *testing.T) {
	r := start(t, nil, Options{})
	r.put("mail", "x")
	text := r.page(200, "/console/tubes?q=mail")
	heads, rest, _ := strings.Cut(text, "</thead>")
	row, _, _ := strings.Cut(rest, "</tr>")
	if n, want := strings.Count(heads, "opt\" scope=\"col\""), len(optCell.FindAllString(row, -1)); n != want || n < 4 {
		t.Errorf("%d heads and %d cells are left out", n, want)
	}
}

var optCell = regexp.MustCompile(`<td[^>]* class="[^"]*\bopt\b`)

// Users with the right to search get a link to the jobs that timed out.
func TestLinkOfTimeouts(t *testing.T) {
	r := start(t, policyOf(t), Options{})
	r.put("mail", "x")
	for token, want := range map[string]string{rootToken: "/console/search?q=tube%3Amail+timeouts%3E%3D1", mailerToken: "/console/tube/mail"} {
		h := httptest.NewRequest("GET", "/console/", nil)
		h.AddCookie(r.login(token))
		asked := r.newRequest(h)
		if _, err := asked.page(func(*request) (*page, error) { return nil, nil }); err != nil {
			t.Fatal(err)
		}
		if a := asked.newAttention(admin.Finding{Kind: "timeouts", Tube: "mail"}); a.Link != want {
			t.Errorf("%s: %s", asked.who.Name(), a.Link)
		}
	}
}
