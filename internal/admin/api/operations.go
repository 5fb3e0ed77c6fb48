package api

import (
	"net/http"

	"github.com/beanpole-mq/beanpole/internal/rights"
)

// An operation is something that the API does.
type operation struct {
	id           string // as in openapi.yaml, and in the log
	method, path string // after Prefix
	need         rights.Need
	takes        string // the names of its parameters
	brings       bringing
	do           func(*request) (reply, error)
}

// changes reports whether the operation may change something: then it is written to the log.
func (op *operation) changes() bool { return op.method != http.MethodGet }

// bringing is how large the body of a request may be.
type bringing uint8

const (
	little     bringing = iota
	aList               // of ids
	aJob                // with its body
	aLotOfJobs          // as many as one likes: each may be as large as a job
)

var (
	noRight          = rights.Free
	statsAnywhere    = rights.Stats.On(rights.SomeTube)
	statsNamed       = rights.Stats.On(rights.NamedTube)
	statsOfJob       = rights.Stats.On(rights.TubeOfJob)
	statsEverywhere  = rights.Stats.On(rights.EveryTube)
	bodyOfJob        = (rights.Stats | rights.Peek).On(rights.TubeOfJob)
	peekOfJob        = rights.Peek.On(rights.TubeOfJob)
	manageAnywhere   = rights.Manage.On(rights.SomeTube)
	bodiesNamed      = (rights.Stats | rights.Peek).On(rights.NamedTube)
	bodiesAnywhere   = (rights.Stats | rights.Peek).On(rights.SomeTube)
	putAnywhere      = rights.Put.On(rights.SomeTube)
	peekNamed        = rights.Peek.On(rights.NamedTube)
	peekEverywhere   = rights.Peek.On(rights.EveryTube)
	putNamed         = rights.Put.On(rights.NamedTube)
	manageNamed      = rights.Manage.On(rights.NamedTube)
	manageBoth       = rights.Manage.On(rights.TwoTubes)
	manageOfJob      = rights.Manage.On(rights.TubeOfJob)
	deleteOfJob      = (rights.Reserve | rights.Manage).OneOn(rights.TubeOfJob)
	manageEverywhere = rights.Manage.On(rights.EveryTube)
)

// OperationOf returns the id of the operation that a request was, by the pattern that
// it has once it is answered. It is false if that is none.
func OperationOf(pattern string) (id string, ok bool) {
	for i := range operations {
		if op := &operations[i]; op.pattern() == pattern {
			return op.id, true
		}
	}
	return "", false
}

// pattern is that of http.ServeMux.
func (op *operation) pattern() string { return op.method + " " + Prefix + op.path }

// isLocal reports whether the operation is about the server that is asked, also at a member of a cluster that
// does not lead.
func (op *operation) isLocal() bool {
	switch op.path {
	case "/cluster", "/server", "/journal", "/journal/rewrite":
		return true
	}
	return false
}

// operations is the table, a row an operation.
var operations = []operation{
	{"getStats", "GET", "/stats", statsAnywhere, "", little, getStats},
	{"getHistory", "GET", "/history", statsEverywhere, "step points", little, getHistory},
	{"getAttention", "GET", "/attention", statsAnywhere, "limit", little, getAttention},
	{"getMe", "GET", "/me", noRight, "tube", little, getMe},
	{"listChanges", "GET", "/changes", manageEverywhere, "limit", little, listChanges},

	{"getCluster", "GET", "/cluster", statsAnywhere, "", little, getCluster},
	{"getServer", "GET", "/server", manageEverywhere, "", little, getServer},

	{"listTasks", "GET", "/tasks", manageAnywhere, "", little, listTasks},
	{"getTask", "GET", "/tasks/{task}", manageAnywhere, "wait", little, getTask},
	{"cancelTask", "DELETE", "/tasks/{task}", manageAnywhere, "", little, cancelTask},

	{"searchAll", "GET", "/search", bodiesAnywhere, "state text regexp pointer equals cursor limit", little, searchAll},
	{"exportAll", "GET", "/export", bodiesAnywhere, "state text regexp pointer equals", little, exportAll},
	{"importAll", "POST", "/import", putAnywhere, "", aLotOfJobs, importJobs},

	{"listTubes", "GET", "/tubes", statsAnywhere, "sort q has recent cursor limit", little, listTubes},
	{"getTube", "GET", "/tubes/{tube}", statsNamed, "", little, getTube},
	{"getTubeHistory", "GET", "/tubes/{tube}/history", statsNamed, "", little, getTubeHistory},
	{"listJobs", "GET", "/tubes/{tube}/jobs", statsNamed, "state bodies cursor limit", little, listJobs},
	{"putJob", "POST", "/tubes/{tube}/jobs", putNamed, "", aJob, putJob},
	{"kickTube", "POST", "/tubes/{tube}/kick", manageNamed, "", little, kickTube},
	{"pauseTube", "POST", "/tubes/{tube}/pause", manageNamed, "", little, pauseTube},
	{"resumeTube", "POST", "/tubes/{tube}/resume", manageNamed, "", little, resumeTube},
	{"clearTube", "POST", "/tubes/{tube}/clear", manageNamed, "", little, clearTube},
	{"moveJobs", "POST", "/tubes/{tube}/move", manageBoth, "", little, moveJobs},
	{"startTask", "POST", "/tubes/{tube}/tasks", manageNamed, "", aList, startTask},
	{"searchTube", "GET", "/tubes/{tube}/search", bodiesNamed, "state text regexp pointer equals cursor limit", little, searchTube},
	{"exportTube", "GET", "/tubes/{tube}/export", bodiesNamed, "state text regexp pointer equals", little, exportTube},
	{"importTube", "POST", "/tubes/{tube}/import", putNamed, "", aLotOfJobs, importJobs},

	{"getJob", "GET", "/jobs/{job}", statsOfJob, "", little, getJob},
	{"getBody", "GET", "/jobs/{job}/body", peekOfJob, "", little, getBody},
	{"changeJob", "PATCH", "/jobs/{job}", manageOfJob, "", little, changeJob},
	{"copyJob", "POST", "/jobs/{job}/copy", bodyOfJob, "", little, copyJob},
	{"deleteJob", "DELETE", "/jobs/{job}", deleteOfJob, "", little, deleteJob},
	{"moveJob", "POST", "/jobs/{job}/move", manageOfJob, "", little, moveJob},
	{"kickJob", "POST", "/jobs/{job}/kick", manageOfJob, "", little, kickJob},
	{"buryJob", "POST", "/jobs/{job}/bury", manageOfJob, "", little, buryJob},
	{"releaseJob", "POST", "/jobs/{job}/release", manageOfJob, "", little, releaseJob},

	{"listConnections", "GET", "/connections", statsEverywhere, "sort tube q waiting holding cursor limit", little, listConnections},
	{"getConnection", "GET", "/connections/{connection}", statsEverywhere, "", little, getConnection},
	{"closeConnection", "DELETE", "/connections/{connection}", manageEverywhere, "", little, closeConnection},

	{"drain", "POST", "/drain", manageEverywhere, "", little, drain},
	{"undrain", "POST", "/undrain", manageEverywhere, "", little, undrain},
	{"getJournal", "GET", "/journal", peekEverywhere, "", little, getJournal},
	{"rewriteJournal", "POST", "/journal/rewrite", manageEverywhere, "", little, rewriteJournal},
}
