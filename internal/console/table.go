package console

import (
	"cmp"
	"fmt"
	"html"
	"html/template"
	"slices"
	"strings"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/decode"
)

// A list is a table of jobs or of connections. What its rows show is made here: a template takes a microsecond for each value, and longer
// for what is called.
type list struct {
	Columns []column
	Rows    []listRow
	Bodies  bool
	Same    []decode.Field // that all bodies have
	Found   bool           // a search goes on with it
}

// A column is the head of one.
type column struct {
	Title, Hint  string
	Left         bool   // it has texts, which begin with the smallest
	Link, Sorted string // ascending, descending, or nothing
	sort         string // what the API calls it
}

// A listRow is a job or a connection.
type listRow struct {
	ID, Name, Link string
	Tags           []string
	Cells          []cell
	Job            *jobRow
}

// A cell is what a row has in a column.
type cell struct {
	ID, Text, Class, Label string
	Title, Link            string
	Attributes             template.HTMLAttr // ID, Class, Label and Title: one value for a template, not four
}

// written returns the cell with its attributes.
func (c cell) written() cell {
	text := `class="` + html.EscapeString(c.Class) + `" data-label="` + html.EscapeString(c.Label) + `"`
	if c.ID != "" {
		text = `id="` + html.EscapeString(c.ID) + `" ` + text
	}
	if c.Title != "" {
		text += ` title="` + html.EscapeString(c.Title) + `"`
	}
	c.Attributes = template.HTMLAttr(text) // #nosec G203 -- each value is escaped
	return c
}

// Listed marks the rows of a list, as Rows those of a table of tubes.
func (p *page) Listed(rows []listRow) []listRow {
	for i := range rows {
		p.shape = append(p.shape, rows[i].ID)
		for _, c := range rows[i].Cells {
			if p.values != nil && c.ID != "" {
				p.values.Texts[c.ID] = value{c.Text, c.Class}
			}
		}
	}
	if p.values != nil {
		return nil
	}
	return rows
}

// A jobColumn is one of a list of jobs.
type jobColumn struct {
	column
	in   string // the states whose lists have it, and search; empty: all
	cell func(r *request, j *admin.Job) cell
}

// jobColumns are those between the number of a job and its body.
var jobColumns = []jobColumn{
	{column{Title: "Tube", Left: true}, "search", func(r *request, j *admin.Job) cell { return cell{Text: j.Tube, Link: r.tubeLink(j.Tube, j.State)} }},
	{column{Title: "State", Left: true}, "search", func(_ *request, j *admin.Job) cell { return cell{Text: j.State, Class: j.State} }},
	{column{Title: "Priority"}, "", func(_ *request, j *admin.Job) cell {
		return cell{Text: fmt.Sprint(j.Priority), Class: map[bool]string{true: "zero"}[j.Priority == 0]}
	}},
	{column{Title: "Age"}, "", func(_ *request, j *admin.Job) cell { return ago("a", j.Age) }},
	{column{Title: "Left"}, "delayed reserved", func(_ *request, j *admin.Job) cell { return cell{ID: "l", Text: duration(j.TimeLeft)} }},
	{column{Title: "Held by"}, "reserved", func(r *request, j *admin.Job) cell {
		return cell{Text: fmt.Sprint(j.ReservedBy), Link: fmt.Sprintf("%sconnection/%d", r.site.base, j.ReservedBy)}
	}},
	{column{Title: "Tries", Hint: "how often it was reserved"}, "", func(_ *request, j *admin.Job) cell { return counted("", j.Reserves) }},
	{column{Title: "Timeouts"}, "ready delayed reserved buried", func(_ *request, j *admin.Job) cell {
		c := counted("", j.Timeouts)
		c.Class = cmp.Or(c.Class, "late")
		return c
	}},
	{column{Title: "Size"}, "", func(_ *request, j *admin.Job) cell { return cell{Text: byteSize(int64(j.Size))} }},
}

func counted(id string, n uint64) cell {
	text := numOf(n)
	return cell{ID: id, Text: text, Class: zeroClass(text)}
}

// ago is a cell with what began so many seconds ago.
func ago(id string, seconds int64) cell {
	return cell{ID: id, Text: duration(seconds), Title: at(time.Now().UTC(), seconds)}
}

// jobList is a list of jobs in a state, or of a search.
func (r *request) jobList(in string, jobs []jobRow, same []decode.Field) list {
	columns := slices.DeleteFunc(slices.Clone(jobColumns), func(c jobColumn) bool { return c.in != "" && !strings.Contains(c.in, in) })
	l := list{Columns: []column{{Title: "Job", Left: true}}, Bodies: true, Same: same, Found: in == "search"}
	for _, c := range columns {
		l.Columns = append(l.Columns, c.column)
	}
	for i := range jobs {
		j := &jobs[i]
		row := listRow{Name: fmt.Sprint(j.ID), Job: j}
		row.ID, row.Link = rowID(fmt.Sprint(j.ID, j.Priority, j.Reserves, j.Timeouts, j.ReservedBy)), r.site.base+"job/"+row.Name
		for k := range columns {
			row.add(&columns[k].column, columns[k].cell(r, &j.Job))
		}
		l.Rows = append(l.Rows, row)
	}
	return l
}

// add adds what a row has in a column.
func (row *listRow) add(c *column, one cell) {
	one.Label = c.Title
	if c.Left {
		one.Class = strings.TrimSpace("l " + one.Class)
	}
	if one.ID != "" {
		one.ID = row.ID + one.ID
	}
	row.Cells = append(row.Cells, one.written())
}

// clientColumns are those of each list of connections.
var clientColumns = []column{
	{Title: "Connection", Left: true, sort: "id"},
	{Title: "From", Left: true, sort: "address"},
	{Title: "Who", Left: true, sort: "identity"},
	{Title: "Age", sort: "age"},
	{Title: "Uses", Left: true, sort: "using"},
	{Title: "Watches", Left: true, Hint: "in the order of how many", sort: "watching"},
	{Title: "Holds", sort: "holding"},
	{Title: "Waits for", sort: "waited"},
}

// shownWatches is how many tubes of a connection are named.
const shownWatches = 5

// clientList is a list of connections.
func (r *request) clientList(clients []admin.Connection, columns []column) list {
	l := list{Columns: columns}
	for i := range clients {
		c := &clients[i]
		row := listRow{Name: fmt.Sprint(c.ID), Link: fmt.Sprintf("%sconnection/%d", r.site.base, c.ID)}
		row.ID = rowID("c" + row.Name)
		if c.Producer {
			row.Tags = append(row.Tags, "puts")
		}
		if c.Worker {
			row.Tags = append(row.Tags, "works")
		}
		watches := strings.Join(c.Watching[:min(len(c.Watching), shownWatches)], ", ")
		if c.WatchingCount > shownWatches {
			watches += fmt.Sprintf(" and %d more", c.WatchingCount-shownWatches)
		}
		waits := "–"
		if c.Waiting {
			waits = duration(c.Waited)
		}
		who := cmp.Or(c.Identity, "–")
		for k, one := range []cell{
			{Text: c.Address, Class: "mono from", Title: c.Address}, {Text: who, Class: zeroClass(who)}, ago("a", c.Age),
			{Text: c.Using, Link: r.tubeLink(c.Using, "")}, {Text: watches, Class: "body watches"}, counted("h", uint64(c.HoldingCount)), {ID: "w", Text: waits, Class: zeroClass(waits)},
		} {
			row.add(&columns[k+1], one)
		}
		l.Rows = append(l.Rows, row)
	}
	return l
}
