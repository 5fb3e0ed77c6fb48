package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/beanpole-mq/beanpole/client"
)

// Defaults of [Options].
const (
	DefaultServer      = "127.0.0.1:" + client.DefaultPort
	DefaultTube        = "default"
	DefaultMaxTries    = 10
	DefaultTimeout     = time.Hour
	DefaultStopTimeout = 30 * time.Second
)

// Options configures a worker. The zero value handles one job at a time from the tube
// "default" of a server on this machine.
type Options struct {
	// Servers contains the addresses of unrelated servers; see client.Dial. The worker
	// reserves from all of them at the same time, with Concurrency handlers for each. A
	// cluster is one address, the list of its members:
	// "host1:11300,host2:11300,host3:11300". The default is [DefaultServer].
	Servers []string

	// Client contains the options of the connections. MaxConns and MaxIdle must be zero:
	// Concurrency determines the number of connections.
	Client client.Options

	// Tubes contains the tubes to reserve from. The default is [DefaultTube].
	Tubes []string

	// Concurrency is the maximum number of concurrent handlers for each server. The
	// default is 1.
	Concurrency int

	// MaxTries is the maximum number of tries before a failed job is buried. Each kick
	// grants as many tries again. The server counts the tries over all workers: the
	// reserves of stats-job. A job is also buried, before its handler starts, if as many
	// tries ended without a result, because their workers died or the time to run
	// expired. 0 means [DefaultMaxTries]; a negative number means no limit.
	MaxTries int

	// CheckTries makes the worker bury jobs that kill their workers, even with servers
	// other than beanpole. Those servers do not send the number of tries with a job, so
	// the worker needs an additional round trip per job.
	CheckTries bool

	// Timeout limits the time of a handler. Then its context ends with [ErrTimeout], and
	// the job is released or buried as after any other error. If the handler has not
	// returned 5 seconds later, the worker releases or buries the job anyway and stops
	// touching it; the handler still counts for Concurrency until it returns. 0 means
	// [DefaultTimeout]; [client.Never] means no limit.
	Timeout time.Duration

	// TimeoutOf, if set, returns the timeout of a job. 0 means Timeout.
	TimeoutOf func(job *Job) time.Duration

	// Backoff returns the delay of a job after its nth failure. n is from 1 to MaxTries,
	// and restarts at 1 when a buried job is kicked. The default is [Backoff].
	Backoff func(tries int) time.Duration

	// StopTimeout is the time that handlers have to finish after the context of Run has
	// ended. Then their contexts are canceled. 0 means [DefaultStopTimeout];
	// [client.Never] means no limit.
	StopTimeout time.Duration

	// Use wraps the handler, for example to trace it or to recover from its panics; the
	// first function is the outermost. See the package documentation.
	Use []func(Handler) Handler

	// Hooks contains functions that the worker calls.
	Hooks Hooks

	// Logger logs each job that fails, panics or is lost, errors of reserves, and when a
	// server becomes unreachable or reachable again. At level debug, it also logs each
	// finished job. The default is slog.Default. To log nothing, use a logger with
	// slog.DiscardHandler.
	Logger *slog.Logger
}

// Hooks report the outcomes of jobs and the state of servers to a program. Each hook can
// be nil. The goroutines of the jobs call hooks concurrently, and wait for them.
type Hooks struct {
	// Finish is called when a job has been deleted, released, buried or lost. A handler
	// that ignores its timeout can still be running.
	Finish func(ctx context.Context, job *Job, outcome Outcome)

	// Error is called when a reserve fails, for example because the server is
	// unreachable. The worker retries with increasingly long pauses.
	Error func(err error)

	// Server is called with the reason when a connection to a server is lost or cannot be
	// opened, and with nil when a connection is open again. It is called once per change,
	// not for each connection or attempt.
	Server func(addr string, err error)
}

// An Action is the way in which a try ended.
type Action string

// The actions.
const (
	Deleted  Action = "deleted"  // the handler succeeded
	Released Action = "released" // to be tried again
	Buried   Action = "buried"   // set aside for inspection
	Lost     Action = "lost"     // the server gives the job to another worker
)

// An Outcome is the way in which a try ended, and the reason.
type Outcome struct {
	Action Action
	Err    error         // error of the handler or the server; nil for most that are Deleted
	Tries  int           // number of tries; 0 if the worker did not request it
	Delay  time.Duration // until the next try, if Released
	Took   time.Duration // time that the handler took
}

// Backoff returns a delay that doubles from a second to an hour. It varies randomly by up
// to a quarter, so that jobs that fail together are not retried together.
func Backoff(tries int) time.Duration {
	d := time.Hour
	if tries <= 12 { // 2^12 seconds are more than an hour
		d = min(d, time.Second<<max(tries-1, 0))
	}
	return d*3/4 + rand.N(d/2) // #nosec G404 -- spreads retries
}

// exhausted reports whether a job has used all its tries, given its counters. Each kick
// grants MaxTries more tries.
func (o *Options) exhausted(tries, kicks uint64) bool {
	return o.MaxTries > 0 && tries/uint64(o.MaxTries) > kicks
}

// tryNumber returns the number of the last try since the last kick, given the total
// number of tries.
func (o *Options) tryNumber(tries uint64) int {
	if o.MaxTries > 0 {
		tries = (max(tries, 1)-1)%uint64(o.MaxTries) + 1
	}
	return int(tries)
}

// filled returns the options with defaults in place of zeros.
func (opt *Options) filled() (Options, error) {
	var o Options
	if opt != nil {
		o = *opt
	}
	if len(o.Servers) == 0 {
		o.Servers = []string{DefaultServer}
	}
	if len(o.Tubes) == 0 {
		o.Tubes = []string{DefaultTube}
	}
	o.Concurrency = cmp.Or(o.Concurrency, 1)
	o.MaxTries = cmp.Or(o.MaxTries, DefaultMaxTries)
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	o.StopTimeout = cmp.Or(o.StopTimeout, DefaultStopTimeout)
	if o.Backoff == nil {
		o.Backoff = Backoff
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Client.MaxConns != 0 || o.Client.MaxIdle != 0 {
		return o, errors.New("worker: Client.MaxConns and Client.MaxIdle are for a client.Pool; limit a worker with Concurrency")
	}
	if o.Concurrency < 0 {
		return o, fmt.Errorf("worker: concurrency %d: want 1 or more", o.Concurrency)
	}
	for _, tube := range o.Tubes {
		if err := client.CheckTube(tube); err != nil {
			return o, fmt.Errorf("worker: %w", err)
		}
	}
	return o, nil
}
