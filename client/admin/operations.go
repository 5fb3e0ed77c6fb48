package admin

import "context"

// The operations of the API. What the comments say, in a line after the route and in a text, is in openapi.yaml, too, with the right that each
// needs. go test ./internal/api -run TestGenerated says where they and the server's table differ.

// GetStats is GET /stats. What the whole server counts.
func (c *Client) GetStats(ctx context.Context) (Stats, error) {
	return ask[Stats](ctx, c, "GET /stats", nil)
}

// GetHistory is GET /history. What the whole server has counted lately.
//
// The server takes a sample each second, and keeps an hour of them; and a day by the minute. The series ready, reserved, delayed,
// buried, memory_bytes, connections and waiting say how much there was; put, reserves, deletes (commands), timeouts, refused and commands
// say how much was done since the value before. A value is null where no sample was taken. A restart
// begins with nothing.
func (c *Client) GetHistory(ctx context.Context, in *GetHistory) (History, error) {
	return ask[History](ctx, c, "GET /history", in)
}

// GetAttention is GET /attention. List what an operator should look at, the worst first.
//
// The commands attention, tubes and top, the console and the alerts present the same
// findings. Counts cover the last ten minutes. Kinds about the server: cluster (no
// leader, no majority, a member that is unreachable, refused or must join again,
// different settings or versions), journal (it cannot be written), draining, connections
// and memory (nine tenths of the limit are in use), limit (a limit refused a command),
// certificate (it has ended, or ends soon) and refused (commands were refused). Kinds
// about a tube: unwatched (ready jobs, no connection that watches the tube, no pause),
// buried, timeouts (reservations timed out), releases (ten releases or more, and more
// than deletes), held (a job has been reserved for ten minutes, and for ten times the
// average), slow (the next job has been ready for ten minutes), limited (nine tenths of
// the limit are in use; bad if all of it is) and paused. Tubes on which the client lacks
// the right are left out.
func (c *Client) GetAttention(ctx context.Context, in *GetAttention) (Attention, error) {
	return ask[Attention](ctx, c, "GET /attention", in)
}

// GetMe is GET /me. Who the client is, and what it may do.
func (c *Client) GetMe(ctx context.Context, in *GetMe) (Me, error) {
	return ask[Me](ctx, c, "GET /me", in)
}

// ListChanges is GET /changes. The last changes, the newest first.
//
// Those through the API, and what the log tells of changes through the protocol. The server remembers 1000 of them.
func (c *Client) ListChanges(ctx context.Context, in *ListChanges) (Changes, error) {
	return ask[Changes](ctx, c, "GET /changes", in)
}

// GetCluster is GET /cluster. The members of the cluster, and who leads.
//
// As this member knows it: only the leader knows how far the others are, and that of all whom it has heard. 404 at a server that is
// not a member of a cluster.
func (c *Client) GetCluster(ctx context.Context) (Cluster, error) {
	return ask[Cluster](ctx, c, "GET /cluster", nil)
}

// TransferLead is POST /cluster/transfer. Let another member of the cluster lead.
//
// Nothing is lost; the connections of all clients end, as with a restart. Any member can be asked. 503 if the member cannot take over: then
// who has led goes on.
func (c *Client) TransferLead(ctx context.Context, in *TransferLead) error {
	return c.Do(ctx, "POST /cluster/transfer", in, nil)
}

// GetServer is GET /server. What the server is, and how it was started.
//
// Its configuration that is in force, with what has set each setting; its listeners, its certificates and when they end, its journal.
// Tokens, not even their hashes, and keys are not shown.
func (c *Client) GetServer(ctx context.Context) (Server, error) {
	return ask[Server](ctx, c, "GET /server", nil)
}

// Drain is POST /drain. Take no new jobs.
//
// From now on puts are answered `DRAINING`, all else works, and /readyz says that the server is not ready. Does nothing if it drains already.
func (c *Client) Drain(ctx context.Context) error { return c.Do(ctx, "POST /drain", nil, nil) }

// Undrain is POST /undrain. Take new jobs again.
func (c *Client) Undrain(ctx context.Context) error { return c.Do(ctx, "POST /undrain", nil, nil) }

// GetJournal is GET /journal. A backup of the journal.
//
// A tar archive of the segments of the journal, with all jobs and their bodies. What was answered before the request is in it, and of
// what is done meanwhile the beginning. Unpacked into an empty directory it is a journal, from which a server can start. Clients are served
// meanwhile, and one backup is made at a time. A connection that ends too soon means that the archive is not whole.
func (c *Client) GetJournal(ctx context.Context) (*Stream, error) {
	return ask[*Stream](ctx, c, "GET /journal", nil)
}

// RewriteJournal is POST /journal/rewrite. Rewrite the whole journal.
//
// Writes all jobs, which are in memory, to new segments and then removes the old ones, while clients are served. For a disk on which
// something may be damaged. The log of the server says when it is done.
func (c *Client) RewriteJournal(ctx context.Context) error {
	return c.Do(ctx, "POST /journal/rewrite", nil, nil)
}

// ListTasks is GET /tasks. Work on many jobs that goes on, and that has ended, the newest first.
//
// Of tubes on which the client has the right. The server remembers 100 tasks.
func (c *Client) ListTasks(ctx context.Context) (Tasks, error) {
	return ask[Tasks](ctx, c, "GET /tasks", nil)
}

// GetTask is GET /tasks/{task}. How far a task is.
//
// It needs the right on the tube of the task.
func (c *Client) GetTask(ctx context.Context, in *GetTask) (Task, error) {
	return ask[Task](ctx, c, "GET /tasks/{task}", in)
}

// CancelTask is DELETE /tasks/{task}. End a task.
//
// What it has done stays done. One that has ended is answered 409. It needs the right on the tube of the task.
func (c *Client) CancelTask(ctx context.Context, in *OfTask) error {
	return c.Do(ctx, "DELETE /tasks/{task}", in, nil)
}

// SearchAll is GET /search. Look for jobs by their bodies in all tubes.
//
// As /tubes/{tube}/search, in the tubes on which the client has both rights, by name.
func (c *Client) SearchAll(ctx context.Context, in *SearchAll) (Found, error) {
	return ask[Found](ctx, c, "GET /search", in)
}

// ExportAll is GET /export. All jobs with their bodies, as a stream.
//
// As /tubes/{tube}/export, of the tubes on which the client has both rights, by name.
func (c *Client) ExportAll(ctx context.Context, in *ExportAll) (*Stream, error) {
	return ask[*Stream](ctx, c, "GET /export", in)
}

// ImportAll is POST /import. Put many jobs into the tubes that they name.
//
// As /tubes/{tube}/import. It needs the right on each tube that a job names.
func (c *Client) ImportAll(ctx context.Context, in *ImportAll) (Imported, error) {
	return ask[Imported](ctx, c, "POST /import", in)
}

// ListTubes is GET /tubes. The tubes.
//
// They come by name, unless `sort` asks for another order. With `sort`, `q` or `has` the page says how many tubes match, and how many jobs
// they have together; a tube whose place in the order changes between two pages may be on both or on none. Tubes without the right are left out.
func (c *Client) ListTubes(ctx context.Context, in *ListTubes) (Tubes, error) {
	return ask[Tubes](ctx, c, "GET /tubes", in)
}

// GetTube is GET /tubes/{tube}. One tube.
func (c *Client) GetTube(ctx context.Context, in *OfTube) (Tube, error) {
	return ask[Tube](ctx, c, "GET /tubes/{tube}", in)
}

// ExplainTube is GET /tubes/{tube}/explain. Why the jobs of a tube wait.
//
// Whether there are workers, whether they hold jobs or do not reserve, who has paused the tube and until when, whether its policy lets no more
// jobs go, and whether the server refuses puts. The connection is named to those only who have the right on every tube.
func (c *Client) ExplainTube(ctx context.Context, in *OfTube) (Explanation, error) {
	return ask[Explanation](ctx, c, "GET /tubes/{tube}/explain", in)
}

// GetTubeHistory is GET /tubes/{tube}/history. What has happened in a tube in the last ten minutes.
//
// The server takes a sample of up to 1000 tubes every ten seconds: of those with a backlog first, then of those that are in use, and of
// these of the ones that have had the most jobs.
func (c *Client) GetTubeHistory(ctx context.Context, in *OfTube) (Recent, error) {
	return ask[Recent](ctx, c, "GET /tubes/{tube}/history", in)
}

// PauseTube is POST /tubes/{tube}/pause. Let nobody reserve from a tube for a while.
//
// A second pause replaces the first.
func (c *Client) PauseTube(ctx context.Context, in *PauseTube) error {
	return c.Do(ctx, "POST /tubes/{tube}/pause", in, nil)
}

// ResumeTube is POST /tubes/{tube}/resume. End the pause of a tube.
//
// Does nothing if it is not paused. If its policy pauses it, that goes on, and the answer is 409.
func (c *Client) ResumeTube(ctx context.Context, in *OfTube) error {
	return c.Do(ctx, "POST /tubes/{tube}/resume", in, nil)
}

// ExplainPolicy is GET /tubes/{tube}/policy. The policy of a tube, and where each value comes from.
//
// The tube need not exist. What was set while the server ran wins over the configuration file, and each setting is that of the most specific pattern.
func (c *Client) ExplainPolicy(ctx context.Context, in *OfTube) (TubePolicy, error) {
	return ask[TubePolicy](ctx, c, "GET /tubes/{tube}/policy", in)
}

// ListPolicies is GET /policies. The policies of the configuration file, and what was set while the server ran.
//
// Of patterns whose tubes the client may all see. Of those of the same source the more specific ones come later.
func (c *Client) ListPolicies(ctx context.Context) (Policies, error) {
	return ask[Policies](ctx, c, "GET /policies", nil)
}

// SetPolicy is PATCH /policies/{pattern}. Set settings of the tubes of a pattern, and unset others.
//
// They are durable, and hold for tubes that come later. Tubes of a pattern have them within some turns, that of a name at once; a job is treated so at its next event. For `paused` a duration
// such as `1h30m` or `2d` is taken, too, from now on. It needs the right on every tube that the pattern matches.
func (c *Client) SetPolicy(ctx context.Context, in *SetPolicy) (Policy, error) {
	return ask[Policy](ctx, c, "PATCH /policies/{pattern}", in)
}

// DeletePolicy is DELETE /policies/{pattern}. Unset all settings of a pattern.
//
// What the configuration file says holds again. It needs the right on every tube that the pattern matches.
func (c *Client) DeletePolicy(ctx context.Context, in *OfPolicy) error {
	return c.Do(ctx, "DELETE /policies/{pattern}", in, nil)
}

// StartTask is POST /tubes/{tube}/tasks. Do something to many jobs of a tube.
//
// To those that are named by `ids`, or to those in a `state`; with a search only to those whose bodies match. The task first looks for the jobs,
// and then does it to each that is still there in that state, in turns that leave time for others. It goes on when the client hangs up; a restart ends it.
// Four tasks run at once. To move it needs the right on the other tube, too; for a search peek and stats, too.
func (c *Client) StartTask(ctx context.Context, in *StartTask) (Task, error) {
	return ask[Task](ctx, c, "POST /tubes/{tube}/tasks", in)
}

// ListJobs is GET /tubes/{tube}/jobs. The jobs of a tube in one state, in their order.
//
// Ready jobs come by priority and id; delayed and reserved ones by the time when that ends; buried ones as they were buried. A job that
// leaves the state, or changes its place, while the page is made is left out, and the next ones take its place. With `bodies` it needs the
// right peek, too, and a page ends when its bodies have 1 MiB together.
func (c *Client) ListJobs(ctx context.Context, in *ListJobs) (Jobs, error) {
	return ask[Jobs](ctx, c, "GET /tubes/{tube}/jobs", in)
}

// PutJob is POST /tubes/{tube}/jobs. Put a job.
//
// Makes the tube if there is none.
func (c *Client) PutJob(ctx context.Context, in *PutJob) (Inserted, error) {
	return ask[Inserted](ctx, c, "POST /tubes/{tube}/jobs", in)
}

// SearchTube is GET /tubes/{tube}/search. Look for jobs by their bodies.
//
// A page ends when `limit` jobs match or the bodies of those have 1 MiB together, or when 50,000 jobs were looked at, or 32 MiB of their bodies,
// or looking into them took 100 ms: so each comes soon, the first one too. A client has one search or list of more than 1000 jobs at a time, and two
// clients at most do: another one is answered 503 after a second. If it has `next` there is more to look at, whatever is on it. Jobs come by state
// (ready, reserved, delayed, buried), and in the order of lists. Of a body the first MiB is looked at.
func (c *Client) SearchTube(ctx context.Context, in *SearchTube) (Found, error) {
	return ask[Found](ctx, c, "GET /tubes/{tube}/search", in)
}

// ExportTube is GET /tubes/{tube}/export. The jobs of a tube with their bodies, as a stream.
//
// A job in JSON on each line, of any size. It changes no job. A client has one export at a time, and two clients at most do: another one
// is answered 503 after a second. If the connection ends before the last chunk, the rest is missing.
func (c *Client) ExportTube(ctx context.Context, in *ExportTube) (*Stream, error) {
	return ask[*Stream](ctx, c, "GET /tubes/{tube}/export", in)
}

// ImportTube is POST /tubes/{tube}/import. Put many jobs.
//
// A job in JSON on each line, as an export has it: its body, priority, time to run, and the rest of its delay; what was buried is buried, what
// was reserved is ready. Ids and counters are new. All go into the tube of the path, whatever tube they name. If a line is wrong or refused,
// those before it stay put, and the problem has their number as `done`.
func (c *Client) ImportTube(ctx context.Context, in *ImportTube) (Imported, error) {
	return ask[Imported](ctx, c, "POST /tubes/{tube}/import", in)
}

// GetJob is GET /jobs/{job}. One job with its body.
//
// The body is there if the client has the right peek too and the body has at most 1 MiB: as `body` if it is valid UTF-8, else as
// `body_base64`. The body alone, whatever its size, is at `/jobs/{job}/body`.
func (c *Client) GetJob(ctx context.Context, in *OfJob) (Job, error) {
	return ask[Job](ctx, c, "GET /jobs/{job}", in)
}

// GetBody is GET /jobs/{job}/body. The body of a job, byte for byte.
func (c *Client) GetBody(ctx context.Context, in *OfJob) (Bytes, error) {
	return ask[Bytes](ctx, c, "GET /jobs/{job}/body", in)
}

// ChangeJob is PATCH /jobs/{job}. Change a job that nobody holds.
//
// Its priority, its time to run, its delay (in so many seconds from now it is ready, at once with 0; a buried job has none) or its body: all that
// is given, or nothing. With another body it has the same id and place, and it needs the right put, too.
func (c *Client) ChangeJob(ctx context.Context, in *ChangeJob) error {
	return c.Do(ctx, "PATCH /jobs/{job}", in, nil)
}

// CopyJob is POST /jobs/{job}/copy. Put a new job with the same body.
//
// The job itself stays as it is. The copy has its priority and time to run, unless others are given, and is not delayed. It needs put on
// the other tube, too.
func (c *Client) CopyJob(ctx context.Context, in *CopyJob) (Inserted, error) {
	return ask[Inserted](ctx, c, "POST /jobs/{job}/copy", in)
}

// DeleteJob is DELETE /jobs/{job}. Delete a job.
//
// One that somebody holds is not deleted under its hands: bury it first.
func (c *Client) DeleteJob(ctx context.Context, in *OfJob) error {
	return c.Do(ctx, "DELETE /jobs/{job}", in, nil)
}

// MoveJob is POST /jobs/{job}/move. Move a job that nobody holds to another tube.
//
// It keeps its id and all else. It needs the right on the other tube, too.
func (c *Client) MoveJob(ctx context.Context, in *MoveJob) error {
	return c.Do(ctx, "POST /jobs/{job}/move", in, nil)
}

// RedriveJob is POST /jobs/{job}/redrive. Return a buried or ready job to its origin.
//
// It becomes ready there, with as many attempts again. The right is also required on the origin.
func (c *Client) RedriveJob(ctx context.Context, in *OfJob) error {
	return c.Do(ctx, "POST /jobs/{job}/redrive", in, nil)
}

// KickJob is POST /jobs/{job}/kick. Make a buried or delayed job ready.
func (c *Client) KickJob(ctx context.Context, in *OfJob) error {
	return c.Do(ctx, "POST /jobs/{job}/kick", in, nil)
}

// BuryJob is POST /jobs/{job}/bury. Set a job aside until it is kicked.
//
// It may be ready, delayed or reserved. A worker that holds it loses it, as if the time to run were over: what it says of the job after
// that is answered `NOT_FOUND`.
func (c *Client) BuryJob(ctx context.Context, in *BuryJob) error {
	return c.Do(ctx, "POST /jobs/{job}/bury", in, nil)
}

// ReleaseJob is POST /jobs/{job}/release. Take a job from the worker that holds it.
//
// It is ready then, or delayed. To the worker it is as if the time to run were over: what it says of the job after that is answered
// `NOT_FOUND`. A job that nobody holds cannot be released; kick makes a buried or delayed one ready.
func (c *Client) ReleaseJob(ctx context.Context, in *ReleaseJob) error {
	return c.Do(ctx, "POST /jobs/{job}/release", in, nil)
}

// ListConnections is GET /connections. The connections of clients.
//
// They come in no particular order, unless `sort` asks for one: then the server looks at all of them for each page, and the page says how
// many match. A connection whose place in the order changes between two pages may be on both or on none.
func (c *Client) ListConnections(ctx context.Context, in *ListConnections) (Connections, error) {
	return ask[Connections](ctx, c, "GET /connections", in)
}

// GetConnection is GET /connections/{connection}. One connection.
func (c *Client) GetConnection(ctx context.Context, in *OfConnection) (Connection, error) {
	return ask[Connection](ctx, c, "GET /connections/{connection}", in)
}

// CloseConnection is DELETE /connections/{connection}. Close a connection.
//
// Replies that the client has not read are lost, and the jobs that it holds become ready.
func (c *Client) CloseConnection(ctx context.Context, in *OfConnection) error {
	return c.Do(ctx, "DELETE /connections/{connection}", in, nil)
}
