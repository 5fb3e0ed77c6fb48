// Package tubes lists the tubes of a server and their findings from one survey of all
// tubes.
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

// A Tube is a tube at the time of a survey.
type Tube struct {
	Name string
	At   int64 // Unix time in ns
	engine.TubeStats
	Most engine.TubeLimits
}

// Jobs returns the number of jobs in the tube.
func (t *Tube) Jobs() uint64 { return t.Ready + t.Reserved + t.Delayed + t.Buried }

// CompareUse sorts tubes in use before other tubes. Within both groups, it sorts them by
// the number of jobs that they have had, including recovered jobs. The order is stable
// over time.
func CompareUse(a, b *Tube) int {
	used := func(t *Tube) uint64 { return min(t.Jobs()+t.Using+t.Watching, 1) }
	return cmp.Or(cmp.Compare(used(b), used(a)), cmp.Compare(max(b.TotalJobs, b.Jobs()), max(a.TotalJobs, a.Jobs())), cmp.Compare(a.Name, b.Name))
}

// CompareBacklog sorts tubes by their backlog, descending, and then like CompareUse.
// Backlogs above most count as most.
func CompareBacklog(a, b *Tube, most uint64) int {
	return cmp.Or(cmp.Compare(min(b.Backlog(), most), min(a.Backlog(), most)), CompareUse(a, b))
}

// Backlog returns the number of ready and buried jobs.
func (t *Tube) Backlog() uint64 { return t.Ready + t.Buried }

// A Survey examines all tubes that a client may see.
type Survey struct {
	Each func(tell func(*Tube)) error

	// Rates returns the rates of a column by tube.
	Rates func(column string) map[string]int64

	// Growth sets the recent counts of a tube.
	Growth func(*health.Tube)

	// Workers returns the workers by tube.
	Workers func() (map[string]*health.Workers, error)

	workers map[string]*health.Workers
	tube    health.Tube // reused for each tube
	room    []health.Finding
}

// A column is a sort key of tubes.
type column func(t *Tube) int64

// columns are the sort columns.
var columns = map[string]column{
	"name":         func(*Tube) int64 { return 0 },
	"ready":        func(t *Tube) int64 { return int64(t.Ready) },
	"reserved":     func(t *Tube) int64 { return int64(t.Reserved) },
	"delayed":      func(t *Tube) int64 { return int64(t.Delayed) },
	"buried":       func(t *Tube) int64 { return int64(t.Buried) },
	"body_bytes":   func(t *Tube) int64 { return int64(t.Bytes) },
	"oldest_ready": oldestReady,
	"total_jobs":   func(t *Tube) int64 { return int64(t.TotalJobs) },
	"watching":     func(t *Tube) int64 { return int64(t.Watching) },
	"waiting":      func(t *Tube) int64 { return int64(t.Waiting) },
	"work":         func(t *Tube) int64 { return mean(t.Worked.Sum, t.Worked.N) },
	"timeouts":     func(t *Tube) int64 { return int64(t.Timeouts) },
	"releases":     func(t *Tube) int64 { return int64(t.Releases) },
	"attention":    noRate, // see Survey.attention

	"put_per_second":     noRate, // see Survey.Rates
	"deleted_per_second": noRate,
}

// noRate is the key of tubes without samples. In descending order, it sorts them after
// tubes without activity.
func noRate(*Tube) int64 { return math.MinInt64 }

// oldestReady is constant while a job waits. Otherwise, a tube could be on every page.
func oldestReady(t *Tube) int64 {
	if t.Ready == 0 {
		return math.MinInt64
	}
	return t.OldestReady - t.At
}

// attention is a sort key: the severity of a tube's findings.
func (s *Survey) attention(t *Tube) (weight int64) {
	s.room = s.findings(s.room[:0], t) // computed for each tube in the survey
	for i := range s.room {
		if s.room[i].Severity == health.Bad {
			weight += 1 << 50
		} else {
			weight += 1 << 40
		}
	}
	return weight + min(int64(t.Buried), 1<<40-1)
}

func mean(sum float64, n uint64) int64 { return int64(sum / float64(max(n, 1))) }

// conditions are the filters.
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

// Columns are the sort columns for package list.
var Columns = list.Columns[Tube]{By: keysOf(columns), Tie: func(t *Tube) list.Key { return list.Key{S: t.Name} }, TieName: "name"}

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

// tubeFilter parses the parameters has and q.
func tubeFilter(in *admin.ListTubes) (matches func(*Tube) bool, err error) {
	glob := in.Q
	if !strings.ContainsAny(glob, "*?") { // without a pattern, names must contain the text
		glob = "*" + glob + "*"
	}
	var all []func(*Tube) bool
	if in.Has != "" {
		for name := range strings.SplitSeq(in.Has, ",") {
			has, ok := conditions[name]
			if !ok {
				return nil, admin.Problemf(http.StatusBadRequest, "has: want some of %v, separated by commas", slices.Sorted(maps.Keys(conditions)))
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

// List returns a page of the matching tubes, by name unless an order is given. It surveys
// all tubes, but stores only those of the page.
func (s *Survey) List(in *admin.ListTubes) (page admin.Tubes, err error) {
	matches, err := tubeFilter(in)
	if err != nil {
		return page, err
	}
	q, err := Columns.Query(in.Sort, in.Cursor, in.Limit)
	if err != nil {
		return page, admin.Problemf(http.StatusBadRequest, "%v", err)
	}
	if strings.HasSuffix(q.Column, "_per_second") {
		rates := s.Rates(q.Column)
		q.Key = keyOf(func(t *Tube) int64 {
			if rate, ok := rates[t.Name]; ok {
				return rate
			}
			return noRate(t)
		})
	}
	if q.Column == "attention" {
		if err := s.lookAtWorkers(); err != nil {
			return page, err
		}
		q.Key = keyOf(s.attention)
	}
	err = s.Each(func(t *Tube) {
		if matches(t) {
			page.Jobs.Ready += t.Ready
			page.Jobs.Reserved += t.Reserved
			page.Jobs.Delayed += t.Delayed
			page.Jobs.Buried += t.Buried
			q.Show(t)
		}
	})
	if err != nil {
		return page, err
	}
	found, next := q.Page()
	page.Tubes, page.Next, page.Matching = make([]admin.Tube, len(found)), next, q.Matching
	for i := range found {
		page.Tubes[i] = found[i].Shown()
	}
	return page, nil
}

// ErrNone is the error for a tube that does not exist.
func ErrNone(name string) error {
	return admin.Problemf(http.StatusNotFound, "there is no tube %s: a tube exists while it has jobs, or a connection uses or watches it", name)
}

// Shown returns the tube for an answer.
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
