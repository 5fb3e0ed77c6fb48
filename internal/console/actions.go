package console

import (
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/op"
)

// An action is something that changes the queue. A page asks for it first.
type action struct {
	Verb   string // on the button
	on     subject
	Danger bool     // something is lost
	plain  bool     // a beanstalkd can do it
	Many   bool     // on many jobs: it says how many
	fields []string // what it takes, of the form
	done   string   // what has happened, of a number of things
	Asks   string   // the question; empty: the verb with what it is about
	Means  string   // what comes of it
	States []string // of the jobs that it can be about, the first unless another is asked for

	route string            // of the operation
	in    any               // its input, which is never changed
	set   map[string]string // members that it always has
}

// A subject is what an action is about: the field of the form that names it.
type subject string

const (
	theServer   subject = "server"
	aTube       subject = "tube"
	aJob        subject = "job"
	aConnection subject = "connection"
	aTask       subject = "task"
	aMember     subject = "member"
)

const (
	kickMeans    = "They become ready, and workers may take them at once."
	buryMeans    = "Nobody gets them until they are kicked. Who holds one loses it."
	releaseMeans = "They are taken from whoever holds them, and become ready, or delayed."
	changeMeans  = "What is empty stays as it is. A delay begins now; 0 makes the job ready."
	deleteMeans  = "Deleted jobs cannot be brought back."
)

// actions is the table, by the name in forms.
var actions = map[string]action{
	"pause-tube": {Verb: "Pause", plain: true, on: aTube, fields: []string{"seconds"}, done: "paused", route: "POST /tubes/{tube}/pause", in: admin.PauseTube{},
		Means: "No job of it is handed out meanwhile. Jobs can be put."},
	"resume-tube":  {Verb: "Resume", plain: true, on: aTube, done: "resumed", route: "POST /tubes/{tube}/resume", in: admin.OfTube{}},
	"kick-tube":    bulk("Kick", "kicked", "kick", kickMeans, "buried delayed"),
	"bury-jobs":    bulk("Bury", "buried", "bury", buryMeans, "ready delayed reserved"),
	"release-jobs": bulk("Release", "released", "release", releaseMeans, "reserved", "delay"),
	"redrive-jobs": bulk("Redrive", "redriven", "redrive", "They become ready in the tubes that a policy has moved them out of, with as many tries again. Those without an origin stay, unless a tube is named.", "buried", "to"),
	"clear-tube":   bulk("Delete", "deleted", "delete", deleteMeans, "buried ready delayed"),
	"move-jobs":    bulk("Move", "moved", "move", "", "buried ready delayed", "to"),
	"change-jobs":  bulk("Change", "changed", "change", changeMeans, "ready delayed buried", "priority", "delay", "ttr"),
	"put-job":      {Verb: "Put", plain: true, on: aTube, fields: []string{"priority", "delay", "ttr"}, done: "put", route: "POST /tubes/{tube}/jobs", in: admin.PutJob{}},
	"kick-job":     {Verb: "Kick", plain: true, on: aJob, done: "kicked", route: "POST /jobs/{job}/kick", in: admin.OfJob{}, Means: kickMeans},
	"bury-job":     {Verb: "Bury", on: aJob, done: "buried", route: "POST /jobs/{job}/bury", in: admin.BuryJob{}, Means: buryMeans},
	"release-job":  {Verb: "Release", on: aJob, fields: []string{"priority", "delay"}, done: "released", route: "POST /jobs/{job}/release", in: admin.ReleaseJob{}, Means: releaseMeans},
	"delete-job":   {Verb: "Delete", plain: true, on: aJob, Danger: true, done: "deleted", route: "DELETE /jobs/{job}", in: admin.OfJob{}, Means: deleteMeans},
	"change-job":   {Verb: "Change", on: aJob, fields: []string{"priority", "delay", "ttr"}, done: "changed", route: "PATCH /jobs/{job}", in: admin.ChangeJob{}, Means: changeMeans},
	"copy-job": {Verb: "Copy", plain: true, on: aJob, fields: []string{"to", "priority", "delay", "ttr"}, done: "copied", route: "POST /jobs/{job}/copy", in: admin.CopyJob{},
		Means: "This makes a new job with the same body. The other one stays as it is."},
	"move-job":    {Verb: "Move", on: aJob, fields: []string{"to"}, done: "moved", route: "POST /jobs/{job}/move", in: admin.MoveJob{}},
	"cancel-task": {Verb: "Stop", plain: true, on: aTask, done: "stopped", route: "DELETE /tasks/{task}", in: admin.OfTask{}, Means: "What it has done stays done."},
	"close-connection": {Verb: "Close", on: aConnection, Danger: true, done: "closed", route: "DELETE /connections/{connection}", in: admin.OfConnection{},
		Means: "The jobs that it holds become ready again. Its client may connect again."},
	"lead": {Verb: "Let it lead", on: aMember, fields: []string{"member"}, done: "leads", route: "POST /cluster/transfer", in: admin.TransferLead{},
		Means: "Nothing is lost. The connections of all clients end, as with a restart, and they come again. Any member can lead again later."},
	"rewrite-journal": {Verb: "Rewrite", on: theServer, done: "rewriting its journal", route: "POST /journal/rewrite", in: admin.None{}, Asks: "Rewrite the journal, so that it has only what is still there?"},
	"drain":           {Verb: "Drain", on: theServer, done: "draining", route: "POST /drain", in: admin.None{}, Asks: "Take no new jobs from now on? Puts are answered DRAINING; all else works."},
	"undrain":         {Verb: "Take jobs again", on: theServer, done: "taking jobs again", route: "POST /undrain", in: admin.None{}, Asks: "Take new jobs again?"},
}

// bulk returns an action on the jobs of a tube in a state: all, or those whose bodies match.
func bulk(verb, done, do, means, states string, fields ...string) action {
	return action{Verb: verb, on: aTube, Many: true, Danger: do == "delete", plain: do == "delete" || do == "kick", fields: append([]string{"state", "count"}, fields...), done: done,
		Means: means, States: strings.Fields(states), route: "POST /tubes/{tube}/tasks", in: admin.StartTask{}, set: map[string]string{"do": do}}
}

// input returns the input of the operation for a target, as a form has it.
func (a *action) input(target string, v url.Values) (any, error) {
	in := reflect.New(reflect.TypeOf(a.in))
	all := members(v, a.fields...)
	for name, text := range a.set {
		all[name] = quoted(text)
	}
	if a.Many && v.Has("q") {
		all["q"] = quoted(v.Get("q")) // with its blanks
	}
	if _, puts := a.in.(admin.PutJob); puts {
		if v.Get("base64") != "" {
			all["body_base64"] = quoted(v.Get("body"))
		} else {
			all["body"] = quoted(strings.ReplaceAll(v.Get("body"), "\r\n", "\n")) // a browser sends each line of a field with both
		}
	}
	p := op.PlanOf(in.Type().Elem())
	err := p.Path(in.Interface(), func(string) string { return target })
	if err == nil {
		err = p.Members(in.Interface(), all)
	}
	return in.Interface(), wrong(err)
}

// ofWhole are the actions on all jobs of a state for those on single jobs.
var ofWhole = map[string]string{
	"kick-job": "kick-tube", "bury-job": "bury-jobs", "release-job": "release-jobs", "change-job": "change-jobs", "move-job": "move-jobs", "delete-job": "clear-tube",
}

const maxTargets = 500

// parseAction returns the action that a form is about, with what it is done to.
func (s *site) parseAction(v url.Values) (a action, targets []string, err error) {
	a, ok := actions[v.Get("do")]
	if !ok {
		return a, nil, problemf(http.StatusBadRequest, "There is no such action.")
	}
	if !s.Does(v.Get("do")) {
		return a, nil, problemf(http.StatusNotImplemented, "A beanstalkd cannot do that: its protocol has no command for it.")
	}
	if targets = slices.Compact(slices.Clone(v[string(a.on)])); a.on == theServer {
		targets = []string{""}
	}
	if len(targets) == 0 {
		return a, nil, problemf(http.StatusBadRequest, "Nothing is selected: go back and tick the rows.")
	}
	if len(targets) > maxTargets {
		return a, nil, problemf(http.StatusBadRequest, "At most %d rows at once.", maxTargets)
	}
	return a, targets, nil
}

var errReadOnly = problemf(http.StatusForbidden, "This console only shows (--console-read-only, or read-only of the server): nothing can be changed here.")

// isReadOnly reports whether the console changes nothing at the server.
func (r *request) isReadOnly() bool { return r.console.opt.ReadOnly || r.site.isReadOnly() }

// do does what a form asks for, and leads back to the page that it came from.
func do(r *request) (*page, error) {
	form := r.PostForm
	a, targets, err := r.site.parseAction(form)
	if err != nil {
		return nil, err
	}
	var one note
	if typed := form.Get("must-type"); typed != "" && form.Get("typed") != typed {
		one = note{Text: fmt.Sprintf("Nothing was deleted: what was typed is not %q.", typed), Bad: true, Nothing: true}
	} else {
		one = r.perform(&a, targets, form)
	}
	if one.Bad && form.Get("do") == "put-job" {
		p := r.putForm(form, one.Text)
		r.URL, _ = url.Parse(r.tubeLink(form.Get("tube"), "") + "/put") // what a GET shows
		return p, nil
	}
	if old := form.Get("replaces"); old != "" {
		deletes := actions["delete-job"]
		gone := r.perform(&deletes, []string{old}, url.Values{"do": {"delete-job"}})
		one.Text, one.Bad = one.Text+" "+gone.Text, gone.Bad
	}
	if one.Nothing && len(a.fields) > 0 {
		if p, err := confirmPage(r); err == nil { // else the form would not be shown at all
			p.Data.(*confirmation).Problem, p.status = one.Text, http.StatusUnprocessableEntity
			return p, nil
		}
	}
	return r.noting(one, backFrom(r.Request))
}

// noting leads to a page that shows a note.
func (r *request) noting(one note, to string) (*page, error) {
	return nil, elsewhere(withQuery(to, "note", r.console.notes.add(one)))
}

// perform does an action to each target, and says what came of it.
func (r *request) perform(a *action, targets []string, v url.Values) note {
	var sum outcome
	failures := 0
	for _, target := range targets {
		task, id, err := r.call(a, target, v)
		sum.jobs += task.Done
		for _, n := range task.Skipped {
			sum.skipped += n
		}
		if err == nil && a.Many && task.Ended == "" {
			sum.running = append(sum.running, task.ID)
		}
		if err == nil {
			sum.done++
			sum.id = id
			continue
		}
		if failures++; failures == 1 {
			sum.why = inWords(err)
		}
	}
	return a.outcome(v, targets, &sum)
}

// taskPatience is how long a page waits for a task, in seconds, before it says that it goes on.
const taskPatience = 1

// call does an action to a target, and returns the task that it starts, or the id of the job that it puts.
func (r *request) call(a *action, target string, v url.Values) (task admin.Task, id uint64, err error) {
	in, err := a.input(target, v)
	if err != nil {
		return task, 0, err
	}
	var made admin.Inserted
	var out any
	switch in := in.(type) {
	case *admin.StartTask:
		in.Wait, out = taskPatience, &task
	case *admin.PutJob, *admin.CopyJob:
		out = &made
	}
	if err = r.api().Do(r.Context(), a.route, in, out); err == nil && task.Problem != "" {
		err = &admin.Problem{Detail: task.Problem}
	}
	return task, made.ID, err
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
	what := string(a.on)
	failed := sum.why != ""
	switch do := v.Get("do"); {
	case a.Many:
		text = sum.ofJobs(a)
	case do == "put-job" && !failed:
		text = fmt.Sprintf("Job %d was put into %s.", sum.id, targets[0])
	case do == "copy-job" && len(targets) == 1 && !failed:
		text = fmt.Sprintf("Job %d is a copy of job %s, in %s.", sum.id, targets[0], v.Get("to"))
	case a.on == theServer && !failed:
		text = fmt.Sprintf("The server is %s.", a.done)
	case len(targets) == 1 && !failed:
		text = fmt.Sprintf("%s %s %s.", sentenceCase(what), targets[0], a.done)
	case sum.done > 0:
		text = fmt.Sprintf("%s %s.", plural(sum.done, what, what+"s"), a.done)
	}
	if !failed {
		return note{Text: text, Tasks: sum.running, Job: sum.id}
	}
	if sum.done == 0 && sum.jobs == 0 {
		return note{Text: sum.why, Bad: true, Nothing: true}
	}
	why := sum.why
	if len(targets) > 1 {
		why = fmt.Sprintf("%s not: %s", plural(uint64(len(targets))-sum.done, what+" was", what+"s were"), why)
	}
	return note{Text: strings.TrimSpace(text + " " + why), Bad: true}
}

// ofJobs says what came of an action on many jobs.
func (sum *outcome) ofJobs(a *action) string {
	if len(sum.running) > 0 {
		return "It goes on also when you leave this page."
	}
	text := fmt.Sprintf("%s %s", plural(sum.jobs, "job", "jobs"), a.done)
	if sum.skipped > 0 {
		text += fmt.Sprintf(", %s left out, for they had changed", numOf(sum.skipped))
	}
	return text + "."
}

func sentenceCase(text string) string { return strings.TrimSuffix(sentence(text), ".") }
