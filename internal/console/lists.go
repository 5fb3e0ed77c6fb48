package console

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/beanpole-mq/beanpole/internal/admin/api"
)

// A connectionsView is the page of the connections.
type connectionsView struct {
	Tube, Q string
	Only    string // waiting, holding, or nothing
	Rows    []api.Connection
	Next    string
	First   string
}

func connectionsPage(r *request) (*page, error) {
	v := &connectionsView{Tube: r.FormValue("tube"), Q: r.FormValue("q"), Only: r.FormValue("only")}
	waiting, holding := "", ""
	switch v.Only {
	case "waiting":
		waiting = "true"
	case "holding":
		holding = "true"
	default:
		v.Only = ""
	}
	path := withQuery("/connections", "tube", v.Tube, "q", v.Q, "waiting", waiting, "holding", holding, "cursor", r.FormValue("cursor"))
	var found api.Connections
	if err := r.get(path, &found); err != nil {
		return nil, err
	}
	v.Rows = found.Connections
	if found.Next != "" {
		v.Next = withQuery(Prefix+"connections", "tube", v.Tube, "q", v.Q, "only", v.Only, "cursor", found.Next)
	}
	if r.FormValue("cursor") != "" {
		v.First = withQuery(Prefix+"connections", "tube", v.Tube, "q", v.Q, "only", v.Only)
	}
	p := newPage("connections", "Connections", "connections", v)
	p.Curl = curlOf(r.Request, "GET", path, nil)
	return p, nil
}

// A connectionView is the page of a connection.
type connectionView struct {
	api.Connection
	Gone bool
}

func connectionPage(r *request) (*page, error) {
	id := r.PathValue("connection")
	v := &connectionView{}
	err := r.get("/connections/"+pathEscape(id), &v.Connection)
	if err != nil && !isStatus(err, http.StatusNotFound) {
		return nil, err
	}
	p := newPage("connection", "Connection "+id, "connections", v)
	p.Curl = curlOf(r.Request, "GET", "/connections/"+id, nil)
	if err != nil {
		v.Gone, p.status = true, http.StatusNotFound
	}
	return p, nil
}

// An activityView is the page of what was done, and of what goes on.
type activityView struct {
	Tasks    []taskRow
	Changes  []api.Change
	MayAudit bool // the user may see the changes
}

// A taskRow is a task with what is shown of it.
type taskRow struct {
	api.Task
	Running bool
	Bar     string // the path of how far it is
}

const taskBar = 120 // px

// What says in words what a task is about.
func (t *taskRow) What() string {
	text := sentenceCase(t.Do)
	switch {
	case t.State == "":
		text += " chosen jobs"
	case t.Search:
		text += " " + t.State + " jobs that match"
	default:
		text += " " + t.State + " jobs"
	}
	if t.To != "" {
		return text + " to " + t.To
	}
	return text
}

// Far says how far a task is.
func (t *taskRow) Far() string {
	if t.Status == "looking" {
		return num(whole(t.Found)) + " found of " + num(whole(t.Looked)) + " looked at"
	}
	return num(whole(t.Done)) + " of " + num(whole(t.Found))
}

func newTaskRow(t api.Task) taskRow {
	part := 0.0
	if t.Found > 0 && t.Status != "looking" {
		var skipped uint64
		for _, n := range t.Skipped {
			skipped += n
		}
		part = float64(t.Done+skipped) / float64(t.Found)
	}
	return taskRow{t, t.Ended == "", fmt.Sprintf("M0 3H%.1f", taskBar*part)}
}

// activityPage shows the tasks, and the last changes.
func activityPage(r *request) (*page, error) {
	v := new(activityView)
	var tasks api.Tasks
	var changes api.Changes
	audit := r.get("/changes?limit=200", &changes)
	running := r.get("/tasks", &tasks)
	if running != nil && audit != nil {
		return nil, audit
	}
	if err := errors.Join(noRight(audit), noRight(running)); err != nil {
		return nil, err
	}
	v.MayAudit, v.Changes = audit == nil, changes.Changes
	for _, t := range tasks.Tasks {
		v.Tasks = append(v.Tasks, newTaskRow(t))
	}
	p := newPage("activity", "Activity", "activity", v)
	p.Curl = curlOf(r.Request, "GET", "/tasks", nil)
	return p, nil
}

// A serverView is the page of the server.
type serverView struct {
	api.Stats
	Facts *api.ServerFacts // nil: the user may not see them
}

// Filled says how much of their limit the jobs take.
func (v *serverView) Filled() string {
	m := v.Facts.Memory
	if m.Limit == 0 {
		return byteSize(m.Jobs) + ", without a limit"
	}
	return fmt.Sprintf("%s of %s, %d %%", byteSize(m.Jobs), byteSize(m.Limit), m.Jobs*100/m.Limit)
}

// serverPage shows what the server counts, and what it is.
func serverPage(r *request) (*page, error) {
	v := new(serverView)
	var facts api.ServerFacts
	if err := r.get("/stats", &v.Stats); err != nil {
		return nil, err
	}
	switch err := r.get("/server", &facts); {
	case err == nil:
		v.Facts = &facts
	case noRight(err) != nil:
		return nil, err
	}
	p := newPage("server", "Server", "server", v)
	p.Server = &v.Stats
	p.Curl = curlOf(r.Request, "GET", "/server", nil)
	return p, nil
}
