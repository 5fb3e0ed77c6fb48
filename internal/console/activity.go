package console

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
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

// A changeRow is a change, described by a sentence.
type changeRow struct {
	admin.Change
	Says []piece
}

// A piece is a part of a sentence, possibly with a link.
type piece struct{ Text, Link string }

// sentences contains a sentence for each kind of change, by the operation of the API or
// the command of the protocol. Braces contain the subjects of a change. A part between
// bars is left out if its subject is unknown.
var sentences = map[string]string{
	"putJob": "put job| {job}| into {tube}", "copyJob": "copied job {job} to {to}| as job {copy}|", "moveJob": "moved job {job}| of {tube}| to {to}", "deleteJob": "deleted job {job}| of {tube}|",
	"kickJob": "kicked job {job}| of {tube}|", "redriveJob": "redrove job {job}| of {tube}|| to {to}|", "buryJob": "buried job {job}| of {tube}|", "releaseJob": "released job {job}| of {tube}|", "changeJob": "changed job {job}| of {tube}|",
	"pauseTube": "paused {tube}| for {seconds}|", "pause-tube": "paused {tube}| for {seconds}|", "resumeTube": "resumed {tube}", "importTube": "imported| {jobs}| into {tube}", "importAll": "imported| {jobs}|",
	"startTask": "started to {do}| {state}| jobs of {tube}| to {to}|", "endTask": "{done} {jobs} of {tube}| to {to}|", "cancelTask": "stopped task {task}| of {tube}|",
	"setPolicy": "changed the policy of {pattern}|, now {after}|", "deletePolicy": "deleted the policy of {pattern}",
	"setSchedule": "set schedule {schedule}", "removeSchedule": "removed schedule {schedule}", "runSchedule": "ran schedule {schedule}", "pauseSchedule": "paused schedule {schedule}", "resumeSchedule": "resumed schedule {schedule}",
	"closeConnection": "closed connection {connection}", "drain": "drained the server", "undrain": "accepted new jobs again", "transferLead": "transferred leadership|: to member {member}|", "rewriteJournal": "rewrote the journal",
	"kick": "kicked {jobs} of {tube}", "flush-tube": "deleted {jobs} of {tube}", "move-jobs": "moved {jobs} of {tube} to {to}",
}

// says describes a change in words.
func (r *request) says(c *admin.Change) (all []piece) {
	value := func(name string) string {
		number := func(name string) (n float64, ok bool) {
			n, err := strconv.ParseFloat(fmt.Sprint(c.About[name]), 64)
			return n, err == nil
		}
		switch v, ok := c.About[name]; {
		case name == "done":
			do := fmt.Sprint(c.About["do"])
			return cmp.Or(map[string]string{"bury": "buried", "redrive": "redrove"}[do], strings.TrimSuffix(do, "e")+"ed")
		case name == "jobs":
			if n, ok := number("count"); ok {
				return plural(uint64(n), "job", "jobs")
			}
		case ok:
			if n, ok := number(name); ok && name == "seconds" {
				return duration(n)
			}
			return fmt.Sprint(v)
		}
		return ""
	}
	if c.Result != "ok" {
		all = append(all, piece{Text: "failed: "})
	}
	pattern, ok := sentences[c.Operation]
	if !ok {
		all = append(all, piece{Text: strings.ToLower(upperCase.ReplaceAllString(c.Operation, " $0"))})
		for _, name := range slices.Sorted(maps.Keys(c.About)) {
			if name == "via" { // via has its own column
				continue
			}
			all = append(all, piece{Text: " " + name + " "}, piece{value(name), ""})
		}
		return all
	}
	for i, part := range strings.Split(pattern, "|") {
		var some []piece
		known := true
		for k, word := range braces.Split(part, -1) { // texts and names alternate
			one := piece{Text: word}
			if k%2 == 1 {
				one.Text = value(word)
				known = known && one.Text != ""
			}
			switch {
			case k%2 == 0:
			case word == "tube" || word == "to":
				one.Link = r.tubeLink(one.Text, "")
			case word == "job" || word == "copy":
				one.Link = r.site.Base + "job/" + one.Text
			}
			some = append(some, one)
		}
		if known || i%2 == 0 {
			all = append(all, some...)
		}
	}
	return all
}

var upperCase, braces = regexp.MustCompile("[A-Z]"), regexp.MustCompile("[{}]")

// matches reports whether a change contains all words of a filter.
func (c *changeRow) matches(q string) bool {
	text := c.Identity + " " + c.Client + " " + c.Result + " "
	for _, p := range c.Says {
		text += p.Text
	}
	return !slices.ContainsFunc(strings.Fields(q), func(word string) bool { return !strings.Contains(strings.ToLower(text), strings.ToLower(word)) })
}

// A taskRow is a task with its progress bar.
type taskRow struct {
	admin.Task
	Bar string // path of the progress bar
}

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

func newTaskRow(t admin.Task) taskRow {
	part := 0.0
	if t.Found > 0 && t.Status != "looking" {
		var skipped uint64
		for _, n := range t.Skipped {
			skipped += n
		}
		part = float64(t.Done+skipped) / float64(t.Found)
	}
	return taskRow{t, fmt.Sprintf("M0 3H%.1f", taskBar*part)}
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
		if c := (changeRow{changes.Changes[i], r.says(&changes.Changes[i])}); c.matches(v.Q) && len(v.Changes) < shownChanges {
			v.Changes = append(v.Changes, c)
		}
	}
	for _, t := range tasks.Tasks {
		v.Tasks = append(v.Tasks, newTaskRow(t))
	}
	p := newPage("activity", "Activity", "activity", v)
	p.Curl = r.curl("GET /tasks", nil)
	return p, nil
}
