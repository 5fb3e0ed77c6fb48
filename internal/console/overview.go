package console

import (
	"fmt"
	"net/http"
	"sync"

	"github.com/beanpole-mq/beanpole/internal/admin/api"
)

// An overview is what the first page shows.
type overview struct {
	Attention []attention
	More      int // findings that are not shown
	Charts    []chart
	Sparks    map[string]spark
	Span      string
	Spans     []string
	Tubes     tubeTable
	Oldest    *api.Tube // whose next job has waited the longest
	MayCharts bool
}

// An attention is a finding with the page where something can be done.
type attention struct {
	api.Finding
	Link, Do string
}

// spans are what charts can show, with the step and the number of samples.
var spans = map[string]struct {
	step, points int
	from         string
}{
	"10m": {1, 600, "10 min ago"},
	"1h":  {1, 3600, "1 h ago"},
	"24h": {60, 1440, "24 h ago"},
}

const (
	chartPoints     = 100
	shownFindings   = 8
	overviewTubes   = 10
	sparkPoints     = 60
	overviewSpark   = 200 // px
	sparkHeight     = 28
	tubeSpark       = 88
	tubeSparkHeight = 20
)

func overviewPage(r *request) (*page, error) {
	span := r.FormValue("span")
	if _, ok := spans[span]; !ok {
		span = "10m"
	}
	o := &overview{Span: span, Spans: []string{"10m", "1h", "24h"}}
	var found api.Attention
	var stats api.Stats
	var history, minutes api.History
	var oldest api.Tubes
	table := tubeQuery{Sort: "-ready", Limit: overviewTubes}
	err := together(
		func() error { return r.get("/stats", &stats) },
		func() error { return r.get(fmt.Sprintf("/attention?limit=%d", shownFindings), &found) },
		func() error { return r.get("/tubes?sort=-oldest_ready&has=ready&limit=1", &oldest) },
		func() (err error) { o.Tubes, err = r.tubeTable(table); return err },
		func() error { return noRight(r.get("/history?points=60", &minutes)) },
		func() error {
			return noRight(r.get(fmt.Sprintf("/history?step=%d&points=%d", spans[span].step, spans[span].points), &history))
		},
	)
	if err != nil {
		return nil, err
	}
	for _, f := range found.Findings {
		o.Attention = append(o.Attention, newAttention(f))
	}
	o.More = found.Total - len(found.Findings)
	if len(oldest.Tubes) > 0 {
		o.Oldest = &oldest.Tubes[0]
	}
	if o.MayCharts = history.Step > 0; o.MayCharts {
		o.Charts = overviewCharts(&history, spans[span].from)
		o.Sparks = overviewSparks(&minutes)
	}
	p := newPage("overview", "Overview", "overview", o)
	p.Server = &stats
	p.Curl = curlOf(r.Request, "GET", "/attention", nil)
	return p, nil
}

// newAttention says where one can do something about a finding.
func newAttention(f api.Finding) attention {
	a := attention{Finding: f, Link: Prefix + "server", Do: "Server"}
	if f.Kind == "connections" {
		a.Link, a.Do = Prefix+"connections", "Connections"
	}
	if f.Tube != "" {
		a.Link, a.Do = tubeLink(f.Tube, ""), "Open"
		if f.Kind == "buried" {
			a.Link, a.Do = tubeLink(f.Tube, "buried"), "See them"
		}
	}
	return a
}

// together runs functions at once, and returns an error of one of them.
func together(all ...func() error) error {
	errs := make([]error, len(all))
	var group sync.WaitGroup
	for i, f := range all {
		group.Go(func() { errs[i] = f() })
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// noRight forgives that somebody has no right to something that a page can do without.
func noRight(err error) error {
	if isStatus(err, http.StatusForbidden) {
		return nil
	}
	return err
}

// overviewCharts draws what the server has counted.
func overviewCharts(h *api.History, from string) []chart {
	perSecond := float64(h.Step)
	line := func(name, title, class string, perSecond float64) (chartLine, []point) {
		points := thin(h.Series[name], chartPoints, perSecond)
		return chartLine{Name: title, Class: class}, points
	}
	draw := func(id, title string, show func(float64) string, lines ...struct {
		series, title, class string
		per                  float64
	}) chart {
		c := chart{ID: id, Title: title, From: from, Width: chartWidth, Height: chartHeight}
		var all [][]point
		for _, l := range lines {
			one, points := line(l.series, l.title, l.class, l.per)
			c.Lines, all = append(c.Lines, one), append(all, points)
		}
		most := largest(all...)
		c.Max = show(most)
		for i := range c.Lines {
			c.Lines[i].D = drawPath(all[i], chartWidth, chartHeight, most)
			c.Lines[i].Now = show(lastOf(all[i]))
			c.Lines[i].Values = tenth(all[i], show)
		}
		return c
	}
	type one = struct {
		series, title, class string
		per                  float64
	}
	count := func(v float64) string { return num(int64(v)) }
	return []chart{
		draw("flow", "Jobs a second", rate, one{"put", "put", "reserved", perSecond}, one{"deletes", "done", "ready", perSecond}),
		draw("trouble", "Trouble a second", rate, one{"timeouts", "timed out", "delayed", perSecond}, one{"refused", "refused", "buried", perSecond}),
		draw("jobs", "Jobs", count, one{"ready", "ready", "ready", 1}, one{"delayed", "delayed", "delayed", 1}, one{"buried", "buried", "buried", 1}),
		draw("clients", "Connections", count, one{"connections", "all", "plain", 1}, one{"waiting", "waiting", "reserved", 1}),
	}
}

// lastOf returns the last value that is known, or 0.
func lastOf(points []point) float64 {
	for i := len(points) - 1; i >= 0; i-- {
		if points[i] != nil {
			return *points[i]
		}
	}
	return 0
}

// tenth returns every tenth value as text, for the table of a chart.
func tenth(points []point, show func(float64) string) (texts []string) {
	for i := len(points) - 1; i >= 0; i -= 10 {
		text := "–"
		if points[i] != nil {
			text = show(*points[i])
		}
		texts = append([]string{text}, texts...)
	}
	return texts
}

// overviewSparks draws a small chart of each state.
func overviewSparks(h *api.History) map[string]spark {
	all := make(map[string]spark)
	for _, state := range []string{"ready", "reserved", "delayed", "buried"} {
		points := thin(h.Series[state], sparkPoints, 1)
		line := drawPath(points, overviewSpark, sparkHeight, largest(points))
		all[state] = spark{"spark-" + state, line, under(line, sparkHeight), state}
	}
	return all
}
