package console

import (
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

// activityPage shows the last changes.
func activityPage(r *request) (*page, error) {
	var found api.Changes
	if err := r.get("/changes?limit=200", &found); err != nil {
		return nil, err
	}
	p := newPage("activity", "Activity", "activity", &found)
	p.Curl = curlOf(r.Request, "GET", "/changes", nil)
	return p, nil
}

// serverPage shows what the server counts, and what it is.
func serverPage(r *request) (*page, error) {
	var st api.Stats
	if err := r.get("/stats", &st); err != nil {
		return nil, err
	}
	p := newPage("server", "Server", "server", &st)
	p.Server = &st
	p.Curl = curlOf(r.Request, "GET", "/stats", nil)
	return p, nil
}
