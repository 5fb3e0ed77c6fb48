package console

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/health"
	"github.com/beanpole-mq/beanpole/internal/op"
)

// A tubeTable is a list of tubes.
type tubeTable struct {
	listing
	Matching *uint64 // nil: nobody has counted
	Counts   *admin.JobCounts
}

// A tubeColumn is one that the table may have.
type tubeColumn struct {
	Name string
	column
	Usual  bool // it is there unless others are asked for
	Chosen bool
	plain  bool // a beanstalkd has it, too
	cell   func(t *admin.Tube) cell
}

// paused says for how much longer a tube is paused.
func paused(t *admin.Tube) string {
	if t.PauseLeft > untilResumed/2 {
		return "paused until resumed"
	}
	return "paused " + duration(t.PauseLeft)
}

// count returns what shows a number of a tube.
func count(of func(t *admin.Tube) uint64) func(t *admin.Tube) cell {
	return func(t *admin.Tube) cell { return counted("", of(t)) }
}

// recentRate returns what shows how often something has happened lately.
func recentRate(of func(r *admin.Recent) float64) func(t *admin.Tube) cell {
	return func(t *admin.Tube) cell {
		if t.Recent == nil {
			return greyed("–")
		}
		return greyed(rate(of(t.Recent)))
	}
}

// greyed is a cell that is grey if it is nothing.
func greyed(text string) cell { return cell{Text: text, Class: zeroClass(text)} }

// markedIf is a cell with a class if something is so.
func markedIf(is bool, class string, c cell) cell {
	if is {
		c.Class = class
	}
	return c
}

// nextWaits is how long the next job has been ready.
func nextWaits(t *admin.Tube) cell {
	if t.Jobs.Ready == 0 {
		return greyed("–")
	}
	return markedIf(t.OldestReady >= int64(health.SlowAfter/time.Second), "late", greyed(duration(t.OldestReady)))
}

// tubeColumns are those that there are, after the name, in their order.
var tubeColumns = []tubeColumn{
	{"ready", column{Title: "Ready", sort: "-ready"}, true, false, true, count(func(t *admin.Tube) uint64 { return t.Jobs.Ready })},
	{"urgent", column{Title: "Urgent", Hint: "ready, with a priority below 1024", sort: "-urgent"}, false, false, true, count(func(t *admin.Tube) uint64 { return t.Urgent })},
	{"reserved", column{Title: "Reserved", sort: "-reserved"}, true, false, true, count(func(t *admin.Tube) uint64 { return t.Jobs.Reserved })},
	{"delayed", column{Title: "Delayed", sort: "-delayed"}, true, false, true, count(func(t *admin.Tube) uint64 { return t.Jobs.Delayed })},
	{"buried", column{Title: "Buried", sort: "-buried"}, true, false, true, func(t *admin.Tube) cell { return markedIf(t.Jobs.Buried > 0, "hot", counted("", t.Jobs.Buried)) }},
	{"oldest", column{Title: "Next waits", Hint: "how long the job has been ready that is the next to be reserved", sort: "-oldest_ready"}, true, false, false, nextWaits},
	{"put", column{Title: "Put/s", Hint: "in the last minute", sort: "-put_per_second", Class: "opt"}, true, false, false, recentRate(func(r *admin.Recent) float64 { return r.PutPerSecond })},
	{"done", column{Title: "Done/s", Hint: "deletes, in the last minute", sort: "-deleted_per_second", Class: "opt"}, true, false, false, recentRate(func(r *admin.Recent) float64 { return r.DeletedPerSecond })},
	{"queue", column{Title: "Waited", Hint: "how long a job was ready before it was reserved, on average", sort: "-queue", Class: "opt"}, false, false, false,
		func(t *admin.Tube) cell { return greyed(meanText(t.Queue.Count, t.Queue.Seconds)) }},
	{"work", column{Title: "Works", Hint: "how long a job is reserved, on average", sort: "-work", Class: "opt"}, true, false, false,
		func(t *admin.Tube) cell { return greyed(meanText(t.Work.Count, t.Work.Seconds)) }},
	{"workers", column{Title: "Workers", Hint: "connections that watch it", sort: "-watching", Class: "opt"}, true, false, true,
		func(t *admin.Tube) cell { return markedIf(unwatched(t), "hot", counted("", t.Watching)) }},
	{"waiting", column{Title: "Waiting", Hint: "connections that wait for a job", sort: "-waiting", Class: "opt"}, false, false, true, count(func(t *admin.Tube) uint64 { return t.Waiting })},
	{"using", column{Title: "Using", Hint: "connections that put into it", sort: "-using", Class: "opt"}, false, false, true, count(func(t *admin.Tube) uint64 { return t.Using })},
	{"size", column{Title: "Bodies", Hint: "bytes of the bodies of all jobs", sort: "-body_bytes", Class: "opt"}, false, false, false, func(t *admin.Tube) cell { return greyed(byteSize(whole(t.BodyBytes))) }},
	{"total", column{Title: "Put so far", sort: "-total_jobs", Class: "opt"}, false, false, true, count(func(t *admin.Tube) uint64 { return t.TotalJobs })},
	{"deletes", column{Title: "Deletes", sort: "-deletes", Class: "opt"}, false, false, true, count(func(t *admin.Tube) uint64 { return t.Deletes })},
	{"timeouts", column{Title: "Timeouts", Hint: "how often the time to run of a job was over", sort: "-timeouts", Class: "opt"}, false, false, false, count(func(t *admin.Tube) uint64 { return t.Timeouts })},
	{"releases", column{Title: "Releases", sort: "-releases", Class: "opt"}, false, false, false, count(func(t *admin.Tube) uint64 { return t.Releases })},
	{"buries", column{Title: "Buries", sort: "-buries", Class: "opt"}, false, false, false, count(func(t *admin.Tube) uint64 { return t.Buries })},
}

// lately is the column that is always there, where it is known what was.
var lately = tubeColumn{column: column{Title: "Ready, 10 min", Class: "l opt"}, cell: func(t *admin.Tube) (c cell) {
	if t.Recent != nil {
		c.Spark = newSpark(rowID(t.Name)+"s", "ready", pointsOf(t.Recent.Ready), tubeSpark, tubeSparkHeight)
	}
	return c
}}

// offeredColumns are those that a table of tubes may have, the chosen ones marked: those with names, or the usual ones.
func (s *site) offeredColumns(names []string) (all []tubeColumn) {
	for _, c := range tubeColumns {
		if c.Chosen = c.Usual || s.Plain(); len(names) > 0 {
			c.Chosen = slices.Contains(names, c.Name)
		}
		if c.plain || !s.Plain() {
			all = append(all, c)
		}
	}
	return all
}

// tubeFilters are what the page offers besides a text.
var tubeFilters = [][2]string{
	{"", "All tubes"}, {"buried", "With buried jobs"}, {"unwatched", "Without workers"}, {"ready", "With ready jobs"},
	{"reserved", "With reserved jobs"}, {"delayed", "With delayed jobs"}, {"limited", "At or near their limit"}, {"paused", "Paused"}, {"waiting", "With workers that wait"},
}

// tubeTable asks for a list of tubes, with columns that have names.
func (r *request) tubeTable(in *admin.ListTubes, names []string) (t tubeTable, err error) {
	in.Recent = true
	found, err := r.api().ListTubes(r.Context(), in)
	if err != nil {
		return t, err
	}
	t.listing = listing{Sort: in.Sort, Cursor: in.Cursor, usual: defaultTubeSort, at: func(sort, cursor string) string {
		return withQuery(r.site.Base+"tubes", "sort", sort, "q", in.Q, "has", in.Has, "cols", strings.Join(names, ","), "cursor", cursor)
	}}
	l := list{Columns: []column{{Title: "Tube", Class: "l", sort: "name"}}}
	chosen := slices.DeleteFunc(r.site.offeredColumns(names), func(c tubeColumn) bool { return !c.Chosen })
	if !r.site.Plain() {
		chosen = slices.Insert(chosen, 0, lately)
	}
	for i := range chosen {
		l.Columns = append(l.Columns, chosen[i].column)
	}
	for i := range found.Tubes {
		tube := &found.Tubes[i]
		row := listRow{ID: rowID(tube.Name), Name: tube.Name, Link: r.tubeLink(tube.Name, "")}
		row.tag(unwatched(tube), "no workers", "tag warn")
		if tube.Pause > 0 {
			row.Tags = append(row.Tags, Spot{row.ID + "-pause", paused(tube), "tag"})
		}
		cells := make([]cell, len(chosen))
		for k := range chosen {
			cells[k] = chosen[k].cell(tube)
			cells[k].ID = chosen[k].Name
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
	Chosen  []string // columns
	All     []tubeColumn
	Usual   string // the page with the usual columns
	Filters [][2]string
}

func tubesPage(r *request) (*page, error) {
	get := r.URL.Query()
	v := &tubesView{Q: strings.TrimSpace(get.Get("q")), Has: get.Get("has"), Chosen: columnNames(get["cols"]), Filters: tubeFilters}
	in := &admin.ListTubes{Sort: cmp.Or(get.Get("sort"), defaultTubeSort), Q: v.Q, Has: v.Has, Cursor: get.Get("cursor"), Limit: tubesPerPage}
	var err error
	if v.Table, err = r.tubeTable(in, v.Chosen); err != nil {
		return nil, err
	}
	v.All, v.Usual = r.site.offeredColumns(v.Chosen), withQuery(r.site.Base+"tubes", "sort", get.Get("sort"), "q", v.Q, "has", v.Has)
	p := newPage("tubes", "Tubes", "tubes", v)
	p.Curl = r.curl("GET /tubes", in)
	return p, nil
}

// columnNames reads the names of columns, each with a parameter of its own or with commas between
// them. Those that there are not are left out.
func columnNames(texts []string) (names []string) {
	for _, name := range strings.Split(strings.Join(texts, ","), ",") {
		if slices.ContainsFunc(tubeColumns, func(c tubeColumn) bool { return c.Name == name }) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// tubeLink is the page of a tube, and of its jobs in a state.
func (r *request) tubeLink(name, state string) string {
	return withQuery(r.site.Base+"tube/"+op.Segment(name), "state", state)
}

// unwatched reports whether jobs of a tube are ready that nobody will take.
func unwatched(t *admin.Tube) bool {
	one := health.Tube{Ready: t.Jobs.Ready, Watching: t.Watching, PauseLeft: time.Duration(max(t.PauseLeft, min(t.Pause, 1))) * time.Second}
	return one.Unwatched()
}
