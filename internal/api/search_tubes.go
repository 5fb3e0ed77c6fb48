package api

import (
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/api/list"
	"github.com/beanpole-mq/beanpole/internal/health"
)

// A column is what tubes can be sorted by, besides their names.
type column func(t *surveyedTube) int64

// columns are those that sort takes.
var columns = map[string]column{
	"name":         func(*surveyedTube) int64 { return 0 },
	"ready":        func(t *surveyedTube) int64 { return int64(t.Ready) },
	"reserved":     func(t *surveyedTube) int64 { return int64(t.Reserved) },
	"delayed":      func(t *surveyedTube) int64 { return int64(t.Delayed) },
	"buried":       func(t *surveyedTube) int64 { return int64(t.Buried) },
	"urgent":       func(t *surveyedTube) int64 { return int64(t.Urgent) },
	"body_bytes":   func(t *surveyedTube) int64 { return int64(t.Bytes) },
	"oldest_ready": oldestReady,
	"total_jobs":   func(t *surveyedTube) int64 { return int64(t.TotalJobs) },
	"deletes":      func(t *surveyedTube) int64 { return int64(t.Deletes) },
	"using":        func(t *surveyedTube) int64 { return int64(t.Using) },
	"watching":     func(t *surveyedTube) int64 { return int64(t.Watching) },
	"waiting":      func(t *surveyedTube) int64 { return int64(t.Waiting) },
	"pause_left":   pauseLeft,
	"queue":        func(t *surveyedTube) int64 { return mean(t.Queued.Sum, t.Queued.N) },
	"work":         func(t *surveyedTube) int64 { return mean(t.Worked.Sum, t.Worked.N) },
	"timeouts":     func(t *surveyedTube) int64 { return int64(t.Timeouts) },
	"releases":     func(t *surveyedTube) int64 { return int64(t.Releases) },
	"buries":       func(t *surveyedTube) int64 { return int64(t.Buries) },
	"attention":    noRate, // see request.attention

	"put_per_second":     noRate,
	"deleted_per_second": noRate,
}

// rates are the columns of which only the history knows.
var rates = map[string]func(*tubeHistory) float64{
	"put_per_second":     func(h *tubeHistory) float64 { put, _ := h.rates(); return put },
	"deleted_per_second": func(h *tubeHistory) float64 { _, deleted := h.rates(); return deleted },
}

// noRate is for tubes of which nobody knows: they are before one in which nothing happens.
func noRate(*surveyedTube) int64 { return math.MinInt64 }

// byRate returns a column for the rates as they are now. There are up to tubesKept of them: all other tubes are looked up in
// vain, and nothing is added to them.
func (h *history) byRate(of func(*tubeHistory) float64) column {
	h.mu.Lock()
	defer h.mu.Unlock()
	known := make(map[string]int64, len(h.tubes))
	for name, th := range h.tubes {
		known[name] = int64(of(th) * 1e6)
	}
	return func(t *surveyedTube) int64 {
		if rate, ok := known[t.name]; ok {
			return rate
		}
		return noRate(t)
	}
}

// oldestReady is the same for a job as long as it waits: else a tube would be on every page.
func oldestReady(t *surveyedTube) int64 {
	if t.Ready == 0 {
		return math.MinInt64
	}
	return t.OldestReady - t.at
}

// pauseLeft is the same as long as the pause lasts.
func pauseLeft(t *surveyedTube) int64 {
	if t.Pause == 0 {
		return math.MinInt64
	}
	return t.PauseLeft + t.at/int64(time.Second)
}

// attention puts tubes that need attention first, the worst of them first of all.
func (r *request) attention(t *surveyedTube) (weight int64) {
	var room [4]health.Finding // all tubes are asked for a page
	for _, f := range r.tubeFindings(room[:0], t) {
		if f.Severity == health.Bad {
			weight += 1 << 50
		} else {
			weight += 1 << 40
		}
	}
	return weight + min(int64(t.Buried), 1<<40-1)
}

func mean(sum float64, n uint64) int64 { return int64(sum / float64(max(n, 1))) }

// conditions are those that has takes.
var conditions = map[string]func(t *surveyedTube) bool{
	"ready":     func(t *surveyedTube) bool { return t.Ready > 0 },
	"reserved":  func(t *surveyedTube) bool { return t.Reserved > 0 },
	"delayed":   func(t *surveyedTube) bool { return t.Delayed > 0 },
	"buried":    func(t *surveyedTube) bool { return t.Buried > 0 },
	"paused":    func(t *surveyedTube) bool { return t.Pause > 0 },
	"waiting":   func(t *surveyedTube) bool { return t.Waiting > 0 },
	"limited":   func(t *surveyedTube) bool { one := t.health(); return one.Used >= health.NearlyFull },
	"unwatched": func(t *surveyedTube) bool { one := t.health(); return one.Unwatched() },
}

// tubeColumns are the columns as a list has them; names tell tubes apart.
var tubeColumns = list.Columns[surveyedTube]{By: keysOf(columns), Tie: func(t *surveyedTube) list.Key { return list.Key{S: t.name} }, TieName: "name"}

func keysOf(columns map[string]column) map[string]func(*surveyedTube) list.Key {
	keys := make(map[string]func(*surveyedTube) list.Key)
	for name, of := range columns {
		keys[name] = keyOf(of)
	}
	return keys
}

func keyOf(of column) func(*surveyedTube) list.Key {
	return func(t *surveyedTube) list.Key { return list.Key{N: of(t)} }
}

// tubeFilter reads the parameters has and q.
func tubeFilter(in *admin.ListTubes) (matches func(*surveyedTube) bool, err error) {
	pattern, err := namePattern(in.Q)
	if err != nil {
		return nil, err
	}
	var all []func(*surveyedTube) bool
	if in.Has != "" {
		for name := range strings.SplitSeq(in.Has, ",") {
			has, ok := conditions[name]
			if !ok {
				return nil, problemf(http.StatusBadRequest, "has: want some of %v, with commas between them", slices.Sorted(maps.Keys(conditions)))
			}
			all = append(all, has)
		}
	}
	return func(t *surveyedTube) bool {
		for _, has := range all {
			if !has(t) {
				return false
			}
		}
		return pattern(t.name)
	}, nil
}

// namePattern returns what matches names of tubes: a glob if the text has * or ?, else any
// name that has the text in it.
func namePattern(text string) (matches func(name string) bool, err error) {
	if text == "" {
		return func(string) bool { return true }, nil
	}
	if !strings.ContainsAny(text, "*?") {
		return func(name string) bool { return strings.Contains(name, text) }, nil
	}
	p, err := access.NewPattern([]string{text})
	if err != nil {
		return nil, problemf(http.StatusBadRequest, "q: %v", err)
	}
	return p.Matches, nil
}

// searchTubes answers listTubes with an order or a filter. It looks at all tubes, but keeps
// those of the page only.
func (r *request) searchTubes(in *admin.ListTubes) (page admin.Tubes, err error) {
	matches, err := tubeFilter(in)
	if err != nil {
		return page, err
	}
	q, err := tubeColumns.Query(in.Sort, in.Cursor, in.Limit)
	if err != nil {
		return page, problemf(http.StatusBadRequest, "%v", err)
	}
	if of := rates[q.Column]; of != nil && r.other == nil { // another server's tubes may have the same names
		q.Key = keyOf(r.api.history.byRate(of))
	}
	if q.Column == "attention" {
		q.Key = keyOf(r.attention)
	}
	var jobs admin.JobCounts
	err = r.survey(func(t *surveyedTube) {
		if matches(t) {
			addJobs(&jobs, t)
			q.Show(t)
		}
	})
	if err != nil {
		return page, err
	}
	found, next := q.Page()
	page = admin.Tubes{Tubes: make([]admin.Tube, len(found)), Next: next, Matching: new(q.Matching()), Jobs: &jobs}
	for i := range found {
		page.Tubes[i] = tubeOf(found[i].name, &found[i].TubeStats)
	}
	if in.Recent && r.other == nil {
		r.api.history.addRecent(page.Tubes)
	}
	return page, nil
}

func addJobs(c *admin.JobCounts, t *surveyedTube) {
	c.Ready += t.Ready
	c.Reserved += t.Reserved
	c.Delayed += t.Delayed
	c.Buried += t.Buried
}
