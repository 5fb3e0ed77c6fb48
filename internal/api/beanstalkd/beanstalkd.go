// Package beanstalkd does operations of the management API at a server that has the protocol of beanstalkd only. What the protocol has no
// command for is answered 501. It is a transport of package admin, as the client of a beanpole is one:
//
//	server, err := beanstalkd.New("10.0.0.7:11300")
//	stats, err := admin.On(server).GetStats(ctx)
//
// An error that is no problem says that the server cannot be reached.
package beanstalkd

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"sync/atomic"
	"time"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/api/audit"
	"github.com/beanpole-mq/beanpole/internal/api/jobjson"
	"github.com/beanpole-mq/beanpole/internal/api/task"
	"github.com/beanpole-mq/beanpole/internal/api/tubes"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/op"
	"github.com/beanpole-mq/beanpole/internal/rights"
)

const (
	dialTimeout = 2 * time.Second
	timeout     = 5 * time.Second // of a command
)

// A Server is a beanstalkd. Close ends its tasks and its connections.
type Server struct {
	pool  *client.Pool
	tasks task.Runner
	tubes tubes.Shared[tubes.Tube]
	took  atomic.Int64 // ns; to ask for all of them, the last time
}

// New returns a server by its address, HOST:PORT. Nothing is connected yet.
func New(address string) (*Server, error) {
	pool, err := client.NewPool(address, &client.Options{
		DialTimeout: dialTimeout, Timeout: timeout, Reconnect: client.Never, MaxConns: 8, MaxIdle: 2,
	})
	if err != nil {
		return nil, err
	}
	return &Server{pool: pool}, nil
}

// Close ends what goes on.
func (b *Server) Close() {
	b.tasks.Close()
	b.pool.Close()
}

// operations are those that the protocol can do, by their routes.
var operations = map[string]func(b *Server, ctx context.Context, in, out any) error{
	"GET /me":                   can((*Server).getMe),
	"GET /stats":                can((*Server).getStats),
	"GET /attention":            can((*Server).getAttention),
	"GET /tubes":                can((*Server).listTubes),
	"GET /tubes/{tube}":         can((*Server).getTube),
	"GET /tubes/{tube}/explain": can((*Server).explainTube),
	"POST /tubes/{tube}/pause":  can((*Server).pauseTube),
	"POST /tubes/{tube}/resume": can((*Server).resumeTube),
	"GET /tubes/{tube}/jobs":    can((*Server).listJobs),
	"POST /tubes/{tube}/jobs":   can((*Server).putJob),
	"GET /jobs/{job}":           can((*Server).getJob),
	"GET /jobs/{job}/body":      can((*Server).getBody),
	"POST /jobs/{job}/kick":     can((*Server).kickJob),
	"DELETE /jobs/{job}":        can((*Server).deleteJob),
	"POST /jobs/{job}/copy":     can((*Server).copyJob),
	"POST /tubes/{tube}/tasks":  can((*Server).startTask),
	"GET /tasks":                can((*Server).listTasks),
	"GET /tasks/{task}":         can((*Server).getTask),
	"DELETE /tasks/{task}":      can((*Server).cancelTask),
}

// can forgets the types of an operation.
func can[In, Out any](do func(*Server, context.Context, *In) (Out, error)) func(b *Server, ctx context.Context, in, out any) error {
	return func(b *Server, ctx context.Context, in, out any) error {
		given, ok := in.(*In)
		if !ok { // there is nothing to say
			given = new(In)
		}
		answer, err := do(b, ctx, given)
		if out != nil && err == nil {
			reflect.ValueOf(out).Elem().Set(reflect.ValueOf(answer))
		}
		return err
	}
}

// Do implements admin.Transport.
func (b *Server) Do(ctx context.Context, route string, in, out any) error {
	do := operations[route]
	if do == nil {
		return admin.Problemf(http.StatusNotImplemented, "a beanstalkd cannot do that: its protocol has no command for it")
	}
	return problemOf(do(b, ctx, in, out))
}

// problemOf returns what an error of the client means; one of the connection stays as it is.
func problemOf(err error) error {
	switch {
	case errors.Is(err, client.ErrDraining):
		return admin.Problemf(http.StatusServiceUnavailable, "the server drains: no new jobs are taken")
	case errors.Is(err, client.ErrOutOfMemory), errors.Is(err, client.ErrBuried):
		return admin.Problemf(http.StatusInsufficientStorage, "the server has no room for the job")
	case errors.Is(err, client.ErrJobTooBig):
		return admin.Problemf(http.StatusRequestEntityTooLarge, "the body is larger than this server takes")
	case errors.Is(err, client.ErrUnauthorized), errors.Is(err, client.ErrUnknownCommand):
		return admin.Problemf(http.StatusNotImplemented, "the server refuses that: %v", err)
	case errors.Is(err, client.ErrNotFound):
		return admin.Problemf(http.StatusNotFound, "it is not there any more")
	}
	return err
}

// ofTube returns what an error means of a command about a tube.
func ofTube(tube string, err error) error {
	if errors.Is(err, client.ErrNotFound) {
		return tubes.ErrNone(tube)
	}
	return err
}

func (b *Server) getMe(context.Context, *admin.GetMe) (admin.Me, error) {
	names := func() []string { return strings.Split(rights.All.String(), ",") }
	return admin.Me{Anywhere: names(), Everywhere: names(), Tube: names()}, nil
}

func (b *Server) getStats(ctx context.Context, _ *admin.None) (s admin.Stats, err error) {
	st, err := b.pool.Stats(ctx)
	if err != nil {
		return s, err
	}
	return admin.Stats{
		Version: st.Version, Uptime: int64(st.Uptime.Seconds()), Draining: st.Draining,
		Jobs:   admin.JobCounts{Ready: st.JobsReady, Reserved: st.JobsReserved, Delayed: st.JobsDelayed, Buried: st.JobsBuried},
		Urgent: st.JobsUrgent, TotalJobs: st.TotalJobs, Timeouts: st.JobTimeouts, MaxJobSize: int(st.MaxJobSize), Tubes: st.Tubes,
		Connections: admin.ConnectionCounts{Current: st.Connections, Producers: st.Producers, Workers: st.Workers, Waiting: st.Waiting, Total: st.TotalConnections},
		Commands:    st.Commands,
	}, nil
}

// look looks at all tubes as they were a moment ago: the longer that takes, the longer. Nobody knows what has happened in them.
func (b *Server) look(ctx context.Context) *tubes.Look {
	age := max(time.Second, 20*time.Duration(b.took.Load()))
	return &tubes.Look{Each: func(tell func(*tubes.Tube)) error { return b.tubes.Each(ctx, age, b.survey, tell) }}
}

func (b *Server) listTubes(ctx context.Context, in *admin.ListTubes) (admin.Tubes, error) {
	return b.look(ctx).List(in)
}

func (b *Server) getAttention(ctx context.Context, in *admin.GetAttention) (admin.Attention, error) {
	return b.look(ctx).Attention(in, nil)
}

// survey asks for the stats of all tubes, in a few round trips.
func (b *Server) survey(ctx context.Context, tell func(*tubes.Tube)) error {
	begun := time.Now()
	return b.pool.Do(ctx, func(ctx context.Context, c *client.Conn) error {
		names, err := c.ListTubes(ctx)
		if err != nil {
			return err
		}
		stats, err := c.StatsTubeMany(ctx, names)
		if _, ok := errors.AsType[*client.BatchError](err); err != nil && !ok { // else some tubes are gone
			return err
		}
		for _, st := range stats {
			if st != nil {
				one := tubeOf(st)
				tell(&one)
			}
		}
		b.took.Store(int64(time.Since(begun)))
		return nil
	})
}

func tubeOf(st *client.TubeStats) tubes.Tube {
	return tubes.Tube{Name: st.Name, At: time.Now().UnixNano(), TubeStats: engine.TubeStats{
		Urgent: st.JobsUrgent, Ready: st.JobsReady, Reserved: st.JobsReserved, Delayed: st.JobsDelayed, Buried: st.JobsBuried,
		TotalJobs: st.TotalJobs, Using: st.Using, Watching: st.Watching, Waiting: st.Waiting, Deletes: st.CmdDelete, Pauses: st.CmdPauseTube,
		Pause: int64(st.Pause.Seconds()), PauseLeft: int64(st.PauseLeft.Seconds()),
	}}
}

func (b *Server) getTube(ctx context.Context, in *admin.OfTube) (shown admin.Tube, err error) {
	t, err := b.theTube(ctx, in)
	return t.Shown(), err
}

func (b *Server) explainTube(ctx context.Context, in *admin.OfTube) (out admin.Explanation, err error) {
	t, err := b.theTube(ctx, in)
	one := t.Health()
	out.Text, out.Severity = one.Why()
	return out, err
}

func (b *Server) theTube(ctx context.Context, in *admin.OfTube) (t tubes.Tube, err error) {
	st, err := b.pool.StatsTube(ctx, in.Tube)
	if err != nil {
		return t, ofTube(in.Tube, err)
	}
	return tubeOf(st), nil
}

func (b *Server) pauseTube(ctx context.Context, in *admin.PauseTube) (admin.None, error) {
	audit.Of(ctx).Note("seconds", in.Seconds)
	return b.pause(ctx, in.Tube, seconds(in.Seconds))
}

func (b *Server) resumeTube(ctx context.Context, in *admin.OfTube) (admin.None, error) {
	return b.pause(ctx, in.Tube, 0)
}

func (b *Server) pause(ctx context.Context, tube string, d time.Duration) (none admin.None, err error) {
	defer b.tubes.Forget()
	return none, ofTube(tube, b.pool.PauseTube(ctx, tube, d))
}

// listJobs tells of the first job in a state, which is all that can be known. There is no command to see those that are reserved.
func (b *Server) listJobs(ctx context.Context, in *admin.ListJobs) (page admin.Jobs, err error) {
	page.Jobs = []admin.Job{}
	if in.State == string(client.StateReserved) {
		return page, nil
	}
	if _, err := b.theTube(ctx, &in.OfTube); err != nil { // a peek would make it
		return page, err
	}
	err = b.pool.Do(ctx, func(ctx context.Context, c *client.Conn) error {
		found, err := c.PeekTube(ctx, in.Tube, client.State(in.State))
		if err == nil {
			var j admin.Job
			if j, err = describeJob(ctx, c, found); err == nil {
				page.Jobs = append(page.Jobs, j)
			}
		}
		if errors.Is(err, client.ErrNotFound) {
			err = nil
		}
		return errors.Join(err, c.Use(ctx, jobjson.DefaultTube)) // a connection that uses a tube keeps it
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
	if j.Size <= jobjson.ShownBody {
		j.SetBody(found.Body)
	}
	return j, nil
}

// theJob returns a job, and its body of whatever size.
func (b *Server) theJob(ctx context.Context, id uint64) (j admin.Job, body []byte, err error) {
	err = b.pool.Do(ctx, func(ctx context.Context, c *client.Conn) error {
		found, err := c.Peek(ctx, id)
		if err == nil {
			body = found.Body
			j, err = describeJob(ctx, c, found)
		}
		if errors.Is(err, client.ErrNotFound) {
			return admin.Problemf(http.StatusNotFound, "there is no job %d", id)
		}
		return err
	})
	return j, body, err
}

func (b *Server) getJob(ctx context.Context, in *admin.OfJob) (admin.Job, error) {
	j, _, err := b.theJob(ctx, in.Job)
	return j, err
}

func (b *Server) getBody(ctx context.Context, in *admin.OfJob) (admin.Bytes, error) {
	_, body, err := b.theJob(ctx, in.Job)
	return body, err
}

func (b *Server) kickJob(ctx context.Context, in *admin.OfJob) (admin.None, error) {
	return b.change(ctx, in, "kicked: it must be buried or delayed", (*client.Pool).KickJob)
}

func (b *Server) deleteJob(ctx context.Context, in *admin.OfJob) (admin.None, error) {
	return b.change(ctx, in, "deleted: a worker holds it", (*client.Pool).Delete)
}

// change does something to a job.
func (b *Server) change(ctx context.Context, in *admin.OfJob, what string, do func(p *client.Pool, ctx context.Context, id uint64) error) (none admin.None, err error) {
	j, _, err := b.theJob(ctx, in.Job)
	if err != nil {
		return none, err
	}
	audit.Of(ctx).Note("tube", j.Tube)
	defer b.tubes.Forget()
	if err = do(b.pool, ctx, j.ID); errors.Is(err, client.ErrNotFound) {
		err = admin.Problemf(http.StatusConflict, "job %d is %s and cannot be %s", j.ID, j.State, what)
	}
	return none, err
}

func (b *Server) putJob(ctx context.Context, in *admin.PutJob) (made admin.Inserted, err error) {
	body, err := jobjson.BodyOf(in)
	if err != nil {
		return made, err
	}
	priority, ttr := op.Or(in.Priority, jobjson.DefaultPriority), op.Or(in.TTR, jobjson.DefaultTTR)
	return b.put(ctx, "job", client.NewJob{Tube: in.Tube, Body: body, Delay: seconds(in.Delay), Priority: &priority, TTR: seconds(max(ttr, 1))})
}

func (b *Server) copyJob(ctx context.Context, in *admin.CopyJob) (made admin.Inserted, err error) {
	audit.Of(ctx).Note("to", in.To)
	j, body, err := b.theJob(ctx, in.Job)
	if err != nil {
		return made, err
	}
	priority, ttr := op.Or(in.Priority, j.Priority), op.Or(in.TTR, j.TTR)
	return b.put(ctx, "copy", client.NewJob{Tube: in.To, Body: body, Delay: seconds(in.Delay), Priority: &priority, TTR: seconds(max(ttr, 1))})
}

// put puts a job, which the audit names so.
func (b *Server) put(ctx context.Context, as string, job client.NewJob) (made admin.Inserted, err error) {
	defer b.tubes.Forget()
	err = b.pool.Do(ctx, func(ctx context.Context, c *client.Conn) (err error) {
		if made.ID, err = c.Put(ctx, job); err == nil {
			audit.Of(ctx).Note(as, made.ID)
		}
		return errors.Join(err, c.Use(ctx, jobjson.DefaultTube))
	})
	return made, err
}

func seconds(n uint32) time.Duration { return time.Duration(n) * time.Second }
