package client_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/client/beanpoletest"
)

// bubble runs a test in fake time with a server in memory.
func bubble(t *testing.T, f func(t *testing.T, srv *beanpoletest.Server, opt *client.Options)) {
	synctest.Test(t, func(t *testing.T) {
		srv := beanpoletest.NewMemory(t)
		f(t, srv, &client.Options{Dial: srv.Dial})
	})
}

// A cancelled reserve loses no job: the next client gets it.
func TestCancelReserve(t *testing.T) {
	bubble(t, func(t *testing.T, srv *beanpoletest.Server, opt *client.Options) {
		c := dial(t, srv.Addr, opt)
		other := dial(t, srv.Addr, opt)
		held := get(other.Put(t.Context(), client.NewJob{}))
		get(c.Reserve(t.Context()))
		ctx, cancel := context.WithCancelCause(t.Context())
		reserved := make(chan error)
		go func() { reserved <- second(c.Reserve(ctx)) }()
		synctest.Wait()
		cause := errors.New("enough")
		cancel(cause)
		wantErr(t, <-reserved, cause)
		synctest.Wait()
		id := get(other.Put(t.Context(), client.NewJob{}))
		// The connection has lost its jobs.
		if st := get(other.Stats(t.Context())); st.JobsReady != 2 || st.JobsReserved != 0 || st.Waiting != 0 {
			t.Errorf("%+v", st)
		}
		// The client reconnects automatically.
		for _, want := range []uint64{held, id} {
			if job := get(c.Reserve(t.Context())); job.ID != want {
				t.Errorf("got job %d, want %d", job.ID, want)
			}
		}
	})
}

// A job that becomes ready just when the context ends is not lost. It is either returned
// or still ready.
func TestCancelRace(t *testing.T) {
	srv := beanpoletest.NewServer(t)
	c := dial(t, srv.Addr, nil)
	other := dial(t, srv.Addr, nil)
	for range 300 {
		ctx, cancel := context.WithCancel(t.Context())
		got := make(chan *client.Job)
		go func() {
			job, _ := c.Reserve(ctx)
			got <- job
		}()
		go cancel()
		id := get(other.Put(t.Context(), client.NewJob{}))
		if job := <-got; job != nil {
			must(t, job.Delete(t.Context()))
			continue
		}
		// The server might not yet have read the reserve.
		for err := error(client.ErrNotFound); err != nil; err = other.Delete(t.Context(), id) {
			wantErr(t, err, client.ErrNotFound)
			get(other.Peek(t.Context(), id))
		}
	}
}

func TestReserveTimeout(t *testing.T) {
	bubble(t, func(t *testing.T, srv *beanpoletest.Server, opt *client.Options) {
		c := dial(t, srv.Addr, opt)
		for d, want := range map[time.Duration]time.Duration{0: 0, 1: time.Second, 90 * time.Second: 90 * time.Second} {
			began := time.Now()
			wantErr(t, second(c.ReserveTimeout(t.Context(), d)), client.ErrTimedOut)
			if took := time.Since(began).Round(time.Millisecond); took != want {
				t.Errorf("a timeout of %v took %v, want %v", d, took, want)
			}
		}
		// A job whose TTR expires soon ends the wait.
		get(c.Put(t.Context(), client.NewJob{TTR: 10 * time.Second}))
		get(c.Reserve(t.Context()))
		began := time.Now()
		wantErr(t, second(c.Reserve(t.Context())), client.ErrDeadlineSoon)
		if took := time.Since(began).Round(time.Millisecond); took != 9*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

// If the context of a put ends before the reply, the error states that the outcome is
// unknown.
func TestCancelPut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := dial(t, "deaf", &client.Options{Dial: deaf, Reconnect: client.Never})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.Put(ctx, client.NewJob{})
		wantErr(t, err, context.DeadlineExceeded)
		wantErr(t, err, client.ErrOutcomeUnknown)
	})
}

// deaf connects to a server that reads and never replies.
func deaf(context.Context, string, string) (net.Conn, error) {
	a, b := net.Pipe()
	go func() {
		for buf := make([]byte, 100); ; {
			if _, err := b.Read(buf); err != nil {
				return
			}
		}
	}()
	return a, nil
}

// A command to a server that does not reply fails after the timeout.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := dial(t, "deaf", &client.Options{Dial: deaf, Timeout: 4 * time.Second})
		for what, do := range map[string]func() error{
			"ping": func() error { return c.Ping(t.Context()) },
			"many": func() error { return c.DeleteMany(t.Context(), make([]uint64, 1000)) },
		} {
			began := time.Now()
			err := do()
			wantErr(t, err, client.ErrDisconnected)
			wantErr(t, err, os.ErrDeadlineExceeded)
			if took := time.Since(began); took < 4*time.Second || took > 5*time.Second {
				t.Errorf("%s took %v", what, took)
			}
		}
		// The wait of a command is added to the timeout.
		began := time.Now()
		wantErr(t, second(c.ReserveTimeout(t.Context(), time.Minute)), os.ErrDeadlineExceeded)
		if took := time.Since(began); took < 64*time.Second || took > 65*time.Second {
			t.Errorf("a reserve took %v", took)
		}
	})
}

// An incomplete batch fails after the timeout, regardless of the wait of the command.
func TestBatchStalls(t *testing.T) {
	for name, reserve := range map[string]func(t *testing.T, c *client.Conn) error{
		"alone": func(t *testing.T, c *client.Conn) error {
			return second(c.ReserveMany(t.Context(), 2, client.Never))
		},
		"with a delete": func(t *testing.T, c *client.Conn) error {
			return second(c.DeleteAndReserve(t.Context(), []uint64{1}, 2, nil))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := dial(t, "stalling", &client.Options{Dial: stalling, Timeout: 300 * time.Millisecond, Facts: true})
				err := reserve(t, c)
				wantErr(t, err, client.ErrDisconnected)
				wantErr(t, err, os.ErrDeadlineExceeded)
			})
		})
	}
}

// stalling connects to a server that sends only the first of two jobs.
func stalling(context.Context, string, string) (net.Conn, error) {
	a, b := net.Pipe()
	answers := map[string]string{
		"want":          "UNKNOWN_COMMAND\r\n",
		"caps":          "OK 20\r\n---\n- reserve-batch\n\r\n",
		"delete":        "DELETED\r\n",
		"reserve-batch": "RESERVED_BATCH 2\r\nRESERVED 7 1\r\nx\r\n",
	}
	go func() {
		for in := bufio.NewScanner(b); in.Scan(); {
			verb, _, _ := strings.Cut(in.Text(), " ")
			if _, err := io.WriteString(b, answers[verb]); err != nil {
				return
			}
		}
	}()
	return a, nil
}

// The client waits for an unreachable server, for at most the time in Options.Reconnect.
func TestReconnectPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := beanpoletest.NewMemory(t)
		var away time.Time // time until which the server is unreachable
		attempts := 0
		c := dial(t, srv.Addr, &client.Options{Reconnect: 20 * time.Second, Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if attempts++; time.Now().Before(away) {
				return nil, errors.New("away")
			}
			return srv.Dial(ctx, network, addr)
		}})
		client.Break(c)
		away = time.Now().Add(15 * time.Second)
		get(c.Put(t.Context(), client.NewJob{}))
		if now := time.Now(); now.Before(away) || now.After(away.Add(2*time.Second)) {
			t.Errorf("the put followed %v after the server's return", now.Sub(away))
		}
		if attempts < 5 || attempts > 40 {
			t.Errorf("%d attempts", attempts)
		}

		client.Break(c)
		began := time.Now()
		away = began.Add(time.Hour)
		_, err := c.Put(t.Context(), client.NewJob{})
		wantErr(t, err, client.ErrDisconnected)
		if errors.Is(err, client.ErrOutcomeUnknown) {
			t.Errorf("no data was sent: %v", err)
		}
		if took := time.Since(began); took < 15*time.Second || took > 20*time.Second {
			t.Errorf("gave up after %v", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wantErr(t, c.Ping(ctx), context.DeadlineExceeded)
		go func() {
			time.Sleep(time.Second)
			c.Close()
		}()
		wantErr(t, c.Ping(t.Context()), client.ErrClosed)
	})
}

// The wait for another goroutine's reserve ends with the context.
func TestTurns(t *testing.T) {
	bubble(t, func(t *testing.T, srv *beanpoletest.Server, opt *client.Options) {
		c := dial(t, srv.Addr, opt)
		done := make(chan struct{})
		go func() {
			defer close(done)
			c.Reserve(context.Background())
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wantErr(t, c.Ping(ctx), context.DeadlineExceeded)
		c.Close()
		<-done
	})
}

// A connection attempt ends after the timeout.
func TestDialTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, opt := range []*client.Options{
			{Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}},
			{Dial: deaf, Token: "s3cret"},
		} {
			began := time.Now()
			_, err := client.Dial(t.Context(), "nowhere", opt)
			wantErr(t, err, client.ErrDisconnected)
			if took := time.Since(began); took != client.DefaultDialTimeout {
				t.Errorf("took %v", took)
			}
		}
	})
}

// DeleteAndReserve reports the result of the delete, and does not wait for a job.
func TestDeleteAndReserve(t *testing.T) {
	bubble(t, func(t *testing.T, srv *beanpoletest.Server, opt *client.Options) {
		ctx := t.Context()
		c := dial(t, srv.Addr, opt)
		get(c.PutMany(ctx, make([]client.NewJob, 2)))
		job := get(c.Reserve(ctx))
		var deleted error = errors.New("not called")
		job = get(c.DeleteAndReserve(ctx, []uint64{job.ID}, 1, func(_ int, err error) { deleted = err }))[0]
		if deleted != nil || job.ID != 2 {
			t.Errorf("%v, job %d", deleted, job.ID)
		}
		began := time.Now()
		wantErr(t, second(c.DeleteAndReserve(ctx, []uint64{job.ID}, 1, nil)), client.ErrTimedOut)
		wantErr(t, second(c.StatsJob(ctx, job.ID)), client.ErrNotFound)
		if took := time.Since(began); took != 0 {
			t.Errorf("waited for %v", took)
		}
	})
}

func TestCutDeleteAndReserve(t *testing.T) {
	eachCut(t, func(t *testing.T, srv *beanpoletest.Server, opt *client.Options) {
		ctx := t.Context()
		other := dial(t, srv.Addr, &client.Options{Dial: srv.Dial})
		get(other.PutMany(ctx, make([]client.NewJob, 2)))
		c := dialCut(t, srv.Addr, opt)
		job := get(c.Reserve(ctx))
		calls := 0
		var deleted error
		jobs, err := c.DeleteAndReserve(ctx, []uint64{job.ID}, 1, func(_ int, err error) {
			calls++
			deleted = err
		})
		if errors.Is(err, client.ErrTimedOut) { // the server still serves the lost connection
			jobs, err = c.ReserveMany(ctx, 1, client.Never)
		}
		next := get(jobs, err)[0]
		if calls != 1 {
			t.Fatalf("the result of the delete was reported %d times", calls)
		}
		c.Close()
		st := awaitAlone(t, other)
		switch {
		case deleted == nil && (st.JobsReady != 1 || next.ID == job.ID):
			t.Errorf("deleted %d, got %d, %d jobs left", job.ID, next.ID, st.JobsReady)
		case deleted != nil && !errors.Is(deleted, client.ErrOutcomeUnknown) && !errors.Is(deleted, client.ErrNotFound):
			t.Error(deleted) // not found if the server has not noticed the end of the old connection
		}
	})
}

// losing returns options with which each connection is lost after an hour.
func losing(srv *beanpoletest.Server) *client.Options {
	return &client.Options{Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
		nc, err := srv.Dial(ctx, network, addr)
		if err == nil {
			time.AfterFunc(time.Hour, func() { nc.Close() })
		}
		return nc, err
	}}
}

// The longest timeouts work, even if any number of connections are lost.
func TestReserveLongest(t *testing.T) {
	const longest time.Duration = 1<<63 - 1
	for name, reserve := range map[string]func(ctx context.Context, c *client.Conn) error{
		"no limit": func(ctx context.Context, c *client.Conn) error { return second(c.Reserve(ctx)) },
		"longest":  func(ctx context.Context, c *client.Conn) error { return second(c.ReserveTimeout(ctx, longest)) },
		"nearly": func(ctx context.Context, c *client.Conn) error {
			return second(c.ReserveTimeout(ctx, longest-time.Second))
		},
		"many": func(ctx context.Context, c *client.Conn) error { return second(c.ReserveMany(ctx, 3, longest)) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *beanpoletest.Server, opt *client.Options) {
				other := dial(t, srv.Addr, opt)
				get(other.Put(t.Context(), client.NewJob{Delay: 4*time.Hour + time.Minute}))
				must(t, reserve(t.Context(), dial(t, srv.Addr, losing(srv))))
				if st := get(other.Stats(t.Context())); st.Commands["reserve-with-timeout"] > 15 {
					t.Errorf("asked %d times", st.Commands["reserve-with-timeout"])
				}
			})
		})
	}
}

// The client gives up if the server closes each connection immediately.
func TestReserveRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		attempts := 0
		c := dial(t, "closing", &client.Options{Dial: func(context.Context, string, string) (net.Conn, error) {
			attempts++
			a, b := net.Pipe()
			go func() {
				b.Read(make([]byte, 1))
				b.Close()
			}()
			return a, nil
		}})
		wantErr(t, second(c.Reserve(t.Context())), client.ErrDisconnected)
		if attempts > 40 {
			t.Errorf("%d attempts", attempts)
		}
	})
}

// A reserve that must reconnect does not exceed its timeout.
func TestReserveTimeoutReconnect(t *testing.T) {
	for name, reserve := range map[string]func(ctx context.Context, c *client.Conn) error{
		"one":  func(ctx context.Context, c *client.Conn) error { return second(c.ReserveTimeout(ctx, time.Minute)) },
		"many": func(ctx context.Context, c *client.Conn) error { return second(c.ReserveMany(ctx, 3, time.Minute)) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := beanpoletest.NewMemory(t)
				var last net.Conn
				c := dial(t, srv.Addr, &client.Options{Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
					var err error
					last, err = srv.Dial(ctx, network, addr)
					return last, err
				}})
				go func() {
					time.Sleep(40 * time.Second) // in fake time
					last.Close()
				}()
				began := time.Now()
				wantErr(t, reserve(t.Context(), c), client.ErrTimedOut)
				if took := time.Since(began).Round(time.Second); took != time.Minute {
					t.Errorf("took %v", took)
				}
			})
		})
	}
}

// A wait is rounded up to seconds, even if a part of it has passed before the command is
// sent.
func TestReserveTimeoutRounded(t *testing.T) {
	c := dial(t, play(t, listen(t), "> reserve-with-timeout 1\n< TIMED_OUT\n> reserve-with-timeout 3\n< TIMED_OUT"), nil)
	wantErr(t, second(c.ReserveTimeout(t.Context(), 1)), client.ErrTimedOut)
	wantErr(t, second(c.ReserveTimeout(t.Context(), 2*time.Second+1)), client.ErrTimedOut)
}
