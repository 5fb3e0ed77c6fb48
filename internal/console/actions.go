package console

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/beanpole-mq/beanpole/internal/admin/api"
)

// An action is something that changes the queue. A page asks for it first.
type action struct {
	Verb   string // on the button
	on     subject
	danger bool
	many   bool     // on many jobs: it says how many
	fields []string // what it takes, of the form
	call   func(target string, v url.Values) call
	done   string // what has happened, of a number of things
}

// A subject is what an action is about.
type subject uint8

const (
	theServer subject = iota
	aTube
	aJob
	aConnection
)

// A call is a request to the API.
type call struct {
	method, path string
	body         map[string]any
}

// actions is the table, by the name in forms.
var actions = map[string]action{
	"pause-tube": {Verb: "Pause", on: aTube, fields: []string{"seconds"}, done: "paused", call: func(tube string, v url.Values) call {
		return call{"POST", tubePath(tube, "/pause"), numbers(v, "seconds")}
	}},
	"resume-tube": {Verb: "Resume", on: aTube, done: "resumed", call: func(tube string, _ url.Values) call {
		return call{"POST", tubePath(tube, "/resume"), nil}
	}},
	"kick-tube": {Verb: "Kick", on: aTube, many: true, fields: []string{"state", "count"}, done: "kicked", call: func(tube string, v url.Values) call {
		return call{"POST", tubePath(tube, "/kick"), texts(numbers(v, "count"), v, "state")}
	}},
	"clear-tube": {Verb: "Delete", on: aTube, many: true, danger: true, fields: []string{"state", "count"}, done: "deleted", call: func(tube string, v url.Values) call {
		return call{"POST", tubePath(tube, "/clear"), texts(numbers(v, "count"), v, "state")}
	}},
	"move-jobs": {Verb: "Move", on: aTube, many: true, fields: []string{"state", "count", "to"}, done: "moved", call: func(tube string, v url.Values) call {
		return call{"POST", tubePath(tube, "/move"), texts(numbers(v, "count"), v, "state", "to")}
	}},
	"put-job": {Verb: "Put", on: aTube, fields: []string{"body", "base64", "priority", "delay", "ttr"}, done: "put", call: func(tube string, v url.Values) call {
		body, name := numbers(v, "priority", "delay", "ttr"), "body"
		if v.Get("base64") != "" {
			name = "body_base64"
		}
		body[name] = v.Get("body")
		return call{"POST", tubePath(tube, "/jobs"), body}
	}},
	"kick-job": {Verb: "Kick", on: aJob, done: "kicked", call: func(job string, _ url.Values) call {
		return call{"POST", "/jobs/" + pathEscape(job) + "/kick", nil}
	}},
	"bury-job": {Verb: "Bury", on: aJob, done: "buried", call: func(job string, _ url.Values) call {
		return call{"POST", "/jobs/" + pathEscape(job) + "/bury", nil}
	}},
	"release-job": {Verb: "Release", on: aJob, fields: []string{"priority", "delay"}, done: "released", call: func(job string, v url.Values) call {
		return call{"POST", "/jobs/" + pathEscape(job) + "/release", numbers(v, "priority", "delay")}
	}},
	"delete-job": {Verb: "Delete", on: aJob, danger: true, done: "deleted", call: func(job string, _ url.Values) call {
		return call{"DELETE", "/jobs/" + pathEscape(job), nil}
	}},
	"close-connection": {Verb: "Close", on: aConnection, danger: true, done: "closed", call: func(id string, _ url.Values) call {
		return call{"DELETE", "/connections/" + pathEscape(id), nil}
	}},
	"drain": {Verb: "Drain", on: theServer, done: "draining", call: func(string, url.Values) call {
		return call{"POST", "/drain", nil}
	}},
	"undrain": {Verb: "Take jobs again", on: theServer, done: "taking jobs again", call: func(string, url.Values) call {
		return call{"POST", "/undrain", nil}
	}},
}

// numbers takes fields of a form that are numbers; what is empty is left out, and what is none
// stays as it is, so that the API says so.
func numbers(v url.Values, names ...string) map[string]any {
	body := make(map[string]any)
	for _, name := range names {
		text := strings.TrimSpace(v.Get(name))
		if n, err := strconv.ParseUint(text, 10, 64); err == nil {
			body[name] = n
		} else if text != "" {
			body[name] = text
		}
	}
	return body
}

func texts(body map[string]any, v url.Values, names ...string) map[string]any {
	for _, name := range names {
		if text := strings.TrimSpace(v.Get(name)); text != "" {
			body[name] = text
		}
	}
	return body
}

// targets are what the form names, by what the action is about. There are few, for they come
// from the rows of a page.
func (a *action) targets(v url.Values) []string {
	switch a.on {
	case aTube:
		return v["tube"]
	case aJob:
		return v["job"]
	case aConnection:
		return v["connection"]
	}
	return []string{""}
}

const maxTargets = 500

// parse returns the action that a form is about, with what it is done to.
func parseAction(v url.Values) (a action, targets []string, err error) {
	a, ok := actions[v.Get("do")]
	if !ok {
		return a, nil, &problem{Status: http.StatusBadRequest, Detail: "There is no such action."}
	}
	targets = slices.Compact(slices.Clone(a.targets(v)))
	if len(targets) == 0 {
		return a, nil, &problem{Status: http.StatusBadRequest, Detail: "Nothing is selected: go back and tick the rows."}
	}
	if len(targets) > maxTargets {
		return a, nil, &problem{Status: http.StatusBadRequest, Detail: fmt.Sprintf("At most %d rows at once.", maxTargets)}
	}
	return a, targets, nil
}

// typedAbove is how many jobs must be there for a delete to ask for the name of the tube.
const typedAbove = 1000

// A confirmation is the page that asks for an action.
type confirmation struct {
	action
	Do      string
	Targets []string
	Tube    bool // the targets are tubes
	State   string
	Count   uint64 // of the jobs that it is about, now
	Known   bool   // Count is
	Typed   string // what must be typed; empty: nothing
	Back    string
	Values  url.Values
	Job     *api.Job
}

// Danger reports whether something is lost.
func (c *confirmation) Danger() bool { return c.danger }

// Many reports whether it is about the jobs of a tube.
func (c *confirmation) Many() bool { return c.many }

// Takes reports whether the action takes a field.
func (c *confirmation) Takes(field string) bool { return slices.Contains(c.fields, field) }

// Name is the field of the targets.
func (c *confirmation) Name() string {
	return [...]string{theServer: "server", aTube: "tube", aJob: "job", aConnection: "connection"}[c.on]
}

// Sentence says what will be done, and to how much.
func (c *confirmation) Sentence() string {
	what := c.Name()
	if c.on == theServer {
		if c.Do == "drain" {
			return "Take no new jobs from now on? Puts are answered DRAINING; all else works."
		}
		return "Take new jobs again?"
	}
	subject := fmt.Sprintf("%s %s", what, c.Targets[0])
	if len(c.Targets) > 1 {
		subject = fmt.Sprintf("%d %ss", len(c.Targets), what)
	}
	if !c.many {
		return fmt.Sprintf("%s %s?", c.Verb, subject)
	}
	return fmt.Sprintf("%s the %s jobs of %s?", c.Verb, c.State, subject)
}

// Consequence says what that means.
func (c *confirmation) Consequence() string {
	switch c.Do {
	case "clear-tube", "delete-job":
		return "Deleted jobs cannot be brought back."
	case "kick-tube", "kick-job":
		return "They become ready, and workers may take them at once."
	case "close-connection":
		return "The jobs that it holds become ready again. Its client may connect again."
	case "pause-tube":
		return "No job of it is handed out meanwhile. Jobs can be put."
	case "bury-job":
		return "Nobody gets it until it is kicked. If somebody holds it, it is taken from them."
	case "release-job":
		return "It is taken from whoever holds it, and becomes ready, or delayed."
	}
	return ""
}

// States are those that the action can be about.
func (c *confirmation) States() []string {
	if c.Do == "kick-tube" {
		return []string{"buried", "delayed"}
	}
	return []string{"ready", "delayed", "buried"}
}

func confirmPage(r *request) (*page, error) {
	if err := r.ParseForm(); err != nil {
		return nil, &problem{Status: http.StatusBadRequest, Detail: "The form cannot be read."}
	}
	a, targets, err := parseAction(r.Form)
	if err != nil {
		return nil, err
	}
	if r.console.opt.ReadOnly {
		return nil, errReadOnly
	}
	c := &confirmation{action: a, Do: r.Form.Get("do"), Targets: targets, Tube: a.on == aTube, State: r.Form.Get("state"), Values: r.Form,
		Back: ownPath(r.Form.Get("back"))}
	if c.many && !slices.Contains(c.States(), c.State) {
		c.State = c.States()[0]
		if c.Do == "clear-tube" || c.Do == "move-jobs" {
			c.State = "buried"
		}
		c.Values.Set("state", c.State)
	}
	if c.many {
		c.count(r)
	}
	if c.danger && c.Known && c.Count > typedAbove {
		c.Typed = targets[0]
		if len(targets) > 1 {
			c.Typed = "delete"
		}
	}
	p := newPage("confirm", c.Verb, "", c)
	what := c.call(targets[0], c.Values)
	p.Curl, p.NoLive = curlOf(r.Request, what.method, what.path, emptyAsNil(what.body)), true
	return p, nil
}

func emptyAsNil(body map[string]any) any {
	if len(body) == 0 {
		return nil
	}
	return body
}

// count counts the jobs that the action is about.
func (c *confirmation) count(r *request) {
	c.Known = true
	for _, tube := range c.Targets {
		var t api.Tube
		if r.get(tubePath(tube, ""), &t) != nil {
			c.Known = false
			return
		}
		c.Count += map[string]uint64{"ready": t.Jobs.Ready, "delayed": t.Jobs.Delayed, "buried": t.Jobs.Buried}[c.State]
	}
}

var errReadOnly = &problem{Status: http.StatusForbidden, Detail: "This console only shows (--console-read-only): nothing can be changed here."}

// do does what a form asks for, and leads back to the page that it came from.
func (c *Console) do(w http.ResponseWriter, h *http.Request) {
	r := &request{Request: h, console: c}
	var next string
	_, err := r.page(func(r *request) (*page, error) {
		if c.opt.ReadOnly {
			return nil, errReadOnly
		}
		if err := h.ParseForm(); err != nil {
			return nil, &problem{Status: http.StatusBadRequest, Detail: "The form cannot be read, or is too large: the API takes larger jobs."}
		}
		a, targets, err := parseAction(h.PostForm)
		if err != nil {
			return nil, err
		}
		if typed := h.PostForm.Get("must-type"); typed != "" && h.PostForm.Get("typed") != typed {
			return nil, &problem{Status: http.StatusBadRequest, Detail: fmt.Sprintf("Nothing was deleted: what was typed is not %q.", typed)}
		}
		one := r.perform(&a, targets, h.PostForm)
		next = withNote(backFrom(h), c.notes.add(one))
		return nil, nil
	})
	if err != nil {
		c.show(func(*request) (*page, error) { return nil, err })(w, h)
		return
	}
	http.Redirect(w, h, next, http.StatusSeeOther)
}

// withNote adds a note to the URL of a page.
func withNote(back, word string) string {
	u, err := url.Parse(back)
	if err != nil {
		return Prefix
	}
	v := u.Query()
	v.Set("note", word)
	u.RawQuery = v.Encode()
	return u.String()
}

// perform does an action to each target, and says what came of it.
func (r *request) perform(a *action, targets []string, v url.Values) note {
	var jobs, done uint64
	var last struct {
		ID                     uint64
		Kicked, Deleted, Moved *uint64
	}
	failures := make(map[string]int)
	var first string
	for _, target := range targets {
		what := a.call(target, v)
		last.Kicked, last.Deleted, last.Moved = nil, nil, nil
		err := r.console.api.call(r.Request, what.method, what.path, emptyAsNil(what.body), &last)
		for _, n := range []*uint64{last.Kicked, last.Deleted, last.Moved} {
			if n != nil {
				jobs += *n
			}
		}
		if err == nil {
			done++
			continue
		}
		text := err.Error()
		if p, ok := err.(*problem); ok {
			jobs += p.Done
		}
		if len(failures) == 0 {
			first = text
		}
		failures[text]++
	}
	return a.outcome(v.Get("do"), targets, jobs, done, last.ID, len(failures) > 0, first, uint64(len(targets))-done)
}

// outcome says what came of an action.
func (a *action) outcome(do string, targets []string, jobs, done, id uint64, failed bool, why string, skipped uint64) note {
	var text string
	what := map[subject][2]string{aTube: {"tube", "tubes"}, aJob: {"job", "jobs"}, aConnection: {"connection", "connections"}, theServer: {"server", "servers"}}[a.on]
	switch {
	case a.many:
		text = fmt.Sprintf("%s %s.", plural(jobs, "job", "jobs"), a.done)
	case do == "put-job" && !failed:
		text = fmt.Sprintf("Job %d was put into %s.", id, targets[0])
	case a.on == theServer && !failed:
		text = fmt.Sprintf("The server is %s.", a.done)
	case len(targets) == 1 && !failed:
		text = fmt.Sprintf("%s %s %s.", sentenceCase(what[0]), targets[0], a.done)
	case done > 0:
		text = fmt.Sprintf("%s %s.", plural(done, what[0], what[1]), a.done)
	}
	if !failed {
		return note{Text: text}
	}
	if len(targets) == 1 {
		return note{Text: strings.TrimSpace(text + " " + sentence(why)), Bad: true}
	}
	return note{Text: strings.TrimSpace(fmt.Sprintf("%s %s not: %s", text, plural(skipped, what[0]+" was", what[1]+" were"), sentence(why))), Bad: true}
}

func sentenceCase(text string) string { return strings.TrimSuffix(sentence(text), ".") }
