package api

import "github.com/beanpole-mq/beanpole/internal/rights"

// An operation is something that the API does.
type operation struct {
	id           string // as in openapi.yaml, and in the log
	method, path string // after Prefix
	need         rights.Need
	changes      bool // something: it is written to the log
	brings       bringing
	do           func(*request) (reply, error)
}

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

// operations is the table, a row an operation.
var operations = []operation{
	{"getStats", "GET", "/stats", statsAnywhere, false, little, getStats},
	{"getHistory", "GET", "/history", statsEverywhere, false, little, getHistory},
	{"getAttention", "GET", "/attention", statsAnywhere, false, little, getAttention},
	{"getMe", "GET", "/me", noRight, false, little, getMe},
	{"listChanges", "GET", "/changes", manageEverywhere, false, little, listChanges},

	{"getCluster", "GET", "/cluster", statsAnywhere, false, little, getCluster},
	{"getServer", "GET", "/server", manageEverywhere, false, little, getServer},

	{"listTasks", "GET", "/tasks", manageAnywhere, false, little, listTasks},
	{"getTask", "GET", "/tasks/{task}", manageAnywhere, false, little, getTask},
	{"cancelTask", "DELETE", "/tasks/{task}", manageAnywhere, true, little, cancelTask},

	{"searchAll", "GET", "/search", bodiesAnywhere, false, little, searchAll},
	{"exportAll", "GET", "/export", bodiesAnywhere, false, little, exportAll},
	{"importAll", "POST", "/import", putAnywhere, true, aLotOfJobs, importJobs},

	{"listTubes", "GET", "/tubes", statsAnywhere, false, little, listTubes},
	{"getTube", "GET", "/tubes/{tube}", statsNamed, false, little, getTube},
	{"getTubeHistory", "GET", "/tubes/{tube}/history", statsNamed, false, little, getTubeHistory},
	{"listJobs", "GET", "/tubes/{tube}/jobs", statsNamed, false, little, listJobs},
	{"putJob", "POST", "/tubes/{tube}/jobs", putNamed, true, aJob, putJob},
	{"kickTube", "POST", "/tubes/{tube}/kick", manageNamed, true, little, kickTube},
	{"pauseTube", "POST", "/tubes/{tube}/pause", manageNamed, true, little, pauseTube},
	{"resumeTube", "POST", "/tubes/{tube}/resume", manageNamed, true, little, resumeTube},
	{"clearTube", "POST", "/tubes/{tube}/clear", manageNamed, true, little, clearTube},
	{"moveJobs", "POST", "/tubes/{tube}/move", manageBoth, true, little, moveJobs},
	{"startTask", "POST", "/tubes/{tube}/tasks", manageNamed, true, aList, startTask},
	{"searchTube", "GET", "/tubes/{tube}/search", bodiesNamed, false, little, searchTube},
	{"exportTube", "GET", "/tubes/{tube}/export", bodiesNamed, false, little, exportTube},
	{"importTube", "POST", "/tubes/{tube}/import", putNamed, true, aLotOfJobs, importJobs},

	{"getJob", "GET", "/jobs/{job}", statsOfJob, false, little, getJob},
	{"getBody", "GET", "/jobs/{job}/body", peekOfJob, false, little, getBody},
	{"changeJob", "PATCH", "/jobs/{job}", manageOfJob, true, little, changeJob},
	{"copyJob", "POST", "/jobs/{job}/copy", bodyOfJob, true, little, copyJob},
	{"deleteJob", "DELETE", "/jobs/{job}", deleteOfJob, true, little, deleteJob},
	{"moveJob", "POST", "/jobs/{job}/move", manageOfJob, true, little, moveJob},
	{"kickJob", "POST", "/jobs/{job}/kick", manageOfJob, true, little, kickJob},
	{"buryJob", "POST", "/jobs/{job}/bury", manageOfJob, true, little, buryJob},
	{"releaseJob", "POST", "/jobs/{job}/release", manageOfJob, true, little, releaseJob},

	{"listConnections", "GET", "/connections", statsEverywhere, false, little, listConnections},
	{"getConnection", "GET", "/connections/{connection}", statsEverywhere, false, little, getConnection},
	{"closeConnection", "DELETE", "/connections/{connection}", manageEverywhere, true, little, closeConnection},

	{"drain", "POST", "/drain", manageEverywhere, true, little, drain},
	{"undrain", "POST", "/undrain", manageEverywhere, true, little, undrain},
	{"getJournal", "GET", "/journal", peekEverywhere, false, little, getJournal},
	{"rewriteJournal", "POST", "/journal/rewrite", manageEverywhere, true, little, rewriteJournal},
}
