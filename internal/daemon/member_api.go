package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/beanpole-mq/beanpole/internal/api"
)

// An apiRelay forwards requests of the JSON API to the leader of the cluster, and serves
// the requests that other members forward.
type apiRelay struct {
	m          *member
	transports sync.Map      // maps a member's id to its *http.Transport
	conns      chan net.Conn // connections from other members, for served
	served     http.Server
	ended      chan struct{} // closed when the relay is closed
	once       sync.Once
	pages      atomic.Pointer[http.Handler] // nil until the queue is served
}

func newAPIRelay(m *member, log *slog.Logger) *apiRelay {
	a := &apiRelay{m: m, conns: make(chan net.Conn), ended: make(chan struct{})}
	a.served = http.Server{
		Handler:           http.HandlerFunc(a.serveHTTP),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * idleTimeout, // so that the other side closes the connection
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	go a.served.Serve(a) // runs until close
	return a
}

// idleTimeout is the time after which an unused connection to a member is closed.
const idleTimeout = 30 * time.Second

// begin starts to answer requests from other members.
func (a *apiRelay) begin(operations *api.API) {
	h := operations.FromMembers()
	a.pages.Store(&h)
}

func (a *apiRelay) serveHTTP(w http.ResponseWriter, r *http.Request) {
	if pages := a.pages.Load(); pages != nil {
		(*pages).ServeHTTP(w, r)
		return
	}
	api.Problem(http.StatusServiceUnavailable, "the leader of the cluster has just started: try again").ServeHTTP(w, r)
}

// take serves a connection from another member until it is closed.
func (a *apiRelay) take(_ uint64, conn net.Conn) {
	one := &watchedConn{Conn: conn, closed: make(chan struct{})}
	select {
	case a.conns <- one:
		<-one.closed
	case <-a.ended:
	}
}

// A watchedConn closes a channel when it is closed.
type watchedConn struct {
	net.Conn
	once   sync.Once
	closed chan struct{}
}

// Close implements net.Conn.
func (c *watchedConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { close(c.closed) })
	return err
}

// Accept implements net.Listener. It returns the connections that take receives.
func (a *apiRelay) Accept() (net.Conn, error) {
	select {
	case c := <-a.conns:
		return c, nil
	case <-a.ended:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (a *apiRelay) Close() error {
	a.once.Do(func() { close(a.ended) })
	return nil
}

// Addr implements net.Listener.
func (a *apiRelay) Addr() net.Addr { return &net.UnixAddr{Net: "unix", Name: "@members"} }

// close ends all connections.
func (a *apiRelay) close() {
	a.Close()
	a.served.Close()
	a.transports.Range(func(_, way any) bool {
		way.(*http.Transport).CloseIdleConnections()
		return true
	})
}

// leader returns a transport to the leader, for api.Options.
func (a *apiRelay) leader() (http.RoundTripper, error) {
	lead := a.m.Lead()
	switch {
	case lead.Epoch != 0:
		return nil, nil
	case lead.Leader == 0 || lead.Leader == a.m.dir.ID:
		return nil, errors.New("the cluster has no leader, so nothing can be changed now; try again (see: beanpole cluster status)")
	}
	return a.transport(lead.Leader), nil
}

// transport returns the HTTP transport to a member.
func (a *apiRelay) transport(id uint64) *http.Transport {
	if way, ok := a.transports.Load(id); ok {
		return way.(*http.Transport)
	}
	way, _ := a.transports.LoadOrStore(id, &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			conn, err := a.m.transport.Admin(ctx, id)
			if err != nil {
				return nil, fmt.Errorf("member %d: %w: %w", id, api.ErrNotSent, err)
			}
			return conn, nil
		},
		MaxIdleConnsPerHost: 16,
		IdleConnTimeout:     idleTimeout,
		DisableCompression:  true,
	})
	return way.(*http.Transport)
}
