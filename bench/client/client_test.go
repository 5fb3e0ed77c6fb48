// Package client compares the Go client with github.com/beanstalkd/go-beanstalk and bare
// sockets: puts and reserves, singly and in batches, and the worker's jobs. CPU is the
// client's user and system time, which is meaningful even on a busy machine.
//
//	for _ in 1 2 3 4 5 6; do go test ./client -bench . -server beanstalkd; done | go tool benchstat -col /client -
//
// Each benchmark starts a server without a journal on a free port.
package client

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/beanstalkd/go-beanstalk"
	"go.uber.org/goleak"

	"github.com/beanpole-mq/beanpole/bench"
	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/client/worker"
)

var program = flag.String("server", "beanpole", "measure on this `PROGRAM`, which takes beanstalkd's flags")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// startServer returns the address of a new server which stops when the benchmark ends.
func startServer(b *testing.B) string {
	b.Helper()
	s := bench.Server{Command: []string{*program, "-l", "127.0.0.1", "-p", "{port}"}}
	p, err := s.Start(context.Background(), "")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(p.Kill)
	return p.Addr
}

// A session puts and reserves jobs as fast as possible, in one goroutine.
type session interface {
	put(n int) error
	reserve(n int) error // reserves existing jobs; they are reserved until Close
	io.Closer
}

// contenders contains the compared clients. benchstat compares the later ones with the
// first.
var contenders = []struct {
	name string
	dial func(addr string) (session, error)
}{
	{"go-beanstalk", dialTheirs},
	{"bare-socket", dialBare},
	{"client", func(addr string) (session, error) { return dialOurs(addr, 1, false) }},
	{"client-cancellable", func(addr string) (session, error) { return dialOurs(addr, 1, true) }},
	{"client-batches-of-100", func(addr string) (session, error) { return dialOurs(addr, 100, false) }},
}

var body = bytes.Repeat([]byte("x"), 64)

func BenchmarkPut(b *testing.B) {
	measure(b, func(*testing.B, session) error { return nil }, session.put)
}

func BenchmarkReserve(b *testing.B) {
	measure(b, func(b *testing.B, s session) error { return s.put(b.N) }, session.reserve)
}

// measure measures each contender with b.N jobs, after calling before, whose time is not
// measured.
func measure(b *testing.B, before func(*testing.B, session) error, do func(s session, n int) error) {
	for _, c := range contenders {
		addr := startServer(b)
		b.Run("client="+c.name, func(b *testing.B) {
			b.ReportAllocs()
			s, err := c.dial(addr)
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			if err := before(b, s); err != nil {
				b.Fatal(err)
			}
			timed(b, func() error { return do(s, b.N) })
		})
	}
}

// timed measures the elapsed time and the CPU time of f.
func timed(b *testing.B, f func() error) {
	b.ResetTimer()
	before := processorTime()
	err := f()
	b.StopTimer()
	b.ReportMetric(float64(processorTime()-before)/float64(b.N), "cpu-ns/op")
	if err != nil {
		b.Fatal(err)
	}
}

func processorTime() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u) // cannot fail for this process
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkWorker runs a worker with empty handlers, which reserves, handles and deletes
// jobs. It uses batches, or, as with a server that lacks them, a command for each job.
func BenchmarkWorker(b *testing.B) {
	for _, handlers := range []int{1, 10, 100} {
		for _, takes := range []string{"one", "batches"} {
			addr := startServer(b)
			b.Run(fmt.Sprintf("handlers=%d/client=%s", handlers, takes), func(b *testing.B) { work(b, addr, handlers, takes == "one") })
		}
	}
}

func work(b *testing.B, addr string, handlers int, single bool) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	s, err := dialOurs(addr, 100, false)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	if err := s.put(b.N); err != nil {
		b.Fatal(err)
	}
	var left, calls atomic.Int64
	left.Store(int64(b.N))
	w, err := worker.New(func(context.Context, *worker.Job) error { return nil }, &worker.Options{
		Servers:     []string{addr},
		Concurrency: handlers,
		Client: client.Options{Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
			nc, err := new(net.Dialer).DialContext(ctx, network, addr)
			return &counted{nc, &calls, single}, err
		}},
		Hooks: worker.Hooks{Finish: func(_ context.Context, _ *worker.Job, o worker.Outcome) {
			if o.Action != worker.Deleted {
				b.Errorf("a job was %s: %v", o.Action, o.Err)
			}
			if left.Add(-1) == 0 {
				stop()
			}
		}},
	})
	if err != nil {
		b.Fatal(err)
	}
	timed(b, func() error { return w.Run(ctx) })
	b.ReportMetric(float64(calls.Load())/float64(b.N), "syscalls/op")
}

// A counted connection counts its reads and writes, and can hide the server's batches
// from the client.
type counted struct {
	net.Conn
	calls  *atomic.Int64
	single bool
}

func (c *counted) Read(p []byte) (int, error) {
	c.calls.Add(1)
	return c.Conn.Read(p)
}

func (c *counted) Write(p []byte) (int, error) {
	c.calls.Add(1)
	if c.single {
		p = bytes.Replace(p, []byte("caps\r\n"), []byte("none\r\n"), 1)
	}
	return c.Conn.Write(p)
}

// A bare session does only the necessary work. Its commands are constant, and it checks
// only the length of the replies.
type bare struct {
	net.Conn
	in *bufio.Reader
}

func dialBare(addr string) (session, error) {
	nc, err := net.Dial("tcp", addr)
	return &bare{nc, bufio.NewReader(nc)}, err
}

var (
	barePut     = fmt.Appendf(nil, "put 0 0 60 %d\r\n%s\r\n", len(body), body)
	bareReserve = []byte("reserve-with-timeout 1\r\n")
)

func (s *bare) put(n int) error     { return s.send(n, barePut, "INSERTED ", 0) }
func (s *bare) reserve(n int) error { return s.send(n, bareReserve, "RESERVED ", len(body)+2) }

func (s *bare) send(n int, command []byte, reply string, after int) error {
	for range n {
		if _, err := s.Write(command); err != nil {
			return err
		}
		line, err := s.in.ReadSlice('\n')
		if err != nil || !bytes.HasPrefix(line, []byte(reply)) {
			return fmt.Errorf("%q: %w", line, err)
		}
		if _, err := s.in.Discard(after); err != nil {
			return err
		}
	}
	return nil
}

type theirs struct{ *beanstalk.Conn }

func dialTheirs(addr string) (session, error) {
	c, err := beanstalk.Dial("tcp", addr)
	return theirs{c}, err
}

func (s theirs) put(n int) (err error) {
	for ; n > 0 && err == nil; n-- {
		_, err = s.Put(body, 0, 0, time.Minute)
	}
	return err
}

func (s theirs) reserve(n int) (err error) {
	for ; n > 0 && err == nil; n-- {
		_, _, err = s.Reserve(time.Second)
	}
	return err
}

type ours struct {
	*client.Conn
	ctx    context.Context
	cancel context.CancelFunc
	jobs   []client.NewJob // the jobs of a batch
}

// dialOurs connects a session that puts and reserves batch jobs at a time.
func dialOurs(addr string, batch int, cancellable bool) (session, error) {
	s := &ours{ctx: context.Background(), cancel: func() {}, jobs: make([]client.NewJob, batch)}
	if cancellable {
		s.ctx, s.cancel = context.WithCancel(context.Background())
	}
	for i := range s.jobs {
		s.jobs[i].Body = body
	}
	c, err := client.Dial(s.ctx, addr, nil)
	s.Conn = c
	return s, err
}

func (s *ours) Close() error {
	s.cancel()
	return s.Conn.Close()
}

func (s *ours) put(n int) (err error) {
	for ; n > 0 && err == nil; n -= len(s.jobs) {
		if len(s.jobs) == 1 {
			_, err = s.Put(s.ctx, s.jobs[0])
		} else {
			_, err = s.PutMany(s.ctx, s.jobs[:min(n, len(s.jobs))])
		}
	}
	return err
}

func (s *ours) reserve(n int) (err error) {
	for got := 1; n > 0 && err == nil; n -= got {
		if len(s.jobs) == 1 {
			_, err = s.ReserveTimeout(s.ctx, time.Second)
			continue
		}
		var jobs []*client.Job
		jobs, err = s.ReserveMany(s.ctx, min(n, len(s.jobs)), time.Second)
		got = len(jobs)
	}
	return err
}
