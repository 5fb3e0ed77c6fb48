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

// beanstalkdOperations are those that the protocol can do, by their ids.
var beanstalkdOperations = map[string]func(b *beanstalkd, r *request) (reply, error){
	"getMe":        (*beanstalkd).getMe,
	"getStats":     (*beanstalkd).getStats,
	"getAttention": ofItsTubes(getAttention),
	"listTubes":    ofItsTubes(listTubes),
	"getTube":      (*beanstalkd).getTube,
	"pauseTube":    (*beanstalkd).pauseTube,
	"resumeTube":   (*beanstalkd).resumeTube,
	"listJobs":     (*beanstalkd).listJobs,
	"putJob":       (*beanstalkd).putJob,
	"getJob":       (*beanstalkd).getJob,
	"getBody":      (*beanstalkd).getBody,
	"kickJob":      (*beanstalkd).kickJob,
	"deleteJob":    (*beanstalkd).deleteJob,
	"copyJob":      (*beanstalkd).copyJob,
	"startTask":    (*beanstalkd).startTask,
	"listTasks":    func(_ *beanstalkd, r *request) (reply, error) { return listTasks(r) },
	"getTask":      func(_ *beanstalkd, r *request) (reply, error) { return getTask(r) },
	"cancelTask":   func(_ *beanstalkd, r *request) (reply, error) { return cancelTask(r) },
	"listChanges":  func(_ *beanstalkd, r *request) (reply, error) { return r.changesAt(r.other.name) },
}

// ofItsTubes returns an operation of this server, done to the tubes of a beanstalkd.
func ofItsTubes(do func(*request) (reply, error)) func(*beanstalkd, *request) (reply, error) {
	return func(b *beanstalkd, r *request) (reply, error) {
		r.tubes = func(tell func(*surveyedTube)) error { return b.survey(r.http.Context(), tell) }
		return do(r)
	}
}

// do implements Other.
func (b *beanstalkd) do(r *request) (reply, error) {
	operation := beanstalkdOperations[r.op.id]
	if operation == nil {
		return reply{}, problemf(http.StatusNotImplemented, "a beanstalkd cannot do that: its protocol has no command for it")
	}
	r.work = &b.tasks
	rep, err := operation(b, r)
	return rep, beanstalkdProblem(err)
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
	ctx, cancel := context.WithTimeout(r.http.Context(), otherPatience)
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

func (b *beanstalkd) getMe(*request) (reply, error) {
	names := func() []string { return strings.Split(rights.All.String(), ",") }
	return reply{body: &Me{Anywhere: names(), Everywhere: names(), Tube: names()}}, nil
}

func (b *beanstalkd) getStats(r *request) (reply, error) {
	var st *client.ServerStats
	err := b.with(r, func(ctx context.Context, c *client.Conn) (err error) {
		st, err = c.Stats(ctx)
		return err
	})
	if err != nil {
		return reply{}, err
	}
	s := Stats{
		Version: st.Version, Uptime: int64(st.Uptime.Seconds()), Draining: st.Draining,
		Jobs:   JobCounts{st.JobsReady, st.JobsReserved, st.JobsDelayed, st.JobsBuried},
		Urgent: st.JobsUrgent, TotalJobs: st.TotalJobs, Timeouts: st.JobTimeouts, MaxJobSize: int(st.MaxJobSize), Tubes: st.Tubes,
		Connections: ConnectionCounts{Current: st.Connections, Producers: st.Producers, Workers: st.Workers, Waiting: st.Waiting, Total: st.TotalConnections},
		Commands:    commandsOf(st.All),
	}
	return reply{body: s}, nil
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

func (b *beanstalkd) getTube(r *request) (reply, error) {
	var t Tube
	err := b.with(r, func(ctx context.Context, c *client.Conn) error {
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
	return reply{body: t}, err
}

func (b *beanstalkd) pauseTube(r *request) (reply, error) {
	seconds, err := r.pauseSeconds()
	if err != nil {
		return reply{}, err
	}
	return b.pause(r, time.Duration(seconds)*time.Second)
}

func (b *beanstalkd) resumeTube(r *request) (reply, error) {
	if err := r.decode(&struct{}{}, true); err != nil {
		return reply{}, err
	}
	return b.pause(r, 0)
}

func (b *beanstalkd) pause(r *request, d time.Duration) (reply, error) {
	defer b.forget()
	return reply{status: http.StatusNoContent}, b.with(r, func(ctx context.Context, c *client.Conn) error {
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
func (b *beanstalkd) listJobs(r *request) (reply, error) {
	page := Jobs{Jobs: []Job{}}
	peek := peeks[r.query.Get("state")]
	if peek == nil {
		return reply{body: page}, nil
	}
	err := b.inTube(r, func(ctx context.Context, c *client.Conn, _ *client.TubeStats) error {
		found, err := peek(c, ctx)
		if err == nil {
			var j Job
			if j, err = describeJob(ctx, c, found); err == nil {
				page.Jobs = append(page.Jobs, j)
			}
		}
		if errors.Is(err, client.ErrNotFound) {
			return nil
		}
		return err
	})
	return reply{body: page}, err
}

// describeJob tells of a job that was peeked.
func describeJob(ctx context.Context, c *client.Conn, found client.PeekedJob) (j Job, err error) {
	st, err := c.StatsJob(ctx, found.ID)
	if err != nil {
		return j, err
	}
	j = Job{Job: jobjson.Job{
		ID: st.ID, Tube: st.Tube, State: string(st.State), Priority: st.Priority, Size: int64(len(found.Body)), Age: int64(st.Age.Seconds()),
		Delay: uint32(st.Delay.Seconds()), TTR: uint32(st.TTR.Seconds()), TimeLeft: int64(st.TimeLeft.Seconds()),
		Reserves: st.Reserves, Timeouts: st.Timeouts, Releases: st.Releases, Buries: st.Buries, Kicks: st.Kicks,
	}}
	if j.Size <= largestBody {
		j.SetBody(found.Body)
	}
	return j, nil
}

// theJob calls f with the job that the path names.
func (b *beanstalkd) theJob(r *request, f func(ctx context.Context, c *client.Conn, j *Job, body []byte) error) error {
	return b.with(r, func(ctx context.Context, c *client.Conn) error {
		found, err := c.Peek(ctx, r.job)
		var j Job
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

func (b *beanstalkd) getJob(r *request) (rep reply, err error) {
	return rep, b.theJob(r, func(_ context.Context, _ *client.Conn, j *Job, _ []byte) error {
		rep.body = *j
		return nil
	})
}

func (b *beanstalkd) getBody(r *request) (rep reply, err error) {
	return rep, b.theJob(r, func(_ context.Context, _ *client.Conn, _ *Job, body []byte) error {
		rep.raw, rep.isRaw = body, true
		return nil
	})
}

func (b *beanstalkd) kickJob(r *request) (reply, error) {
	return b.change(r, "kicked: it must be buried or delayed", (*client.Conn).KickJob)
}

func (b *beanstalkd) deleteJob(r *request) (reply, error) {
	return b.change(r, "deleted: a worker holds it", (*client.Conn).Delete)
}

// change does something to the job that the path names.
func (b *beanstalkd) change(r *request, what string, do func(c *client.Conn, ctx context.Context, id uint64) error) (reply, error) {
	return reply{status: http.StatusNoContent}, b.theJob(r, func(ctx context.Context, c *client.Conn, j *Job, _ []byte) error {
		err := do(c, ctx, j.ID)
		if errors.Is(err, client.ErrNotFound) {
			return problemf(http.StatusConflict, "job %d is %s and cannot be %s", j.ID, j.State, what)
		}
		return err
	})
}

func (b *beanstalkd) putJob(r *request) (reply, error) {
	spec, body, err := r.jobToPut()
	if err != nil {
		return reply{}, err
	}
	defer b.forget()
	var id uint64
	err = b.with(r, func(ctx context.Context, c *client.Conn) (err error) {
		id, err = c.Put(ctx, newJob(r.tube, spec, body))
		return errors.Join(err, c.Use(ctx, jobjson.DefaultTube))
	})
	return r.put("job", id, err)
}

func (b *beanstalkd) copyJob(r *request) (reply, error) {
	in, err := r.copyOfJob()
	if err != nil {
		return reply{}, err
	}
	var id uint64
	err = b.theJob(r, func(ctx context.Context, c *client.Conn, j *Job, body []byte) (err error) {
		spec := engine.Spec{Pri: valueOr(in.Priority, j.Priority), Delay: in.Delay, TTR: valueOr(in.TTR, j.TTR)}
		id, err = c.Put(ctx, newJob(in.To, spec, body))
		return errors.Join(err, c.Use(ctx, jobjson.DefaultTube))
	})
	return r.put("copy", id, err)
}

func newJob(tube string, spec engine.Spec, body []byte) client.NewJob {
	return client.NewJob{Tube: tube, Body: body, Priority: client.PriorityOf(spec.Pri), Delay: time.Duration(spec.Delay) * time.Second, TTR: time.Duration(max(spec.TTR, 1)) * time.Second}
}
