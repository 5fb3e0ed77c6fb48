package connlimit

import (
	"context"
	"crypto/tls"
	"net"
	"net/netip"
	"time"
)

// A conn is a connection that has been let in. It knows whether it waits for its client.
type conn struct {
	net.Conn
	listener *Listener
	machine  netip.Addr // the zero Addr: any number may be there

	// Guarded by listener.mu.
	handled bool      // a handler works for a request, if only to refuse it
	counts  bool      // that request is among those that may be served at once
	blocked int       // reads and writes of the handler that wait for the client
	since   time.Time // when it last did something for its client
}

// waits reports whether the connection waits for its client.
func (c *conn) waits() bool { return !c.handled || c.blocked > 0 }

// note changes what the connection does.
func (c *conn) note(change func()) {
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	change()
	c.since = time.Now()
}

// begin says that a handler begins to work for a request, and reports whether it may serve it.
func (c *conn) begin(probe bool) (ok bool) {
	c.note(func() {
		ok = probe || !c.listener.crowded(c.machine)
		c.handled, c.counts = true, ok && !probe
	})
	return ok
}

// end says that the handler has returned.
func (c *conn) end() { c.note(func() { c.handled = false }) }

// block says that the handler waits for the client, until the function that it returns is called.
func (c *conn) block() (end func()) {
	c.note(func() { c.blocked++ })
	return func() { c.note(func() { c.blocked-- }) }
}

// chunk is how many bytes a client must read within the stall timeout.
const chunk = 16 << 10

// Write implements net.Conn. A deadline for the whole is not kept: each part has its own.
func (c *conn) Write(p []byte) (n int, err error) {
	defer c.block()()
	for {
		part := p[n:min(len(p), n+chunk)]
		c.Conn.SetWriteDeadline(time.Now().Add(stallTimeout))
		k, err := c.Conn.Write(part)
		c.note(func() {}) // it has moved on
		if n += k; err != nil || n == len(p) {
			return n, err
		}
	}
}

// SetWriteDeadline implements net.Conn.
func (c *conn) SetWriteDeadline(time.Time) error { return nil }

// SetDeadline implements net.Conn.
func (c *conn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

// CloseWrite is for http.Server, which ends a connection so before it closes it.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.listener.mu.Lock()
	delete(c.listener.inside, c)
	c.listener.mu.Unlock()
	return c.Conn.Close()
}

type connKey struct{}

// connContext returns what http.Server.ConnContext is to be. It gives the connections, as
// the listener has accepted them, to another such function too, if there is one.
func connContext(also func(context.Context, net.Conn) context.Context) func(context.Context, net.Conn) context.Context {
	return func(ctx context.Context, nc net.Conn) context.Context {
		if encrypted, ok := nc.(*tls.Conn); ok {
			nc = encrypted.NetConn()
		}
		c, ok := nc.(*conn)
		if !ok {
			return ctx
		}
		if also != nil {
			ctx = also(ctx, c.Conn)
		}
		return context.WithValue(ctx, connKey{}, c)
	}
}
