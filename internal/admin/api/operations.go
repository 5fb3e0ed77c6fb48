package api

import "github.com/beanpole-mq/beanpole/internal/rights"

// An operation is something that the API does.
type operation struct {
	id           string // as in openapi.yaml, and in the log
	method, path string // after Prefix
	need         rights.Need
	changes      bool // something: it is written to the log
	bringsJob    bool // the request has a body as large as a job's
	do           func(*request) (reply, error)
}

var (
	noRight          = rights.Free
	statsAnywhere    = rights.Stats.On(rights.SomeTube)
	statsNamed       = rights.Stats.On(rights.NamedTube)
	statsOfJob       = rights.Stats.On(rights.TubeOfJob)
	statsEverywhere  = rights.Stats.On(rights.EveryTube)
	peekOfJob        = rights.Peek.On(rights.TubeOfJob)
	peekNamed        = rights.Peek.On(rights.NamedTube)
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

// operations is the table, a row an operation.
var operations = []operation{
	{"getStats", "GET", "/stats", statsAnywhere, false, false, getStats},
	{"getHistory", "GET", "/history", statsEverywhere, false, false, getHistory},
	{"getAttention", "GET", "/attention", statsAnywhere, false, false, getAttention},
	{"getMe", "GET", "/me", noRight, false, false, getMe},
	{"listChanges", "GET", "/changes", manageEverywhere, false, false, listChanges},

	{"listTubes", "GET", "/tubes", statsAnywhere, false, false, listTubes},
	{"getTube", "GET", "/tubes/{tube}", statsNamed, false, false, getTube},
	{"getTubeHistory", "GET", "/tubes/{tube}/history", statsNamed, false, false, getTubeHistory},
	{"listJobs", "GET", "/tubes/{tube}/jobs", statsNamed, false, false, listJobs},
	{"putJob", "POST", "/tubes/{tube}/jobs", putNamed, true, true, putJob},
	{"kickTube", "POST", "/tubes/{tube}/kick", manageNamed, true, false, kickTube},
	{"pauseTube", "POST", "/tubes/{tube}/pause", manageNamed, true, false, pauseTube},
	{"resumeTube", "POST", "/tubes/{tube}/resume", manageNamed, true, false, resumeTube},
	{"clearTube", "POST", "/tubes/{tube}/clear", manageNamed, true, false, clearTube},
	{"moveJobs", "POST", "/tubes/{tube}/move", manageBoth, true, false, moveJobs},

	{"getJob", "GET", "/jobs/{job}", statsOfJob, false, false, getJob},
	{"getBody", "GET", "/jobs/{job}/body", peekOfJob, false, false, getBody},
	{"deleteJob", "DELETE", "/jobs/{job}", deleteOfJob, true, false, deleteJob},
	{"kickJob", "POST", "/jobs/{job}/kick", manageOfJob, true, false, kickJob},
	{"buryJob", "POST", "/jobs/{job}/bury", manageOfJob, true, false, buryJob},
	{"releaseJob", "POST", "/jobs/{job}/release", manageOfJob, true, false, releaseJob},

	{"listConnections", "GET", "/connections", statsEverywhere, false, false, listConnections},
	{"getConnection", "GET", "/connections/{connection}", statsEverywhere, false, false, getConnection},
	{"closeConnection", "DELETE", "/connections/{connection}", manageEverywhere, true, false, closeConnection},

	{"drain", "POST", "/drain", manageEverywhere, true, false, drain},
	{"undrain", "POST", "/undrain", manageEverywhere, true, false, undrain},
	{"rewriteJournal", "POST", "/journal/rewrite", manageEverywhere, true, false, rewriteJournal},
}
