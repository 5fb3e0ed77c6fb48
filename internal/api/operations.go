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

// A row is what there is to say of an operation, besides its types.
type row struct {
	ID       string // in the log, and of the method of the client
	Route    string // method and path, after Prefix
	Tag      string
	Needs    rights.Need
	Summary  string
	Text     string // after the summary; what it needs is added
	Success  string
	Status   int      // of success; 0: 200, or 204 if there is no answer
	Problems []int    // that a client should expect
	Location string   // what the path begins with of what was made; its id follows
	Brings   bringing // in its body
	Type     string   // of a stream, or of bytes; empty: JSON
	Local    bool     // it is about the server that is asked, also at a member of a cluster that does not lead

	// Room asks, before a body of a length is read, whether there is room for what it brings, and says how long it may be at most; 0: no
	// shorter than any. A length of less than 0 is not known. Nil: there is always room.
	Room func(r *request, length int64) (most int64, err error)
}

// bringing is how large the body of a request may be, unless it is a stream, which has no end.
type bringing uint8

const (
	little bringing = iota
	aList           // of ids
	aJob            // with its body
)

// An operation is something that the API does.
type operation struct {
	row
	method, path string
	plan         *op.Plan
	in, out      reflect.Type
	do           func(r *request, in any) (any, error) // in points to the input
}

// declare makes an operation of a function: its types are those of the operation.
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

// changes reports whether the operation may change something: then it is written to the log.
func (o *operation) changes() bool { return o.method != http.MethodGet }

// limited returns how long the operation waits on purpose, and whether it ends soon after that: a stream takes as long as there are jobs.
func (o *operation) limited(in any) (wait time.Duration, ok bool) {
	for i := range o.plan.Fields {
		if f := &o.plan.Fields[i]; f.Name == "wait" {
			wait = time.Duration(f.Of(in).Int()) * time.Second
		}
	}
	return wait, o.out != reflect.TypeFor[*admin.Stream]() && !o.plan.Streams()
}

// pattern is that of http.ServeMux.
func (o *operation) pattern() string { return o.method + " " + Prefix + o.path }

// OperationOf returns the id of the operation that a request was, by the pattern that
// it has once it is answered. It is false if that is none.
func OperationOf(pattern string) (id string, ok bool) {
	if o := byRoute()[pattern]; o != nil {
		return o.ID, true
	}
	return "", false
}

// byRoute returns the operations by their routes, and by their patterns.
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
	deleteOfJob      = (rights.Reserve | rights.Manage).OneOn(rights.TubeOfJob)
	manageEverywhere = rights.Manage.On(rights.EveryTube)
)

// operations returns the table, a row an operation. It is made when it is asked for first: most commands never do.
var operations = sync.OnceValue(func() []*operation {
	return []*operation{
		declare(row{
			ID: "getStats", Route: "GET /stats", Tag: "server", Needs: statsAnywhere,
			Summary: "What the whole server counts", Success: "The counts.",
		}, (*request).getStats),
		declare(row{
			ID: "getHistory", Route: "GET /history", Tag: "server", Needs: statsEverywhere,
			Summary: "What the whole server has counted lately", Success: "The series.",
			Text: `The server takes a sample each second, and keeps an hour of them; and a day by the minute. The series ready, reserved, delayed,
buried, memory_bytes, connections and waiting say how much there was; put, reserves, deletes (commands), timeouts, refused, commands and
throttled (commands that had to wait) how much was done since the value before. A value is null where no sample was taken. A restart
begins with nothing.`,
		}, (*request).getHistory),
		declare(row{
			ID: "getAttention", Route: "GET /attention", Tag: "server", Needs: statsAnywhere,
			Summary: "What an operator should look at, the worst first", Success: "The findings.",
			Text: `The kinds are cluster (no leader, no majority, a member that cannot be reached, is not taken in or must join again, different
settings or versions), journal (it cannot be written), draining, connections and memory (nine tenths of their limit are in use), limit (one has
refused something), certificate (it has ended, or ends soon), refused and throttled (commands were refused, or had to wait, in the last ten minutes);
and of a tube unwatched (ready jobs, no connection watches it, and it is not paused), buried, timeouts (jobs ran out of time), slow (the next job has been ready for ten minutes or more), limited
(it has nine tenths of what it may have; bad if it has all of it) and paused. Of tubes those are named on which the client has the right.`,
		}, (*request).getAttention),
		declare(row{
			ID: "expectFinding", Route: "POST /attention/expect", Tag: "server", Needs: manageAnywhere,
			Summary: "Say that a finding is to be expected for a while", Success: "It is marked.",
			Text: `It then comes last, with who has said so and until when, and is not counted. It needs the right on the tube; on every tube if it is about the
server or a pattern. The server remembers 1000 of them, until it restarts: then all findings count again.`,
		}, (*request).expectFinding),
		declare(row{
			ID: "getMe", Route: "GET /me", Tag: "server", Needs: noRight,
			Summary: "Who the client is, and what it may do", Success: "The client.",
		}, (*request).getMe),
		declare(row{
			ID: "listChanges", Route: "GET /changes", Tag: "server", Needs: manageEverywhere,
			Summary: "The last changes, the newest first", Success: "The changes.",
			Text: "Those through the API, and what the log tells of changes through the protocol. The server remembers 1000 of them.",
		}, (*request).listChanges),
		declare(row{
			ID: "getCluster", Route: "GET /cluster", Tag: "server", Needs: statsAnywhere, Local: true,
			Summary: "The members of the cluster, and who leads", Success: "The cluster.",
			Text: `As this member knows it: only the leader knows how far the others are, and that of all whom it has heard. 404 at a server that is
not a member of a cluster.`,
		}, (*request).getCluster),
		declare(row{
			ID: "transferLead", Route: "POST /cluster/transfer", Tag: "server", Needs: manageEverywhere, Local: true, Problems: []int{404, 503},
			Summary: "Let another member of the cluster lead", Success: "It leads.",
			Text: `Nothing is lost; the connections of all clients end, as with a restart. Any member can be asked. 503 if the member cannot take over: then
who has led goes on.`,
		}, (*request).transferLead),
		declare(row{
			ID: "getServer", Route: "GET /server", Tag: "server", Needs: manageEverywhere, Local: true,
			Summary: "What the server is, and how it was started", Success: "The facts.",
			Text: `Its configuration that is in force, with what has set each setting; its listeners, its certificates and when they end, its journal.
Tokens, not even their hashes, and keys are not shown.`,
		}, (*request).getServer),
		declare(row{
			ID: "drain", Route: "POST /drain", Tag: "server", Needs: manageEverywhere,
			Summary: "Take no new jobs", Success: "It drains.",
			Text: "From now on puts are answered `DRAINING`, all else works, and /readyz says that the server is not ready. Does nothing if it drains already.",
		}, (*request).drain),
		declare(row{
			ID: "undrain", Route: "POST /undrain", Tag: "server", Needs: manageEverywhere,
			Summary: "Take new jobs again", Success: "It does not drain.",
		}, (*request).undrain),
		declare(row{
			ID: "getJournal", Route: "GET /journal", Tag: "server", Needs: peekEverywhere, Type: "application/x-tar", Local: true,
			Summary: "A backup of the journal", Success: "The archive.",
			Text: `A tar archive of the segments of the journal, with all jobs and their bodies. What was answered before the request is in it, and of
what is done meanwhile the beginning. Unpacked into an empty directory it is a journal, from which a server can start. Clients are served
meanwhile, and one backup is made at a time. A connection that ends too soon means that the archive is not whole.`,
		}, (*request).getJournal),
		declare(row{
			ID: "rewriteJournal", Route: "POST /journal/rewrite", Tag: "server", Needs: manageEverywhere, Status: http.StatusAccepted, Local: true,
			Summary: "Rewrite the whole journal", Success: "It has begun or was under way.",
			Text: `Writes all jobs, which are in memory, to new segments and then removes the old ones, while clients are served. For a disk on which
something may be damaged. The log of the server says when it is done.`,
		}, (*request).rewriteJournal),

		declare(row{
			ID: "listTasks", Route: "GET /tasks", Tag: "tasks", Needs: manageAnywhere,
			Summary: "Work on many jobs that goes on, and that has ended, the newest first", Success: "The tasks.",
			Text: "Of tubes on which the client has the right. The server remembers 100 tasks.",
		}, (*request).listTasks),
		declare(row{
			ID: "getTask", Route: "GET /tasks/{task}", Tag: "tasks", Needs: manageAnywhere,
			Summary: "How far a task is", Success: "The task.", Problems: []int{404},
			Text: "It needs the right on the tube of the task.",
		}, (*request).getTask),
		declare(row{
			ID: "cancelTask", Route: "DELETE /tasks/{task}", Tag: "tasks", Needs: manageAnywhere,
			Summary: "End a task", Success: "It has ended.", Problems: []int{404},
			Text: "What it has done stays done. One that has ended is answered 409. It needs the right on the tube of the task.",
		}, (*request).cancelTask),

		declare(row{
			ID: "searchAll", Route: "GET /search", Tag: "jobs", Needs: bodiesAnywhere,
			Summary: "Look for jobs by their bodies in all tubes", Success: "A page.",
			Text: "As /tubes/{tube}/search, in the tubes on which the client has both rights, by name.",
		}, (*request).searchAll),
		declare(row{
			ID: "exportAll", Route: "GET /export", Tag: "jobs", Needs: bodiesAnywhere, Type: ndjson,
			Summary: "All jobs with their bodies, as a stream", Success: "A job on each line.",
			Text: "As /tubes/{tube}/export, of the tubes on which the client has both rights, by name.",
		}, (*request).exportAll),
		declare(row{
			ID: "importAll", Route: "POST /import", Tag: "jobs", Needs: putAnywhere,
			Summary: "Put many jobs into the tubes that they name", Success: "All were put.",
			Text: "As /tubes/{tube}/import. It needs the right on each tube that a job names.",
		}, (*request).importAll),

		declare(row{
			ID: "listTubes", Route: "GET /tubes", Tag: "tubes", Needs: statsAnywhere,
			Summary: "The tubes", Success: "A page of tubes.",
			Text: "They come by name, unless `sort` asks for another order. With `sort`, `q` or `has` the page says how many tubes match, and how many jobs\n" +
				"they have together; a tube whose place in the order changes between two pages may be on both or on none. Tubes without the right are left out.",
		}, (*request).listTubes),
		declare(row{
			ID: "getTube", Route: "GET /tubes/{tube}", Tag: "tubes", Needs: statsNamed,
			Summary: "One tube", Success: "The tube.", Problems: []int{404},
		}, (*request).getTube),
		declare(row{
			ID: "explainTube", Route: "GET /tubes/{tube}/explain", Tag: "tubes", Needs: statsNamed,
			Summary: "Why the jobs of a tube wait", Success: "The explanation.", Problems: []int{404},
			Text: "Whether there are workers, whether they hold jobs or do not reserve, who has paused the tube and until when, whether its policy lets no more\n" +
				"jobs go, and whether the server refuses puts. The connection is named to those only who have the right on every tube.",
		}, (*request).explainTube),
		declare(row{
			ID: "getTubeHistory", Route: "GET /tubes/{tube}/history", Tag: "tubes", Needs: statsNamed,
			Summary: "What has happened in a tube in the last ten minutes", Success: "The samples, the oldest first.", Problems: []int{404},
			Text: `The server takes a sample of up to 1000 tubes every ten seconds: of those with a backlog first, then of those that are in use, and of
these of the ones that have had the most jobs.`,
		}, (*request).getTubeHistory),
		declare(row{
			ID: "pauseTube", Route: "POST /tubes/{tube}/pause", Tag: "tubes", Needs: manageNamed,
			Summary: "Let nobody reserve from a tube for a while", Success: "The tube is paused.", Problems: []int{404},
			Text: "A second pause replaces the first.",
		}, (*request).pauseTube),
		declare(row{
			ID: "resumeTube", Route: "POST /tubes/{tube}/resume", Tag: "tubes", Needs: manageNamed,
			Summary: "End the pause of a tube", Success: "The tube is not paused.", Problems: []int{404, 409},
			Text: "Does nothing if it is not paused. If its policy pauses it, that goes on, and the answer is 409.",
		}, (*request).resumeTube),
		declare(row{
			ID: "explainPolicy", Route: "GET /tubes/{tube}/policy", Tag: "policies", Needs: statsNamed,
			Summary: "The policy of a tube, and where each value comes from", Success: "All settings.",
			Text: "The tube need not exist. What was set while the server ran wins over the configuration file, and each setting is that of the most specific pattern.",
		}, (*request).explainPolicy),
		declare(row{
			ID: "listPolicies", Route: "GET /policies", Tag: "policies", Needs: statsAnywhere,
			Summary: "The policies of the configuration file, and what was set while the server ran", Success: "The policies.",
			Text: "Of patterns whose tubes the client may all see. Of those of the same source the more specific ones come later.",
		}, (*request).listPolicies),
		declare(row{
			ID: "setPolicy", Route: "PATCH /policies/{pattern}", Tag: "policies", Needs: manageAnywhere,
			Summary: "Set settings of the tubes of a pattern, and unset others", Success: "What is set for the pattern now; no settings: nothing any more.",
			Text: "They are durable, and hold for tubes that come later. Tubes of a pattern have them within some turns, that of a name at once; a job is treated so at its next event. For `paused` a duration\n" +
				"such as `1h30m` or `2d` is taken, too, from now on. It needs the right on every tube that the pattern matches.",
		}, (*request).setPolicy),
		declare(row{
			ID: "deletePolicy", Route: "DELETE /policies/{pattern}", Tag: "policies", Needs: manageAnywhere,
			Summary: "Unset all settings of a pattern", Success: "Nothing is set for it any more.", Problems: []int{404},
			Text: "What the configuration file says holds again. It needs the right on every tube that the pattern matches.",
		}, (*request).deletePolicy),
		declare(row{
			ID: "startTask", Route: "POST /tubes/{tube}/tasks", Tag: "tasks", Needs: manageNamed, Status: http.StatusAccepted, Location: "/tasks/", Brings: aList,
			Summary: "Do something to many jobs of a tube", Success: "It runs, or has ended: its status says so.",
			Text: "To those that are named by `ids`, or to those in a `state`; with a search only to those whose bodies match. The task first looks for the jobs,\n" +
				"and then does it to each that is still there in that state, in turns that leave time for others. It goes on when the client hangs up; a restart ends it.\n" +
				"Four tasks run at once. To move it needs the right on the other tube, too; for a search peek and stats, too.",
		}, (*request).startTask),

		declare(row{
			ID: "listJobs", Route: "GET /tubes/{tube}/jobs", Tag: "jobs", Needs: statsNamed,
			Summary: "The jobs of a tube in one state, in their order", Success: "A page of jobs.", Problems: []int{404},
			Text: "Ready jobs come by priority and id; delayed and reserved ones by the time when that ends; buried ones as they were buried. A job that\n" +
				"leaves the state, or changes its place, while the page is made is left out, and the next ones take its place. With `bodies` it needs the\n" +
				"right peek, too, and a page ends when its bodies have 1 MiB together.",
		}, (*request).listJobs),
		declare(row{
			ID: "putJob", Route: "POST /tubes/{tube}/jobs", Tag: "jobs", Needs: putNamed, Status: http.StatusCreated, Location: "/jobs/", Brings: aJob,
			Room:    (*request).roomForJob,
			Summary: "Put a job", Success: "The job is there, and durable as far as the server promises that.", Problems: []int{413, 503, 507},
			Text: "Makes the tube if there is none.",
		}, (*request).putJob),
		declare(row{
			ID: "searchTube", Route: "GET /tubes/{tube}/search", Tag: "jobs", Needs: bodiesNamed,
			Summary: "Look for jobs by their bodies", Success: "A page.",
			Text: "A page ends when `limit` jobs match or the bodies of those have 1 MiB together, or when 50,000 jobs were looked at, or 32 MiB of their bodies,\n" +
				"or looking into them took 100 ms: so each comes soon, the first one too. A client has one search or list of more than 1000 jobs at a time, and two\n" +
				"clients at most do: another one is answered 503 after a second. If it has `next` there is more to look at, whatever is on it. Jobs come by state\n" +
				"(ready, reserved, delayed, buried), and in the order of lists. Of a body the first MiB is looked at.",
		}, (*request).searchTube),
		declare(row{
			ID: "exportTube", Route: "GET /tubes/{tube}/export", Tag: "jobs", Needs: bodiesNamed, Type: ndjson,
			Summary: "The jobs of a tube with their bodies, as a stream", Success: "A job on each line.",
			Text: `A job in JSON on each line, of any size. It changes no job. A client has one export at a time, and two clients at most do: another one
is answered 503 after a second. If the connection ends before the last chunk, the rest is missing.`,
		}, (*request).exportTube),
		declare(row{
			ID: "importTube", Route: "POST /tubes/{tube}/import", Tag: "jobs", Needs: putNamed,
			Summary: "Put many jobs", Success: "All were put.",
			Text: "A job in JSON on each line, as an export has it: its body, priority, time to run, and the rest of its delay; what was buried is buried, what\n" +
				"was reserved is ready. Ids and counters are new. All go into the tube of the path, whatever tube they name. If a line is wrong or refused,\n" +
				"those before it stay put, and the problem has their number as `done`.",
		}, (*request).importTube),
		declare(row{
			ID: "getJob", Route: "GET /jobs/{job}", Tag: "jobs", Needs: statsOfJob,
			Summary: "One job with its body", Success: "The job.", Problems: []int{404},
			Text: "The body is there if the client has the right peek too and the body has at most 1 MiB: as `body` if it is valid UTF-8, else as\n" +
				"`body_base64`. The body alone, whatever its size, is at `/jobs/{job}/body`.",
		}, (*request).getJob),
		declare(row{
			ID: "getBody", Route: "GET /jobs/{job}/body", Tag: "jobs", Needs: peekOfJob, Type: "application/octet-stream",
			Summary: "The body of a job, byte for byte", Success: "The body.", Problems: []int{404},
		}, (*request).getBody),
		declare(row{
			ID: "changeJob", Route: "PATCH /jobs/{job}", Tag: "jobs", Needs: manageOfJob, Brings: aJob,
			Summary: "Change a job that nobody holds", Success: "It is changed.", Problems: []int{404, 409, 413, 507},
			Text: `Its priority, its time to run, its delay (in so many seconds from now it is ready, at once with 0; a buried job has none) or its body: all that
is given, or nothing. With another body it has the same id and place, and it needs the right put, too.`,
		}, (*request).changeJob),
		declare(row{
			ID: "copyJob", Route: "POST /jobs/{job}/copy", Tag: "jobs", Needs: bodyOfJob, Status: http.StatusCreated, Location: "/jobs/",
			Summary: "Put a new job with the same body", Success: "The id of the copy.", Problems: []int{404},
			Text: `The job itself stays as it is. The copy has its priority and time to run, unless others are given, and is not delayed. It needs put on
the other tube, too.`,
		}, (*request).copyJob),
		declare(row{
			ID: "deleteJob", Route: "DELETE /jobs/{job}", Tag: "jobs", Needs: deleteOfJob,
			Summary: "Delete a job", Success: "It is gone.", Problems: []int{404, 409},
			Text: "One that somebody holds is not deleted under its hands: bury it first.",
		}, (*request).deleteJob),
		declare(row{
			ID: "moveJob", Route: "POST /jobs/{job}/move", Tag: "jobs", Needs: manageOfJob,
			Summary: "Move a job that nobody holds to another tube", Success: "It is there.", Problems: []int{404, 409},
			Text: "It keeps its id and all else. It needs the right on the other tube, too.",
		}, (*request).moveJob),
		declare(row{
			ID: "kickJob", Route: "POST /jobs/{job}/kick", Tag: "jobs", Needs: manageOfJob,
			Summary: "Make a buried or delayed job ready", Success: "It is ready.", Problems: []int{404, 409},
		}, (*request).kickJob),
		declare(row{
			ID: "buryJob", Route: "POST /jobs/{job}/bury", Tag: "jobs", Needs: manageOfJob,
			Summary: "Set a job aside until it is kicked", Success: "It is buried.", Problems: []int{404, 409},
			Text: "It may be ready, delayed or reserved. A worker that holds it loses it, as if the time to run were over: what it says of the job after\n" +
				"that is answered `NOT_FOUND`.",
		}, (*request).buryJob),
		declare(row{
			ID: "releaseJob", Route: "POST /jobs/{job}/release", Tag: "jobs", Needs: manageOfJob,
			Summary: "Take a job from the worker that holds it", Success: "Nobody holds it.", Problems: []int{404, 409},
			Text: "It is ready then, or delayed. To the worker it is as if the time to run were over: what it says of the job after that is answered\n" +
				"`NOT_FOUND`. A job that nobody holds cannot be released; kick makes a buried or delayed one ready.",
		}, (*request).releaseJob),

		declare(row{
			ID: "listConnections", Route: "GET /connections", Tag: "connections", Needs: statsEverywhere,
			Summary: "The connections of clients", Success: "A page of connections.",
			Text: "They come in no particular order, unless `sort` asks for one: then the server looks at all of them for each page, and the page says how\n" +
				"many match. A connection whose place in the order changes between two pages may be on both or on none.",
		}, (*request).listConnections),
		declare(row{
			ID: "getConnection", Route: "GET /connections/{connection}", Tag: "connections", Needs: statsEverywhere,
			Summary: "One connection", Success: "The connection.", Problems: []int{404},
		}, (*request).getConnection),
		declare(row{
			ID: "closeConnection", Route: "DELETE /connections/{connection}", Tag: "connections", Needs: manageEverywhere, Status: http.StatusAccepted,
			Summary: "Close a connection", Success: "It is being closed.", Problems: []int{404},
			Text: "Replies that the client has not read are lost, and the jobs that it holds become ready.",
		}, (*request).closeConnection),
	}
})
