package client_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/client/beanpoletest"
	"github.com/beanpole-mq/beanpole/internal/certs/localca"
	"github.com/beanpole-mq/beanpole/internal/test/seeds"
)

// A cut defines the place and the way in which a connection breaks.
type cut struct {
	how string // "read", "write" or "lie"
	at  int    // number of bytes that still arrive
}

// A cutConn breaks at a byte. Earlier bytes always arrive.
type cutConn struct {
	net.Conn
	cut
}

func (c *cutConn) Read(b []byte) (int, error) {
	if c.how != "read" {
		return c.Conn.Read(b)
	}
	if c.at == 0 {
		c.Close()
		return 0, io.EOF
	}
	n, err := c.Conn.Read(b[:min(len(b), c.at)])
	c.at -= n
	return n, err
}

// Write breaks in two ways: it fails with a partial write, or it succeeds with bytes that
// never arrive.
func (c *cutConn) Write(b []byte) (int, error) {
	switch {
	case c.how == "read":
		return c.Conn.Write(b)
	case len(b) < c.at:
		c.at -= len(b)
		return c.Conn.Write(b)
	}
	n, err := c.Conn.Write(b[:c.at])
	c.at -= n
	c.Conn.(interface{ CloseWrite() error }).CloseWrite()
	switch {
	case err != nil:
		return n, err
	case c.how == "lie":
		return len(b), nil
	}
	return n, &net.OpError{Op: "write", Err: syscall.EPIPE}
}

// cutFirst returns options whose first connection breaks, but no later one. broke reports
// whether the first connection broke.
func cutFirst(srv *beanpoletest.Server, cut cut) (opt *client.Options, broke func() bool) {
	first := &cutConn{cut: cut}
	opt = &client.Options{Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
		nc, err := srv.Dial(ctx, network, addr)
		if err != nil || first.Conn != nil {
			return nc, err
		}
		first.Conn = nc
		return first, nil
	}}
	return opt, func() bool { return first.at == 0 }
}

// eachCut runs a test with a connection that breaks at its first byte, then at its
// second, until it no longer breaks. It tries each way of breaking. In a long reply,
// whose later bytes are alike, it skips some bytes at random.
func eachCut(t *testing.T, f func(t *testing.T, srv *beanpoletest.Server, opt *client.Options)) {
	t.Helper()
	cutsApart(t, 1, f)
}

// cutsApart is like eachCut, but skips up to most bytes between cuts.
func cutsApart(t *testing.T, most int, f func(t *testing.T, srv *beanpoletest.Server, opt *client.Options)) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(seeds.One(t), 0))
	for range seeds.Rounds(t, 1) {
		someCuts(t, func(at int) int { return 1 + rnd.IntN(most+at/16) }, f)
	}
}

// someCuts is like eachCut, but step returns the distance between cuts.
func someCuts(t *testing.T, step func(at int) int, f func(t *testing.T, srv *beanpoletest.Server, opt *client.Options)) {
	for _, how := range []string{"read", "write", "lie"} {
		t.Run(how, func(t *testing.T) {
			broken := true
			for at := 0; broken; at += step(at) {
				t.Run(strconv.Itoa(at), func(t *testing.T) {
					srv := beanpoletest.NewMemory(t)
					opt, broke := cutFirst(srv, cut{how, at})
					f(t, srv, opt)
					srv.Close()
					broken = broke() || t.Failed() && at < 1000
				})
			}
		})
	}
}

// dialCut is like dial, but retries after a failed first attempt.
func dialCut(t *testing.T, addr string, opt *client.Options) *client.Conn {
	t.Helper()
	c, err := client.Dial(t.Context(), addr, opt)
	if err != nil {
		c = dial(t, addr, opt)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// A put is executed once, or the error states that its outcome is unknown. It is never
// executed twice. Afterwards, the connection has its previous state.
func TestCutPut(t *testing.T) {
	eachCut(t, func(t *testing.T, srv *beanpoletest.Server, opt *client.Options) {
		ctx := t.Context()
		c := dialCut(t, srv.Addr, opt)
		must(t, c.WatchOnly(ctx, "mail"))
		var maybe []byte // bodies of the puts with an unknown outcome
		for i := range 3 {
			id, err := c.Put(ctx, client.NewJob{Tube: "mail", Body: []byte{byte(i)}})
			switch {
			case err == nil:
				if body := get(c.Peek(ctx, id)); body[0] != byte(i) {
					t.Errorf("job %d is another", i)
				}
			case errors.Is(err, client.ErrOutcomeUnknown) && errors.Is(err, client.ErrDisconnected):
				maybe = append(maybe, byte(i))
			default:
				t.Errorf("put %d: %v", i, err)
			}
		}
		if len(maybe) > 1 {
			t.Errorf("%d puts have an unknown outcome after one cut", len(maybe))
		}
		get(c.ReserveTimeout(ctx, 0)) // the connection still watches the tube
		if st := get(c.StatsTube(ctx, "mail")); int(st.TotalJobs) > 3 || int(st.TotalJobs) < 3-len(maybe) {
			t.Errorf("%d jobs, %d not certain", st.TotalJobs, len(maybe))
		}
		other := dial(t, srv.Addr, &client.Options{Dial: srv.Dial})
		count := make(map[byte]int)
		last := -1
		for id := range uint64(4) {
			job, err := other.Peek(ctx, id+1)
			if err != nil {
				continue
			}
			body := job[0]
			if count[body]++; count[body] > 1 {
				t.Errorf("job %d was reserved twice", body)
			}
			if slices.Contains(maybe, body) {
				continue // the server can execute the old put after those of the new connection
			}
			if int(body) <= last {
				t.Errorf("job %d was put late", body)
			}
			last = int(body)
		}
	})
}

// Each put of a small or large batch is executed once, or its outcome is unknown.
func TestCutPutMany(t *testing.T) {
	for _, tc := range []struct{ jobs, step int }{{3, 1}, {130, 67}} {
		t.Run(fmt.Sprint(tc.jobs, " jobs"), func(t *testing.T) {
			someCuts(t, func(int) int { return tc.step }, func(t *testing.T, srv *beanpoletest.Server, opt *client.Options) {
				c := dialCut(t, srv.Addr, opt)
				jobs := make([]client.NewJob, tc.jobs)
				for i := range jobs {
					jobs[i] = client.NewJob{Tube: "mail", Body: []byte{byte(i)}}
				}
				ids, err := c.PutMany(t.Context(), jobs)
				checkMany(t, dial(t, srv.Addr, &client.Options{Dial: srv.Dial}), ids, err)
			})
		})
	}
}

func checkMany(t *testing.T, c *client.Conn, ids []uint64, err error) {
	t.Helper()
	ctx := t.Context()
	errs := make([]error, len(ids))
	if batch := new(client.BatchError); errors.As(err, &batch) {
		errs = batch.Errs
	} else if err != nil {
		t.Fatal(err)
	}
	times := make(map[byte]int)
	must(t, c.WatchOnly(ctx, "mail"))
	for {
		job, err := c.ReserveTimeout(ctx, 0)
		if errors.Is(err, client.ErrTimedOut) {
			break
		}
		times[get(job, err).Body[0]]++
	}
	for i, err := range errs {
		n := times[byte(i)]
		switch {
		case err == nil && (n != 1 || ids[i] == 0):
			t.Errorf("job %d exists %d times, with id %d", i, n, ids[i])
		case err != nil && !errors.Is(err, client.ErrOutcomeUnknown):
			t.Errorf("job %d: %v", i, err)
		case n > 1:
			t.Errorf("job %d exists %d times", i, n)
		}
	}
}

// The next client gets a job that a broken connection had reserved. No job is lost, and
// no job is deleted without a request.
func TestCutReserve(t *testing.T) {
	eachCut(t, func(t *testing.T, srv *beanpoletest.Server, opt *client.Options) {
		ctx := t.Context()
		other := dial(t, srv.Addr, &client.Options{Dial: srv.Dial})
		ids := get(other.PutMany(ctx, []client.NewJob{{Tube: "mail"}, {Tube: "mail"}}))
		c := dialCut(t, srv.Addr, opt)
		must(t, c.WatchOnly(ctx, "mail"))
		job := get(c.Reserve(ctx))
		deleted := job.Delete(ctx)
		// The server can serve the new connection before it notices the loss of the old
		// connection, which then still holds the job.
		if deleted != nil && !errors.Is(deleted, client.ErrOutcomeUnknown) && !errors.Is(deleted, client.ErrNotFound) {
			t.Error(deleted)
		}
		// After the server has noticed the hang-up, the other job exists. This job also exists,
		// unless it was deleted.
		c.Close()
		awaitAlone(t, other)
		must(t, other.WatchOnly(ctx, "mail"))
		left := get(other.ReserveMany(ctx, 3, 0))
		left = slices.DeleteFunc(left, func(j *client.Job) bool { return j.ID == job.ID && deleted != nil })
		if len(left) != 1 || left[0].ID == job.ID || !slices.Contains(ids, left[0].ID) {
			t.Errorf("got %d; %d jobs are left", job.ID, len(left))
		}
	})
}

// Repeatable commands are repeated without an error. For others, the error states that
// the outcome is unknown. This depends on the command and not on the byte; TestCutPut and
// TestCutReserve test all bytes.
func TestCutOthers(t *testing.T) {
	for _, tc := range []struct {
		name   string
		repeat bool
		do     func(ctx context.Context, c *client.Conn) error
	}{
		{"ping", true, func(ctx context.Context, c *client.Conn) error { return c.Ping(ctx) }},
		{"stats", true, func(ctx context.Context, c *client.Conn) error { return second(c.Stats(ctx)) }},
		{"stats-tube", true, func(ctx context.Context, c *client.Conn) error { return second(c.StatsTube(ctx, "mail")) }},
		{"stats-job", true, func(ctx context.Context, c *client.Conn) error { return second(c.StatsJob(ctx, 1)) }},
		{"stats-tubes", true, func(ctx context.Context, c *client.Conn) error {
			return second(c.StatsTubeMany(ctx, []string{"mail", "mail"}))
		}},
		{"peek", true, func(ctx context.Context, c *client.Conn) error { return second(c.Peek(ctx, 1)) }},
		{"peek-buried", true, func(ctx context.Context, c *client.Conn) error {
			_, _, err := c.PeekTube(ctx, "mail", client.StateBuried)
			return err
		}},
		{"reserve many", true, func(ctx context.Context, c *client.Conn) error {
			// The timeout is a minute, because the lost connection can hold the job for a short
			// time.
			return errors.Join(c.WatchOnly(ctx, "other"), second(c.ReserveMany(ctx, 2, time.Minute)))
		}},
		{"list-tubes", true, func(ctx context.Context, c *client.Conn) error { return second(c.ListTubes(ctx)) }},
		{"flush-tube", false, func(ctx context.Context, c *client.Conn) error {
			return second(c.FlushTube(ctx, "mail", client.StateBuried, client.All))
		}},
		{"pause-tube", true, func(ctx context.Context, c *client.Conn) error { return c.PauseTube(ctx, "mail", 0) }},
		{"kick", false, func(ctx context.Context, c *client.Conn) error { return second(c.Kick(ctx, "mail", 1)) }},
		{"kick-job", false, func(ctx context.Context, c *client.Conn) error { return c.KickJob(ctx, 1) }},
		{"delete", false, func(ctx context.Context, c *client.Conn) error { return c.Delete(ctx, 1) }}, // the second delete might not find the job
	} {
		t.Run(tc.name, func(t *testing.T) {
			cutsApart(t, 12, func(t *testing.T, srv *beanpoletest.Server, opt *client.Options) {
				ctx := t.Context()
				other := dial(t, srv.Addr, &client.Options{Dial: srv.Dial})
				get(other.Put(ctx, client.NewJob{Tube: "mail"}))
				get(other.Put(ctx, client.NewJob{Tube: "other"}))
				get(other.ReserveJob(ctx, 1))
				must(t, other.Bury(ctx, 1, 0))
				c := dialCut(t, srv.Addr, opt)
				err := tc.do(ctx, c)
				if err != nil && (tc.repeat || !errors.Is(err, client.ErrOutcomeUnknown)) {
					t.Error(err)
				}
				must(t, c.Ping(ctx))
			})
		})
	}
}

// serveAgain closes a server, and starts another at its address, with TLS if config is
// not nil.
func serveAgain(t *testing.T, srv *beanpoletest.Server, config *tls.Config) {
	t.Helper()
	srv.Close()
	l, err := net.Listen("tcp", srv.Addr)
	if err != nil {
		t.Skip("the port is in use:", err)
	}
	if config != nil {
		l = tls.NewListener(l, config)
	}
	serve(t, l)
}

// A put after the server has closed the connection is executed once. The client notices
// the close before it sends the put, even if it has just used the connection.
func TestIdleConnectionClosed(t *testing.T) {
	ctx := t.Context()
	srv := serve(t, listen(t))
	c := dial(t, srv.Addr, nil)
	serveAgain(t, srv, nil)
	get(c.Put(ctx, client.NewJob{}))
}

// A delete that is sent with a reserve after the server has closed the connection is
// executed once.
func TestIdleConnectionClosedDelete(t *testing.T) {
	ctx := t.Context()
	srv := serve(t, listen(t))
	c := dial(t, srv.Addr, nil)
	serveAgain(t, srv, nil)
	get(dial(t, srv.Addr, nil).Put(ctx, client.NewJob{}))
	var deleted error
	get(c.DeleteAndReserve(ctx, []uint64{99}, 1, func(_ int, err error) { deleted = err }))
	c.Close() // so that the server does not wait for it
	wantErr(t, deleted, client.ErrNotFound)
}

// With TLS, the server announces the close, and a put is also executed once. Other data
// that the server sends on a connection that has not read yet does not count as a close.
func TestIdleTLSConnectionClosed(t *testing.T) {
	ca := localca.New(t)
	config := &tls.Config{Certificates: []tls.Certificate{ca.Pair("server")}}
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		t.Run(tls.VersionName(version), func(t *testing.T) {
			ctx := t.Context()
			srv := serve(t, tls.NewListener(listen(t), config))
			c := dial(t, srv.Addr, &client.Options{TLS: &tls.Config{RootCAs: ca.Pool(), MaxVersion: version}})
			get(c.Put(ctx, client.NewJob{}))
			if st := get(c.Stats(ctx)); st.TotalConnections != 1 {
				t.Errorf("%d connections, want the first only", st.TotalConnections)
			}
			serveAgain(t, srv, config)
			get(c.Put(ctx, client.NewJob{}))
		})
	}
}

// A delete is repeated if its connection is lost before the reply. If the job does not
// exist then, the first delete might have removed it.
func TestDeleteAgain(t *testing.T) {
	many := func(ctx context.Context, c *client.Conn) error { return c.DeleteMany(ctx, []uint64{7, 8, 9}) }
	withReserve := func(ctx context.Context, c *client.Conn) error {
		errs := make([]error, 3)
		jobs, err := c.DeleteAndReserve(ctx, []uint64{7, 8, 9}, 1, func(i int, err error) { errs[i] = err })
		if err != nil || len(jobs) != 1 || jobs[0].ID != 10 {
			t.Errorf("reserved %v, %v", jobs, err)
		}
		return errors.Join(errs...)
	}
	for _, tc := range []struct {
		name          string
		do            func(ctx context.Context, c *client.Conn) error
		first, second string
		unknown       bool
	}{
		{"done now", func(ctx context.Context, c *client.Conn) error { return c.Delete(ctx, 7) },
			"> delete 7", "> delete 7\n< DELETED", false},
		{"done before", func(ctx context.Context, c *client.Conn) error { return c.Delete(ctx, 7) },
			"> delete 7", "> delete 7\n< NOT_FOUND", true},
		{"refused", func(ctx context.Context, c *client.Conn) error { return c.Delete(ctx, 7) },
			"> delete 7", "> delete 7\n< UNAUTHORIZED", true},
		{"some of many", many, "> delete 7\n< DELETED\n> delete 8\n> delete 9", "> delete 8\n< DELETED\n> delete 9\n< DELETED", false},
		{"some of many before", many, "> delete 7\n< DELETED\n> delete 8\n> delete 9", "> delete 8\n< DELETED\n> delete 9\n< NOT_FOUND", true},
		{"with a reserve", withReserve, "> delete 7\n< DELETED\n> delete 8\n> delete 9\n> reserve-with-timeout 0",
			"> delete 8\n< DELETED\n> delete 9\n< DELETED\n> reserve-with-timeout 0\n< RESERVED 10 0\n< ", false},
		{"with a reserve, before", withReserve, "> delete 7\n< DELETED\n> delete 8\n> delete 9\n> reserve-with-timeout 0",
			"> delete 8\n< NOT_FOUND\n> delete 9\n< DELETED\n> reserve-with-timeout 0\n< RESERVED 10 0\n< ", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := dial(t, play(t, listen(t), tc.first, tc.second), nil)
			err := tc.do(t.Context(), c)
			if tc.unknown {
				wantErr(t, err, client.ErrOutcomeUnknown)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

// With Never, the client does not reconnect.
func TestNeverReconnect(t *testing.T) {
	srv := beanpoletest.NewServer(t)
	c := dial(t, srv.Addr, &client.Options{Reconnect: client.Never})
	srv.Close()
	wantErr(t, c.Ping(t.Context()), client.ErrDisconnected)
	wantErr(t, c.Ping(t.Context()), client.ErrDisconnected)
	_, err := c.Put(t.Context(), client.NewJob{})
	wantErr(t, err, client.ErrDisconnected)
	if errors.Is(err, client.ErrOutcomeUnknown) {
		t.Errorf("no data was sent: %v", err)
	}
}
