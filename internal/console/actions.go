package console

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/op"
)

// An action changes the queue, after a page has asked for confirmation.
type action struct {
	Verb   string // label of the button
	on     subject
	Danger bool     // whether it loses data
	Many   bool     // whether it acts on the jobs of a tube in a state
	fields []string // fields of its form
	done   string   // result, for the note
	Asks   string   // the question; the default consists of the verb and the subject
	Means  string   // the effect
	States []string // allowed states of the jobs; the first with jobs is the default

	route string            // route of the operation
	in    any               // its input, which is never changed
	set   map[string]string // members that always have the same value
}

// A subject is the kind of object that an action changes. It is also the name of the form
// field with the objects.
type subject string

const (
	theServer   subject = "server"
	aTube       subject = "tube"
	aJob        subject = "job"
	aConnection subject = "connection"
	aTask       subject = "task"
	aMember     subject = "member"
	aSchedule   subject = "schedule"
)

const (
	kickMeans    = "Kicked jobs become ready at once."
	buryMeans    = "Workers cannot reserve buried jobs until someone kicks them. A worker that holds such a job loses it."
	releaseMeans = "Released jobs are taken from their workers."
	changeMeans  = "Empty fields stay unchanged. A new delay starts now; 0 makes jobs ready."
	deleteMeans  = "Deleted jobs cannot be restored."
	redriveMeans = "Jobs return to the tube where they failed, with all their attempts again."
)

// actions is the table of actions, by their names in forms.
var actions = map[string]action{
	"pause-tube": {Verb: "Pause", on: aTube, fields: []string{"seconds"}, done: "paused", route: "POST /tubes/{tube}/pause", in: admin.PauseTube{},
		Means: "Workers get no jobs until then. New jobs are still accepted."},
	"resume-tube":  {Verb: "Resume", on: aTube, done: "resumed", route: "POST /tubes/{tube}/resume", in: admin.OfTube{}},
	"kick-tube":    bulk("Kick", "kicked", "kick", kickMeans, "buried delayed"),
	"bury-jobs":    bulk("Bury", "buried", "bury", buryMeans, "ready delayed reserved"),
	"release-jobs": bulk("Release", "released", "release", releaseMeans, "reserved", "delay"),
	"redrive-jobs": bulk("Redrive", "redriven", "redrive", redriveMeans+" Jobs without an origin stay, unless you name a tube.", "buried ready", "to"),
	"clear-tube":   bulk("Delete", "deleted", "delete", deleteMeans, "buried ready delayed"),
	"move-jobs":    bulk("Move", "moved", "move", "", "buried ready delayed", "to"),
	"change-jobs":  bulk("Change", "changed", "change", changeMeans, "ready delayed buried", "priority", "delay", "ttr"),
	"put-job":      {Verb: "Put", on: aTube, fields: []string{"priority", "delay", "ttr"}, done: "has a new job", route: "POST /tubes/{tube}/jobs", in: admin.PutJob{}},
	"kick-job":     {Verb: "Kick", on: aJob, done: "kicked", route: "POST /jobs/{job}/kick", in: admin.OfJob{}, Means: kickMeans},
	"bury-job":     {Verb: "Bury", on: aJob, done: "buried", route: "POST /jobs/{job}/bury", in: admin.BuryJob{}, Means: buryMeans},
	"release-job":  {Verb: "Release", on: aJob, fields: []string{"priority", "delay"}, done: "released", route: "POST /jobs/{job}/release", in: admin.ReleaseJob{}, Means: releaseMeans},
	"redrive-job":  {Verb: "Redrive", on: aJob, done: "redriven", route: "POST /jobs/{job}/redrive", in: admin.OfJob{}, Means: redriveMeans},
	"delete-job":   {Verb: "Delete", on: aJob, Danger: true, done: "deleted", route: "DELETE /jobs/{job}", in: admin.OfJob{}, Means: deleteMeans},
	"change-job":   {Verb: "Change", on: aJob, fields: []string{"priority", "delay", "ttr"}, done: "changed", route: "PATCH /jobs/{job}", in: admin.ChangeJob{}, Means: changeMeans},
	"copy-job": {Verb: "Copy", on: aJob, fields: []string{"to", "priority", "delay", "ttr"}, done: "copied", route: "POST /jobs/{job}/copy", in: admin.CopyJob{},
		Means: "This creates a new job with the same body. The original stays unchanged."},
	"move-job":    {Verb: "Move", on: aJob, fields: []string{"to"}, done: "moved", route: "POST /jobs/{job}/move", in: admin.MoveJob{}},
	"cancel-task": {Verb: "Stop", on: aTask, done: "stopped", route: "DELETE /tasks/{task}", in: admin.OfTask{}, Means: "The changes that it has made remain."},
	"close-connection": {Verb: "Close", on: aConnection, Danger: true, done: "closed", route: "DELETE /connections/{connection}", in: admin.OfConnection{},
		Means: "Held jobs become ready again. Clients can reconnect."},
	"run-schedule": {Verb: "Run", on: aSchedule, done: "has put its job", route: "POST /schedules/{schedule}/run", in: admin.OfSchedule{},
		Means: "This puts its job now. The other runs stay unchanged."},
	"pause-schedule":  {Verb: "Pause", on: aSchedule, done: "paused", route: "POST /schedules/{schedule}/pause", in: admin.OfSchedule{}, Means: "It puts no jobs until you resume it."},
	"resume-schedule": {Verb: "Resume", on: aSchedule, done: "resumed", route: "POST /schedules/{schedule}/resume", in: admin.OfSchedule{}, Means: "Runs during the pause do not count as missed."},
	"remove-schedule": {Verb: "Remove", on: aSchedule, Danger: true, done: "removed", route: "DELETE /schedules/{schedule}", in: admin.OfSchedule{}, Means: "Its jobs remain."},
	"lead": {Verb: "Transfer", on: aMember, fields: []string{"member"}, done: "leads", route: "POST /cluster/transfer", in: admin.TransferLead{},
		Means: "Clients normally keep their connections and jobs."},
	"rewrite-journal": {Verb: "Rewrite", on: theServer, done: "is rewriting its journal", route: "POST /journal/rewrite", in: admin.None{}, Asks: "Rewrite the journal?",
		Means: "This reclaims disk space. The server keeps running."},
	"drain": {Verb: "Drain", on: theServer, done: "is draining", route: "POST /drain", in: admin.None{}, Asks: "Drain the server?",
		Means: "The server rejects new jobs with DRAINING. All other commands work."},
	"undrain": {Verb: "Accept jobs", on: theServer, done: "is accepting jobs again", route: "POST /undrain", in: admin.None{}, Asks: "Accept new jobs again?"},
}

// bulk returns an action on the jobs of a tube in a state: all, or only those that match
// a search.
func bulk(verb, done, do, means, states string, fields ...string) action {
	return action{Verb: verb, on: aTube, Many: true, Danger: do == "delete", fields: append([]string{"state", "count"}, fields...), done: done,
		Means: means, States: strings.Fields(states), route: "POST /tubes/{tube}/tasks", in: admin.StartTask{}, set: map[string]string{"do": do}}
}

// input returns the operation's input for a target, from the values of a form.
func (a *action) input(target string, v url.Values) (any, error) {
	in := reflect.New(reflect.TypeOf(a.in))
	all := members(v, a.fields...)
	for name, text := range a.set {
		all[name] = quoted(text)
	}
	if a.Many && v.Has("q") {
		all["q"] = quoted(v.Get("q")) // preserves its spaces
	}
	if _, puts := a.in.(admin.PutJob); puts {
		if v.Get("base64") != "" {
			all["body_base64"] = quoted(v.Get("body"))
		} else {
			all["body"] = quoted(strings.ReplaceAll(v.Get("body"), "\r\n", "\n")) // browsers end lines with CR LF
		}
	}
	p := op.PlanOf(in.Type().Elem())
	err := p.Path(in.Interface(), func(string) string { return target })
	if err == nil {
		err = p.Members(in.Interface(), all)
	}
	return in.Interface(), wrong(err)
}

// ofWhole maps an action on single jobs to the same action on all jobs in a state.
var ofWhole = map[string]string{
	"kick-job": "kick-tube", "bury-job": "bury-jobs", "release-job": "release-jobs", "redrive-job": "redrive-jobs", "change-job": "change-jobs", "move-job": "move-jobs", "delete-job": "clear-tube",
}

const maxTargets = 500

// parseAction returns the action of a form, and its targets.
func (s *site) parseAction(v url.Values) (a action, targets []string, err error) {
	a, ok := actions[v.Get("do")]
	if !ok {
		return a, nil, problemf(http.StatusBadRequest, "Unknown action.")
	}
	if targets = slices.Compact(slices.Clone(v[string(a.on)])); a.on == theServer {
		targets = []string{""}
	}
	if len(targets) == 0 {
		return a, nil, problemf(http.StatusBadRequest, "No row is selected. Go back and select rows.")
	}
	if len(targets) > maxTargets {
		return a, nil, problemf(http.StatusBadRequest, "Select at most %d rows at once.", maxTargets)
	}
	return a, targets, nil
}

var errReadOnly = problemf(http.StatusForbidden, "This console is read-only (--console-read-only, or read-only for this server).")

// isReadOnly reports whether the console must not change the server.
func (r *request) isReadOnly() bool { return r.console.opt.ReadOnly || r.site.isReadOnly() }

// do runs the action of a form, and redirects to the page that sent the form.
func do(r *request) (*page, error) {
	form := r.PostForm
	a, targets, err := r.site.parseAction(form)
	if err != nil {
		return nil, err
	}
	var one note
	if typed := form.Get("must-type"); typed != "" && form.Get("typed") != typed {
		one = note{Text: fmt.Sprintf("Not deleted. To confirm, type %q.", typed), Bad: true, Nothing: true}
	} else {
		one = r.perform(&a, targets, form)
	}
	if one.Bad && form.Get("do") == "put-job" {
		p := r.putForm(form, one.Text)
		r.URL, _ = url.Parse(r.tubeLink(form.Get("tube"), "") + "/put") // the page that GET returns
		return p, nil
	}
	if one.Nothing {
		if p, err := confirmPage(r); err == nil { // otherwise, the target no longer exists, and the note has the reason
			p.Data.(*confirmation).Problem, p.status = one.Text, http.StatusUnprocessableEntity
			return p, nil
		}
	}
	return r.noting(one, backFrom(r.Request))
}

// noting redirects to a page that shows a note.
func (r *request) noting(one note, to string) (*page, error) {
	return nil, redirect(withQuery(to, "note", r.console.notes.add(one)))
}

// perform runs an action on each target, and returns a note about the outcome.
func (r *request) perform(a *action, targets []string, v url.Values) note {
	var sum outcome
	failures := 0
	for _, target := range targets {
		task, id, err := r.call(a, target, v)
		sum.jobs += task.Done
		for why, n := range task.Skipped {
			if sum.skipped == nil {
				sum.skipped = make(map[string]uint64)
			}
			sum.skipped[why] += n
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

// taskPatience is the number of seconds that a page waits for a task to end.
const taskPatience = 1

// call runs an action on a target. It returns the task that the action has started, or
// the id of the job that it has put.
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

// An outcome is the combined result of an action on its targets.
type outcome struct {
	done    uint64            // number of targets
	jobs    uint64            // number of jobs changed by tasks
	skipped map[string]uint64 // number of jobs that tasks have skipped, by reason
	running []uint64          // ids of tasks
	id      uint64            // id of the job that was put
	why     string            // the first error; empty if there is none
}

// outcome returns the note about an action.
func (a *action) outcome(v url.Values, targets []string, sum *outcome) note {
	name := string(a.on)
	what := plural(sum.done, name, name+"s")
	if len(targets) == 1 {
		what = name + " " + targets[0]
	}
	one := note{Tasks: sum.running, Job: sum.id}
	switch {
	case a.Many:
		one.Text = sum.ofJobs(a)
	case sum.done > 0:
		one.Text = sentence(strings.TrimSpace(what) + " " + a.done + pausedUntil(v.Get("seconds")))
	}
	switch {
	case sum.why == "":
		return one
	case sum.done == 0 && sum.jobs == 0:
		return note{Text: sum.why, Bad: true, Nothing: true}
	}
	return note{Text: fmt.Sprintf("%s %s failed: %s", one.Text, plural(uint64(len(targets))-sum.done, name, name+"s"), sum.why), Bad: true}
}

// ofJobs returns the text about an action on many jobs.
func (sum *outcome) ofJobs(a *action) string {
	if len(sum.running) > 0 {
		return "You can leave this page; the task keeps running."
	}
	text := fmt.Sprintf("%s %s", plural(sum.jobs, "job", "jobs"), a.done)
	for _, why := range slices.Sorted(maps.Keys(sum.skipped)) {
		text += fmt.Sprintf(", %s left out (%s)", numOf(sum.skipped[why]), why)
	}
	return text + "."
}

func sentenceCase(text string) string { return strings.TrimSuffix(sentence(text), ".") }
