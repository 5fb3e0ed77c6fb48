// Package server lets clients at the broker through sockets.
//
// What a client says and hears is a conversation, a room of its own. This package
// has the loops that drive conversations, and do their input and output:
//
//	                    Server                       server.go
//	                      │ Serve                    accept.go, slots.go, admission.go, reports.go
//	       ┌──────────────┴──────────────┐
//	TCP and unix sockets,      a goroutine accepts, and waits
//	    on Linux               for proxies and handshakes
//	 │ acceptor.go                │ header.go, proxied.go
//	       └──────────────┬──────────────┘
//	                    loop, a few of them          loop.go, loops.go
//	                      │                          round.go: a turn
//	                      │                          mailbox.go, timers.go, departures.go
//	                   socket, each of one loop      socket.go
//	       ┌──────────────┼──────────────┐
//	    epoll.Socket   tlsSocket    streamSocket     tls.go, stream.go
//	                                ┌────┴────┐
//	                           mux.Stream    pump    pump.go
//
// A loop waits for its sockets with a Poller, reads from those that have something,
// runs one turn of the broker for all of them, and writes all their replies. It
// accepts connections, too. It does what a conversation's State wants, and calls Advance
// when Next says so; it knows no other limit on time.
//
//	srv := server.New(b, server.Options{})
//	go srv.Serve(listener)        // once for each listener
//	...
//	srv.Shutdown(ctx)
//
// # Limits
//
// What a connection may buffer is said in package conversation: a slow reader
// holds up nobody and makes nothing grow. An idle socket has no buffer. A client
// that makes no progress in the middle of a command, or does not read its replies,
// is disconnected after Options.StallTimeout.
//
// # Members of a cluster
//
// With Options.Cluster the server serves clients only while its member is the active
// leader (member.go). Else the first loop passes their bytes on to the leader (proxy.go),
// whose server takes them for its own (proxied.go), or lets them wait for one.
//
// # Goroutines
//
// One for each loop, started with the first listener, one for each connection while that
// is not ready for a loop, and two for each pump; Serve starts them and Shutdown ends
// them. Serve itself runs in its caller's, where it accepts the connections that loops do
// not (accept.go).
package server

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/conversation"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

const (
	DefaultMaxJobSize   = wire.DefaultMaxBody // bytes
	DefaultMaxConns     = 65536
	DefaultStallTimeout = time.Minute
	DefaultMaxBuffers   = 512 << 20 // bytes

	// MaxJobSizeLimit is the most that Options.MaxJobSize may be, in bytes.
	MaxJobSizeLimit = wire.LargestMaxBody
)

// Options of a Server. The zero value is what the constants say.
type Options struct {
	// MaxJobSize is the largest body of a job in bytes, at most
	// MaxJobSizeLimit. 0: DefaultMaxJobSize; negative: only empty bodies.
	MaxJobSize int

	// MaxConns is how many connections may be open. Further clients wait in the
	// kernel's queues of the listeners until one ends. 0: DefaultMaxConns.
	MaxConns int

	// Access knows who clients are, and has their limits. Nil: everybody may do
	// everything, as often as they like.
	Access *access.Control

	// Limits of clients at first; see SetLimits.
	Limits access.Limits

	// IdleTimeout is how long a connection may be silent while it waits for
	// nothing and holds no job. 0: for ever, as with beanstalkd.
	IdleTimeout time.Duration

	// StallTimeout is how long a client may make no progress in the middle of a
	// command or with its replies, give or take a quarter. Progress is 4 KiB, or
	// the end of the command.
	// 0: DefaultStallTimeout; negative: for ever.
	StallTimeout time.Duration

	// MaxBuffers is how many bytes the buffers of all connections may hold together:
	// input that is not executed, and replies that are not read. When they hold more,
	// the connection that holds most is closed. It is twice
	// MaxJobSize at least. 0: DefaultMaxBuffers; negative: any number.
	MaxBuffers int64

	// Compat is the version of beanstalkd whose protocol is spoken.
	Compat wire.Compat

	// Loops is how many goroutines serve sockets, on Linux. 0: one for every
	// two processors that Go uses (doc/decisions/0007).
	Loops int

	// SlowSync: a loop waits for a sync of the log if syncs take less than this on
	// average. Otherwise it serves other clients meanwhile. 0: 5 ms; negative: it
	// waits for none.
	SlowSync time.Duration

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

	// Cluster is set for the server of a cluster member, which serves no client before
	// Follow. It is nil for a single server.
	Cluster *Cluster

	// Journal returns the state of the journal, for stats. It is called within turns. Nil:
	// there is none.
	Journal func() JournalStats
}

// Server serves clients on any number of listeners.
type Server struct {
	// Static after New.
	broker *broker.Broker
	opt    Options
	self   process
	begun  time.Time
	shared conversation.Shared
	access *access.Control

	restricted atomic.Bool     // some listener does not let in everybody
	running    context.Context // until Shutdown, which ends it with mu locked
	stopping   context.CancelFunc
	aborting   context.Context // until Shutdown has no more time
	abort      context.CancelFunc

	*reports
	accepting  accepting // its lock comes before mu
	slots      slots     // its lock comes after mu
	departures departures

	mu struct {
		sync.Mutex
		listeners map[io.Closer]struct{}
		loops     loops
		sockets   int       // clients whose conversations are with the engine here
		left      sync.Cond // there is one less

		// Of a member of a cluster.
		lead  Leadership
		leads uint32 // how often lead has changed
		alone int64  // ns; since when no leader is known; engine.Never: one is
	}
	wg sync.WaitGroup // one for each goroutine
}

// New returns a server of the broker's clients.
func New(b *broker.Broker, opt Options) *Server {
	opt.MaxJobSize = max(0, cmp.Or(opt.MaxJobSize, DefaultMaxJobSize))
	opt.MaxConns = cmp.Or(opt.MaxConns, DefaultMaxConns)
	opt.StallTimeout = cmp.Or(opt.StallTimeout, DefaultStallTimeout)
	opt.Loops = cmp.Or(opt.Loops, max(1, runtime.GOMAXPROCS(0)/2))
	opt.SlowSync = cmp.Or(opt.SlowSync, 5*time.Millisecond)
	opt.SegmentSize = cmp.Or(opt.SegmentSize, defaultSegmentSize)
	opt.MaxBuffers = cmp.Or(opt.MaxBuffers, DefaultMaxBuffers)
	if opt.MaxBuffers > 0 {
		opt.MaxBuffers = max(opt.MaxBuffers, 2*int64(opt.MaxJobSize))
	}
	if m := opt.Cluster; m != nil {
		m.Patience = cmp.Or(m.Patience, DefaultPatience)
	}
	opt.Logger = cmp.Or(opt.Logger, slog.New(slog.DiscardHandler))
	s := &Server{broker: b, opt: opt, reports: newReports(opt.Logger), self: newProcess(), begun: time.Now()}
	s.slots.limit, s.slots.reports, s.slots.freed.L = opt.MaxConns, s.reports, &s.slots.Mutex
	s.shared = conversation.Shared{
		MaxJobSize:   opt.MaxJobSize,
		Compat:       opt.Compat,
		IdleTimeout:  opt.IdleTimeout,
		StallTimeout: opt.StallTimeout,
		Stats:        s.stats,
	}
	if opt.Trace {
		s.shared.Trace = opt.Logger
	}
	s.shared.Memory.Max = opt.MaxBuffers
	s.access = cmp.Or(opt.Access, new(access.Control))
	s.shared.Access, s.shared.Changed = s.access, s.changed
	s.shared.Refused, s.shared.PutRefused = s.commandRefused, s.putRefused
	s.SetLimits(opt.Limits)
	s.running, s.stopping = context.WithCancel(context.Background())
	s.aborting, s.abort = context.WithCancel(context.Background())
	s.mu.listeners = make(map[io.Closer]struct{})
	s.mu.left.L = &s.mu.Mutex
	return s
}

// MaxJobSize returns the largest body of a job in bytes.
func (s *Server) MaxJobSize() int { return s.opt.MaxJobSize }

// Drain makes the server answer puts with DRAINING, until Undrain or, in a cluster, until
// this member no longer leads. It returns false and changes nothing if the member does not
// lead.
func (s *Server) Drain() bool {
	decides := s.broker.Decide((*engine.Engine).Drain)
	if decides {
		s.log.Info("draining: no puts are taken any more")
	}
	return decides
}

// Undrain makes the server accept puts again. It returns false if the member does not lead.
func (s *Server) Undrain() bool {
	decides := s.broker.Decide((*engine.Engine).Undrain)
	if decides {
		s.log.Info("puts are taken again")
	}
	return decides
}

// Why connections end that the server ends.
var (
	errAborted   = errors.New("the server stops, and has no more time")
	errDismissed = errors.New("a manager has closed it")
)

// SetLimits replaces the limits of clients. Connections that exceed the new limits stay
// open.
func (s *Server) SetLimits(l access.Limits) { s.access.SetLimits(l) }

// now is the clock of the connections' limits: ns since the server was made.
func (s *Server) now() int64 { return int64(time.Since(s.begun)) }

// Shutdown closes the listeners, lets each connection finish what it has begun
// and write its replies, and closes it. When ctx ends first it closes the rest
// at once and returns the error of ctx.
func (s *Server) Shutdown(ctx context.Context) error {
	s.stop()

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
		s.abort()
		s.mu.loops.stop(true)
		s.mu.Unlock()
		<-done
		return ctx.Err()
	}
}

// stop closes the listeners and asks the connections to end. A client that is being
// accepted reaches its loop before the loop is told to stop.
func (s *Server) stop() {
	s.accepting.Lock()
	defer s.accepting.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopping()
	s.slots.close()
	s.accepting.unwatch()
	for l := range s.mu.listeners {
		l.Close()
	}
	s.mu.loops.stop(false)
}

// Check tests the invariants of all conversations and reports all that are broken.
// It is for tests in which nothing is under way.
func (s *Server) Check() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.loops.check()
}
