package console

import (
	"cmp"
	"strings"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/health"
	"github.com/beanpole-mq/beanpole/internal/op"
)

// A tubeTable is a list of tubes.
type tubeTable struct {
	listing
	Matching uint64
	Counts   admin.JobCounts
}

// A tubeColumn is a column that the table can have.
type tubeColumn struct {
	name string
	column
	usual bool // it is shown in every order; others are shown in their own
	cell  func(t *admin.Tube) cell
}

// paused returns the time until the end of a pause.
func paused(t *admin.Tube) string {
	if t.PauseLeft > untilResumed/2 {
		return "paused until resumed"
	}
	return "paused " + duration(t.PauseLeft)
}

// count returns a cell that shows a number of a tube.
func count(of func(t *admin.Tube) uint64) func(t *admin.Tube) cell {
	return func(t *admin.Tube) cell { return counted("", of(t)) }
}

// recentRate returns a cell that shows a rate over the last minute.
func recentRate(of func(r *admin.Recent) float64) func(t *admin.Tube) cell {
	return func(t *admin.Tube) cell {
		if t.Recent == nil {
			return greyed("–")
		}
		return greyed(rate(of(t.Recent)))
	}
}

// greyed returns a cell that is grey if it shows zero.
func greyed(text string) cell { return cell{Text: text, Class: zeroClass(text)} }

// markedIf returns a cell that has a class if a condition holds.
func markedIf(is bool, class string, c cell) cell {
	if is {
		c.Class = class
	}
	return c
}

// oldestReady returns the time that the next job has been ready.
func oldestReady(t *admin.Tube) cell {
	if t.Jobs.Ready == 0 {
		return greyed("–")
	}
	return markedIf(t.OldestReady >= int64(health.SlowAfter/time.Second), "late", greyed(duration(t.OldestReady)))
}

// tubeColumns contains the columns after the name, in order.
var tubeColumns = []tubeColumn{
	{"ready", column{Title: "Ready", sort: "-ready"}, true, count(func(t *admin.Tube) uint64 { return t.Jobs.Ready })},
	{"reserved", column{Title: "Reserved", sort: "-reserved"}, true, count(func(t *admin.Tube) uint64 { return t.Jobs.Reserved })},
	{"delayed", column{Title: "Delayed", sort: "-delayed"}, true, count(func(t *admin.Tube) uint64 { return t.Jobs.Delayed })},
	{"buried", column{Title: "Buried", Hint: failedHint, sort: "-buried"}, true, func(t *admin.Tube) cell { return markedIf(t.Jobs.Buried > 0, "hot", counted("", t.Jobs.Buried)) }},
	{"oldest", column{Title: "Oldest ready", Hint: "Time that the next job has been ready", sort: "-oldest_ready"}, true, oldestReady},
	{"put", column{Title: "Put/s", Hint: "Puts a second, in the last minute", sort: "-put_per_second", Class: "opt"}, true, recentRate(func(r *admin.Recent) float64 { return r.PutPerSecond })},
	{"done", column{Title: "Done/s", Hint: "Deletes a second, in the last minute", sort: "-deleted_per_second", Class: "opt"}, true, recentRate(func(r *admin.Recent) float64 { return r.DeletedPerSecond })},
	{"work", column{Title: "Run time", Hint: "Average time that a job is reserved", sort: "-work", Class: "opt"}, true,
		func(t *admin.Tube) cell { return greyed(meanText(t.Work.Count, t.Work.Seconds)) }},
	{"workers", column{Title: "Workers", Hint: "Connections that watch the tube", sort: "-watching", Class: "opt"}, true,
		func(t *admin.Tube) cell { return markedIf(unwatched(t), "hot", counted("", t.Watching)) }},
	{"timeouts", column{Title: "Timeouts", Hint: "Number of jobs whose time to run expired", sort: "-timeouts", Class: "opt"}, false, count(func(t *admin.Tube) uint64 { return t.Timeouts })},
	{"releases", column{Title: "Releases", sort: "-releases", Class: "opt"}, false, count(func(t *admin.Tube) uint64 { return t.Releases })},
}

// failedHint explains buried jobs to users of other queues.
const failedHint = "Failed jobs, set aside until someone kicks them"

// lately is the column with the recent history.
var lately = tubeColumn{column: column{Title: "Ready, 10 min", Class: "l opt"}, cell: func(t *admin.Tube) (c cell) {
	if t.Recent != nil {
		c.Spark = newSpark(rowID(t.Name)+"s", "ready", pointsOf(t.Recent.Ready), tubeSpark, tubeSparkHeight)
	}
	return c
}}

// tubeFilters contains the conditions that the page offers.
var tubeFilters = [][2]string{
	{"", "All tubes"}, {"buried", "With buried jobs"}, {"unwatched", "Without workers"}, {"ready", "With ready jobs"},
	{"reserved", "With reserved jobs"}, {"delayed", "With delayed jobs"}, {"limited", "At or near their limit"}, {"paused", "Paused"}, {"waiting", "With waiting workers"},
}

// tubeTable returns a list of tubes.
func (r *request) tubeTable(in *admin.ListTubes) (t tubeTable, err error) {
	in.Recent = true
	found, err := r.api().ListTubes(r.Context(), in)
	if err != nil {
		return t, err
	}
	t.listing = listing{Sort: in.Sort, Cursor: in.Cursor, usual: defaultTubeSort, at: func(sort, cursor string) string {
		return withQuery(r.site.Base+"tubes", "sort", sort, "q", in.Q, "has", in.Has, "cursor", cursor)
	}}
	l := list{Columns: []column{{Title: "Tube", Class: "l", sort: "name"}}}
	shown := []tubeColumn{lately}
	for _, c := range tubeColumns {
		if c.usual || c.sort == in.Sort || c.sort == "-"+in.Sort {
			shown = append(shown, c)
		}
	}
	for i := range shown {
		l.Columns = append(l.Columns, shown[i].column)
	}
	manages := r.manages()
	for i := range found.Tubes {
		tube := &found.Tubes[i]
		row := listRow{ID: rowID(tube.Name), Name: tube.Name, Link: r.tubeLink(tube.Name, ""), Fixed: !manages(tube.Name)}
		row.tag(unwatched(tube), "no workers", "tag warn")
		if tube.Pause > 0 {
			row.Tags = append(row.Tags, Spot{row.ID + "-pause", paused(tube), "tag"})
		}
		cells := make([]cell, len(shown))
		for k := range shown {
			cells[k] = shown[k].cell(tube)
			cells[k].ID = shown[k].name
		}
		l.add(row, cells...)
	}
	t.lists(l, found.Next)
	t.Matching, t.Counts = found.Matching, found.Jobs
	return t, nil
}

const (
	defaultTubeSort = "-ready"
	tubesPerPage    = 100
)

// A tubesView is the page of the tubes.
type tubesView struct {
	Table   tubeTable
	Q, Has  string
	Filters [][2]string
}

func tubesPage(r *request) (*page, error) {
	get := r.URL.Query()
	v := &tubesView{Q: strings.TrimSpace(get.Get("q")), Has: get.Get("has"), Filters: tubeFilters}
	in := &admin.ListTubes{Sort: cmp.Or(get.Get("sort"), defaultTubeSort), Q: v.Q, Has: v.Has, Cursor: get.Get("cursor"), Limit: tubesPerPage}
	var err error
	if v.Table, err = r.tubeTable(in); err != nil {
		return nil, err
	}
	p := newPage("tubes", "Tubes", "tubes", v)
	return p, nil
}

// tubeLink returns the URL of a tube or, with a state, of its jobs in that state.
func (r *request) tubeLink(name, state string) string {
	return withQuery(r.site.Base+"tube/"+op.Segment(name), "state", state)
}

// unwatched reports whether a tube has ready jobs and no workers.
func unwatched(t *admin.Tube) bool {
	one := health.Tube{Ready: t.Jobs.Ready, Watching: t.Watching, PauseLeft: time.Duration(max(t.PauseLeft, min(t.Pause, 1))) * time.Second}
	return one.Unwatched()
}
