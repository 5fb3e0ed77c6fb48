package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/beanpole-mq/beanpole/internal/load"
)

// A loadShape is how a server is loaded.
type loadShape struct {
	Connections int
	InFlight    int // jobs under way on each connection
	BodySize    int // bytes
	Warmup      time.Duration
	Duration    time.Duration // of the measurement
}

// A result is what one run measured.
type result struct {
	Jobs      float64 // per second
	P50, P99  time.Duration
	ServerCPU time.Duration // per job, user and system; 0 if unknown
	ClientCPU time.Duration // per job
	PeakRSS   int64         // bytes, of the server since it started; 0 if unknown
}

const (
	dialTimeout = 10 * time.Second
	stopGrace   = time.Minute // for the jobs under way at the end
	patience    = 20          // how many times the duration a slow server may take
	readSize    = 64 << 10
)

var (
	errStuck       = errors.New("the server left requests unanswered after the end of the run")
	errNotEachOnce = errors.New("the jobs that were taken are not the ones that were put, each once")
	errNoJobs      = errors.New("no job was finished while measuring")
)

// A client is a connection under load; its goroutine owns it.
type client struct {
	nc net.Conn
	s  *session
}

// A run is one load on one server. Only phase is shared by goroutines.
type run struct {
	shape   loadShape
	clients []*client
	phase   atomic.Int32
	start   time.Time
}

func (r *run) now() int64 { return int64(time.Since(r.start)) }

// drive opens the connections, runs the load and sums it up. A goroutine for
// each connection has ended when it returns. The first failure ends the run.
func drive(ctx context.Context, p *load.Process, connect connector, shape loadShape) (result, error) {
	r := &run{shape: shape, start: time.Now()}
	defer r.close()
	if err := r.dial(ctx, p.Addr, connect); err != nil {
		return result{}, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	detach := context.AfterFunc(ctx, r.interrupt)
	defer detach()
	var wg sync.WaitGroup
	for _, c := range r.clients {
		wg.Go(func() {
			if err := r.converse(c); err != nil {
				cancel(err) // the first one counts
			}
		})
	}
	used := r.measure(ctx, p)
	grace := time.AfterFunc(stopGrace, func() { cancel(errStuck) })
	wg.Wait()
	grace.Stop()
	if err := context.Cause(ctx); err != nil {
		return result{}, err
	}
	return r.sum(used)
}

func (r *run) dial(ctx context.Context, addr string, connect connector) error {
	d := net.Dialer{Timeout: dialTimeout, KeepAlive: -1}
	for i := range r.shape.Connections {
		nc, err := d.DialContext(ctx, "tcp", addr)
		if err != nil {
			return err
		}
		c := &client{nc: nc}
		r.clients = append(r.clients, c)
		if err := nc.SetDeadline(time.Now().Add(dialTimeout)); err != nil {
			return err
		}
		proto, err := connect(nc, i, r.shape)
		if err != nil {
			return err
		}
		if err := nc.SetDeadline(time.Time{}); err != nil {
			return err
		}
		c.s = newSession(proto, i, r.shape.InFlight, r.shape.BodySize)
	}
	return nil
}

func (r *run) close() {
	for _, c := range r.clients {
		c.nc.Close()
	}
}

// interrupt ends what the connections are blocked in.
func (r *run) interrupt() {
	for _, c := range r.clients {
		c.nc.SetDeadline(time.Unix(1, 0)) // fails only on a closed connection
	}
}

// converse drives one connection until the run stops and its jobs are finished.
func (r *run) converse(c *client) error {
	in := make([]byte, readSize)
	kept := 0
	for c.s.begin(r.now()); c.s.active > 0; {
		if len(c.s.out) > 0 {
			if _, err := c.nc.Write(c.s.out); err != nil {
				return err
			}
			c.s.out = c.s.out[:0]
		}
		n, err := c.nc.Read(in[kept:])
		if err != nil {
			return err
		}
		kept += n
		consumed, err := c.s.received(in[:kept], r.now(), phase(r.phase.Load()))
		if err != nil {
			return err
		}
		kept = copy(in, in[consumed:kept])
		if kept == len(in) {
			return fmt.Errorf("a message longer than %d bytes: %s", len(in), quoted(in))
		}
	}
	return nil
}

// A span is what was used while measuring.
type span struct {
	elapsed   time.Duration
	serverCPU time.Duration
	clientCPU time.Duration
	peakRSS   int64
}

// measure leads the run through its phases, sooner if ctx is done. The
// measurement takes longer than asked for, within limits, if by then fewer jobs
// are finished than are under way: a figure made of few would be worth nothing.
func (r *run) measure(ctx context.Context, p *load.Process) (used span) {
	sleep(ctx, r.shape.Warmup)
	server0, _ := p.Usage()
	client0, from := clientCPU(), time.Now()
	r.phase.Store(int32(measuring))
	for range patience {
		sleep(ctx, r.shape.Duration)
		if ctx.Err() != nil || r.jobs() >= int64(r.shape.Connections*r.shape.InFlight) {
			break
		}
	}
	r.phase.Store(int32(stopping))
	used.elapsed = time.Since(from)
	used.clientCPU = clientCPU() - client0
	if server1, ok := p.Usage(); ok {
		used.serverCPU, used.peakRSS = server1.CPU-server0.CPU, server1.PeakRSS
	}
	return used
}

// jobs are those finished while measuring, by now.
func (r *run) jobs() (n int64) {
	for _, c := range r.clients {
		n += c.s.jobs.Load()
	}
	return n
}

// sum adds up what the sessions have counted and sees that it is right.
func (r *run) sum(used span) (res result, err error) {
	all := newTally()
	for _, c := range r.clients {
		all.add(&c.s.tally)
	}
	if all.put != all.taken {
		return res, errNotEachOnce
	}
	jobs := r.jobs()
	if jobs == 0 {
		return res, errNoJobs
	}
	return result{
		Jobs:      float64(jobs) / used.elapsed.Seconds(),
		P50:       all.percentile(50),
		P99:       all.percentile(99),
		ServerCPU: used.serverCPU / time.Duration(jobs),
		ClientCPU: used.clientCPU / time.Duration(jobs),
		PeakRSS:   used.peakRSS,
	}, nil
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// clientCPU is the processor time that this process has taken.
func clientCPU() time.Duration {
	var ru syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &ru) != nil {
		return 0
	}
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}
