package api

import (
	"net/http"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/op"
	"github.com/beanpole-mq/beanpole/internal/rights"
)

// A row describes an operation. Package client/admin has its types and its documentation.
type row struct {
	ID       string // name in the log, and name of the client's method
	Route    string // method, and path after Prefix
	Tag      string
	Needs    rights.Need
	Success  string
	Status   int    // status of success; 0 means 200, or 204 without a result
	Problems []int  // statuses that a client must expect
	Location string // start of the path of the created object, before its id
	Type     string // content type of a stream or of bytes; empty for JSON
	Local    bool   // about this server, even if it is a member that is not the leader
}

// An operation is an operation of the API.
type operation struct {
	row
	method, path string
	plan         *op.Plan
	in, out      reflect.Type
	do           func(r *request, in any) (any, error) // in points to the input
}

// declare returns the operation that do performs. The types of do are the operation's
// types.
func declare[In, Out any](row row, do func(*request, *In) (Out, error)) *operation {
	o := &operation{row: row, in: reflect.TypeFor[In](), out: reflect.TypeFor[Out](), do: func(r *request, in any) (any, error) {
		return do(r, in.(*In))
	}}
	o.method, o.path, _ = strings.Cut(row.Route, " ")
	o.plan = op.PlanOf(o.in)
	if o.Status == 0 {
		o.Status = http.StatusOK
		if o.out == reflect.TypeFor[admin.None]() {
			o.Status = http.StatusNoContent
		}
	}
	return o
}

// changes reports whether the operation can make changes. The server logs such
// operations.
func (o *operation) changes() bool { return o.method != http.MethodGet }

// limited returns the time that the operation waits on request. ok reports whether the
// operation ends soon after that; the time of a stream depends on the number of jobs.
func (o *operation) limited(in any) (wait time.Duration, ok bool) {
	if f := o.plan.Field("wait"); f != nil {
		wait = time.Duration(f.Of(in).Int()) * time.Second
	}
	return wait, o.out != reflect.TypeFor[*admin.Stream]() && !o.plan.Streams()
}

// pattern returns the pattern for http.ServeMux.
func (o *operation) pattern() string { return o.method + " " + Prefix + o.path }

// byRoute contains the operations by route and by pattern.
var byRoute = sync.OnceValue(func() map[string]*operation {
	all := make(map[string]*operation)
	for _, o := range operations() {
		all[o.Route], all[o.pattern()] = o, o
	}
	return all
})

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
	manageOfJob      = rights.Manage.On(rights.TubeOfJob)
	deleteOfJob      = (rights.Reserve | rights.Manage).AnyOn(rights.TubeOfJob)
	manageEverywhere = rights.Manage.On(rights.EveryTube)
	fillsNamed       = (rights.Put | rights.Manage).AnyOn(rights.NamedTube)
	runsNamed        = (rights.Manage | rights.Put).On(rights.NamedTube)
	anyNamed         = rights.All.AnyOn(rights.NamedTube)
)

// operations is the table of operations. It is created on first use, because most
// commands do not need it.
var operations = sync.OnceValue(func() []*operation {
	return []*operation{
		declare(row{ID: "getStats", Route: "GET /stats", Tag: "server", Needs: statsAnywhere, Success: "The counters."}, (*request).getStats),
		declare(row{ID: "getHistory", Route: "GET /history", Tag: "server", Needs: statsEverywhere, Success: "The series."}, (*request).getHistory),
		declare(row{ID: "getAttention", Route: "GET /attention", Tag: "server", Needs: statsAnywhere, Success: "The findings."}, (*request).getAttention),
		declare(row{ID: "getMe", Route: "GET /me", Tag: "server", Needs: noRight, Success: "The identity and rights."}, (*request).getMe),
		declare(row{ID: "listChanges", Route: "GET /changes", Tag: "server", Needs: manageEverywhere, Success: "The changes."}, (*request).listChanges),
		declare(row{ID: "getCluster", Route: "GET /cluster", Tag: "server", Needs: statsAnywhere, Local: true, Success: "The cluster."}, (*request).getCluster),
		declare(row{ID: "transferLead", Route: "POST /cluster/transfer", Tag: "server", Needs: manageEverywhere, Local: true, Problems: []int{404, 503},
			Success: "The member leads."}, (*request).transferLead),
		declare(row{ID: "getServer", Route: "GET /server", Tag: "server", Needs: manageEverywhere, Local: true, Success: "The configuration."}, (*request).getServer),
		declare(row{ID: "drain", Route: "POST /drain", Tag: "server", Needs: manageEverywhere, Success: "The server is draining."}, (*request).drain),
		declare(row{ID: "undrain", Route: "POST /undrain", Tag: "server", Needs: manageEverywhere, Success: "The server accepts jobs."}, (*request).undrain),
		declare(row{ID: "getJournal", Route: "GET /journal", Tag: "server", Needs: peekEverywhere, Type: "application/x-tar", Local: true,
			Success: "The archive."}, (*request).getJournal),
		declare(row{ID: "rewriteJournal", Route: "POST /journal/rewrite", Tag: "server", Needs: manageEverywhere, Status: http.StatusAccepted, Local: true,
			Success: "The rewrite has started, or was already running."}, (*request).rewriteJournal),

		declare(row{ID: "listTasks", Route: "GET /tasks", Tag: "tasks", Needs: manageAnywhere, Success: "The tasks."}, (*request).listTasks),
		declare(row{ID: "getTask", Route: "GET /tasks/{task}", Tag: "tasks", Needs: manageAnywhere, Success: "The task.", Problems: []int{404}}, (*request).getTask),
		declare(row{ID: "cancelTask", Route: "DELETE /tasks/{task}", Tag: "tasks", Needs: manageAnywhere, Success: "The task has ended.", Problems: []int{404}}, (*request).cancelTask),

		declare(row{ID: "searchAll", Route: "GET /search", Tag: "jobs", Needs: bodiesAnywhere, Success: "A page."}, (*request).searchAll),
		declare(row{ID: "listReserved", Route: "GET /reserved", Tag: "jobs", Needs: statsAnywhere, Success: "A page of jobs."}, (*request).listReserved),
		declare(row{ID: "listFailures", Route: "GET /failures", Tag: "jobs", Needs: bodiesAnywhere, Success: "The groups."}, (*request).listFailures),
		declare(row{ID: "exportAll", Route: "GET /export", Tag: "jobs", Needs: bodiesAnywhere, Type: ndjson, Success: "A job on each line."}, (*request).exportAll),
		declare(row{ID: "importAll", Route: "POST /import", Tag: "jobs", Needs: putAnywhere, Success: "All jobs were put."}, (*request).importAll),

		declare(row{ID: "listTubes", Route: "GET /tubes", Tag: "tubes", Needs: statsAnywhere, Success: "A page of tubes."}, (*request).listTubes),
		declare(row{ID: "getTube", Route: "GET /tubes/{tube}", Tag: "tubes", Needs: statsNamed, Success: "The tube.", Problems: []int{404}}, (*request).getTube),
		declare(row{ID: "explainTube", Route: "GET /tubes/{tube}/explain", Tag: "tubes", Needs: statsNamed,
			Success: "The explanation.", Problems: []int{404}}, (*request).explainTube),
		declare(row{ID: "getTubeHistory", Route: "GET /tubes/{tube}/history", Tag: "tubes", Needs: statsNamed,
			Success: "The samples, the oldest first.", Problems: []int{404}}, (*request).getTubeHistory),
		declare(row{ID: "pauseTube", Route: "POST /tubes/{tube}/pause", Tag: "tubes", Needs: manageNamed,
			Success: "The tube is paused.", Problems: []int{404}}, (*request).pauseTube),
		declare(row{ID: "resumeTube", Route: "POST /tubes/{tube}/resume", Tag: "tubes", Needs: manageNamed,
			Success: "The tube is not paused.", Problems: []int{404, 409}}, (*request).resumeTube),
		declare(row{ID: "explainPolicy", Route: "GET /tubes/{tube}/policy", Tag: "policies", Needs: statsNamed, Success: "All settings."}, (*request).explainPolicy),
		declare(row{ID: "listPolicies", Route: "GET /policies", Tag: "policies", Needs: statsAnywhere, Success: "The policies."}, (*request).listPolicies),
		declare(row{ID: "setPolicy", Route: "PATCH /policies/{pattern}", Tag: "policies", Needs: manageAnywhere,
			Success: "The run-time settings of the pattern; empty if there are none."}, (*request).setPolicy),
		declare(row{ID: "deletePolicy", Route: "DELETE /policies/{pattern}", Tag: "policies", Needs: manageAnywhere,
			Success: "The pattern has no run-time settings.", Problems: []int{404}}, (*request).deletePolicy),
		declare(row{ID: "listSchedules", Route: "GET /schedules", Tag: "schedules", Needs: statsAnywhere, Success: "The schedules."}, (*request).listSchedules),
		declare(row{ID: "getSchedule", Route: "GET /schedules/{schedule}", Tag: "schedules", Needs: statsAnywhere, Success: "The schedule.", Problems: []int{404}}, (*request).getSchedule),
		declare(row{ID: "setSchedule", Route: "PUT /schedules/{schedule}", Tag: "schedules", Needs: manageAnywhere, Success: "The schedule.", Problems: []int{507}}, (*request).setSchedule),
		declare(row{ID: "removeSchedule", Route: "DELETE /schedules/{schedule}", Tag: "schedules", Needs: manageAnywhere,
			Success: "The definition was removed.", Problems: []int{404, 409}}, (*request).removeSchedule),
		declare(row{ID: "runSchedule", Route: "POST /schedules/{schedule}/run", Tag: "schedules", Needs: manageAnywhere, Status: http.StatusCreated, Location: "/jobs/",
			Success: "The job was created.", Problems: []int{404, 503, 507}}, (*request).runSchedule),
		declare(row{ID: "pauseSchedule", Route: "POST /schedules/{schedule}/pause", Tag: "schedules", Needs: manageAnywhere, Success: "The schedule is paused.", Problems: []int{404}},
			(*request).pauseSchedule),
		declare(row{ID: "resumeSchedule", Route: "POST /schedules/{schedule}/resume", Tag: "schedules", Needs: manageAnywhere, Success: "The schedule is not paused.", Problems: []int{404}},
			(*request).resumeSchedule),
		declare(row{ID: "startTask", Route: "POST /tubes/{tube}/tasks", Tag: "tasks", Needs: manageNamed, Status: http.StatusAccepted, Location: "/tasks/",
			Success: "The task; it runs, or `status` has the result."}, (*request).startTask),

		declare(row{ID: "listJobs", Route: "GET /tubes/{tube}/jobs", Tag: "jobs", Needs: statsNamed, Success: "A page of jobs.", Problems: []int{404}}, (*request).listJobs),
		declare(row{ID: "putJob", Route: "POST /tubes/{tube}/jobs", Tag: "jobs", Needs: putNamed, Status: http.StatusCreated, Location: "/jobs/",
			Success: "The job was created.", Problems: []int{413, 503, 507}}, (*request).putJob),
		declare(row{ID: "searchTube", Route: "GET /tubes/{tube}/search", Tag: "jobs", Needs: bodiesNamed, Success: "A page."}, (*request).searchTube),
		declare(row{ID: "listClasses", Route: "GET /tubes/{tube}/classes", Tag: "jobs", Needs: bodiesNamed, Success: "The classes.", Problems: []int{404}}, (*request).listClasses),
		declare(row{ID: "exportTube", Route: "GET /tubes/{tube}/export", Tag: "jobs", Needs: bodiesNamed, Type: ndjson, Success: "A job on each line."}, (*request).exportTube),
		declare(row{ID: "importTube", Route: "POST /tubes/{tube}/import", Tag: "jobs", Needs: putNamed, Success: "All jobs were put."}, (*request).importTube),
		declare(row{ID: "getJob", Route: "GET /jobs/{job}", Tag: "jobs", Needs: statsOfJob, Success: "The job.", Problems: []int{404}}, (*request).getJob),
		declare(row{ID: "getBody", Route: "GET /jobs/{job}/body", Tag: "jobs", Needs: peekOfJob, Type: "application/octet-stream",
			Success: "The body.", Problems: []int{404}}, (*request).getBody),
		declare(row{ID: "changeJob", Route: "PATCH /jobs/{job}", Tag: "jobs", Needs: manageOfJob,
			Success: "The job was changed.", Problems: []int{404, 409, 413, 507}}, (*request).changeJob),
		declare(row{ID: "copyJob", Route: "POST /jobs/{job}/copy", Tag: "jobs", Needs: bodyOfJob, Status: http.StatusCreated, Location: "/jobs/",
			Success: "The id of the copy.", Problems: []int{404}}, (*request).copyJob),
		declare(row{ID: "deleteJob", Route: "DELETE /jobs/{job}", Tag: "jobs", Needs: deleteOfJob, Success: "The job was deleted.", Problems: []int{404, 409}}, (*request).deleteJob),
		declare(row{ID: "moveJob", Route: "POST /jobs/{job}/move", Tag: "jobs", Needs: manageOfJob, Success: "The job was moved.", Problems: []int{404, 409}}, (*request).moveJob),
		declare(row{ID: "redriveJob", Route: "POST /jobs/{job}/redrive", Tag: "jobs", Needs: manageOfJob, Success: "The job is ready in its origin.", Problems: []int{404, 409}}, (*request).redriveJob),
		declare(row{ID: "kickJob", Route: "POST /jobs/{job}/kick", Tag: "jobs", Needs: manageOfJob, Success: "The job is ready.", Problems: []int{404, 409}}, (*request).kickJob),
		declare(row{ID: "buryJob", Route: "POST /jobs/{job}/bury", Tag: "jobs", Needs: manageOfJob, Success: "The job is buried.", Problems: []int{404, 409}}, (*request).buryJob),
		declare(row{ID: "releaseJob", Route: "POST /jobs/{job}/release", Tag: "jobs", Needs: manageOfJob,
			Success: "The job was released.", Problems: []int{404, 409}}, (*request).releaseJob),

		declare(row{ID: "listConnections", Route: "GET /connections", Tag: "connections", Needs: statsEverywhere, Success: "A page of connections."}, (*request).listConnections),
		declare(row{ID: "getConnection", Route: "GET /connections/{connection}", Tag: "connections", Needs: statsEverywhere,
			Success: "The connection.", Problems: []int{404}}, (*request).getConnection),
		declare(row{ID: "closeConnection", Route: "DELETE /connections/{connection}", Tag: "connections", Needs: manageEverywhere, Status: http.StatusAccepted,
			Success: "The connection is closing.", Problems: []int{404}}, (*request).closeConnection),
	}
})
