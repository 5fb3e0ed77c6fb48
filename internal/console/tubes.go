package console

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/beanpole-mq/beanpole/internal/admin/api"
)

// A tubeQuery is what the URL of a list of tubes says.
type tubeQuery struct {
	Sort, Q, Has, Cursor string
	Limit                int
}

// A tubeTable is a list of tubes.
type tubeTable struct {
	Query    tubeQuery
	Rows     []tubeRow
	Matching uint64
	Jobs     api.JobCounts
	Next     string
	Columns  []tubeColumn
}

// A tubeColumn is one that can be sorted by.
type tubeColumn struct {
	Name, Title, Hint string
	Link, Sorted      string // ascending, descending, or nothing
}

// A tubeRow is a tube with what is shown of it.
type tubeRow struct {
	api.Tube
	ID    string // of its element
	Link  string
	Spark spark
}

// Unwatched reports whether jobs are ready that nobody will take.
func (t tubeRow) Unwatched() bool { return t.Jobs.Ready > 0 && t.Watching == 0 }

// OldestClass marks a wait that is long.
func (t tubeRow) OldestClass() string {
	if t.OldestReady >= 60 {
		return "late"
	}
	return zeroClass(duration(t.OldestReady))
}

// PutRate and DoneRate are how many jobs a second are put and deleted.
func (t tubeRow) PutRate() string {
	if t.Recent == nil {
		return "–"
	}
	return rate(t.Recent.PutPerSecond)
}

func (t tubeRow) DoneRate() string {
	if t.Recent == nil {
		return "–"
	}
	return rate(t.Recent.DeletedPerSecond)
}

// tubeColumns are those of the table, after the name.
var tubeColumns = []tubeColumn{
	{Name: "ready", Title: "Ready"},
	{Name: "reserved", Title: "Reserved"},
	{Name: "delayed", Title: "Delayed"},
	{Name: "buried", Title: "Buried"},
	{Name: "oldest_ready", Title: "Next waits", Hint: "how long the job has been ready that is the next to be reserved"},
	{Name: "", Title: "Put/s", Hint: "in the last minute"},
	{Name: "", Title: "Done/s", Hint: "deletes, in the last minute"},
	{Name: "work", Title: "Works", Hint: "how long a job is reserved, on average"},
	{Name: "watching", Title: "Workers", Hint: "connections that watch it"},
}

// tubeFilters are what the page offers besides a text.
var tubeFilters = [][2]string{
	{"", "All tubes"}, {"buried", "With buried jobs"}, {"unwatched", "Without workers"}, {"ready", "With ready jobs"},
	{"delayed", "With delayed jobs"}, {"paused", "Paused"}, {"waiting", "With workers that wait"},
}

// tubeTable asks for a list of tubes.
func (r *request) tubeTable(q tubeQuery) (tubeTable, error) {
	var found api.Tubes
	if err := r.get(q.path(), &found); err != nil {
		return tubeTable{}, err
	}
	t := tubeTable{Query: q, Next: found.Next}
	if found.Matching != nil {
		t.Matching, t.Jobs = *found.Matching, *found.Jobs
	}
	for i := range found.Tubes {
		row := tubeRow{Tube: found.Tubes[i], Link: tubeLink(found.Tubes[i].Name, "")}
		if recent := row.Recent; recent != nil {
			row.Spark = newSpark("", "ready", recent.Ready, tubeSpark, tubeSparkHeight)
		}
		t.Rows = append(t.Rows, row)
	}
	for _, c := range tubeColumns {
		if c.Name != "" {
			c.Link = q.sortedBy(c.Name)
			c.Sorted = q.direction(c.Name)
		}
		t.Columns = append(t.Columns, c)
	}
	return t, nil
}

// path is that of the API.
func (q tubeQuery) path() string {
	return withQuery("/tubes", "sort", q.Sort, "q", q.Q, "has", q.Has, "cursor", q.Cursor, "limit", strconv.Itoa(q.Limit), "recent", "true")
}

// link is the URL of the page, without what is the default.
func (q tubeQuery) link() string {
	if q.Sort == defaultTubeSort {
		q.Sort = ""
	}
	return withQuery(Prefix+"tubes", "sort", q.Sort, "q", q.Q, "has", q.Has, "cursor", q.Cursor)
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
	switch q.Sort {
	case column:
		return "ascending"
	case "-" + column:
		return "descending"
	}
	return ""
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
	q := tubeQuery{Sort: v.Get("sort"), Q: strings.TrimSpace(v.Get("q")), Has: v.Get("has"), Cursor: v.Get("cursor"), Limit: tubesPerPage}
	if q.Sort == "" {
		q.Sort = defaultTubeSort
	}
	t, err := r.tubeTable(q)
	if err != nil {
		return nil, err
	}
	p := newPage("tubes", "Tubes", "tubes", &tubesView{Table: t, Filters: tubeFilters})
	p.Curl = curlOf(r.Request, "GET", q.path(), nil)
	return p, nil
}

// tubeLink is the page of a tube, and of its jobs in a state.
func tubeLink(name, state string) string {
	return withQuery(Prefix+"tube/"+url.PathEscape(name), "state", state)
}
