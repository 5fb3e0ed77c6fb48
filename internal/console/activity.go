package console

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/beanpole-mq/beanpole/client/admin"
)

// An activityView is the page of tasks and changes.
type activityView struct {
	Tasks    []taskRow
	Changes  []changeRow
	MayAudit bool // the user can see the changes

	// Filters of the changes. Q contains words of the row.
	Q, Identity, Tube, Day string
	Filtered               bool
}

// A changeRow is a change with its attributes.
type changeRow struct {
	admin.Change
	Did   string // the operation in words
	Facts []fact
}

// A fact is an attribute of a change. It can have a link.
type fact struct{ Name, Text, Link string }

var upperCase = regexp.MustCompile("[A-Z]")

func (r *request) changeRow(c *admin.Change) changeRow {
	row := changeRow{Change: *c, Did: strings.ToLower(upperCase.ReplaceAllString(c.Operation, " $0"))}
	for _, name := range slices.Sorted(maps.Keys(c.About)) {
		one := fact{Name: name, Text: fmt.Sprint(c.About[name])}
		switch name {
		case "via": // via has its own column
			continue
		case "tube", "to":
			one.Link = r.tubeLink(one.Text, "")
		case "job", "copy":
			one.Link = r.site.Base + "job/" + one.Text
		}
		row.Facts = append(row.Facts, one)
	}
	return row
}

// matches reports whether a change contains all words of a filter.
func (c *changeRow) matches(q string) bool {
	text := strings.ToLower(fmt.Sprint(c.Did, c.Facts, c.Identity, c.Client, c.Result))
	return !slices.ContainsFunc(strings.Fields(strings.ToLower(q)), func(word string) bool { return !strings.Contains(text, word) })
}

// A taskRow is a task with its progress.
type taskRow struct{ admin.Task }

const (
	taskBar      = 120 // in pixels
	shownChanges = 200

	// searchedChanges is the number of changes whose words are searched. The other
	// filters apply to all changes.
	searchedChanges = 2000
)

// Left returns the numbers of skipped jobs, by reason.
func (t *taskRow) Left() string {
	if len(t.Skipped) == 0 {
		return "0"
	}
	var all []string
	for _, why := range slices.Sorted(maps.Keys(t.Skipped)) {
		all = append(all, num(whole(t.Skipped[why]))+" "+why)
	}
	return strings.Join(all, ", ")
}

// Far returns the progress of a task.
func (t *taskRow) Far() string {
	if t.Status == "looking" {
		return num(whole(t.Found)) + " found, " + num(whole(t.Looked)) + " searched"
	}
	return num(whole(t.Done)) + " of " + num(whole(t.Found))
}

// activityPage shows the tasks and the last changes.
func activityPage(r *request) (*page, error) {
	value := func(name string) string { return strings.TrimSpace(r.FormValue(name)) }
	v := &activityView{Q: value("q"), Identity: value("identity"), Tube: value("tube"), Day: value("day")}
	v.Filtered = v.Q+v.Identity+v.Tube+v.Day != ""
	in := admin.ListChanges{Limit: shownChanges, Tube: v.Tube, Day: v.Day}
	if v.Identity != "" {
		in.Identity = &v.Identity
	}
	if v.Q != "" {
		in.Limit = searchedChanges
	}
	changes, audit := r.api().ListChanges(r.Context(), &in)
	tasks, running := r.api().ListTasks(r.Context())
	if running != nil && audit != nil {
		return nil, audit
	}
	if err := errors.Join(optional(audit), optional(running)); err != nil {
		return nil, err
	}
	v.MayAudit = audit == nil
	for i := range changes.Changes {
		if c := r.changeRow(&changes.Changes[i]); c.matches(v.Q) && len(v.Changes) < shownChanges {
			v.Changes = append(v.Changes, c)
		}
	}
	for _, t := range tasks.Tasks {
		v.Tasks = append(v.Tasks, taskRow{t})
	}
	p := newPage("activity", "Activity", "activity", v)
	return p, nil
}
