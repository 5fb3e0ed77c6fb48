// Package beanpoletest runs a beanpole server inside a test, so that code that puts and
// reserves jobs can be tested with the real server:
//
//	func TestMailer(t *testing.T) {
//		srv := beanpoletest.NewServer(t)
//		c, err := client.Dial(t.Context(), srv.Addr, nil)
//		...
//	}
//
// The server keeps its jobs in memory. Each server has its own tubes and job ids, so
// tests can run in parallel.
//
// A server from [NewMemory] has a network in memory instead of sockets. Within a
// testing/synctest bubble, its delays and times to run pass without waiting:
//
//	synctest.Test(t, func(t *testing.T) {
//		srv := beanpoletest.NewMemory(t)
//		c, err := client.Dial(t.Context(), srv.Addr, &client.Options{Dial: srv.Dial})
//		...
//	})
//
// [New] starts a server with TLS, a token or smaller jobs. [Server.FillDisk] simulates a
// full disk.
package beanpoletest

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/certs/localca"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/memnet"
	"github.com/beanpole-mq/beanpole/internal/rights"
	"github.com/beanpole-mq/beanpole/internal/server"
)

// Options configures a server of [New]. The zero value configures a server like that of
// [NewServer].
type Options struct {
	// Memory selects a network in memory, like [NewMemory].
	Memory bool

	// TLS encrypts the server's connections; see [Server.TLS].
	TLS bool

	// Token, if set, is the token that clients must send. It has 20 to 217 bytes.
	Token string

	// MaxJobSize is the maximum size of a job's body, in bytes. 0 means 65,535.
	MaxJobSize int
}

// A Server is a running server.
type Server struct {
	Addr string // HOST:PORT, or unix:PATH; "memory" for a server on a network in memory

	// TLS is the configuration that clients need. It is nil if the server does not use
	// TLS.
	TLS *tls.Config

	listener net.Listener
	srv      *server.Server
	broker   *broker.Broker
	fullDisk atomic.Bool
	served   chan error
	close    sync.Once
}

// NewServer starts a server on a free port of 127.0.0.1. It is closed when the
// test ends.
func NewServer(tb testing.TB) *Server {
	tb.Helper()
	return New(tb, Options{})
}

// NewMemory starts a server on a network in memory. Clients reach it with [Server.Dial].
// It is closed when the test ends.
func NewMemory(tb testing.TB) *Server {
	tb.Helper()
	return New(tb, Options{Memory: true})
}

// New starts a server. It is closed when the test ends.
func New(tb testing.TB, opt Options) *Server {
	tb.Helper()
	var l net.Listener = memnet.Listen()
	if !opt.Memory {
		var err error
		if l, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			tb.Fatalf("beanpoletest: %v", err)
		}
	}
	control, err := opt.access()
	if err != nil {
		tb.Fatalf("beanpoletest: %v", err)
	}
	s := newServer(l, &opt, control)
	var how server.ListenOptions
	if opt.TLS {
		ca := localca.New(tb)
		how.TLS = &tls.Config{Certificates: []tls.Certificate{ca.Pair("beanpole")}}
		s.TLS = &tls.Config{RootCAs: ca.Pool(), ServerName: "localhost"}
	}
	s.serve(how)
	tb.Cleanup(s.Close)
	return s
}

// access returns the access control for the token, or nil if there is none.
func (opt *Options) access() (*access.Control, error) {
	if opt.Token == "" {
		return nil, nil
	}
	hash, err := access.HashOf(opt.Token)
	if err != nil {
		return nil, err
	}
	p, err := access.New(access.Config{
		Identities: []access.IdentityConfig{{Name: "client", Tokens: []access.Hash{hash}}},
		Rules:      []access.RuleConfig{{Identities: []string{"client"}, Tubes: []string{"*"}, Rights: rights.All}},
	})
	if err != nil {
		return nil, err
	}
	return access.NewControl(p, nil)
}

// Start starts a server on a free port of 127.0.0.1, for code that has no [testing.TB],
// such as an example or TestMain. The caller must close it.
func Start() (*Server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("beanpoletest: %w", err)
	}
	return Serve(l), nil
}

// Serve starts a server on a listener, such as a Unix socket. The server closes the
// listener. The caller must close the server.
func Serve(l net.Listener) *Server {
	s := newServer(l, &Options{}, nil)
	s.serve(server.ListenOptions{})
	return s
}

func newServer(l net.Listener, opt *Options, control *access.Control) *Server {
	s := &Server{Addr: l.Addr().String(), listener: l, served: make(chan error, 1)}
	switch l.Addr().Network() {
	case "unix":
		s.Addr = "unix:" + s.Addr
	case "mem":
		s.Addr = "memory"
	}
	s.broker = broker.New(engine.New(engine.Options{Admit: s.admit}), broker.Options{})
	s.srv = server.New(s.broker, server.Options{Version: "test", MaxJobSize: opt.MaxJobSize, Access: control})
	return s
}

func (s *Server) serve(how server.ListenOptions) {
	go func() { s.served <- s.srv.Serve(s.listener, how) }()
}

// admit implements engine.Options.Admit: it refuses changes while the disk is full.
func (s *Server) admit(kind engine.ChangeKind, _ string, _ int) engine.Outcome {
	if s.fullDisk.Load() && kind != engine.JobDeleted {
		return engine.OutOfMemory
	}
	return engine.OK
}

// FillDisk makes the server answer as if its disk were full: it refuses puts, releases,
// buries, kicks and pauses with OUT_OF_MEMORY. Jobs can still be reserved, touched and
// deleted. FillDisk(false) ends that.
func (s *Server) FillDisk(full bool) { s.fullDisk.Store(full) }

// Dial connects to the server and ignores the address. Use it as the option Dial of a
// client.
func (s *Server) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	if l, ok := s.listener.(*memnet.Listener); ok {
		return l.Dial()
	}
	a := s.listener.Addr()
	return new(net.Dialer).DialContext(ctx, a.Network(), a.String())
}

// Drain makes the server reject puts.
func (s *Server) Drain() { s.srv.SetDraining(true) }

// Close stops the server and closes its connections. Its jobs are lost.
func (s *Server) Close() {
	s.close.Do(func() {
		s.srv.Shutdown(context.Background())
		<-s.served
		s.broker.Close()
	})
}
