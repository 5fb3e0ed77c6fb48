package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/jobjson"
	"github.com/beanpole-mq/beanpole/internal/rights"
)

// beanstalkd is a server that has its protocol only. What the protocol has no command for is answered 501.
type beanstalkd struct {
	pool  *client.Pool
	tasks tasks

	mu     sync.Mutex
	listed time.Time // when tubes were asked for
	took   time.Duration
	tubes  []surveyedTube // as they were
	failed time.Time      // when they were asked for in vain
	why    error
}

// NewBeanstalkd returns a server by its address, HOST:PORT. Nothing is connected yet.
func NewBeanstalkd(address string) (Other, error) {
	pool, err := client.NewPool(address, &client.PoolOptions{MaxConns: 8, MaxIdle: 2, Options: client.Options{
		DialTimeout: dialPatience, Timeout: otherPatience, Reconnect: client.Never,
	}})
	if err != nil {
		return nil, err
	}
	return &beanstalkd{pool: pool}, nil
}

func (b *beanstalkd) close() {
	b.tasks.close()
	b.pool.Close()
}

// A feature is an operation that the protocol can do.
type feature func(b *beanstalkd, r *request, in any) (any, error)

func can[In, Out any](do func(*beanstalkd, *request, *In) (Out, error)) feature {
	return func(b *beanstalkd, r *request, in any) (any, error) { return do(b, r, in.(*In)) }
}

// same is an operation of this server, done to the tubes and the tasks of a beanstalkd.
func same[In, Out any](do func(*request, *In) (Out, error)) feature {
	return func(_ *beanstalkd, r *request, in any) (any, error) { return do(r, in.(*In)) }
}

// beanstalkdOperations are those that the protocol can do, by their ids.
var beanstalkdOperations = map[string]feature{
	"getMe":        can((*beanstalkd).getMe),
	"getStats":     can((*beanstalkd).getStats),
	"getAttention": same((*request).getAttention),
	"listTubes":    same((*request).listTubes),
	"getTube":      can((*beanstalkd).getTube),
	"pauseTube":    can((*beanstalkd).pauseTube),
	"resumeTube":   can((*beanstalkd).resumeTube),
	"listJobs":     can((*beanstalkd).listJobs),
	"putJob":       can((*beanstalkd).putJob),
	"getJob":       can((*beanstalkd).getJob),
	"getBody":      can((*beanstalkd).getBody),
	"kickJob":      can((*beanstalkd).kickJob),
	"deleteJob":    can((*beanstalkd).deleteJob),
	"copyJob":      can((*beanstalkd).copyJob),
	"startTask":    can((*beanstalkd).startTask),
	"listTasks":    same((*request).listTasks),
	"getTask":      same((*request).getTask),
	"cancelTask":   same((*request).cancelTask),
	"listChanges":  same(func(r *request, in *admin.ListChanges) (admin.Changes, error) { return r.changesAt(r.other.name, in) }),
}

// do implements Other.
func (b *beanstalkd) do(r *request, in any) (any, error) {
	operation := beanstalkdOperations[r.op.ID]
	if operation == nil {
		return nil, problemf(http.StatusNotImplemented, "a beanstalkd cannot do that: its protocol has no command for it")
	}
	r.work = &b.tasks
	r.tubes = func(tell func(*surveyedTube)) error { return b.survey(r.ctx, tell) }
	out, err := operation(b, r, in)
	return out, beanstalkdProblem(err)
}

// beanstalkdProblem returns what an error of the client means; one of the connection stays as it is.
func beanstalkdProblem(err error) error {
	switch {
	case errors.Is(err, client.ErrDraining):
		return outcomeProblem(engine.Draining)
	case errors.Is(err, client.ErrOutOfMemory), errors.Is(err, client.ErrBuried):
		return outcomeProblem(engine.OutOfMemory)
	case errors.Is(err, client.ErrJobTooBig):
		return problemf(http.StatusRequestEntityTooLarge, "the body is larger than this server takes")
	case errors.Is(err, client.ErrUnauthorized), errors.Is(err, client.ErrUnknownCommand):
		return problemf(http.StatusNotImplemented, "the server refuses that: %v", err)
	case errors.Is(err, client.ErrNotFound):
		return problemf(http.StatusNotFound, "it is not there any more")
	}
	return err
}

// with calls f with a connection.
func (b *beanstalkd) with(r *request, f func(ctx context.Context, c *client.Conn) error) error {
	ctx, cancel := context.WithTimeout(r.ctx, otherPatience)
	defer cancel()
	return b.pool.Do(ctx, f)
}

// inTube calls f with a connection that uses the tube of a request, if there is one of that name.
func (b *beanstalkd) inTube(r *request, f func(ctx context.Context, c *client.Conn, st *client.TubeStats) error) error {
	return b.with(r, func(ctx context.Context, c *client.Conn) error {
		st, err := c.StatsTube(ctx, r.tube) // a use would make it
		if errors.Is(err, client.ErrNotFound) {
			return r.noTube()
		}
		if err == nil {
			err = c.Use(ctx, r.tube)
		}
		if err != nil {
			return err
		}
		// A connection that uses a tube keeps it.
		return errors.Join(f(ctx, c, st), c.Use(ctx, jobjson.DefaultTube))
	})
}

func (b *beanstalkd) getMe(*request, *admin.GetMe) (admin.Me, error) {
	names := func() []string { return strings.Split(rights.All.String(), ",") }
	return admin.Me{Anywhere: names(), Everywhere: names(), Tube: names()}, nil
}

func (b *beanstalkd) getStats(r *request, _ *admin.None) (s admin.Stats, err error) {
	var st *client.ServerStats
	err = b.with(r, func(ctx context.Context, c *client.Conn) (err error) {
		st, err = c.Stats(ctx)
		return err
	})
	if err != nil {
		return s, err
	}
	return admin.Stats{
		Version: st.Version, Uptime: int64(st.Uptime.Seconds()), Draining: st.Draining,
		Jobs:   admin.JobCounts{Ready: st.JobsReady, Reserved: st.JobsReserved, Delayed: st.JobsDelayed, Buried: st.JobsBuried},
		Urgent: st.JobsUrgent, TotalJobs: st.TotalJobs, Timeouts: st.JobTimeouts, MaxJobSize: int(st.MaxJobSize), Tubes: st.Tubes,
		Connections: admin.ConnectionCounts{Current: st.Connections, Producers: st.Producers, Workers: st.Workers, Waiting: st.Waiting, Total: st.TotalConnections},
		Commands:    commandsOf(st.All),
	}, nil
}

// commandsOf returns how often each command was given, by its name.
func commandsOf(stats map[string]string) map[string]uint64 {
	all := make(map[string]uint64)
	for key, text := range stats {
		var n uint64
		if name, ok := strings.CutPrefix(key, "cmd-"); ok {
			fmt.Sscan(text, &n)
			all[name] = n
		}
	}
	return all
}

// survey tells of all tubes as they were a moment ago: the longer that takes, the longer.
func (b *beanstalkd) survey(ctx context.Context, tell func(*surveyedTube)) error {
	came := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failed.After(came) {
		return b.why // whoever has waited meanwhile does not wait once more for the same
	}
	if begun := time.Now(); begun.Sub(b.listed) > max(time.Second, 20*b.took) {
		tubes, err := b.allTubes(ctx)
		if err != nil {
			if ctx.Err() == nil { // else it is the client that has gone
				b.failed, b.why = time.Now(), err
			}
			return err
		}
		b.tubes, b.listed, b.took = tubes, begun, time.Since(begun)
	}
	for i := range b.tubes {
		tell(&b.tubes[i])
	}
	return nil
}

// forget lets the next survey ask: something has changed.
func (b *beanstalkd) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.listed = time.Time{}
}

// allTubes asks for the stats of all tubes, in a few round trips.
func (b *beanstalkd) allTubes(ctx context.Context) (tubes []surveyedTube, err error) {
	ctx, cancel := context.WithTimeout(ctx, otherPatience)
	defer cancel()
	err = b.pool.Do(ctx, func(ctx context.Context, c *client.Conn) error {
		names, err := c.ListTubes(ctx)
		if err != nil {
			return err
		}
		all, err := c.StatsTubeMany(ctx, names)
		if _, ok := errors.AsType[*client.BatchError](err); err != nil && !ok { // else some tubes are gone
			return err
		}
		now := time.Now().UnixNano()
		for i, st := range all {
			if st != nil {
				tubes = append(tubes, surveyedTube{name: names[i], at: now, TubeStats: statsOf(st)})
			}
		}
		return nil
	})
	return tubes, err
}

func statsOf(st *client.TubeStats) engine.TubeStats {
	return engine.TubeStats{
		Urgent: st.JobsUrgent, Ready: st.JobsReady, Reserved: st.JobsReserved, Delayed: st.JobsDelayed, Buried: st.JobsBuried,
		TotalJobs: st.TotalJobs, Using: st.Using, Watching: st.Watching, Waiting: st.Waiting, Deletes: st.CmdDelete, Pauses: st.CmdPauseTube,
		Pause: int64(st.Pause.Seconds()), PauseLeft: int64(st.PauseLeft.Seconds()),
	}
}

func (b *beanstalkd) getTube(r *request, _ *admin.OfTube) (t admin.Tube, err error) {
	err = b.with(r, func(ctx context.Context, c *client.Conn) error {
		st, err := c.StatsTube(ctx, r.tube)
		if errors.Is(err, client.ErrNotFound) {
			return r.noTube()
		}
		if err == nil {
			counts := statsOf(st)
			t = tubeOf(r.tube, &counts)
		}
		return err
	})
	return t, err
}

func (b *beanstalkd) pauseTube(r *request, in *admin.PauseTube) (admin.None, error) {
	r.note("seconds", in.Seconds)
	return b.pause(r, time.Duration(in.Seconds)*time.Second)
}

func (b *beanstalkd) resumeTube(r *request, _ *admin.OfTube) (admin.None, error) {
	return b.pause(r, 0)
}

func (b *beanstalkd) pause(r *request, d time.Duration) (none admin.None, err error) {
	defer b.forget()
	return none, b.with(r, func(ctx context.Context, c *client.Conn) error {
		err := c.PauseTube(ctx, r.tube, d)
		if errors.Is(err, client.ErrNotFound) {
			return r.noTube()
		}
		return err
	})
}

// peeks show the first job in a state. There is no command to see those that are reserved.
var peeks = map[string]func(c *client.Conn, ctx context.Context) (client.PeekedJob, error){
	"ready": (*client.Conn).PeekReady, "delayed": (*client.Conn).PeekDelayed, "buried": (*client.Conn).PeekBuried,
}

// listJobs tells of the first job in a state, which is all that can be known.
func (b *beanstalkd) listJobs(r *request, in *admin.ListJobs) (page admin.Jobs, err error) {
	page.Jobs = []admin.Job{}
	peek := peeks[in.State]
	if peek == nil {
		return page, nil
	}
	err = b.inTube(r, func(ctx context.Context, c *client.Conn, _ *client.TubeStats) error {
		found, err := peek(c, ctx)
		if err == nil {
			var j admin.Job
			if j, err = describeJob(ctx, c, found); err == nil {
				page.Jobs = append(page.Jobs, j)
			}
		}
		if errors.Is(err, client.ErrNotFound) {
			return nil
		}
		return err
	})
	return page, err
}

// describeJob tells of a job that was peeked.
func describeJob(ctx context.Context, c *client.Conn, found client.PeekedJob) (j admin.Job, err error) {
	st, err := c.StatsJob(ctx, found.ID)
	if err != nil {
		return j, err
	}
	j = admin.Job{
		ID: st.ID, Tube: st.Tube, State: string(st.State), Priority: st.Priority, Size: int64(len(found.Body)), Age: int64(st.Age.Seconds()),
		Delay: uint32(st.Delay.Seconds()), TTR: uint32(st.TTR.Seconds()), TimeLeft: int64(st.TimeLeft.Seconds()),
		Reserves: st.Reserves, Timeouts: st.Timeouts, Releases: st.Releases, Buries: st.Buries, Kicks: st.Kicks,
	}
	if j.Size <= largestBody {
		j.SetBody(found.Body)
	}
	return j, nil
}

// theJob calls f with the job that the path names.
func (b *beanstalkd) theJob(r *request, f func(ctx context.Context, c *client.Conn, j *admin.Job, body []byte) error) error {
	return b.with(r, func(ctx context.Context, c *client.Conn) error {
		found, err := c.Peek(ctx, r.job)
		var j admin.Job
		if err == nil {
			j, err = describeJob(ctx, c, found)
		}
		switch {
		case errors.Is(err, client.ErrNotFound):
			return problemf(http.StatusNotFound, "there is no job %d", r.job)
		case err != nil:
			return err
		}
		if r.op.changes() {
			r.note("tube", j.Tube)
			defer b.forget()
		}
		return f(ctx, c, &j, found.Body)
	})
}

func (b *beanstalkd) getJob(r *request, _ *admin.OfJob) (job admin.Job, err error) {
	err = b.theJob(r, func(_ context.Context, _ *client.Conn, j *admin.Job, _ []byte) error {
		job = *j
		return nil
	})
	return job, err
}

func (b *beanstalkd) getBody(r *request, _ *admin.OfJob) (body admin.Bytes, err error) {
	err = b.theJob(r, func(_ context.Context, _ *client.Conn, _ *admin.Job, found []byte) error {
		body = found
		return nil
	})
	return body, err
}

func (b *beanstalkd) kickJob(r *request, _ *admin.OfJob) (admin.None, error) {
	return b.change(r, "kicked: it must be buried or delayed", (*client.Conn).KickJob)
}

func (b *beanstalkd) deleteJob(r *request, _ *admin.OfJob) (admin.None, error) {
	return b.change(r, "deleted: a worker holds it", (*client.Conn).Delete)
}

// change does something to the job that the path names.
func (b *beanstalkd) change(r *request, what string, do func(c *client.Conn, ctx context.Context, id uint64) error) (none admin.None, err error) {
	return none, b.theJob(r, func(ctx context.Context, c *client.Conn, j *admin.Job, _ []byte) error {
		err := do(c, ctx, j.ID)
		if errors.Is(err, client.ErrNotFound) {
			return problemf(http.StatusConflict, "job %d is %s and cannot be %s", j.ID, j.State, what)
		}
		return err
	})
}

func (b *beanstalkd) putJob(r *request, in *admin.PutJob) (made admin.Inserted, err error) {
	body, err := bodyOf(in)
	if err != nil {
		return made, err
	}
	defer b.forget()
	err = b.with(r, func(ctx context.Context, c *client.Conn) (err error) {
		made.ID, err = c.Put(ctx, newJob(r.tube, specOf(in), body))
		return errors.Join(err, c.Use(ctx, jobjson.DefaultTube))
	})
	return made, r.put("job", made.ID, err)
}

func (b *beanstalkd) copyJob(r *request, in *admin.CopyJob) (made admin.Inserted, err error) {
	if err := r.permittedTo(in.To, putNamed); err != nil {
		return made, err
	}
	err = b.theJob(r, func(ctx context.Context, c *client.Conn, j *admin.Job, body []byte) (err error) {
		spec := engine.Spec{Pri: valueOr(in.Priority, j.Priority), Delay: in.Delay, TTR: valueOr(in.TTR, j.TTR)}
		made.ID, err = c.Put(ctx, newJob(in.To, spec, body))
		return errors.Join(err, c.Use(ctx, jobjson.DefaultTube))
	})
	return made, r.put("copy", made.ID, err)
}

func newJob(tube string, spec engine.Spec, body []byte) client.NewJob {
	return client.NewJob{Tube: tube, Body: body, Priority: client.PriorityOf(spec.Pri), Delay: time.Duration(spec.Delay) * time.Second, TTR: time.Duration(max(spec.TTR, 1)) * time.Second}
}
