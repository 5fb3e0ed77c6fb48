package client_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/client/beanpoletest"
)

func newPool(t *testing.T, addr string, opt *client.Options) *client.Pool {
	t.Helper()
	p, err := client.NewPool(addr, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func TestPoolCommands(t *testing.T) {
	eachServer(t, func(t *testing.T, addr string) {
		ctx := t.Context()
		p := newPool(t, addr, nil)
		must(t, p.Ping(ctx))
		id := get(p.Put(ctx, client.NewJob{Tube: "mail", Priority: new(uint32(3))}))
		late := get(p.Put(ctx, client.NewJob{Tube: "mail", Delay: time.Hour}))
		get(p.Put(ctx, client.NewJob{}))
		job := get(p.Reserve(ctx, "mail"))
		if job.ID != id {
			t.Errorf("got %d", job.ID)
		}
		must(t, job.Release(ctx, 0))
		must(t, p.KickJob(ctx, late))
		for range 3 {
			must(t, get(p.ReserveTimeout(ctx, 0, "mail", "default")).Delete(ctx))
		}
		wantErr(t, second(p.ReserveTimeout(ctx, 0)), client.ErrTimedOut)
		two := get(p.PutMany(ctx, []client.NewJob{{Tube: "a", Body: []byte("first")}, {}}))
		if st := get(p.StatsJob(ctx, two[0])); st.Tube != "a" {
			t.Errorf("%+v", st)
		}
		must(t, p.DeleteMany(ctx, two))
		must(t, p.Delete(ctx, get(p.Put(ctx, client.NewJob{}))))
		// Sequential commands use only one connection.
		if st := get(p.Stats(ctx)); st.Connections != 1 {
			t.Errorf("%d connections", st.Connections)
		}
	})
}

// Each user of a connection finds it in its initial state.
func TestPoolDo(t *testing.T) {
	ctx := t.Context()
	p := newPool(t, start(t), nil)
	for range 3 {
		must(t, p.Do(ctx, func(ctx context.Context, c *client.Conn) error {
			if tubes := watched(t, c); !slices.Equal(tubes, []string{"default"}) {
				t.Errorf("watches %q", tubes)
			}
			return c.WatchOnly(ctx, "mail", "fax")
		}))
		if st := get(p.StatsJob(ctx, get(p.Put(ctx, client.NewJob{})))); st.Tube != "default" {
			t.Errorf("put to %q", st.Tube)
		}
		must(t, get(p.ReserveTimeout(ctx, 0)).Delete(ctx))
	}
	want := errors.New("mine")
	wantErr(t, p.Do(ctx, func(context.Context, *client.Conn) error { return want }), want)
}

// Many goroutines share a pool. Each put is executed once, and each reserved job is
// finished on its connection.
func TestPoolShared(t *testing.T) {
	ctx := t.Context()
	p := newPool(t, start(t), &client.Options{MaxConns: 7, MaxIdle: 27})
	const each, goroutines = 50, 20
	var sum atomic.Int64
	var wg sync.WaitGroup
	for g := range goroutines {
		tube := fmt.Sprint("tube", g%3)
		wg.Go(func() {
			for range each {
				get(p.Put(ctx, client.NewJob{Tube: tube, Body: []byte{byte(g)}}))
				job := get(p.Reserve(ctx, tube))
				sum.Add(int64(job.Body[0]))
				must(t, job.Delete(ctx))
			}
		})
	}
	wg.Wait()
	if want := int64(each * goroutines * (goroutines - 1) / 2); sum.Load() != want {
		t.Errorf("the jobs add up to %d, want %d", sum.Load(), want)
	}
	if st := get(p.Stats(ctx)); st.JobsReady+st.JobsReserved != 0 || st.TotalConnections > 27 {
		t.Errorf("%d ready, %d reserved, %d connections", st.JobsReady, st.JobsReserved, st.TotalConnections)
	}
}

// A late heartbeat touches a finished job. The server has stopped, so the touch fails on
// a connection that the pool has already lent again.
func TestPoolLateTouch(t *testing.T) {
	eachServer(t, func(t *testing.T, addr string) {
		ctx := t.Context()
		var last net.Conn
		gone := false
		opt := client.Options{Reconnect: time.Nanosecond, Dial: func(ctx context.Context, network, address string) (nc net.Conn, err error) {
			if gone {
				return nil, errors.New("connection refused")
			}
			last, err = new(net.Dialer).DialContext(ctx, network, address)
			return last, err
		}}
		p := newPool(t, addr, &opt)
		get(p.Put(ctx, client.NewJob{}))
		job := get(p.Reserve(ctx))
		must(t, job.Delete(ctx))
		gone = true
		last.Close()
		wantErr(t, job.Touch(ctx), client.ErrDisconnected)
		gone = false
		get(p.Put(ctx, client.NewJob{Tube: "mail"}))
	})
}

// A pool sends commands on at most MaxConns connections and keeps at most MaxIdle.
// Connections with reserved jobs do not count.
func TestPoolLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := beanpoletest.NewMemory(t)
		opt := client.Options{Dial: srv.Dial, MaxConns: 2, MaxIdle: 1}
		p := newPool(t, srv.Addr, &opt)
		watch := dial(t, srv.Addr, &opt)
		ctx := t.Context()
		get(watch.PutMany(ctx, make([]client.NewJob, 3)))
		a, b, c := get(p.Reserve(ctx)), get(p.Reserve(ctx)), get(p.Reserve(ctx))
		must(t, p.Ping(ctx))
		end := make(chan struct{})
		done := make(chan error)
		for range 2 {
			go func() {
				done <- p.Do(ctx, func(context.Context, *client.Conn) error { <-end; return nil })
			}()
		}
		synctest.Wait()
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		wantErr(t, p.Ping(short), context.DeadlineExceeded)
		pinged := make(chan error)
		go func() { pinged <- p.Ping(ctx) }()
		synctest.Wait()
		end <- struct{}{}
		must(t, <-done)
		must(t, <-pinged)
		close(end)
		must(t, <-done)
		must(t, a.Delete(ctx))
		must(t, b.Delete(ctx))
		must(t, c.Delete(ctx))
		synctest.Wait()
		if st := get(watch.Stats(ctx)); st.Connections != 2 {
			t.Errorf("%d connections, want those of the pool and the test", st.Connections)
		}
	})
}

// By default, many goroutines share a few connections.
func TestPoolDefaultLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := beanpoletest.NewMemory(t)
		p := newPool(t, srv.Addr, &client.Options{Dial: srv.Dial})
		var wg sync.WaitGroup
		for range 1000 {
			wg.Go(func() { get(p.Put(t.Context(), client.NewJob{})) })
		}
		wg.Wait()
		synctest.Wait()
		// The pool closes no connection while goroutines wait, and only a few connections
		// remain at the end.
		if st := get(p.Stats(t.Context())); st.TotalJobs != 1000 || st.TotalConnections > client.DefaultMaxConns || st.Connections > client.DefaultMaxIdle {
			t.Errorf("%d jobs over %d connections, of which %d are left", st.TotalJobs, st.TotalConnections, st.Connections)
		}
		none := newPool(t, srv.Addr, &client.Options{Dial: srv.Dial, MaxIdle: -1})
		must(t, none.Ping(t.Context()))
		must(t, none.Ping(t.Context()))
		synctest.Wait()
		if st := get(p.Stats(t.Context())); st.Connections > client.DefaultMaxIdle {
			t.Errorf("%d connections with a negative MaxIdle", st.Connections)
		}
	})
}

// The list of a cluster's members is one address. Each connection uses the first member
// that answers. A member that does not answer costs its share of DialTimeout once, not
// for each connection.
func TestPoolOfList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		srv := map[string]*beanpoletest.Server{"a:1": beanpoletest.NewMemory(t), "c:11300": beanpoletest.NewMemory(t)}
		var dialed []string
		opt := client.Options{DialTimeout: 3 * time.Second, Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
			dialed = append(dialed, addr)
			if srv[addr] == nil { // this server does not reply
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return srv[addr].Dial(ctx, network, addr)
		}}
		p := newPool(t, "beanpole://a:1,b:1,c", &opt)
		get(p.Put(ctx, client.NewJob{}))
		srv["a:1"].Close()
		delete(srv, "a:1")
		began := time.Now()
		job := get(p.Put(ctx, client.NewJob{}))
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("two silent members took %v", took)
		}
		get(p.Reserve(ctx)).Abandon()
		get(p.Reserve(ctx))
		if want := []string{"a:1", "a:1", "b:1", "c:11300", "c:11300"}; !slices.Equal(dialed, want) {
			t.Errorf("dialed %q, want %q", dialed, want)
		}
		if p.Addr() != "a:1,b:1,c" || job != 1 {
			t.Errorf("job %d at %s", job, p.Addr())
		}
		srv["c:11300"].Close()
		delete(srv, "c:11300")
		err := second(p.Put(ctx, client.NewJob{}))
		wantErr(t, err, client.ErrDisconnected)
		if took := time.Since(began); took < client.DefaultReconnect || errors.Is(err, client.ErrOutcomeUnknown) {
			t.Errorf("failed after %v: %v", took, err)
		}
	})
}

// If a job is abandoned, cancelled or lost, the server has the job again, and the pool
// can open another connection.
func TestPoolAbandon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := beanpoletest.NewMemory(t)
		p := newPool(t, srv.Addr, &client.Options{Dial: srv.Dial, MaxConns: 1})
		ctx := t.Context()
		id := get(p.Put(ctx, client.NewJob{}))
		for range 3 {
			job := get(p.Reserve(ctx))
			job.Abandon()
			job.Abandon()
			synctest.Wait()
			if st := get(p.StatsJob(ctx, id)); st.State != client.StateReady || st.Releases != 0 {
				t.Errorf("%+v", st)
			}
		}
		job := get(p.Reserve(ctx))
		must(t, job.Delete(ctx))
		job.Abandon() // the job is finished

		short, cancel := context.WithCancel(ctx)
		reserved := make(chan error)
		go func() { reserved <- second(p.Reserve(short)) }()
		synctest.Wait()
		cancel()
		wantErr(t, <-reserved, context.Canceled)
		must(t, p.Ping(ctx))

		// The TTR of the job has expired, so another client can get it.
		get(p.Put(ctx, client.NewJob{TTR: time.Second}))
		job = get(p.Reserve(ctx))
		time.Sleep(2 * time.Second) // in fake time
		wantErr(t, job.Release(ctx, 0), client.ErrNotFound)
		must(t, p.Ping(ctx))
	})
}

func TestPoolClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := beanpoletest.NewMemory(t)
		p := newPool(t, srv.Addr, &client.Options{Dial: srv.Dial, MaxConns: 1})
		errs := make(chan error)
		go func() { errs <- second(p.Reserve(context.Background())) }()
		go func() {
			errs <- p.Do(context.Background(), func(ctx context.Context, c *client.Conn) error { return second(c.Reserve(ctx)) })
		}()
		synctest.Wait()
		go func() { errs <- p.Ping(context.Background()) }() // waits for a connection
		synctest.Wait()
		p.Close()
		p.Close()
		for range 3 {
			wantErr(t, <-errs, client.ErrClosed)
		}
		wantErr(t, p.Ping(t.Context()), client.ErrClosed)
	})
}
