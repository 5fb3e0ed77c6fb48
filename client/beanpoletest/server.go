// Package beanpoletest runs a beanpole server inside a test, so that code which
// puts and reserves jobs can be tested against the real thing:
//
//	func TestMailer(t *testing.T) {
//		srv := beanpoletest.NewServer(t)
//		c, err := client.Dial(t.Context(), srv.Addr, nil)
//		...
//	}
//
// The server keeps its jobs in memory. Each has tubes and job ids of its own, so
// tests can run in parallel.
//
// A server of [NewMemory] has a network in memory instead of sockets. Within a
// testing/synctest bubble its delays and times to run pass as fast as the test
// does:
//
//	synctest.Test(t, func(t *testing.T) {
//		srv := beanpoletest.NewMemory(t)
//		c, err := client.Dial(t.Context(), srv.Addr, &client.Options{Dial: srv.Dial})
//		...
//	})
package beanpoletest

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/server"
	"github.com/beanpole-mq/beanpole/internal/test/memnet"
)

// A Server is a running server.
type Server struct {
	Addr string // HOST:PORT, or unix:PATH; "memory" for a server of NewMemory

	listener net.Listener
	srv      *server.Server
	broker   *broker.Broker
	served   chan error
	close    sync.Once
}

// NewServer starts a server on a free port of 127.0.0.1. It is closed when the
// test ends.
func NewServer(tb testing.TB) *Server {
	tb.Helper()
	s, err := Start()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Close)
	return s
}

// NewMemory starts a server on a network in memory, which only its Dial reaches.
// It is closed when the test ends.
func NewMemory(tb testing.TB) *Server {
	s := Serve(memnet.Listen())
	s.Addr = "memory"
	tb.Cleanup(s.Close)
	return s
}

// Start starts a server on a free port of 127.0.0.1 where there is no test to end
// it, as in an example or in TestMain. Close it.
func Start() (*Server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("beanpoletest: %w", err)
	}
	return Serve(l), nil
}

// Serve starts a server on a listener, which the server closes: on a unix socket,
// or with TLS. Close it.
func Serve(l net.Listener) *Server {
	addr := l.Addr().String()
	if l.Addr().Network() == "unix" {
		addr = "unix:" + addr
	}
	b := broker.New(engine.New(engine.Options{}), broker.Options{})
	s := &Server{
		Addr:     addr,
		listener: l,
		srv:      server.New(b, server.Options{Version: "test"}),
		broker:   b,
		served:   make(chan error, 1),
	}
	go func() { s.served <- s.srv.Serve(l) }()
	return s
}

// Dial connects to the server, whatever the address. It is made for the option
// Dial of a client.
func (s *Server) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	if l, ok := s.listener.(*memnet.Listener); ok {
		return l.Dial()
	}
	a := s.listener.Addr()
	return new(net.Dialer).DialContext(ctx, a.Network(), a.String())
}

// Drain makes the server refuse puts from now on.
func (s *Server) Drain() { s.srv.Drain() }

// Close stops the server, closes its connections and forgets its jobs.
func (s *Server) Close() {
	s.close.Do(func() {
		s.srv.Shutdown(context.Background())
		<-s.served
		s.broker.Close()
	})
}
