package console

import (
	"fmt"
	"maps"
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
	plain  bool     // a beanstalkd can do it
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
	aTask
)

// A call is a request to the API.
type call struct {
	method, path string
	body         map[string]any
}

// actions is the table, by the name in forms.
var actions = map[string]action{
	"pause-tube": {Verb: "Pause", plain: true, on: aTube, fields: []string{"seconds"}, done: "paused", call: func(tube string, v url.Values) call {
		return call{"POST", tubePath(tube, "/pause"), numbers(v, "seconds")}
	}},
	"resume-tube": {Verb: "Resume", plain: true, on: aTube, done: "resumed", call: func(tube string, _ url.Values) call {
		return call{"POST", tubePath(tube, "/resume"), nil}
	}},
	"kick-tube":    bulk("Kick", "kicked", "kick"),
	"bury-jobs":    bulk("Bury", "buried", "bury"),
	"release-jobs": bulk("Release", "released", "release", "delay"),
	"clear-tube":   bulk("Delete", "deleted", "delete"),
	"move-jobs":    bulk("Move", "moved", "move", "to"),
	"change-jobs":  bulk("Change", "changed", "change", "priority", "delay", "ttr"),
	"put-job": {Verb: "Put", plain: true, on: aTube, fields: []string{"body", "base64", "priority", "delay", "ttr"}, done: "put", call: func(tube string, v url.Values) call {
		body := numbers(v, "priority", "delay", "ttr")
		if v.Get("base64") != "" {
			body["body_base64"] = v.Get("body")
		} else {
			body["body"] = strings.ReplaceAll(v.Get("body"), "\r\n", "\n") // a browser sends each line of a field with both
		}
		return call{"POST", tubePath(tube, "/jobs"), body}
	}},
	"kick-job": {Verb: "Kick", plain: true, on: aJob, done: "kicked", call: func(job string, _ url.Values) call {
		return call{"POST", "/jobs/" + pathEscape(job) + "/kick", nil}
	}},
	"bury-job": {Verb: "Bury", on: aJob, done: "buried", call: func(job string, _ url.Values) call {
		return call{"POST", "/jobs/" + pathEscape(job) + "/bury", nil}
	}},
	"release-job": {Verb: "Release", on: aJob, fields: []string{"priority", "delay"}, done: "released", call: func(job string, v url.Values) call {
		return call{"POST", "/jobs/" + pathEscape(job) + "/release", numbers(v, "priority", "delay")}
	}},
	"delete-job": {Verb: "Delete", plain: true, on: aJob, danger: true, done: "deleted", call: func(job string, _ url.Values) call {
		return call{"DELETE", "/jobs/" + pathEscape(job), nil}
	}},
	"change-job": {Verb: "Change", on: aJob, fields: []string{"priority", "delay", "ttr"}, done: "changed", call: func(job string, v url.Values) call {
		return call{"PATCH", "/jobs/" + pathEscape(job), numbers(v, "priority", "delay", "ttr")}
	}},
	"copy-job": {Verb: "Copy", plain: true, on: aJob, fields: []string{"to", "priority", "delay", "ttr"}, done: "copied", call: func(job string, v url.Values) call {
		return call{"POST", "/jobs/" + pathEscape(job) + "/copy", texts(numbers(v, "priority", "delay", "ttr"), v, "to")}
	}},
	"move-job": {Verb: "Move", on: aJob, fields: []string{"to"}, done: "moved", call: func(job string, v url.Values) call {
		return call{"POST", "/jobs/" + pathEscape(job) + "/move", texts(make(map[string]any), v, "to")}
	}},
	"cancel-task": {Verb: "Stop", plain: true, on: aTask, done: "stopped", call: func(id string, _ url.Values) call {
		return call{"DELETE", "/tasks/" + pathEscape(id), nil}
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

// searchFields are those of a search, as the API has them.
var searchFields = []string{"text", "regexp", "pointer", "equals"}

// bulk returns an action on the jobs of a tube in a state: all, or those whose bodies match.
func bulk(verb, done, do string, fields ...string) action {
	return action{Verb: verb, on: aTube, many: true, danger: do == "delete", plain: do == "delete" || do == "kick", fields: append([]string{"state", "count"}, fields...), done: done,
		call: func(tube string, v url.Values) call {
			body := texts(numbers(v, "count"), v, "state")
			body["do"] = do
			for _, name := range fields {
				if name == "to" {
					texts(body, v, name)
				} else {
					maps.Copy(body, numbers(v, name))
				}
			}
			for _, name := range searchFields {
				if v.Has(name) {
					body[name] = v.Get(name) // with its blanks
				}
			}
			return call{"POST", tubePath(tube, "/tasks"), body}
		}}
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
	case aTask:
		return v["task"]
	}
	return []string{""}
}

const maxTargets = 500

// parseAction returns the action that a form is about, with what it is done to.
func (s *site) parseAction(v url.Values) (a action, targets []string, err error) {
	a, ok := actions[v.Get("do")]
	if !ok {
		return a, nil, &problem{Status: http.StatusBadRequest, Detail: "There is no such action."}
	}
	if !s.does(v.Get("do")) {
		return a, nil, &problem{Status: http.StatusNotImplemented, Detail: "A beanstalkd cannot do that: its protocol has no command for it."}
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

var errReadOnly = &problem{Status: http.StatusForbidden, Detail: "This console only shows (--console-read-only, or read-only of the server): nothing can be changed here."}

// isReadOnly reports whether the console changes nothing at the server.
func (r *request) isReadOnly() bool { return r.console.opt.ReadOnly || r.site.isReadOnly() }

// do does what a form asks for, and leads back to the page that it came from.
func (c *Console) do(w http.ResponseWriter, h *http.Request) {
	r := c.newRequest(h)
	var next string
	again, err := r.page(func(r *request) (*page, error) {
		if r.isReadOnly() {
			return nil, errReadOnly
		}
		if err := h.ParseForm(); err != nil {
			return nil, &problem{Status: http.StatusBadRequest, Detail: "The form cannot be read, or is too large: the API takes larger jobs."}
		}
		a, targets, err := r.site.parseAction(h.PostForm)
		if err != nil {
			return nil, err
		}
		if typed := h.PostForm.Get("must-type"); typed != "" && h.PostForm.Get("typed") != typed {
			return nil, &problem{Status: http.StatusBadRequest, Detail: fmt.Sprintf("Nothing was deleted: what was typed is not %q.", typed)}
		}
		one := r.perform(&a, targets, h.PostForm)
		if one.Bad && h.PostForm.Get("do") == "put-job" {
			return putAgain(r, h.PostForm, one.Text), nil
		}
		next = withNote(backFrom(h), c.notes.add(one))
		return nil, nil
	})
	if err != nil {
		c.show(func(*request) (*page, error) { return nil, err })(w, h)
		return
	}
	if again != nil {
		own := r.with(r.Context())
		own.URL, _ = url.Parse(r.tubeLink(h.PostForm.Get("tube"), "") + "/put") // what a GET shows
		c.write(w, own, again)
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
	var sum outcome
	failures := 0
	for _, target := range targets {
		what := a.call(target, v)
		var last answered
		err := r.site.call(r.Request, what.method, what.path, emptyAsNil(what.body), &last)
		if err == nil && a.many {
			err = r.wait(&last.Task)
			sum.jobs += last.Done
			for _, n := range last.Skipped {
				sum.skipped += n
			}
			if err == nil && last.Ended == "" {
				sum.running = append(sum.running, last.Task.ID)
			}
		}
		if err == nil {
			sum.done++
			sum.id = last.Task.ID
			continue
		}
		if failures++; failures == 1 {
			sum.why = err.Error()
		}
	}
	return a.outcome(v, targets, &sum)
}

// An answered is what the API answers to an action: a task, or the id of a job.
type answered struct{ api.Task }

// taskPatience is how long a page waits for a task, in seconds, before it says that it goes on.
const taskPatience = "2"

// wait waits until a task has ended, but not for long.
func (r *request) wait(t *api.Task) error {
	if err := r.get(withQuery("/tasks/"+strconv.FormatUint(t.ID, 10), "wait", taskPatience), t); err != nil {
		return err
	}
	if t.Problem != "" {
		return &problem{Detail: t.Problem}
	}
	return nil
}

// An outcome is what came of an action.
type outcome struct {
	done    uint64 // targets
	jobs    uint64
	skipped uint64 // jobs that had changed
	running []uint64
	id      uint64
	why     string // the first failure; empty: none
}

// outcome says what came of an action.
func (a *action) outcome(v url.Values, targets []string, sum *outcome) note {
	var text string
	what := map[subject][2]string{aTube: {"tube", "tubes"}, aJob: {"job", "jobs"}, aConnection: {"connection", "connections"}, theServer: {"server", "servers"}, aTask: {"task", "tasks"}}[a.on]
	failed := sum.why != ""
	switch do := v.Get("do"); {
	case a.many:
		text = sum.ofJobs(a)
	case do == "put-job" && !failed:
		text = fmt.Sprintf("Job %d was put into %s.", sum.id, targets[0])
	case do == "copy-job" && len(targets) == 1 && !failed:
		text = fmt.Sprintf("Job %d is a copy of job %s, in %s.", sum.id, targets[0], v.Get("to"))
	case a.on == theServer && !failed:
		text = fmt.Sprintf("The server is %s.", a.done)
	case len(targets) == 1 && !failed:
		text = fmt.Sprintf("%s %s %s.", sentenceCase(what[0]), targets[0], a.done)
	case sum.done > 0:
		text = fmt.Sprintf("%s %s.", plural(sum.done, what[0], what[1]), a.done)
	}
	if !failed {
		return note{Text: text, Tasks: sum.running}
	}
	if len(targets) == 1 {
		return note{Text: strings.TrimSpace(text + " " + sentence(sum.why)), Bad: true}
	}
	left := uint64(len(targets)) - sum.done
	return note{Text: strings.TrimSpace(fmt.Sprintf("%s %s not: %s", text, plural(left, what[0]+" was", what[1]+" were"), sentence(sum.why))), Bad: true}
}

// ofJobs says what came of an action on many jobs.
func (sum *outcome) ofJobs(a *action) string {
	text := fmt.Sprintf("%s %s", plural(sum.jobs, "job", "jobs"), a.done)
	if sum.skipped > 0 {
		text += fmt.Sprintf(", %s left out, for they had changed", numOf(sum.skipped))
	}
	if len(sum.running) > 0 {
		return text + " so far; it goes on."
	}
	return text + "."
}

func sentenceCase(text string) string { return strings.TrimSuffix(sentence(text), ".") }
