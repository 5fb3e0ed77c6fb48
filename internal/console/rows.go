package console

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/decode"
)

// A jobRow is a job in a list.
type jobRow struct {
	admin.Job
	Kind                 string         // class of the job, from its body
	Fields               []decode.Field // fields that differ from the fields of the other jobs
	Before, Match, After string         // text of a body without fields, or around a match
	Worker               string         // identity or address of the connection that holds it
}

const (
	previewLength  = 160 // in characters
	beforeTheMatch = 40
	reasonLength   = 60
	decodedBytes   = 1 << 20 // maximum total size of decoded bodies on a page; other bodies are shown as text
)

// reason returns the reason of the last attempt or, without one, the end of the attempt.
func (row *jobRow) reason() string {
	switch f := row.Failure; {
	case f == nil:
		return ""
	case f.Reason == "" && f.End != "":
		return f.Ended()
	default:
		return cmp.Or(f.Reason, f.Policy)
	}
}

// jobRows returns the rows for jobs with or without bodies, and the fields that are equal
// in all rows. It marks the match of a search.
func jobRows(jobs []admin.Job, wanted *regexp.Regexp) (rows []jobRow, same []decode.Field) {
	rows = make([]jobRow, len(jobs))
	left := decodedBytes
	for i := range jobs {
		row := &rows[i]
		row.Job = jobs[i]
		body := row.Bytes()
		if body == nil {
			continue
		}
		text, isText := strings.ToValidUTF8(string(body[:min(len(body), 4*previewLength)]), ""), true
		if left -= len(body); left > 0 {
			row.Kind, row.Fields = decode.Describe(body)
			text, isText = decode.Text(body)
		}
		switch {
		case wanted != nil && (row.mark(decode.Joined(row.Fields), wanted) || isText && row.mark(text, wanted)):
			row.Fields = nil
		case len(row.Fields) > 0 || row.Kind != "":
		case isText:
			row.After = oneLine(text)
		default:
			row.After = fmt.Sprintf("%x", body[:min(len(body), previewLength/2)])
		}
	}
	same = leaveOutSame(rows)
	for i := range rows {
		rows[i].Fields = inOneLine(rows[i].Fields)
	}
	return rows, inOneLine(same)
}

// mark selects the part of a text around a match. It returns false if there is no match.
func (row *jobRow) mark(text string, wanted *regexp.Regexp) bool {
	at := wanted.FindStringIndex(text)
	if at == nil || at[0] == at[1] {
		return false
	}
	before := []rune(strings.ToValidUTF8(text[max(0, at[0]-4*beforeTheMatch):at[0]], ""))
	if n := len(before) - beforeTheMatch; n > 0 {
		before = append([]rune("…"), before[n:]...)
	}
	row.Before, row.Match, row.After = oneLine(string(before)), oneLine(text[at[0]:at[1]]), oneLine(text[at[1]:])
	return true
}

// inOneLine returns the first fields that fit into a row.
func inOneLine(fields []decode.Field) []decode.Field {
	n := 0
	for i, f := range fields {
		if n += utf8.RuneCountInString(f.Path+f.Value) + 2; n > previewLength {
			return fields[:max(i, 1)]
		}
	}
	return fields
}

// leaveOutSame removes the fields that are equal in all rows of a kind. If all rows are
// of the same kind, it returns these fields.
func leaveOutSame(rows []jobRow) (same []decode.Field) {
	type in struct {
		kind string
		decode.Field
	}
	n := make(map[in]int)
	for i := range rows {
		n[in{kind: rows[i].Kind}]++
		for _, f := range rows[i].Fields {
			n[in{rows[i].Kind, f}]++
		}
	}
	for i := range rows {
		row := &rows[i]
		of := n[in{kind: row.Kind}]
		isSame := func(f decode.Field) bool { return of > 1 && n[in{row.Kind, f}] == of }
		if others := slices.DeleteFunc(slices.Clone(row.Fields), isSame); len(others) > 0 {
			if of == len(rows) && i == 0 {
				same = slices.DeleteFunc(slices.Clone(row.Fields), func(f decode.Field) bool { return !isSame(f) })
			}
			row.Fields = others
		}
	}
	return same
}

// oneLine returns the start of a text as one line.
func oneLine(text string) string { return decode.Line(text, previewLength) }

// A jobColumn is a column of a list of jobs.
type jobColumn struct {
	column
	in   string // lists that have the column: states, search or working
	cell func(r *request, j *jobRow) cell
}

// jobColumns contains the columns between the number of a job and its body.
var jobColumns = []jobColumn{
	{column{Title: "Tube", Class: "l"}, "search working", func(r *request, j *jobRow) cell { return cell{Text: j.Tube, Link: r.tubeLink(j.Tube, j.State)} }},
	{column{Title: "State", Class: "l"}, "search", func(_ *request, j *jobRow) cell { return cell{Text: j.State, Class: j.State} }},
	{column{Title: "Held for", Hint: "Time since the reserve"}, "working", func(_ *request, j *jobRow) cell { return ago("f", j.Held) }},
	{column{Title: "Priority"}, "ready delayed reserved buried search", func(_ *request, j *jobRow) cell {
		return cell{Text: fmt.Sprint(j.Priority), Class: map[bool]string{true: "zero"}[j.Priority == 0]}
	}},
	{column{Title: "Age"}, "ready delayed reserved buried search", func(_ *request, j *jobRow) cell { return ago("a", j.Age) }},
	{column{Title: "Left"}, "delayed reserved working", func(_ *request, j *jobRow) cell { return cell{ID: "l", Text: duration(j.TimeLeft)} }},
	{column{Title: "Touches", Hint: "Number of touches since the reserve"}, "reserved working", func(_ *request, j *jobRow) cell { return counted("t", j.Touches) }},
	{column{Title: "Held by", Class: "l who"}, "reserved working", func(r *request, j *jobRow) cell {
		return cell{Text: cmp.Or(j.Worker, fmt.Sprint(j.ReservedBy)), Title: j.Worker, Link: fmt.Sprintf("%sconnection/%d", r.site.Base, j.ReservedBy)}
	}},
	{column{Title: "Tries", Hint: "Number of reservations"}, "ready delayed reserved buried search", func(_ *request, j *jobRow) cell { return counted("", j.Reserves) }},
	{column{Title: "Timeouts"}, "ready delayed reserved buried", func(_ *request, j *jobRow) cell {
		c := counted("", j.Timeouts)
		c.Class = cmp.Or(c.Class, "late")
		return c
	}},
	{column{Title: "Reason", Class: "l", Hint: "Error of the last attempt, or how the attempt ended"}, "ready delayed buried search", func(_ *request, j *jobRow) cell {
		return cell{Text: decode.Line(j.reason(), reasonLength), Title: decode.Visible(j.reason())}
	}},
	{column{Title: "Size"}, "ready delayed reserved buried search", func(_ *request, j *jobRow) cell { return cell{Text: byteSize(int64(j.Size))} }},
}

// jobList returns a list of jobs in a state, or of the jobs that a search has found.
func (r *request) jobList(in string, jobs []jobRow, same []decode.Field) list {
	columns := slices.DeleteFunc(slices.Clone(jobColumns), func(c jobColumn) bool { return !strings.Contains(c.in, in) })
	if !slices.ContainsFunc(jobs, func(j jobRow) bool { return j.reason() != "" }) {
		columns = slices.DeleteFunc(columns, func(c jobColumn) bool { return c.Title == "Reason" })
	}
	l := list{Columns: []column{{Title: "Job", Class: "l"}}, Bodies: true, Same: same, Found: in == "search"}
	for _, c := range columns {
		l.Columns = append(l.Columns, c.column)
	}
	manages := r.manages()
	seesHolders := (in == "reserved" || in == "working") && !r.live && slices.Contains(r.meOn("").Everywhere, "stats")
	for i := range jobs {
		j := &jobs[i]
		row := listRow{Name: fmt.Sprint(j.ID), Job: j, Fixed: !manages(j.Tube)}
		row.ID, row.Link = rowID(fmt.Sprint(j.ID, j.Priority, j.Reserves, j.Timeouts, j.ReservedBy)), r.site.Base+"job/"+row.Name
		var cells []cell
		for k := range columns {
			one := columns[k].cell(r, j)
			if columns[k].Title == "Held by" && !seesHolders {
				one.Link = ""
			}
			cells = append(cells, one)
		}
		l.add(row, cells...)
	}
	return l
}
