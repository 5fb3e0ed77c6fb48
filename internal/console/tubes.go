package console

import (
	"slices"
	"strings"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/health"
	"github.com/beanpole-mq/beanpole/internal/op"
)

// A tubeQuery is what the URL of a list of tubes says.
type tubeQuery struct {
	Sort, Q, Has, Cursor string
	Columns              []string // their names; none: the usual ones
	Limit                int
	site                 *site
}

// A tubeTable is a list of tubes.
type tubeTable struct {
	Query    tubeQuery
	Rows     []tubeRow
	Matching uint64
	Jobs     admin.JobCounts
	Next     string
	Columns  []tubeColumn // that it has
	All      []tubeColumn // that it may have
}

// A tubeColumn is one that the table may have.
type tubeColumn struct {
	Name, Title, Hint string
	Sort              string // what the API calls it; empty: it cannot be sorted by
	Link, Sorted      string // ascending, descending, or nothing
	Usual             bool   // it is there unless others are asked for
	Chosen            bool
	Wide              bool // it is left out where there is little room
	plain             bool // a beanstalkd has it, too
	text              func(t *tubeRow) string
	class             func(t *tubeRow, text string) string // nil: grey if it is nothing
}

// A tubeRow is a tube with what is shown of it.
type tubeRow struct {
	admin.Tube
	ID    string // of its element
	Link  string
	Spark spark
	Cells []cell
}

// Paused says for how much longer the tube is paused.
func (t *tubeRow) Paused() string {
	if t.PauseLeft > untilResumed/2 {
		return "paused until resumed"
	}
	return "paused " + duration(t.PauseLeft)
}

// count returns what shows a number of a tube.
func count(of func(t *admin.Tube) uint64) func(t *tubeRow) string {
	return func(t *tubeRow) string { return numOf(of(&t.Tube)) }
}

// recentRate returns what shows how often something has happened lately.
func recentRate(of func(r *admin.Recent) float64) func(t *tubeRow) string {
	return func(t *tubeRow) string {
		if t.Recent == nil {
			return "–"
		}
		return rate(of(t.Recent))
	}
}

// hotIf marks what is wrong.
func hotIf(is func(t *tubeRow) bool) func(t *tubeRow, text string) string {
	return func(t *tubeRow, text string) string {
		if is(t) {
			return "hot"
		}
		return zeroClass(text)
	}
}

// tubeColumns are those that there are, after the name, in their order.
var tubeColumns = []tubeColumn{
	{Name: "ready", plain: true, Title: "Ready", Sort: "ready", Usual: true, text: count(func(t *admin.Tube) uint64 { return t.Jobs.Ready })},
	{Name: "urgent", plain: true, Title: "Urgent", Hint: "ready, with a priority below 1024", Sort: "urgent", text: count(func(t *admin.Tube) uint64 { return t.Urgent })},
	{Name: "reserved", plain: true, Title: "Reserved", Sort: "reserved", Usual: true, text: count(func(t *admin.Tube) uint64 { return t.Jobs.Reserved })},
	{Name: "delayed", plain: true, Title: "Delayed", Sort: "delayed", Usual: true, text: count(func(t *admin.Tube) uint64 { return t.Jobs.Delayed })},
	{Name: "buried", plain: true, Title: "Buried", Sort: "buried", Usual: true, text: count(func(t *admin.Tube) uint64 { return t.Jobs.Buried }),
		class: hotIf(func(t *tubeRow) bool { return t.Jobs.Buried > 0 })},
	{Name: "oldest", Title: "Next waits", Hint: "how long the job has been ready that is the next to be reserved", Sort: "oldest_ready", Usual: true,
		text: func(t *tubeRow) string {
			if t.Jobs.Ready == 0 {
				return "–"
			}
			return duration(t.OldestReady)
		}, class: func(t *tubeRow, text string) string {
			if t.OldestReady >= int64(health.SlowAfter/time.Second) {
				return "late"
			}
			return zeroClass(text)
		}},
	{Name: "put", Title: "Put/s", Hint: "in the last minute", Sort: "put_per_second", Usual: true, Wide: true, text: recentRate(func(r *admin.Recent) float64 { return r.PutPerSecond })},
	{Name: "done", Title: "Done/s", Hint: "deletes, in the last minute", Sort: "deleted_per_second", Usual: true, Wide: true, text: recentRate(func(r *admin.Recent) float64 { return r.DeletedPerSecond })},
	{Name: "queue", Title: "Waited", Hint: "how long a job was ready before it was reserved, on average", Sort: "queue", Wide: true,
		text: func(t *tubeRow) string { return meanText(t.Queue.Count, t.Queue.Seconds) }},
	{Name: "work", Title: "Works", Hint: "how long a job is reserved, on average", Sort: "work", Usual: true, Wide: true,
		text: func(t *tubeRow) string { return meanText(t.Work.Count, t.Work.Seconds) }},
	{Name: "workers", plain: true, Title: "Workers", Hint: "connections that watch it", Sort: "watching", Usual: true, Wide: true,
		text: count(func(t *admin.Tube) uint64 { return t.Watching }), class: hotIf((*tubeRow).Unwatched)},
	{Name: "waiting", plain: true, Title: "Waiting", Hint: "connections that wait for a job", Sort: "waiting", Wide: true, text: count(func(t *admin.Tube) uint64 { return t.Waiting })},
	{Name: "using", plain: true, Title: "Using", Hint: "connections that put into it", Sort: "using", Wide: true, text: count(func(t *admin.Tube) uint64 { return t.Using })},
	{Name: "size", Title: "Bodies", Hint: "bytes of the bodies of all jobs", Sort: "body_bytes", Wide: true, text: func(t *tubeRow) string { return byteSize(whole(t.BodyBytes)) }},
	{Name: "total", plain: true, Title: "Put so far", Sort: "total_jobs", Wide: true, text: count(func(t *admin.Tube) uint64 { return t.TotalJobs })},
	{Name: "deletes", plain: true, Title: "Deletes", Sort: "deletes", Wide: true, text: count(func(t *admin.Tube) uint64 { return t.Deletes })},
	{Name: "timeouts", Title: "Timeouts", Hint: "how often the time to run of a job was over", Sort: "timeouts", Wide: true, text: count(func(t *admin.Tube) uint64 { return t.Timeouts })},
	{Name: "releases", Title: "Releases", Sort: "releases", Wide: true, text: count(func(t *admin.Tube) uint64 { return t.Releases })},
	{Name: "buries", Title: "Buries", Sort: "buries", Wide: true, text: count(func(t *admin.Tube) uint64 { return t.Buries })},
}

// columns returns all columns, those that are chosen marked.
func (q tubeQuery) columns() []tubeColumn {
	all := slices.Clone(tubeColumns)
	if q.site.isPlain() {
		all = slices.DeleteFunc(all, func(c tubeColumn) bool { return !c.plain })
	}
	for i := range all {
		c := &all[i]
		if c.Chosen = c.Usual || q.site.isPlain(); len(q.Columns) > 0 {
			c.Chosen = slices.Contains(q.Columns, c.Name)
		}
		if c.Sort != "" {
			c.Link, c.Sorted = q.sortedBy(c.Sort), q.direction(c.Sort)
		}
	}
	return all
}

// fill fills in what a row has in each column.
func (t *tubeRow) fill(columns []tubeColumn) {
	t.Cells = make([]cell, 0, len(columns))
	for i := range columns {
		c := &columns[i]
		one := cell{ID: t.ID + c.Name, Text: c.text(t), Label: c.Title}
		if c.class != nil {
			one.Class = c.class(t, one.Text)
		} else {
			one.Class = zeroClass(one.Text)
		}
		if c.Wide {
			one.Class = strings.TrimSpace("opt " + one.Class)
		}
		t.Cells = append(t.Cells, one.written())
	}
}

// ByAttention is the page with those first that need attention.
func (t tubeTable) ByAttention() string {
	q := t.Query
	q.Sort, q.Cursor = "-attention", ""
	return q.link()
}

// Busiest is the page in the usual order, UsualColumns the one with the usual columns.
func (t tubeTable) Busiest() string {
	q := t.Query
	q.Sort, q.Cursor = defaultTubeSort, ""
	return q.link()
}

func (t tubeTable) UsualColumns() string {
	q := t.Query
	q.Columns = nil
	return q.link()
}

// tubeFilters are what the page offers besides a text.
var tubeFilters = [][2]string{
	{"", "All tubes"}, {"buried", "With buried jobs"}, {"unwatched", "Without workers"}, {"ready", "With ready jobs"},
	{"reserved", "With reserved jobs"}, {"delayed", "With delayed jobs"}, {"limited", "At or near their limit"}, {"paused", "Paused"}, {"waiting", "With workers that wait"},
}

// tubeTable asks for a list of tubes.
func (r *request) tubeTable(q tubeQuery) (tubeTable, error) {
	found, err := r.api().ListTubes(r.Context(), q.input())
	if err != nil {
		return tubeTable{}, err
	}
	t := tubeTable{Query: q, Next: found.Next, All: q.columns()}
	for _, c := range t.All {
		if c.Chosen {
			t.Columns = append(t.Columns, c)
		}
	}
	if found.Matching != nil {
		t.Matching = *found.Matching
	}
	if found.Jobs != nil {
		t.Jobs = *found.Jobs
	}
	t.Rows = make([]tubeRow, len(found.Tubes))
	for i := range found.Tubes {
		row := &t.Rows[i]
		row.Tube, row.ID, row.Link = found.Tubes[i], rowID(found.Tubes[i].Name), r.tubeLink(found.Tubes[i].Name, "")
		if recent := row.Recent; recent != nil {
			row.Spark = newSpark(row.ID+"s", "ready", recent.Ready, tubeSpark, tubeSparkHeight)
		}
		row.fill(t.Columns)
	}
	return t, nil
}

// input is what the API is asked for.
func (q tubeQuery) input() *admin.ListTubes {
	return &admin.ListTubes{Sort: q.Sort, Q: q.Q, Has: q.Has, Cursor: q.Cursor, Limit: q.Limit, Recent: true}
}

// link is the URL of the page, without what is the default.
func (q tubeQuery) link() string {
	if q.Sort == defaultTubeSort {
		q.Sort = ""
	}
	return withQuery(q.site.base+"tubes", "sort", q.Sort, "q", q.Q, "has", q.Has, "cols", strings.Join(q.Columns, ","), "cursor", q.Cursor)
}

// sortedBy returns the page in the order of a column: the largest first, or the other way
// round if it is so already.
func (q tubeQuery) sortedBy(column string) string {
	q.Cursor = ""
	if q.Sort == "-"+column {
		q.Sort = column
	} else {
		q.Sort = "-" + column
	}
	return q.link()
}

func (q tubeQuery) direction(column string) string {
	if strings.TrimPrefix(q.Sort, "-") != column {
		return ""
	}
	return direction(q.Sort)
}

// NameLink and NameSorted are for the column of the names, which begins with the smallest.
func (t tubeTable) NameLink() string {
	q := t.Query
	q.Cursor = ""
	if q.Sort == "name" {
		q.Sort = "-name"
	} else {
		q.Sort = "name"
	}
	return q.link()
}

func (t tubeTable) NameSorted() string { return t.Query.direction("name") }

// NextLink is that of the next page, FirstLink that of the first one.
func (t tubeTable) NextLink() string {
	q := t.Query
	q.Cursor = t.Next
	return q.link()
}

func (t tubeTable) FirstLink() string {
	q := t.Query
	q.Cursor = ""
	return q.link()
}

const (
	defaultTubeSort = "-ready"
	tubesPerPage    = 100
)

// A tubesView is the page of the tubes.
type tubesView struct {
	Table   tubeTable
	Filters [][2]string
}

func tubesPage(r *request) (*page, error) {
	v := r.URL.Query()
	q := tubeQuery{Sort: v.Get("sort"), Q: strings.TrimSpace(v.Get("q")), Has: v.Get("has"), Cursor: v.Get("cursor"), Limit: tubesPerPage, Columns: columnNames(v["cols"]), site: r.site}
	if q.Sort == "" {
		q.Sort = defaultTubeSort
	}
	t, err := r.tubeTable(q)
	if err != nil {
		return nil, err
	}
	p := newPage("tubes", "Tubes", "tubes", &tubesView{Table: t, Filters: tubeFilters})
	p.Curl = r.curl("GET /tubes", q.input())
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
	return withQuery(r.site.base+"tube/"+op.Segment(name), "state", state)
}

// unwatched reports whether jobs of a tube are ready that nobody will take.
func unwatched(t *admin.Tube) bool {
	one := health.Tube{Ready: t.Jobs.Ready, Watching: t.Watching, PauseLeft: time.Duration(max(t.PauseLeft, min(t.Pause, 1))) * time.Second}
	return one.Unwatched()
}

// Unwatched reports whether jobs of the tube are ready that nobody will take.
func (t *tubeRow) Unwatched() bool { return unwatched(&t.Tube) }
