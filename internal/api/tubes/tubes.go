// Package tubes lists the tubes of a server and their findings from one survey of all tubes.
package tubes

import (
	"cmp"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/api/list"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/health"
)

// A Tube is a tube as it was at a time.
type Tube struct {
	Name string
	At   int64 // ns
	engine.TubeStats
	Most engine.TubeLimits
}

// Jobs returns how many jobs the tube has.
func (t *Tube) Jobs() uint64 { return t.Ready + t.Reserved + t.Delayed + t.Buried }

// CompareUse puts first the tubes that are in use; among these, and among the others, the ones that have had the most
// jobs, those of a journal that was read included. So a tube keeps its place.
func CompareUse(a, b *Tube) int {
	used := func(t *Tube) uint64 { return min(t.Jobs()+t.Using+t.Watching, 1) }
	return cmp.Or(cmp.Compare(used(b), used(a)), cmp.Compare(max(b.TotalJobs, b.Jobs()), max(a.TotalJobs, a.Jobs())), cmp.Compare(a.Name, b.Name))
}

// CompareBacklog puts first the tubes with the largest backlog, of which it counts so many jobs at most, then as CompareUse does.
func CompareBacklog(a, b *Tube, most uint64) int {
	return cmp.Or(cmp.Compare(min(b.Backlog(), most), min(a.Backlog(), most)), CompareUse(a, b))
}

// Backlog returns how many jobs the tube has that somebody should work on.
func (t *Tube) Backlog() uint64 { return t.Ready + t.Buried }

// A Look looks at all tubes that a client may see. Functions that are nil have no data.
type Look struct {
	Each func(tell func(*Tube)) error

	// Rates returns the rates of a column by the names of tubes.
	Rates func(column string) map[string]int64

	// Growth sets what a tube counted lately.
	Growth func(*health.Tube)

	// Workers returns the workers by the names of tubes.
	Workers func() (map[string]*health.Workers, error)

	// Pausers has the identities that paused tubes.
	Pausers map[string]string

	workers map[string]*health.Workers
	tube    health.Tube // last tube: one for all of them
	room    []health.Finding
}

// A column is what tubes can be sorted by, besides their names.
type column func(t *Tube) int64

// columns are those that sort takes.
var columns = map[string]column{
	"name":         func(*Tube) int64 { return 0 },
	"ready":        func(t *Tube) int64 { return int64(t.Ready) },
	"reserved":     func(t *Tube) int64 { return int64(t.Reserved) },
	"delayed":      func(t *Tube) int64 { return int64(t.Delayed) },
	"buried":       func(t *Tube) int64 { return int64(t.Buried) },
	"urgent":       func(t *Tube) int64 { return int64(t.Urgent) },
	"body_bytes":   func(t *Tube) int64 { return int64(t.Bytes) },
	"oldest_ready": oldestReady,
	"total_jobs":   func(t *Tube) int64 { return int64(t.TotalJobs) },
	"deletes":      func(t *Tube) int64 { return int64(t.Deletes) },
	"using":        func(t *Tube) int64 { return int64(t.Using) },
	"watching":     func(t *Tube) int64 { return int64(t.Watching) },
	"waiting":      func(t *Tube) int64 { return int64(t.Waiting) },
	"pause_left":   pauseLeft,
	"queue":        func(t *Tube) int64 { return mean(t.Queued.Sum, t.Queued.N) },
	"work":         func(t *Tube) int64 { return mean(t.Worked.Sum, t.Worked.N) },
	"timeouts":     func(t *Tube) int64 { return int64(t.Timeouts) },
	"releases":     func(t *Tube) int64 { return int64(t.Releases) },
	"buries":       func(t *Tube) int64 { return int64(t.Buries) },
	"attention":    noRate, // see Look.attention

	"put_per_second":     noRate, // see Look.Rates
	"deleted_per_second": noRate,
}

// noRate is for tubes of which nobody knows: they are before one in which nothing happens.
func noRate(*Tube) int64 { return math.MinInt64 }

// oldestReady is the same for a job as long as it waits: else a tube would be on every page.
func oldestReady(t *Tube) int64 {
	if t.Ready == 0 {
		return math.MinInt64
	}
	return t.OldestReady - t.At
}

// pauseLeft is the same as long as the pause lasts.
func pauseLeft(t *Tube) int64 {
	if t.Pause == 0 {
		return math.MinInt64
	}
	return t.PauseLeft + t.At/int64(time.Second)
}

// attention puts tubes that need attention first, the worst of them first of all.
func (l *Look) attention(t *Tube) (weight int64) {
	l.room = l.findings(l.room[:0], t) // all tubes are asked for a page
	for i := range l.room {
		if l.room[i].Severity == health.Bad {
			weight += 1 << 50
		} else {
			weight += 1 << 40
		}
	}
	return weight + min(int64(t.Buried), 1<<40-1)
}

func mean(sum float64, n uint64) int64 { return int64(sum / float64(max(n, 1))) }

// conditions are those that has takes.
var conditions = map[string]func(t *Tube) bool{
	"ready":     func(t *Tube) bool { return t.Ready > 0 },
	"reserved":  func(t *Tube) bool { return t.Reserved > 0 },
	"delayed":   func(t *Tube) bool { return t.Delayed > 0 },
	"buried":    func(t *Tube) bool { return t.Buried > 0 },
	"paused":    func(t *Tube) bool { return t.Pause > 0 },
	"waiting":   func(t *Tube) bool { return t.Waiting > 0 },
	"limited":   func(t *Tube) bool { one := t.Health(); return one.Used >= health.NearlyFull },
	"unwatched": func(t *Tube) bool { one := t.Health(); return one.Unwatched() },
}

// Columns are what sort takes, as a list has them; names tell tubes apart.
var Columns = list.Columns[Tube]{By: keysOf(columns), Tie: nameOf, TieName: "name"}

// byName is for a page of which nothing but the name is asked for.
var byName = list.Columns[Tube]{By: Columns.By, Tie: nameOf, TieName: "name", TieOnly: true}

func nameOf(t *Tube) list.Key { return list.Key{S: t.Name} }

func keysOf(columns map[string]column) map[string]func(*Tube) list.Key {
	keys := make(map[string]func(*Tube) list.Key)
	for name, of := range columns {
		keys[name] = keyOf(of)
	}
	return keys
}

func keyOf(of column) func(*Tube) list.Key {
	return func(t *Tube) list.Key { return list.Key{N: of(t)} }
}

// tubeFilter reads the parameters has and q.
func tubeFilter(in *admin.ListTubes) (matches func(*Tube) bool, err error) {
	glob := in.Q
	if !strings.ContainsAny(glob, "*?") { // names that have it in them
		glob = "*" + glob + "*"
	}
	var all []func(*Tube) bool
	if in.Has != "" {
		for name := range strings.SplitSeq(in.Has, ",") {
			has, ok := conditions[name]
			if !ok {
				return nil, admin.Problemf(http.StatusBadRequest, "has: want some of %v, with commas between them", slices.Sorted(maps.Keys(conditions)))
			}
			all = append(all, has)
		}
	}
	return func(t *Tube) bool {
		for _, has := range all {
			if !has(t) {
				return false
			}
		}
		return access.Match(glob, t.Name)
	}, nil
}

// List makes a page of the tubes that match, by name unless another order is asked for. It looks at all, and keeps those of the page. One by
// name of all tubes does not say how many there are.
func (l *Look) List(in *admin.ListTubes) (page admin.Tubes, err error) {
	matches, err := tubeFilter(in)
	if err != nil {
		return page, err
	}
	order, counted := &Columns, in.Sort != "" || in.Q != "" || in.Has != ""
	if !counted {
		order = &byName
	}
	q, err := order.Query(in.Sort, in.Cursor, in.Limit)
	if err != nil {
		return page, admin.Problemf(http.StatusBadRequest, "%v", err)
	}
	if strings.HasSuffix(q.Column, "_per_second") && l.Rates != nil {
		rates := l.Rates(q.Column)
		q.Key = keyOf(func(t *Tube) int64 {
			if rate, ok := rates[t.Name]; ok {
				return rate
			}
			return noRate(t)
		})
	}
	if q.Column == "attention" {
		if err := l.lookAtWorkers(); err != nil {
			return page, err
		}
		q.Key = keyOf(l.attention)
	}
	var jobs admin.JobCounts
	err = l.Each(func(t *Tube) {
		if matches(t) {
			jobs.Ready += t.Ready
			jobs.Reserved += t.Reserved
			jobs.Delayed += t.Delayed
			jobs.Buried += t.Buried
			q.Show(t)
		}
	})
	if err != nil {
		return page, err
	}
	found, next := q.Page()
	page = admin.Tubes{Tubes: make([]admin.Tube, len(found)), Next: next}
	if counted {
		page.Matching, page.Jobs = &q.Matching, &jobs
	}
	for i := range found {
		page.Tubes[i] = found[i].Shown()
	}
	return page, nil
}

// ErrNone is the answer where there is no tube of a name.
func ErrNone(name string) error {
	return admin.Problemf(http.StatusNotFound, "there is no tube %s: a tube is there while it has jobs, or a connection uses or watches it", name)
}

// Shown returns the tube as it is shown.
func (t *Tube) Shown() admin.Tube {
	return admin.Tube{
		Name:        t.Name,
		Jobs:        admin.JobCounts{Ready: t.Ready, Reserved: t.Reserved, Delayed: t.Delayed, Buried: t.Buried},
		Urgent:      t.Urgent,
		BodyBytes:   t.Bytes,
		OldestReady: t.OldestReady / int64(time.Second),
		TotalJobs:   t.TotalJobs,
		Deletes:     t.Deletes,
		Timeouts:    t.Timeouts,
		Releases:    t.Releases,
		Buries:      t.Buries,
		Pauses:      t.Pauses,
		Using:       t.Using,
		Watching:    t.Watching,
		Waiting:     t.Waiting,
		Pause:       t.Pause,
		PauseLeft:   t.PauseLeft,
		Queue:       durations(t.Queued),
		Work:        durations(t.Worked),
	}
}

func durations(t engine.Total) admin.Durations {
	return admin.Durations{Count: t.N, Seconds: t.Sum / float64(time.Second)}
}
