// Package server lets clients at the broker through sockets.
//
// Each connection has one goroutine and no other. It reads what has arrived,
// lets wire cut it into commands, hands as many as there are to the broker as
// one request, and writes all replies with one call (conn.go). The commands are
// applied within the broker's turn (apply.go, stats.go); that is the only code
// here that sees the engine.
//
// A connection that waits in a reserve costs its goroutine and a small buffer.
// It goes on reading, so that a hang-up is noticed, but what the client
// pipelines behind the reserve stays unparsed. Whoever leads the turn that ends
// the wait writes the answer, if the socket takes it, and otherwise wakes the
// connection by moving its read deadline into the past (await.go).
//
//	srv := server.New(b, server.Options{})
//	go srv.Serve(listener)        // once for each listener
//	...
//	srv.Shutdown(ctx)
//
// # Limits
//
// A connection buffers at most one command more than it executes, and replies up to
// maxOut before they are written: a slow reader holds up nobody and makes
// nothing grow. A client that stops in the middle of a command, or does not
// read its replies, is disconnected after Options.StallTimeout. Buffers grow
// with what has really arrived, not with what a put announces.
//
// # Goroutines
//
// One for each connection, started by Serve and ended by Shutdown; Serve itself
// runs in its caller's. Start reading at conn.go.
package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

const (
	DefaultMaxJobSize   = wire.DefaultMaxBody // bytes
	DefaultMaxConns     = 65536
	DefaultStallTimeout = time.Minute

	// MaxJobSizeLimit is the most that Options.MaxJobSize may be, in bytes.
	MaxJobSizeLimit = wire.LargestMaxBody
)

// Options of a Server. The zero value is what the constants say.
type Options struct {
	// MaxJobSize is the largest body of a job in bytes, at most
	// MaxJobSizeLimit. 0: DefaultMaxJobSize; negative: only empty bodies.
	MaxJobSize int

	// MaxConns is how many connections may be open. A further one is closed
	// as soon as it is accepted. 0: DefaultMaxConns.
	MaxConns int

	// IdleTimeout is how long a connection may be silent while it waits for
	// nothing. 0: for ever, as with beanstalkd.
	IdleTimeout time.Duration

	// StallTimeout is how long a client may stop in the middle of a command
	// or leave its replies unread, give or take a quarter.
	// 0: DefaultStallTimeout; negative: for ever.
	StallTimeout time.Duration

	// Logger gets what happens to connections at level debug, and what an
	// operator should know above. Nil: nothing is logged.
	Logger *slog.Logger

	// Trace logs each command and reply, at level debug.
	Trace bool

	// Version is beanpole's own; stats shows it after beanstalkd's keys.
	Version string

	// SegmentSize is what stats shows as binlog-max-size, in bytes. 0:
	// beanstalkd's default, which it shows even without a log.
	SegmentSize int64

	// Log tells of the journal, for stats. It is called within turns. Nil:
	// there is none.
	Log func() LogStats
}

// Server serves clients on any number of listeners.
type Server struct {
	// Static after New.
	broker *broker.Broker
	opt    Options
	log    *slog.Logger
	self   process

	// Owned by the turn.
	commands [wire.NumOps]uint64 // how often each was given, as stats counts

	rejected atomic.Uint64 // connections over the limit

	mu struct {
		sync.Mutex
		closing   bool
		listeners map[net.Listener]struct{}
		conns     map[*conn]struct{}
	}
	wg sync.WaitGroup // one for each connection
}

// New returns a server of the broker's clients.
func New(b *broker.Broker, opt Options) *Server {
	if opt.MaxJobSize == 0 {
		opt.MaxJobSize = DefaultMaxJobSize
	}
	opt.MaxJobSize = max(0, opt.MaxJobSize)
	if opt.MaxConns == 0 {
		opt.MaxConns = DefaultMaxConns
	}
	if opt.StallTimeout == 0 {
		opt.StallTimeout = DefaultStallTimeout
	}
	if opt.SegmentSize == 0 {
		opt.SegmentSize = defaultSegmentSize
	}
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{broker: b, opt: opt, log: opt.Logger, self: newProcess()}
	s.mu.listeners = make(map[net.Listener]struct{})
	s.mu.conns = make(map[*conn]struct{})
	return s
}

// Drain makes puts be answered DRAINING from now on.
func (s *Server) Drain() {
	s.broker.Call(func(e *engine.Engine, _ int64) { e.Drain() })
	s.log.Info("draining: no puts are taken any more")
}

// Serve accepts connections until the listener is closed, by Shutdown for
// instance, which makes it return nil.
func (s *Server) Serve(l net.Listener) error {
	if !s.addListener(l) {
		l.Close()
		return nil
	}
	defer s.removeListener(l)
	var pause backoff
	for {
		nc, err := l.Accept()
		switch {
		case err == nil:
			pause.reset()
			s.admit(nc)
		case s.isClosing():
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		default:
			// Out of descriptors, most likely. Those who are connected go on;
			// to try again at once would only burn the processor.
			d, first := pause.next()
			if first {
				s.log.Warn("cannot accept connections", "listener", l.Addr(), "err", err)
			}
			time.Sleep(d)
		}
	}
}

// A backoff is a pause that doubles, from 5 ms to 1 s.
type backoff struct{ d time.Duration }

func (b *backoff) reset() { b.d = 0 }

func (b *backoff) next() (d time.Duration, first bool) {
	first = b.d == 0
	b.d = min(max(2*b.d, 5*time.Millisecond), time.Second)
	return b.d, first
}

// admit serves a new connection, or closes it if there are too many.
func (s *Server) admit(nc net.Conn) {
	c := newConn(s, nc)
	if err := s.addConn(c); err != nil {
		nc.Close()
		if err == errFull && s.rejected.Add(1) == 1 {
			s.log.Warn("too many connections: new ones are closed", "limit", s.opt.MaxConns)
		}
		return
	}
	go func() {
		defer s.wg.Done()
		defer s.removeConn(c)
		c.serve()
	}()
}

func (s *Server) addListener(l net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closing {
		return false
	}
	s.mu.listeners[l] = struct{}{}
	return true
}

func (s *Server) removeListener(l net.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.mu.listeners, l)
}

var errFull = errors.New("too many connections")

func (s *Server) addConn(c *conn) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.mu.closing:
		return errStopped
	case len(s.mu.conns) >= s.opt.MaxConns:
		return errFull
	}
	s.mu.conns[c] = struct{}{}
	s.wg.Add(1)
	return nil
}

func (s *Server) removeConn(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.mu.conns, c)
}

func (s *Server) isClosing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.closing
}

// Shutdown closes the listeners, lets each connection finish what it has begun
// and write its replies, and closes it. When ctx ends first it closes the rest
// at once and returns the error of ctx.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.mu.closing = true
	for l := range s.mu.listeners {
		l.Close()
	}
	for c := range s.mu.conns {
		c.stop()
	}
	s.mu.Unlock()

	done := make(chan struct{})
	go func() {
		s.wg.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		s.mu.Lock()
		for c := range s.mu.conns {
			c.nc.Close()
		}
		s.mu.Unlock()
		<-done
		return ctx.Err()
	}
}
