package console

import (
	"html"
	"html/template"
	"slices"
	"strings"
	"time"

	"github.com/beanpole-mq/beanpole/internal/decode"
)

// A list is a table of tubes, jobs, connections or servers. Go code renders its cells,
// because templates take a microsecond for each value.
type list struct {
	Columns []column // the first contains the names
	Rows    []listRow
	Bodies  bool
	Same    []decode.Field // fields that are equal in all bodies
	Found   bool           // whether the link to the next page continues a search
}

// A column describes a column of a list: its header, sort order and style.
type column struct {
	Title, Hint  string
	Class        string // class of the header and its cells: l for text, opt to hide it on small screens
	Link, Sorted string // ascending, descending, or empty
	sort         string // name of its first sort order in the API; empty if it cannot be sorted
}

// A listRow is a row: a tube, a job, a connection or a server.
type listRow struct {
	ID, Name, Link string
	Tags           []Spot
	Cells          []cell
	Job            *jobRow
	Fixed          bool // the user cannot change it
}

// A cell is a value of a row, with its appearance.
type cell struct {
	ID, Text, Class, Label string
	Title, Link            string
	Spark                  *spark
	HTML                   template.HTML // the whole cell, because one value is faster for a template than five
}

// written returns the cell with its HTML.
func (c cell) written() cell {
	text := `class="` + html.EscapeString(c.Class) + `" data-label="` + html.EscapeString(c.Label) + `"`
	if c.ID != "" {
		text = `id="` + html.EscapeString(c.ID) + `" ` + text
	}
	if c.Title != "" {
		text += ` title="` + html.EscapeString(c.Title) + `"`
	}
	inside := html.EscapeString(c.Text)
	if c.Link != "" {
		inside = `<a class="tube" href="` + html.EscapeString(c.Link) + `">` + inside + `</a>`
	}
	if c.Spark != nil {
		inside = string(c.Spark.SVG())
	}
	c.HTML = template.HTML(`<td ` + text + `>` + inside + `</td>`) // #nosec G203 -- each value is escaped
	return c
}

// Listed marks the rows of a list and their live values, and returns the rows to render.
// It returns no rows if the HTML is discarded. A method call for each cell would take
// most of a page's time.
func (p *page) Listed(rows []listRow) []listRow {
	for i := range rows {
		row := &rows[i]
		p.shape = append(p.shape, row.ID)
		for _, tag := range row.Tags {
			if p.shape = append(p.shape, tag.Class); tag.ID != "" {
				p.Live(tag.ID, tag.Text, tag.Class)
			}
		}
		for k := range row.Cells {
			if c := &row.Cells[k]; p.values != nil && c.ID != "" {
				p.values.Texts[c.ID] = value{c.Text, c.Class}
			} else if c.Spark != nil {
				p.Sparked(c.Spark)
			}
		}
	}
	if p.values != nil {
		return nil
	}
	return rows
}

// A listing is a sorted part of a list, with the parameters of its URL.
type listing struct {
	list
	Sort, Cursor string
	Next         string                           // link to the next page; empty on the last page
	usual        string                           // the default order, which links leave out
	at           func(sort, cursor string) string // returns the URL for another order or another page
}

// Link returns the URL of the page with another sort or start.
func (q *listing) Link(sort, cursor string) string {
	if sort == q.usual {
		sort = ""
	}
	return q.at(sort, cursor)
}

// First returns the link to the start. It is empty on the first page.
func (q *listing) First() string {
	if q.Cursor == "" {
		return ""
	}
	return q.Link(q.Sort, "")
}

// lists sets the list and its links to other sorts. If the cursor is not empty, it also
// sets the link to the next page.
func (q *listing) lists(l list, cursor string) {
	if q.list = l; cursor != "" {
		q.Next = q.Link(q.Sort, cursor)
	}
	q.Columns = q.sorted(l.Columns)
}

// sorted links each column header to the page sorted by that column, or in reverse if the
// page is already sorted by it.
func (q *listing) sorted(columns []column) []column {
	columns = slices.Clone(columns)
	for i := range columns {
		c := &columns[i]
		name, down := strings.CutPrefix(c.sort, "-")
		if c.sort == "" {
			continue
		}
		other := "-" + name
		if down {
			other = name
		}
		switch q.Sort {
		case name:
			c.Sorted = "ascending"
		case "-" + name:
			c.Sorted = "descending"
		}
		if c.Link = q.Link(c.sort, ""); q.Sort == c.sort {
			c.Link = q.Link(other, "")
		}
	}
	return columns
}

func counted(id string, n uint64) cell {
	text := numOf(n)
	return cell{ID: id, Text: text, Class: zeroClass(text)}
}

// ago returns a cell with the time since an event.
func ago(id string, seconds int64) cell {
	return cell{ID: id, Text: duration(seconds), Title: at(time.Now().UTC(), seconds)}
}

// add adds a row. cells are the cells after the row's name.
func (l *list) add(row listRow, cells ...cell) {
	for i, one := range cells {
		c := &l.Columns[i+1]
		one.Label = c.Title
		one.Class = strings.TrimSpace(c.Class + " " + one.Class)
		if one.ID != "" {
			one.ID = row.ID + one.ID
		}
		row.Cells = append(row.Cells, one.written())
	}
	l.Rows = append(l.Rows, row)
}

// tag adds a tag to the row if a condition holds.
func (row *listRow) tag(is bool, text, class string) {
	if is {
		row.Tags = append(row.Tags, Spot{Text: text, Class: class})
	}
}
