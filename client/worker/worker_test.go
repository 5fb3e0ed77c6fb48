package worker_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/client/beanpoletest"
	"github.com/beanpole-mq/beanpole/client/worker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A bench is a worker in fake time, with a server in memory.
type bench struct {
	*testing.T
	*client.Conn // the connection for puts and statistics
	srv          *beanpoletest.Server
	dialed       atomic.Int32

	mu       sync.Mutex
	outcomes []worker.Outcome
	errs     []error
	log      strings.Builder // lines without times
}

// Write implements io.Writer for the logger.
func (b *bench) Write(line []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.log.Write(line)
}

func bubble(t *testing.T, f func(b *bench)) {
	synctest.Test(t, func(t *testing.T) {
		srv := beanpoletest.NewMemory(t)
		c, err := client.Dial(t.Context(), srv.Addr, &client.Options{Dial: srv.Dial})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		f(&bench{T: t, Conn: c, srv: srv})
	})
}

// run starts a worker and returns the function that stops it. Run must return without an
// error.
func (b *bench) run(handle worker.Handler, opt worker.Options) (stop func()) {
	b.Helper()
	try := b.tryRun(handle, opt)
	return func() {
		b.Helper()
		if err := try(); err != nil {
			b.Error(err)
		}
	}
}

// tryRun starts a worker and returns a function that stops it and returns the result of
// Run.
func (b *bench) tryRun(handle worker.Handler, opt worker.Options) (stop func() error) {
	b.Helper()
	opt.Servers = []string{"memory"}
	if opt.Client.Dial == nil {
		opt.Client.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			b.dialed.Add(1)
			return b.srv.Dial(ctx, network, addr)
		}
	}
	if opt.Hooks.Finish == nil {
		opt.Hooks.Finish = func(_ context.Context, _ *worker.Job, o worker.Outcome) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.outcomes = append(b.outcomes, o)
		}
	}
	opt.Hooks.Error = func(err error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.errs = append(b.errs, err)
	}
	opt.Logger = slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		switch a.Key {
		case slog.TimeKey, "took", "stack":
			return slog.Attr{}
		}
		return a
	}}))
	w, err := worker.New(handle, &opt)
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	return func() error {
		cancel()
		return <-done
	}
}

func (b *bench) put(job client.NewJob) uint64 {
	b.Helper()
	id, err := b.Put(b.Context(), job)
	if err != nil {
		b.Fatal(err)
	}
	return id
}

func (b *bench) stats(id uint64) *client.JobStats {
	b.Helper()
	synctest.Wait()
	st, err := b.StatsJob(b.Context(), id)
	if err != nil {
		b.Fatal(err)
	}
	return st
}

func (b *bench) gone() {
	b.Helper()
	synctest.Wait()
	st, err := b.Stats(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	if st.JobsReady+st.JobsReserved+st.JobsDelayed+st.JobsBuried != 0 {
		b.Errorf("%d ready, %d reserved, %d delayed, %d buried", st.JobsReady, st.JobsReserved, st.JobsDelayed, st.JobsBuried)
	}
}

func (b *bench) wantActions(want ...worker.Action) {
	b.Helper()
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.outcomes) != len(want) {
		b.Fatalf("%+v, want %q", b.outcomes, want)
	}
	for i, o := range b.outcomes {
		if o.Action != want[i] {
			b.Errorf("outcome %d: %+v, want %s", i, o, want[i])
		}
	}
}

// A worker handles jobs of its tubes with the given concurrency, and deletes them.
func TestWork(t *testing.T) {
	bubble(t, func(b *bench) {
		var running, most, sum atomic.Int64
		stop := b.run(func(_ context.Context, job *worker.Job) error {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			time.Sleep(time.Second) // in fake time
			sum.Add(int64(job.Body[0]))
			return nil
		}, worker.Options{Concurrency: 4, Tubes: []string{"mail", "fax"}})
		for i := range 20 {
			b.put(client.NewJob{Tube: []string{"mail", "fax"}[i%2], Body: []byte{byte(i)}, TTR: time.Hour})
		}
		other := b.put(client.NewJob{})
		time.Sleep(10 * time.Second)
		if most.Load() != 4 || sum.Load() != 190 {
			t.Errorf("%d at a time, sum %d", most.Load(), sum.Load())
		}
		if b.stats(other).State != client.StateReady {
			t.Error("a job of another tube was reserved")
		}
		b.Delete(b.Context(), other)
		b.gone()
		if n := b.dialed.Load(); n > 4 {
			t.Errorf("%d connections", n)
		}
		stop()
	})
}

// A worker touches a job while its handler runs, even with a short TTR. If the server
// does not send the TTR, the worker assumes the shortest.
func TestTouch(t *testing.T) {
	for _, tc := range []struct {
		ttr   time.Duration
		known bool
		least uint64 // minimum number of touches; at most 30 if the TTR is known
	}{{time.Second, true, 10}, {2 * time.Second, true, 10}, {time.Minute, true, 10}, {time.Second, false, 31}} {
		t.Run(fmt.Sprint(tc), func(t *testing.T) {
			bubble(t, func(b *bench) {
				opt := worker.Options{}
				if !tc.known {
					opt.Client = b.without("want ", "stats-job ")
				}
				stop := b.run(func(ctx context.Context, job *worker.Job) error {
					time.Sleep(10*tc.ttr + 17*time.Millisecond)
					return ctx.Err()
				}, opt)
				b.put(client.NewJob{TTR: tc.ttr})
				time.Sleep(11 * tc.ttr)
				b.wantActions(worker.Deleted)
				if st, _ := b.Stats(b.Context()); st.JobTimeouts != 0 || st.Commands["touch"] < tc.least || st.Commands["touch"] > 40 {
					t.Errorf("%d timeouts, %d touches", st.JobTimeouts, st.Commands["touch"])
				}
				stop()
			})
		})
	}
}

// A forgetful connection makes a command unknown to the server.
type forgetful struct {
	net.Conn
	verb string
}

func (c forgetful) Write(p []byte) (int, error) {
	return c.Conn.Write(bytes.ReplaceAll(p, []byte(c.verb), bytes.ToUpper([]byte(c.verb))))
}

// without returns options for a server that lacks some commands.
func (b *bench) without(verbs ...string) client.Options {
	return client.Options{Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
		nc, err := b.srv.Dial(ctx, network, addr)
		for _, verb := range verbs {
			nc = forgetful{nc, verb}
		}
		return nc, err
	}}
}

// A hook can request its job's statistics while the connection deletes the job and
// reserves the next one.
func TestFinishRequestsStats(t *testing.T) {
	bubble(t, func(b *bench) {
		asked := make(chan error, 4)
		stop := b.run(func(context.Context, *worker.Job) error { return nil }, worker.Options{Hooks: worker.Hooks{
			Finish: func(ctx context.Context, job *worker.Job, _ worker.Outcome) {
				_, err := job.Stats(ctx)
				asked <- err
				asked <- job.Touch(ctx)
			},
		}})
		b.put(client.NewJob{})
		b.put(client.NewJob{})
		b.gone()
		stop()
		if len(asked) != 4 {
			t.Errorf("%d answers", len(asked))
		}
		for range len(asked) {
			if err := <-asked; !errors.Is(err, client.ErrNotFound) {
				t.Error(err)
			}
		}
	})
}

// A failing job is retried after increasing pauses, with its priority, and buried after
// its last try.
func TestBackoffAndBury(t *testing.T) {
	bubble(t, func(b *bench) {
		failure := errors.New("no such address")
		var times []time.Time
		stop := b.run(func(context.Context, *worker.Job) error {
			times = append(times, time.Now())
			return failure
		}, worker.Options{MaxTries: 4, Backoff: func(tries int) time.Duration { return time.Duration(tries) * 10 * time.Second }})
		id := b.put(client.NewJob{Priority: new(uint32(77))})
		time.Sleep(time.Hour)
		b.wantActions(worker.Released, worker.Released, worker.Released, worker.Buried)
		for i, o := range b.outcomes {
			if o.Tries != i+1 || !errors.Is(o.Err, failure) {
				t.Errorf("%+v", o)
			}
			if i > 0 && times[i].Sub(times[i-1]).Round(time.Second) != time.Duration(i)*10*time.Second {
				t.Errorf("try %d came after %v", i+1, times[i].Sub(times[i-1]))
			}
		}
		if st := b.stats(id); st.State != client.StateBuried || st.Priority != 77 {
			t.Errorf("%+v", st)
		}
		stop()
	})
}

// sent is a connection that records the notes that it sends.
type sent struct {
	net.Conn
	notes *[]string
}

func (c sent) Write(p []byte) (int, error) {
	for line := range strings.Lines(string(p)) {
		if verb, rest, _ := strings.Cut(line, " "); verb == "note" {
			_, text, _ := strings.Cut(rest, " ")
			*c.notes = append(*c.notes, strings.TrimSpace(text))
		}
	}
	return c.Conn.Write(p)
}

type explained struct{ error }

func (e explained) Unwrap() error { return e.error }

func (explained) Reason() string { return "Declined: card" }

// A handler can choose the outcome of its job, and its reason is sent to the server.
func TestVerdicts(t *testing.T) {
	bubble(t, func(b *bench) {
		var notes []string
		why := errors.New("why")
		stop := b.run(func(_ context.Context, job *worker.Job) error {
			switch string(job.Body) {
			case "bury":
				return fmt.Errorf("wrapped: %w", worker.Bury(why))
			case "bury for nothing":
				return worker.Bury(nil)
			case "retry for nothing":
				return worker.Retry(nil, time.Hour)
			}
			return worker.Retry(explained{why}, time.Hour)
		}, worker.Options{MaxTries: 1, Client: client.Options{Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
			nc, err := b.srv.Dial(ctx, network, addr)
			return sent{nc, &notes}, err
		}}})
		buried := b.put(client.NewJob{Body: []byte("bury")})
		retried := b.put(client.NewJob{Body: []byte("retry")})
		b.wantActions(worker.Buried, worker.Released)
		for _, o := range b.outcomes {
			if !errors.Is(o.Err, why) {
				t.Error(o.Err)
			}
		}
		if st := b.stats(buried); st.State != client.StateBuried {
			t.Errorf("%+v", st)
		}
		if st := b.stats(retried); st.State != client.StateDelayed || st.Delay != time.Hour {
			t.Errorf("%+v", st)
		}
		// A verdict does not need a reason.
		b.outcomes = nil
		b.put(client.NewJob{Body: []byte("bury for nothing")})
		b.put(client.NewJob{Body: []byte("retry for nothing")})
		b.wantActions(worker.Buried, worker.Released)
		for _, o := range b.outcomes {
			if want := "worker: the handler wants the job " + string(o.Action); o.Err.Error() != want {
				t.Errorf("%q, want %q", o.Err, want)
			}
		}
		stop()
		if want := []string{"wrapped: why", "Declined: card"}; !slices.Equal(notes, want) {
			t.Errorf("notes %q, want %q", notes, want)
		}
	})
}

// A job that kills its workers is buried before another handler gets it. beanpole sends
// the number of tries with the job. For other servers, the worker requests the number.
func TestJobKillsWorkers(t *testing.T) {
	for _, asks := range []bool{false, true} {
		t.Run(fmt.Sprintf("CheckTries=%t", asks), func(t *testing.T) {
			bubble(t, func(b *bench) {
				id := b.put(client.NewJob{})
				opt := worker.Options{MaxTries: 3, CheckTries: asks}
				if asks {
					opt.Client = b.without("want ")
				}
				for range 3 {
					c, err := client.Dial(b.Context(), "memory", &client.Options{Dial: b.srv.Dial})
					if err == nil {
						_, err = c.Reserve(b.Context())
						c.Close()
					}
					if err != nil {
						t.Fatal(err)
					}
				}
				stop := b.run(func(context.Context, *worker.Job) error {
					t.Error("the job is handled")
					return nil
				}, opt)
				b.wantActions(worker.Buried)
				if st := b.stats(id); st.State != client.StateBuried {
					t.Errorf("%+v", st)
				}
				stop()
			})
		})
	}
}

// Tries that a handler has ended with Retry do not count as crashes.
func TestRetryBeyondTries(t *testing.T) {
	bubble(t, func(b *bench) {
		calls := 0
		stop := b.run(func(context.Context, *worker.Job) error {
			if calls++; calls < 10 {
				return worker.Retry(nil, time.Minute)
			}
			return nil
		}, worker.Options{MaxTries: 2})
		b.put(client.NewJob{})
		time.Sleep(time.Hour)
		b.gone()
		if calls != 10 {
			t.Errorf("%d calls", calls)
		}
		stop()
	})
}

// A handler that exceeds its timeout is cancelled, and its job fails. If the handler
// continues nevertheless, the worker stops touching the job.
func TestTimeout(t *testing.T) {
	for _, known := range []bool{true, false} {
		for _, tc := range []struct {
			name   string
			opt    worker.Options
			ttr    time.Duration
			handle func(ctx context.Context) error
			want   worker.Action
			took   time.Duration
		}{
			{"default", worker.Options{}, time.Minute, wait, worker.Released, time.Hour},
			{"none", worker.Options{Timeout: client.Never}, time.Minute, func(ctx context.Context) error { time.Sleep(48 * time.Hour); return ctx.Err() }, worker.Deleted, 48 * time.Hour},
			{"before the first touch", worker.Options{Timeout: 100 * time.Millisecond}, time.Hour, wait, worker.Released, 100 * time.Millisecond},
			{"of the job", worker.Options{TimeoutOf: func(job *worker.Job) time.Duration { return time.Duration(len(job.Body)) * time.Minute }}, time.Minute, wait, worker.Released, 3 * time.Minute},
			{"last try", worker.Options{Timeout: time.Minute, MaxTries: 1}, time.Minute, wait, worker.Buried, time.Minute},
			{"done in the grace", worker.Options{Timeout: time.Minute}, time.Second, func(ctx context.Context) error { time.Sleep(64 * time.Second); return nil }, worker.Deleted, 64 * time.Second},
			{"deaf", worker.Options{Timeout: time.Minute}, time.Second, func(context.Context) error { time.Sleep(24 * time.Hour); return nil }, worker.Released, 65 * time.Second},
			{"deaf, last try", worker.Options{Timeout: time.Minute, MaxTries: 1}, time.Second, func(context.Context) error { time.Sleep(24 * time.Hour); return nil }, worker.Buried, 65 * time.Second},
		} {
			t.Run(fmt.Sprintf("%s/known=%t", tc.name, known), func(t *testing.T) {
				bubble(t, func(b *bench) {
					if !known {
						tc.opt.Client = b.without("want ", "caps")
					}
					tc.opt.Backoff = func(int) time.Duration { return 1000 * time.Hour }
					first := true
					var touched error
					stop := b.run(func(ctx context.Context, job *worker.Job) error {
						if !first {
							return nil
						}
						first = false
						err := tc.handle(ctx)
						touched = job.Touch(ctx)
						return err
					}, tc.opt)
					id := b.put(client.NewJob{Body: []byte("abc"), TTR: tc.ttr})
					time.Sleep(tc.took)
					b.wantActions(tc.want)
					o := b.outcomes[0]
					if o.Took != tc.took || (tc.want == worker.Deleted) == errors.Is(o.Err, worker.ErrTimeout) {
						t.Errorf("%+v, want it after %v", o, tc.took)
					}
					switch st, err := b.StatsJob(b.Context(), id); {
					case tc.want == worker.Deleted:
					case err != nil || st.Timeouts != 0 || (st.State == client.StateBuried) != (tc.want == worker.Buried):
						t.Errorf("%+v, %v", st, err)
					case st.State == client.StateDelayed:
						b.KickJob(b.Context(), id)
					}
					// When the handler returns, its slot handles jobs again.
					other := b.put(client.NewJob{})
					time.Sleep(25 * time.Hour)
					synctest.Wait()
					if _, err := b.StatsJob(b.Context(), other); !errors.Is(err, client.ErrNotFound) {
						t.Errorf("the next job was not handled: %v", err)
					}
					if strings.HasPrefix(tc.name, "deaf") != errors.Is(touched, client.ErrNotFound) {
						t.Errorf("a touch at the end of the handler: %v", touched)
					}
					stop()
				})
			})
		}
	}
}

func wait(ctx context.Context) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

// A job that was kicked after its last try gets all its tries again, starting with short
// pauses.
func TestKicked(t *testing.T) {
	for _, countFirst := range []bool{false, true} {
		t.Run(fmt.Sprintf("CheckTries=%t", countFirst), func(t *testing.T) {
			bubble(t, func(b *bench) {
				calls := 0
				stop := b.run(func(context.Context, *worker.Job) error {
					calls++
					return errors.New("no such address")
				}, worker.Options{MaxTries: 3, CheckTries: countFirst})
				id := b.put(client.NewJob{})
				for round := range 3 {
					time.Sleep(time.Hour)
					b.wantActions(worker.Released, worker.Released, worker.Buried)
					for i, o := range b.outcomes {
						if o.Tries != 3*round+i+1 || o.Delay > 3*time.Second {
							t.Errorf("%+v, want try %d of round %d", o, i+1, round)
						}
					}
					if calls != 3 {
						t.Errorf("%d calls", calls)
					}
					calls, b.outcomes = 0, nil
					if err := b.KickJob(b.Context(), id); err != nil {
						t.Fatal(err)
					}
				}
				stop()
			})
		})
	}
}

// A worker that is stopped reserves no more jobs, waits for its handlers, and deletes
// their jobs.
func TestStop(t *testing.T) {
	bubble(t, func(b *bench) {
		stop := b.run(func(ctx context.Context, _ *worker.Job) error {
			time.Sleep(20 * time.Second)
			return ctx.Err()
		}, worker.Options{Concurrency: 3})
		b.put(client.NewJob{TTR: 2 * time.Second})
		b.put(client.NewJob{TTR: 2 * time.Second})
		synctest.Wait()
		began := time.Now()
		stop()
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("took %v", took)
		}
		b.wantActions(worker.Deleted, worker.Deleted)
		b.gone()
		id := b.put(client.NewJob{})
		if b.stats(id).State != client.StateReady {
			t.Error("a job was reserved after the stop")
		}
	})
}

// Handlers that exceed the stop timeout are cancelled. Their jobs become ready at once,
// and the tries do not count.
func TestStopTimeout(t *testing.T) {
	bubble(t, func(b *bench) {
		stop := b.run(func(ctx context.Context, _ *worker.Job) error {
			<-ctx.Done()
			if context.Cause(ctx) != worker.ErrStopped {
				t.Errorf("the cause is %v", context.Cause(ctx))
			}
			return ctx.Err()
		}, worker.Options{MaxTries: 1, StopTimeout: 10 * time.Second})
		id := b.put(client.NewJob{})
		synctest.Wait()
		began := time.Now()
		stop()
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("took %v", took)
		}
		b.wantActions(worker.Released)
		if st := b.stats(id); st.State != client.StateReady {
			t.Errorf("%+v", st)
		}
	})
}

// The worker does not wait for handlers that ignore the cancellation. The server serves
// their jobs to other workers.
func TestStopDeaf(t *testing.T) {
	bubble(t, func(b *bench) {
		release := make(chan struct{})
		stop := b.tryRun(func(context.Context, *worker.Job) error {
			<-release
			return nil
		}, worker.Options{StopTimeout: 10 * time.Second})
		id := b.put(client.NewJob{})
		synctest.Wait()
		if err := stop(); !errors.Is(err, worker.ErrStillRunning) {
			t.Error(err)
		}
		if st := b.stats(id); st.State != client.StateReady {
			t.Errorf("%+v", st)
		}
		close(release)
		synctest.Wait()
	})
}

// When a job is lost, the context of its handler is cancelled.
func TestLost(t *testing.T) {
	bubble(t, func(b *bench) {
		var nc net.Conn
		cause := make(chan error, 1)
		stop := b.run(func(ctx context.Context, _ *worker.Job) error {
			select {
			case <-ctx.Done():
				cause <- context.Cause(ctx)
				return ctx.Err()
			case <-time.After(time.Minute):
				return nil
			}
		}, worker.Options{Client: client.Options{Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
			var err error
			nc, err = b.srv.Dial(ctx, network, addr)
			return nc, err
		}}})
		id := b.put(client.NewJob{TTR: 30 * time.Second})
		synctest.Wait()
		nc.Close()
		if err := <-cause; err != worker.ErrLost {
			t.Errorf("the cause is %v", err)
		}
		time.Sleep(2 * time.Minute)
		if _, err := b.StatsJob(b.Context(), id); !errors.Is(err, client.ErrNotFound) {
			t.Errorf("the next try did not finish the job: %v", err)
		}
		stop()
	})
}

// A worker survives the loss of its server, and panics of its handlers. The log and the
// hooks report problems: the loss and return of the server once each, and jobs that fail,
// panic or are lost.
func TestLog(t *testing.T) {
	bubble(t, func(b *bench) {
		var away atomic.Bool
		away.Store(true)
		var nc atomic.Value
		var told []string
		stop := b.run(func(_ context.Context, job *worker.Job) error {
			switch string(job.Body) {
			case "fail":
				return errors.New("no such address")
			case "panic":
				panic("oh")
			case "bury":
				return worker.Bury(nil)
			}
			return nil
		}, worker.Options{
			Hooks: worker.Hooks{
				Server: func(addr string, err error) { told = append(told, fmt.Sprint(addr, " ", err != nil)) },
			},
			Backoff:     func(int) time.Duration { return time.Hour },
			Concurrency: 1,
			Client: client.Options{Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
				if away.Load() {
					return nil, errors.New("the network is down")
				}
				c, err := b.srv.Dial(ctx, network, addr)
				nc.Store(c)
				return c, err
			}}})
		time.Sleep(time.Minute)
		away.Store(false)
		time.Sleep(time.Minute)
		b.mu.Lock()
		if n := len(b.errs); n < 3 || n > 15 || !errors.Is(b.errs[0], client.ErrDisconnected) {
			t.Errorf("%d errors in a minute: %v", n, b.errs)
		}
		b.mu.Unlock()
		for _, body := range []string{"fail", "panic", "bury", "succeed"} {
			b.put(client.NewJob{Body: []byte(body)})
		}
		synctest.Wait()
		away.Store(true)
		nc.Load().(net.Conn).Close() // closed while it waits for a job
		time.Sleep(time.Minute)
		away.Store(false)
		time.Sleep(time.Minute)
		stop()
		const want = `level=WARN msg="no connection to the server; trying again" server=memory error="no connection: the network is down"
level=INFO msg="connected to the server again" server=memory
level=WARN msg="a job has failed" job=1 server=memory action=released tries=1 delay=1h0m0s error="no such address"
level=ERROR msg="a handler has panicked" job=2 server=memory panic=oh
level=WARN msg="a job has failed" job=2 server=memory action=released tries=1 delay=1h0m0s error="worker: panic: oh"
level=WARN msg="a job has failed" job=3 server=memory action=buried tries=1 delay=0s error="worker: the handler wants the job buried"
level=DEBUG msg="a job is done" job=4 server=memory action=deleted
level=WARN msg="no connection to the server; trying again" server=memory error="no connection: use of closed network connection"
level=INFO msg="connected to the server again" server=memory
`
		if diff := cmp.Diff(want, b.log.String()); diff != "" {
			t.Error(diff)
		}
		if want := []string{"memory true", "memory false", "memory true", "memory false"}; !slices.Equal(told, want) {
			t.Errorf("reported %q", told)
		}
	})
}

// A worker reserves from all its servers.
func TestManyServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := map[string]*beanpoletest.Server{"a:11300": beanpoletest.NewMemory(t), "b:11300": beanpoletest.NewMemory(t)}
		opt := client.Options{Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
			return srv[addr].Dial(ctx, network, addr)
		}}
		var mu sync.Mutex
		count := map[string]int{}
		w, err := worker.New(func(_ context.Context, job *worker.Job) error {
			mu.Lock()
			defer mu.Unlock()
			count[job.Server]++
			if count[job.Server] == 1 {
				return errors.New("once")
			}
			return nil
		}, &worker.Options{Servers: []string{"a", "b"}, Client: opt, Concurrency: 3, Backoff: func(int) time.Duration { return time.Second }, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- w.Run(ctx) }()
		servers, err := client.NewServers([]string{"a", "b"}, &opt)
		if err != nil {
			t.Fatal(err)
		}
		defer servers.Close()
		for range 100 {
			if _, err := servers.Put(ctx, "", client.NewJob{}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if count["a"] != 51 || count["b"] != 51 {
			t.Error(count)
		}
	})
}

func TestNewErrors(t *testing.T) {
	handle := func(context.Context, *worker.Job) error { return nil }
	for _, opt := range []*worker.Options{{Concurrency: -1}, {Servers: []string{"a", "a"}}, {Servers: []string{"unix:"}}, {Tubes: []string{"-"}}, {Client: client.Options{Token: "a b"}}, {Client: client.Options{MaxConns: 3}}, {Client: client.Options{MaxIdle: 3}}} {
		if _, err := worker.New(handle, opt); err == nil {
			t.Errorf("%+v is accepted", opt)
		}
	}
	if _, err := worker.New(nil, nil); err == nil {
		t.Error("a nil handler is accepted")
	}
}

// The pause grows to at most an hour. It is random, so that jobs do not return at the
// same time.
func TestBackoff(t *testing.T) {
	for tries, want := range map[int]time.Duration{0: 1, 1: 1, 2: 2, 5: 16, 12: 2048, 13: 3600, 1000: 3600} {
		want *= time.Second
		seen := map[time.Duration]bool{}
		for range 50 {
			d := worker.Backoff(tries)
			if d < want*3/4 || d >= want*5/4 {
				t.Errorf("%d: %v", tries, d)
			}
			seen[d] = true
		}
		if len(seen) < 40 {
			t.Errorf("%d: only %d different pauses", tries, len(seen))
		}
	}
}

// Use wraps the handler; the first function is the outermost.
func TestUse(t *testing.T) {
	bubble(t, func(b *bench) {
		var got []string
		wrap := func(name string) func(worker.Handler) worker.Handler {
			return func(next worker.Handler) worker.Handler {
				return func(ctx context.Context, job *worker.Job) error {
					got = append(got, name)
					return next(ctx, job)
				}
			}
		}
		b.put(client.NewJob{})
		stop := b.run(func(context.Context, *worker.Job) error { got = append(got, "handler"); return nil },
			worker.Options{Use: []func(worker.Handler) worker.Handler{wrap("outer"), wrap("inner")}})
		b.gone()
		stop()
		if want := []string{"outer", "inner", "handler"}; !slices.Equal(got, want) {
			t.Errorf("called %q, want %q", got, want)
		}
	})
}

// Each job goes to the handler of its tube. A job without a handler fails.
func TestMux(t *testing.T) {
	bubble(t, func(b *bench) {
		var got []string
		handler := func(tube string) worker.Handler {
			return func(_ context.Context, job *worker.Job) error {
				got = append(got, tube+" "+string(job.Body))
				return nil
			}
		}
		mux := worker.Mux{"a": handler("a"), "b": handler("b")}
		for _, tube := range []string{"b", "a", "c"} {
			b.put(client.NewJob{Tube: tube, Body: []byte("of " + tube)})
		}
		stop := b.run(mux.Handle, worker.Options{Tubes: append(mux.Tubes(), "c"), MaxTries: 1})
		synctest.Wait()
		stop()
		if want := []string{"b of b", "a of a"}; !slices.Equal(got, want) {
			t.Errorf("handled: %q, want %q", got, want)
		}
		if o := b.outcomes[len(b.outcomes)-1]; o.Action != worker.Buried || o.Err.Error() != "worker: no handler for the tube c" {
			t.Errorf("the job without a handler: %+v", o)
		}
	})
}
