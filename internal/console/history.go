package console

import (
	"math"
	"slices"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
)

// A span is a time range of charts.
type span struct {
	Name, Link   string
	step, points int
	per          float64 // number of seconds in the unit of rates
	unit         string
	clock        string // format of its times; empty for the last minutes
}

var spans = []span{
	{"10m", "", 10, 60, 1, "a second", ""}, {"1h", "", 60, 60, 1, "a second", "15:04"}, {"24h", "", 60, 1440, 60, "a minute", "Mon 15:04"},
	{"7d", "", 3600, 168, 3600, "an hour", "Mon 15:04"}, {"31d", "", 3600, 744, 3600, "an hour", "2 Jan 15:04"},
}

// shape returns a text that differs if other charts are shown.
func (v *historyView) shape() (ids string) {
	for _, c := range v.Charts {
		ids += " " + c.ID
	}
	return ids
}

// A historyView contains the charts of a page for a span.
type historyView struct {
	Charts []chart
	Span   string
	Spans  []span // with links
}

// newHistoryView returns the view for the requested span, without charts. link is the URL
// of the page for the first span.
func (r *request) newHistoryView(link string) (v historyView, shown span) {
	shown = spans[max(0, slices.IndexFunc(spans, func(s span) bool { return s.Name == r.FormValue("span") }))]
	v = historyView{Span: shown.Name, Spans: slices.Clone(spans)}
	for i := range v.Spans {
		v.Spans[i].Link = link
		if i > 0 {
			v.Spans[i].Link = withQuery(link, "span", spans[i].Name)
		}
	}
	return v, shown
}

// historyCharts draws a history. Each point is a mean over some time. levels has the
// current values of some series.
func historyCharts(h *admin.History, levels map[string]uint64, s *span) []chart {
	a := &axis{end: h.End, step: float64(h.Step), clock: s.clock}
	for _, values := range h.Series {
		a.samples = max(a.samples, len(values))
	}
	a.points = min(a.samples, chartPoints)
	line := func(series, name, class string) chartLine {
		l := chartLine{Name: name, Class: class, points: downsample(h.Series[series], chartPoints, 1)}
		l.latest = lastOf(l.points)
		if now, ok := levels[series]; ok {
			l.latest = float64(now)
		}
		return l
	}
	rates := func(series, name, class string) chartLine {
		l := chartLine{Name: name, Class: class, points: downsample(h.Series[series], chartPoints, float64(h.Step)/s.per)}
		l.latest = lastOf(l.points)
		return l
	}
	long := func(v float64) string { return duration(v) }
	amount := func(v float64) string { return num(int64(v)) }
	all := []chart{
		a.chart("flow", "Jobs "+s.unit, rate, rates("put", "put", "plain"), rates("done", "done", "accent")),
		a.chart("trouble", "Failures "+s.unit, rate, rates("failed", "failed", "buried"), rates("timeouts", "timed out", "warned"), rates("retried", "retried", "plain")),
		a.chart("jobs", "Jobs", amount, line("ready", "ready", "ready"), line("reserved", "reserved", "reserved"), line("delayed", "delayed", "delayed"), line("buried", "buried", "buried")),
		a.chart("oldest", "Oldest ready", long, line("oldest_ready", "time", "plain")),
		a.chart("wait", "Wait time", long, line("wait_p50", "median", "plain"), line("wait_p95", "95 %", "accent")),
		a.chart("run", "Run time", long, line("run_p50", "median", "plain"), line("run_p95", "95 %", "accent")),
		a.chart("clients", "Connections", amount, line("connections", "all", "plain"), line("waiting", "waiting", "accent")),
		a.chart("refused", "Refusals "+s.unit, rate, rates("refused", "refused", "warned")),
	}
	all[1].First = a.firstFailure(h)
	return slices.DeleteFunc(all, func(c chart) bool { return c.empty })
}

// firstFailure returns the time of the first failure, unless that is the first sample.
func (a *axis) firstFailure(h *admin.History) string {
	if a.clock == "" {
		return ""
	}
	first := -1
	for _, series := range []string{"failed", "timeouts"} {
		i := slices.IndexFunc(h.Series[series], func(v point) bool { return v != nil && *v > 0 })
		if i >= 0 && (first < 0 || i < first) {
			first = i
		}
	}
	if first <= 0 || h.Series["failed"][first-1] == nil {
		return ""
	}
	return a.time(float64(first))
}

// An axis contains the times of a history's samples.
type axis struct {
	end             int64 // Unix time of the end of the last sample
	step            float64
	samples, points int
	clock           string
}

// time returns the start of a sample.
func (a *axis) time(sample float64) string {
	ago := (float64(a.samples) - sample) * a.step
	if a.clock == "" {
		return duration(int64(ago)) + " ago"
	}
	return time.Unix(a.end-int64(math.Round(ago)), 0).UTC().Format(a.clock)
}

// ofPoint returns the start time of a drawn point.
func (a *axis) ofPoint(i int) string {
	return a.time(float64(i * a.samples / max(1, a.points)))
}

// chart draws lines that have a name, a class and points.
func (a *axis) chart(id, title string, show func(float64) string, lines ...chartLine) chart {
	most := 0.0
	for _, l := range lines {
		most = max(most, largest(l.points))
	}
	c := chart{ID: id, Title: title, Lines: lines, Max: show(most), empty: most == 0, From: a.time(0), Middle: a.time(float64(a.samples) / 2)}
	for i := a.points - 1; i >= 0 && !c.empty; i -= 10 {
		c.Times = append(c.Times, a.ofPoint(i))
	}
	slices.Reverse(c.Times)
	for i := range lines {
		l := &lines[i]
		l.D = drawPath(l.points, chartWidth, chartHeight, most)
		l.Now, l.Values = show(l.latest), tenth(l.points, show)
	}
	return c
}

// lastOf returns the last known value, or 0.
func lastOf(points []point) float64 {
	for i := len(points) - 1; i >= 0; i-- {
		if points[i] != nil {
			return *points[i]
		}
	}
	return 0
}

// tenth returns every tenth value as text, for the table that accompanies a chart.
func tenth(points []point, show func(float64) string) (texts []string) {
	for i := len(points) - 1; i >= 0; i -= 10 {
		text := "–"
		if points[i] != nil {
			text = show(*points[i])
		}
		texts = append(texts, text)
	}
	slices.Reverse(texts)
	return texts
}
