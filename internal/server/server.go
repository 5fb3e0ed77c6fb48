// Package server serves clients of the broker over sockets.
//
// Package conversation implements the dialogue with a client. This package contains the
// loops that drive conversations and perform their input and output:
//
//	                    Server                       server.go
//	                      │ Serve                    accept.go, slots.go, admission.go, reports.go
//	       ┌──────────────┴──────────────┐
//	TCP and unix sockets,      a goroutine accepts, and waits
//	    on Linux               for proxies and handshakes
//	 │ acceptor.go                │ header.go, proxied.go
//	       └──────────────┬──────────────┘
//	                    loop, a few of them          loop.go, loops.go
//	                      │                          batch.go: a turn
//	                      │                          inbox.go, timers.go, hangups.go
//	                   socket, each of one loop      socket.go
//	       ┌──────────────┼──────────────┐
//	    epoll.Socket   tlsSocket    streamSocket     tls.go, stream.go
//	                                ┌────┴────┐
//	                           mux.Stream    pump    pump.go
//
// A loop waits for its sockets with a Poller, reads from the readable sockets, runs one
// turn of the broker for all of them and writes their replies. It also accepts
// connections. The State of a conversation determines the next step, and Next the time of
// the next Advance. The loop has no other timeouts.
//
//	srv := server.New(b, server.Options{})
//	go srv.Serve(listener, server.ListenOptions{}) // once for each listener
//	...
//	srv.Shutdown(ctx)
//
// # Limits
//
// Package conversation limits the buffers of a connection: a slow reader delays no other
// client and does not increase memory. An idle socket has no buffer. After
// Options.StallTimeout, the server disconnects a client that stops within a command or
// does not read its replies.
//
// # Members of a cluster
//
// With Options.Cluster, the server serves clients only while its member is the active
// leader (member.go). Otherwise the first loop forwards their bytes to the leader
// (proxy.go), whose server serves them (proxied.go). Without a leader, clients wait.
//
// # Goroutines
//
// Each loop has a goroutine, each connection has one until it is ready for a loop, and
// each pump has two. Serve starts them and Shutdown ends them. Serve runs in its caller's
// goroutine and accepts the connections that loops do not (accept.go).
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
	DefaultMaxJobSize   = wire.DefaultMaxBody // in bytes
	DefaultMaxConns     = 65536
	DefaultStallTimeout = time.Minute
	DefaultMaxBuffers   = 512 << 20 // in bytes

	// MaxJobSizeLimit is the largest value of Options.MaxJobSize, in bytes.
	MaxJobSizeLimit = wire.LargestMaxBody
)

// Options configures a Server. The zero value selects the defaults.
type Options struct {
	// MaxJobSize is the maximum size of a body in bytes, at most MaxJobSizeLimit. Zero
	// means DefaultMaxJobSize; a negative number allows empty bodies only.
	MaxJobSize int

	// MaxConns is the maximum number of connections. Further clients wait in the backlogs
	// of the listeners until a connection is closed. Zero means DefaultMaxConns.
	MaxConns int

	// Access identifies clients and holds their rights and limits. If it is nil, every
	// client has all rights and no limits.
	Access *access.Control

	// ConnectionsPerAddress is the initial limit of Access; see
	// access.Control.SetConnectionsPerAddress.
	ConnectionsPerAddress int

	// IdleTimeout is the time after which a silent connection that neither waits nor
	// holds a job is closed. Zero means never, as in beanstalkd.
	IdleTimeout time.Duration

	// StallTimeout is the time after which the server disconnects a client that makes no
	// progress within a command or with its replies, accurate to a quarter. Progress is 4
	// KiB or the end of the command. Zero means DefaultStallTimeout, and a negative
	// number means never.
	StallTimeout time.Duration

	// MaxBuffers is the maximum total size of all connections' buffers in bytes:
	// unexecuted input and unread replies. Above it, the connection with the largest
	// buffers is closed. It is at least twice MaxJobSize. Zero means DefaultMaxBuffers,
	// and a negative number means no limit.
	MaxBuffers int64

	// Compat is the version of beanstalkd to imitate.
	Compat wire.Compat

	// Loops is the number of event loops on Linux. Zero means one for every two
	// processors that Go uses (doc/decisions/0007).
	Loops int

	// SlowSync is the average sync duration above which a loop serves other clients
	// during a sync instead of waiting for it. Zero means 5 ms. With a negative number,
	// loops never wait.
	SlowSync time.Duration

	// Logger receives connection events at level debug, and messages for operators at
	// higher levels. It can be nil.
	Logger *slog.Logger

	// Trace logs each command and reply, at level debug.
	Trace bool

	// Version is the version of beanpole; stats shows it after beanstalkd's keys.
	Version string

	// SegmentSize is the value of binlog-max-size in stats, in bytes. Zero means
	// beanstalkd's default, which beanstalkd shows even without a journal.
	SegmentSize int64

	// Cluster is nil for a single server. The server of a cluster member serves no client
	// before Follow is called.
	Cluster *Cluster

	// Journal returns the state of the journal for stats. It is called within turns. It
	// is nil if there is no journal.
	Journal func() JournalStats
}

// A Server serves clients on any number of listeners.
type Server struct {
	// Constant after New.
	broker *broker.Broker
	opt    Options
	self   process
	begun  time.Time
	shared conversation.Shared
	access *access.Control

	running  context.Context // canceled by Shutdown with mu locked
	stopping context.CancelFunc
	aborting context.Context // canceled when Shutdown's context ends
	abort    context.CancelFunc

	gathered      chan struct{}                    // receives a token when arrivals have changed
	resumed       atomic.Int64                     // number of resumed clients
	claimsRefused [len(claimReasons)]atomic.Uint64 // number of refused claims, by reason

	*reports
	acceptors acceptors // its lock comes before mu
	slots     slots     // its lock comes after mu
	hangups   hangups

	mu struct {
		sync.Mutex
		listeners map[io.Closer]struct{}
		loops     loops
		entering  []*socket // clients on their way to their loops, without a session
		sockets   int       // number of clients with local conversations
		left      sync.Cond // signaled when sockets has decreased

		// The state of a cluster member.
		lead     Leadership
		leads    uint32 // number of changes of lead
		resuming bool   // the first loop is resuming clients, which are on their way to their loops
		alone    int64  // time in ns since which no leader has been known; engine.Never if there is a leader

		gathering bool               // this member is the leader, and waits for the clients of the others
		arrivals  map[uint64]arrival // by member
	}
	wg sync.WaitGroup // counts all goroutines
}

// New returns a server for the clients of the broker.
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
	s.access.SetConnectionsPerAddress(opt.ConnectionsPerAddress)
	s.running, s.stopping = context.WithCancel(context.Background())
	s.aborting, s.abort = context.WithCancel(context.Background())
	s.mu.listeners = make(map[io.Closer]struct{})
	s.mu.left.L = &s.mu.Mutex
	s.mu.arrivals, s.gathered = make(map[uint64]arrival), make(chan struct{}, 1)
	return s
}

// MaxJobSize returns the maximum size of a body, in bytes.
func (s *Server) MaxJobSize() int { return s.opt.MaxJobSize }

// SetDraining makes the server answer puts with DRAINING, until they are accepted again
// or, in a cluster, until this member is no longer the leader. If the member is not the
// leader, SetDraining returns false and changes nothing.
func (s *Server) SetDraining(on bool) bool {
	set, message := (*engine.Engine).Undrain, "accepting puts again"
	if on {
		set, message = (*engine.Engine).Drain, "draining: rejecting puts"
	}
	decides := s.broker.Decide(set)
	if decides {
		s.log.Info(message)
	}
	return decides
}

// The reasons for which the server ends connections.
var (
	errAborted   = errors.New("the shutdown exceeded its time limit")
	errDismissed = errors.New("an operator has closed it")
)

// now returns the time on the clock of the connections' limits: ns since the server was
// created.
func (s *Server) now() int64 { return int64(time.Since(s.begun)) }

// Shutdown closes the listeners and then each connection, after it has executed its
// commands and written its replies. If ctx is canceled first, Shutdown closes the
// remaining connections at once and returns the error of ctx.
func (s *Server) Shutdown(ctx context.Context) error {
	s.stop()

	done := make(chan struct{})
	go func() {
		s.wg.Wait()
		s.hangups.close()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		s.mu.Lock()
		s.abort()
		s.notifyLoops()
		s.mu.Unlock()
		<-done
		return ctx.Err()
	}
}

// stop closes the listeners and makes the connections end. A client that is being
// accepted reaches its loop before the loop stops.
func (s *Server) stop() {
	s.acceptors.Lock()
	defer s.acceptors.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopping()
	s.slots.close()
	s.acceptors.unwatch()
	for l := range s.mu.listeners {
		l.Close()
	}
	s.notifyLoops()
}

// Check tests the invariants of all conversations and returns all violations. It is for
// tests in which no operation is in progress.
func (s *Server) Check() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.loops.check()
}
