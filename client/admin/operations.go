package admin

import "context"

// The operations of the API. openapi.yaml contains the first line and the text of each
// comment and the right of each operation. go test ./internal/api -run TestGenerated
// reports where they differ from the table of the server.

// GetStats calls GET /stats. It returns the counters of the server.
func (c *Client) GetStats(ctx context.Context) (Stats, error) {
	return ask[Stats](ctx, c, "GET /stats", nil)
}

// GetHistory calls GET /history. It returns time series of the server.
//
// The server keeps ten minutes by the second, a day by the minute and 31 days by the
// hour, within the setting history. With a journal, the minutes and hours survive a
// restart. The series put, done, reserves, failed, retried, timeouts, refused and
// commands are increases during a period. The series failed counts reserved jobs that
// were buried or exhausted, and retried counts releases. The series wait_p50, wait_p95,
// run_p50 and run_p95 are the median and the 95th percentile, in seconds, of the times
// that jobs were ready before a reserve and reserved before a delete, release or bury.
// Their precision is a factor of two; those of an hour are averages of its minutes. The
// other series are levels at the end of a period. A value is null if the server recorded
// nothing.
func (c *Client) GetHistory(ctx context.Context, in *GetHistory) (History, error) {
	return ask[History](ctx, c, "GET /history", in)
}

// GetAttention calls GET /attention. It lists the findings, the worst first.
//
// The commands attention, tubes and top, the console and the alerts present the same
// findings. Counts cover the last ten minutes. Kinds about the server: cluster (no
// leader, no majority, a member that is unreachable, refused or must join again,
// different settings or versions), journal (the server cannot write it), draining,
// connections and memory (nine tenths of the limit are in use), limit (a limit refused a
// command), certificate (it has expired, or expires soon), refused (commands were
// refused) and schedule (its job was rejected, or its jobs pile up: five runs found the
// previous job). Kinds about a tube: unwatched (ready jobs, no connection that watches
// the tube, no pause), buried, timeouts (reservations timed out), releases (ten releases
// or more, and more than deletes), held (a job has been reserved for ten minutes, ten
// times the average and three times the 95th percentile of the tube, if the server
// measures it), slow (the next job has been ready for ten minutes), limited (nine tenths
// of the limit are in use; bad if all of it is) and paused. Tubes on which the client
// lacks the right are left out.
func (c *Client) GetAttention(ctx context.Context, in *GetAttention) (Attention, error) {
	return ask[Attention](ctx, c, "GET /attention", in)
}

// GetMe calls GET /me. It returns the identity and the rights of the client.
func (c *Client) GetMe(ctx context.Context, in *GetMe) (Me, error) {
	return ask[Me](ctx, c, "GET /me", in)
}

// ListChanges calls GET /changes. It lists the last changes, the newest first.
//
// The list has changes through the API, and changes through the protocol that the log
// reports. The server keeps them for 31 days, within the space of the setting history.
// For each client and day, it keeps up to 1000 changes and 100 failed changes. The log
// has all changes that succeeded.
func (c *Client) ListChanges(ctx context.Context, in *ListChanges) (Changes, error) {
	return ask[Changes](ctx, c, "GET /changes", in)
}

// GetCluster calls GET /cluster. It returns the members of the cluster and their state.
//
// The answer is the view of this member. Only the leader measures the progress of the
// others, and only of members that it reaches. The status is 404 if the server is not a
// member of a cluster.
func (c *Client) GetCluster(ctx context.Context) (Cluster, error) {
	return ask[Cluster](ctx, c, "GET /cluster", nil)
}

// TransferLead calls POST /cluster/transfer. It transfers the leadership to another
// member.
//
// Clients normally keep their connections and jobs. Any member accepts the request. The
// status is 503 if the other member cannot lead; the current leader then continues.
func (c *Client) TransferLead(ctx context.Context, in *TransferLead) error {
	return c.Do(ctx, "POST /cluster/transfer", in, nil)
}

// GetServer calls GET /server. It returns the configuration and the environment of the
// server.
//
// The answer contains the settings and their sources, the listeners, the certificates
// with their expiry, and the journal. It contains no keys, no tokens and no hashes of
// tokens.
func (c *Client) GetServer(ctx context.Context) (Server, error) {
	return ask[Server](ctx, c, "GET /server", nil)
}

// Drain calls POST /drain. It rejects new jobs.
//
// Puts get `DRAINING`, other commands work, and /readyz returns 503. Has no effect if the
// server is already draining.
func (c *Client) Drain(ctx context.Context) error { return c.Do(ctx, "POST /drain", nil, nil) }

// Undrain calls POST /undrain. It accepts new jobs again.
func (c *Client) Undrain(ctx context.Context) error { return c.Do(ctx, "POST /undrain", nil, nil) }

// GetJournal calls GET /journal. It downloads a backup of the journal.
//
// The backup is a tar archive of the segments, with all jobs and their bodies. It
// contains every change that was acknowledged before the request, and possibly later
// changes, without gaps. Unpacked into an empty directory, it is a journal that a server
// can use. Clients are served during the download. The server makes one backup at a time.
// If the connection ends early, the archive is incomplete.
func (c *Client) GetJournal(ctx context.Context) (*Stream, error) {
	return ask[*Stream](ctx, c, "GET /journal", nil)
}

// RewriteJournal calls POST /journal/rewrite. It rewrites the journal.
//
// The server writes all jobs from memory to new segments, and then removes the old ones,
// while it serves clients. Use it if the disk might have damaged a segment. The log
// reports the end.
func (c *Client) RewriteJournal(ctx context.Context) error {
	return c.Do(ctx, "POST /journal/rewrite", nil, nil)
}

// ListTasks calls GET /tasks. It lists the running and finished tasks, the newest first.
//
// The list contains tasks of tubes on which the client has the right. The server keeps
// 100 tasks.
func (c *Client) ListTasks(ctx context.Context) (Tasks, error) {
	return ask[Tasks](ctx, c, "GET /tasks", nil)
}

// GetTask calls GET /tasks/{task}. It returns the progress of a task.
//
// The client needs the right on the tube of the task.
func (c *Client) GetTask(ctx context.Context, in *GetTask) (Task, error) {
	return ask[Task](ctx, c, "GET /tasks/{task}", in)
}

// CancelTask calls DELETE /tasks/{task}. It cancels a task.
//
// Changes that the task has made remain. The status is 409 if the task has finished. The
// client needs the right on the tube of the task.
func (c *Client) CancelTask(ctx context.Context, in *OfTask) error {
	return c.Do(ctx, "DELETE /tasks/{task}", in, nil)
}

// SearchAll calls GET /search. It searches the bodies of jobs in all tubes.
//
// The search covers the tubes on which the client has both rights, by name. See
// /tubes/{tube}/search.
func (c *Client) SearchAll(ctx context.Context, in *SearchAll) (Found, error) {
	return ask[Found](ctx, c, "GET /search", in)
}

// ExportAll calls GET /export. It streams all jobs with their bodies.
//
// The stream covers the tubes on which the client has both rights, by name. See
// /tubes/{tube}/export.
func (c *Client) ExportAll(ctx context.Context, in *ExportAll) (*Stream, error) {
	return ask[*Stream](ctx, c, "GET /export", in)
}

// ImportAll calls POST /import. It puts many jobs into the tubes that they name.
//
// The client needs the right on each of these tubes. See /tubes/{tube}/import.
func (c *Client) ImportAll(ctx context.Context, in *ImportAll) (Imported, error) {
	return ask[Imported](ctx, c, "POST /import", in)
}

// ListTubes calls GET /tubes. It lists the tubes.
//
// The order is by name, unless `sort` is given. With `sort`, `q` or `has`, the page
// contains the number of matching tubes and of their jobs. A tube whose position changes
// between two pages can be on both pages or on none. Tubes on which the client lacks the
// right are left out.
func (c *Client) ListTubes(ctx context.Context, in *ListTubes) (Tubes, error) {
	return ask[Tubes](ctx, c, "GET /tubes", in)
}

// GetTube calls GET /tubes/{tube}. It returns a tube.
func (c *Client) GetTube(ctx context.Context, in *OfTube) (Tube, error) {
	return ask[Tube](ctx, c, "GET /tubes/{tube}", in)
}

// ExplainTube calls GET /tubes/{tube}/explain. It explains why the jobs of a tube wait.
//
// The explanation covers the workers and the jobs that they hold, the pause, the policy,
// and refused puts. It names a connection only if the client has the right on every tube.
func (c *Client) ExplainTube(ctx context.Context, in *OfTube) (Explanation, error) {
	return ask[Explanation](ctx, c, "GET /tubes/{tube}/explain", in)
}

// GetTubeHistory calls GET /tubes/{tube}/history. It returns time series of a tube.
//
// The series are those of getHistory, without memory_bytes, connections, waiting, refused
// and commands, and with oldest_ready, the time in seconds that the next job has been
// ready. The durations need a step of 60 or 3600. The server records up to 1000 tubes,
// those with the most jobs first. The arrays are empty if it has recorded nothing of the
// tube.
func (c *Client) GetTubeHistory(ctx context.Context, in *GetTubeHistory) (History, error) {
	return ask[History](ctx, c, "GET /tubes/{tube}/history", in)
}

// PauseTube calls POST /tubes/{tube}/pause. It pauses a tube.
//
// Workers get no jobs from it for the given time. A second pause replaces the first.
func (c *Client) PauseTube(ctx context.Context, in *PauseTube) error {
	return c.Do(ctx, "POST /tubes/{tube}/pause", in, nil)
}

// ResumeTube calls POST /tubes/{tube}/resume. It ends the pause of a tube.
//
// Has no effect if the tube is not paused. The status is 409 if a policy pauses the tube;
// that pause continues.
func (c *Client) ResumeTube(ctx context.Context, in *OfTube) error {
	return c.Do(ctx, "POST /tubes/{tube}/resume", in, nil)
}

// ExplainPolicy calls GET /tubes/{tube}/policy. It returns the effective policy of a tube
// and its sources.
//
// The tube need not exist. Run-time settings override the configuration file, and for
// each setting the most specific pattern applies.
func (c *Client) ExplainPolicy(ctx context.Context, in *OfTube) (TubePolicy, error) {
	return ask[TubePolicy](ctx, c, "GET /tubes/{tube}/policy", in)
}

// ListPolicies calls GET /policies. It lists the policies of the configuration file and
// those set at run time.
//
// The list contains patterns whose tubes the client can all see. Within a source, more
// specific patterns are later.
func (c *Client) ListPolicies(ctx context.Context) (Policies, error) {
	return ask[Policies](ctx, c, "GET /policies", nil)
}

// SetPolicy calls PATCH /policies/{pattern}. It sets and unsets settings for a pattern of
// tubes.
//
// Settings are durable, and also apply to tubes that are created later. A change to a
// named tube takes effect at once, and a change to a pattern within a few turns. A job is
// affected at its next event. `paused` also accepts a duration such as `1h30m` or `2d`,
// counted from now. The client needs the right on every tube that the pattern matches.
func (c *Client) SetPolicy(ctx context.Context, in *SetPolicy) (Policy, error) {
	return ask[Policy](ctx, c, "PATCH /policies/{pattern}", in)
}

// DeletePolicy calls DELETE /policies/{pattern}. It unsets all run-time settings of a
// pattern.
//
// The configuration file applies again. The client needs the right on every tube that the
// pattern matches.
func (c *Client) DeletePolicy(ctx context.Context, in *OfPolicy) error {
	return c.Do(ctx, "DELETE /policies/{pattern}", in, nil)
}

// ListSchedules calls GET /schedules. It lists the schedules, by name.
//
// Schedules whose tube the client has no right on are left out.
func (c *Client) ListSchedules(ctx context.Context) (Schedules, error) {
	return ask[Schedules](ctx, c, "GET /schedules", nil)
}

// GetSchedule calls GET /schedules/{schedule}. It returns a schedule.
func (c *Client) GetSchedule(ctx context.Context, in *OfSchedule) (Schedule, error) {
	return ask[Schedule](ctx, c, "GET /schedules/{schedule}", in)
}

// SetSchedule calls PUT /schedules/{schedule}. It sets the whole definition of a
// schedule.
//
// It is durable and overrides the configuration file. The client needs the manage and put
// rights on the tube, and on the tube of an earlier definition. If the times change, runs
// count from now.
func (c *Client) SetSchedule(ctx context.Context, in *SetSchedule) (Schedule, error) {
	return ask[Schedule](ctx, c, "PUT /schedules/{schedule}", in)
}

// RemoveSchedule calls DELETE /schedules/{schedule}. It removes the run-time definition
// of a schedule.
//
// Its jobs remain. A definition in the configuration file applies again; the status is
// 409 if there is no other definition. The client needs the manage and put rights on the
// tube.
func (c *Client) RemoveSchedule(ctx context.Context, in *OfSchedule) error {
	return c.Do(ctx, "DELETE /schedules/{schedule}", in, nil)
}

// RunSchedule calls POST /schedules/{schedule}/run. It puts the job of a schedule now.
//
// The other runs stay unchanged. The client needs the manage and put rights on the tube.
func (c *Client) RunSchedule(ctx context.Context, in *OfSchedule) (Inserted, error) {
	return ask[Inserted](ctx, c, "POST /schedules/{schedule}/run", in)
}

// PauseSchedule calls POST /schedules/{schedule}/pause. It pauses a schedule.
//
// The client needs the manage and put rights on the tube.
func (c *Client) PauseSchedule(ctx context.Context, in *OfSchedule) error {
	return c.Do(ctx, "POST /schedules/{schedule}/pause", in, nil)
}

// ResumeSchedule calls POST /schedules/{schedule}/resume. It ends the pause of a
// schedule.
//
// Runs during the pause do not count as missed. The client needs the manage and
// put rights on the tube.
func (c *Client) ResumeSchedule(ctx context.Context, in *OfSchedule) error {
	return c.Do(ctx, "POST /schedules/{schedule}/resume", in, nil)
}

// StartTask calls POST /tubes/{tube}/tasks. It changes many jobs of a tube.
//
// The task applies to the jobs in `ids` or in a `state`; with a search only to matching
// bodies. It first collects the jobs, then changes each that is still in that state, in
// short turns. It continues if the client disconnects; a restart ends it. Four tasks run
// at a time. A move also needs the right on the other tube, a search also peek and stats.
func (c *Client) StartTask(ctx context.Context, in *StartTask) (Task, error) {
	return ask[Task](ctx, c, "POST /tubes/{tube}/tasks", in)
}

// ListJobs calls GET /tubes/{tube}/jobs. It lists the jobs of a tube in one state.
//
// Ready jobs are in the order of priority and id, delayed and reserved jobs in the order
// of their deadlines, and buried jobs in the order in which they were buried. A job that
// changes its state or position while the server builds the page is left out. With
// `bodies`, the client also needs the peek right, and a page ends when its bodies reach 1
// MiB.
func (c *Client) ListJobs(ctx context.Context, in *ListJobs) (Jobs, error) {
	return ask[Jobs](ctx, c, "GET /tubes/{tube}/jobs", in)
}

// ListClasses calls GET /tubes/{tube}/classes. It counts the classes of a tube's jobs in
// a sample.
//
// The sample is the first jobs of the state, in the order of lists. It ends after `limit`
// jobs, 32 MiB of bodies or 100 ms.
func (c *Client) ListClasses(ctx context.Context, in *ListClasses) (Classes, error) {
	return ask[Classes](ctx, c, "GET /tubes/{tube}/classes", in)
}

// ListFailures calls GET /failures. It groups failed jobs by tube, class and reason.
//
// Failed jobs are buried, or wait for another attempt after a failure. A kick or a
// redrive of a buried job ends its failure. The sample has the first buried, delayed and
// ready jobs of each tube: all of up to 20,000 jobs, or else equal shares of tubes and
// states, at least 100 jobs each. It ends after 50,000 jobs, 32 MiB of bodies or 500 ms.
// To change the jobs of a group, start a task with its state and `q`.
func (c *Client) ListFailures(ctx context.Context, in *ListFailures) (Failures, error) {
	return ask[Failures](ctx, c, "GET /failures", in)
}

// ListReserved calls GET /reserved. It lists the reserved jobs of all tubes, the longest
// held first.
//
// The list has up to 100 jobs of each connection: those that it has held for longest.
// Tubes on which the client lacks the right are left out.
func (c *Client) ListReserved(ctx context.Context, in *ListReserved) (Reserved, error) {
	return ask[Reserved](ctx, c, "GET /reserved", in)
}

// PutJob calls POST /tubes/{tube}/jobs. It puts a job.
//
// Creates the tube if it does not exist.
func (c *Client) PutJob(ctx context.Context, in *PutJob) (Inserted, error) {
	return ask[Inserted](ctx, c, "POST /tubes/{tube}/jobs", in)
}

// SearchTube calls GET /tubes/{tube}/search. It searches the bodies of jobs in a tube.
//
// A page ends when `limit` jobs match, when the matching bodies reach 1 MiB, or after
// 50,000 jobs, 32 MiB of bodies or 100 ms. While the page has `next`, there is more to
// search. Jobs are in the order of states (ready, reserved, delayed, buried), and within
// a state in the order of lists. The search covers the first MiB of a body. A client can
// run one search or list of more than 1000 jobs at a time, and two clients together; a
// further request gets 503 after a second.
func (c *Client) SearchTube(ctx context.Context, in *SearchTube) (Found, error) {
	return ask[Found](ctx, c, "GET /tubes/{tube}/search", in)
}

// ExportTube calls GET /tubes/{tube}/export. It streams the jobs of a tube with their
// bodies.
//
// Each line is a job in JSON. An export changes no job. A client can run one export at a
// time, and two clients together; a further export gets 503 after a second. If the
// connection ends before the last chunk, the export is incomplete.
func (c *Client) ExportTube(ctx context.Context, in *ExportTube) (*Stream, error) {
	return ask[*Stream](ctx, c, "GET /tubes/{tube}/export", in)
}

// ImportTube calls POST /tubes/{tube}/import. It puts many jobs into a tube.
//
// Each line is a job in JSON, as written by an export: body, priority, time to run,
// remaining delay and failure. Buried jobs stay buried, and reserved jobs become ready.
// Ids and counters are new. All jobs go into this tube, even if they name other tubes. If
// a line is invalid or refused, the jobs before it remain, and `done` in the problem is
// their number.
func (c *Client) ImportTube(ctx context.Context, in *ImportTube) (Imported, error) {
	return ask[Imported](ctx, c, "POST /tubes/{tube}/import", in)
}

// GetJob calls GET /jobs/{job}. It returns a job with its body.
//
// The body is included if the client also has the peek right and the body has at most 1
// MiB: as `body` if it is valid UTF-8, otherwise as `body_base64`. `/jobs/{job}/body`
// returns a body of any size.
func (c *Client) GetJob(ctx context.Context, in *OfJob) (Job, error) {
	return ask[Job](ctx, c, "GET /jobs/{job}", in)
}

// GetBody calls GET /jobs/{job}/body. It returns the body of a job, byte for byte.
func (c *Client) GetBody(ctx context.Context, in *OfJob) (Bytes, error) {
	return ask[Bytes](ctx, c, "GET /jobs/{job}/body", in)
}

// ChangeJob calls PATCH /jobs/{job}. It changes a job that is not reserved.
//
// Changes the priority, the time to run, the delay (in seconds from now; 0 makes the job
// ready; a buried job has none) or the body: all given members, or none. The job keeps
// its id and position. A change of the body also needs the put right.
func (c *Client) ChangeJob(ctx context.Context, in *ChangeJob) error {
	return c.Do(ctx, "PATCH /jobs/{job}", in, nil)
}

// CopyJob calls POST /jobs/{job}/copy. It puts a new job with the same body.
//
// The copy has the priority and the time to run of the job, unless others are given, and
// no delay. The client also needs the put right on the other tube.
func (c *Client) CopyJob(ctx context.Context, in *CopyJob) (Inserted, error) {
	return ask[Inserted](ctx, c, "POST /jobs/{job}/copy", in)
}

// DeleteJob calls DELETE /jobs/{job}. It deletes a job.
//
// The status is 409 if the job is reserved: bury it first.
func (c *Client) DeleteJob(ctx context.Context, in *OfJob) error {
	return c.Do(ctx, "DELETE /jobs/{job}", in, nil)
}

// MoveJob calls POST /jobs/{job}/move. It moves a job that is not reserved to another
// tube.
//
// The job keeps its id and all attributes. The client also needs the right on the other
// tube.
func (c *Client) MoveJob(ctx context.Context, in *MoveJob) error {
	return c.Do(ctx, "POST /jobs/{job}/move", in, nil)
}

// RedriveJob calls POST /jobs/{job}/redrive. It returns a buried or ready job to its
// origin.
//
// The job becomes ready there, and has all its attempts again. The client also needs the
// right on the origin.
func (c *Client) RedriveJob(ctx context.Context, in *OfJob) error {
	return c.Do(ctx, "POST /jobs/{job}/redrive", in, nil)
}

// KickJob calls POST /jobs/{job}/kick. It makes a buried or delayed job ready.
func (c *Client) KickJob(ctx context.Context, in *OfJob) error {
	return c.Do(ctx, "POST /jobs/{job}/kick", in, nil)
}

// BuryJob calls POST /jobs/{job}/bury. It burys a job.
//
// The job can be ready, delayed or reserved. A worker that holds the job loses it, as by
// a timeout: its next command for the job gets `NOT_FOUND`.
func (c *Client) BuryJob(ctx context.Context, in *BuryJob) error {
	return c.Do(ctx, "POST /jobs/{job}/bury", in, nil)
}

// ReleaseJob calls POST /jobs/{job}/release. It takes a job away from its worker.
//
// The job becomes ready or delayed. The worker loses it, as by a timeout: its next
// command for the job gets `NOT_FOUND`. The status is 409 if the job is not reserved.
func (c *Client) ReleaseJob(ctx context.Context, in *ReleaseJob) error {
	return c.Do(ctx, "POST /jobs/{job}/release", in, nil)
}

// ListConnections calls GET /connections. It lists the connections of clients.
//
// The order is undefined, unless `sort` is given: then the server looks at all
// connections for each page, and the page contains the number of matches. A connection
// whose position changes between two pages can be on both pages or on none.
func (c *Client) ListConnections(ctx context.Context, in *ListConnections) (Connections, error) {
	return ask[Connections](ctx, c, "GET /connections", in)
}

// GetConnection calls GET /connections/{connection}. It returns a connection.
func (c *Client) GetConnection(ctx context.Context, in *OfConnection) (Connection, error) {
	return ask[Connection](ctx, c, "GET /connections/{connection}", in)
}

// CloseConnection calls DELETE /connections/{connection}. It closes a connection.
//
// Replies that the client has not read are lost, and the jobs that it holds become ready.
func (c *Client) CloseConnection(ctx context.Context, in *OfConnection) error {
	return c.Do(ctx, "DELETE /connections/{connection}", in, nil)
}
