// Package connlimit prevents slow and stuck HTTP clients from occupying a server.
//
// A server has three bounds. Listen limits connections, Guard limits concurrent requests,
// and each part of a request or reply has a deadline. Health probes bypass the limit on
// requests. A reply as a whole has no deadline: a handler can take as long as it needs,
// and a stream of events can last for days if the client reads it.
package connlimit

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const (
	headerTimeout  = 5 * time.Second  // time limit for a TLS handshake or the header of a request
	requestTimeout = 30 * time.Second // time limit for the part of a request that the handler does not read
	stallTimeout   = 5 * time.Second  // time limit for the next part of a request or reply
	idleTimeout    = time.Minute      // time limit between two requests

	// maxIdle is the number of open connections beyond which the server closes each
	// connection after its reply. It is lower than the limits of Listen, so that idle
	// clients keep no other client from connecting.
	maxIdle = 16

	headerBytes = 64 << 10
	chunk       = 16 << 10 // number of bytes that a client must read within stallTimeout
)

// Listen limits l to n connections; further clients wait in the kernel's backlog. It
// closes connections from addresses for which allows returns false.
func Listen(l net.Listener, n int, allows func(net.Addr) bool) net.Listener {
	return &listener{l, allows, make(chan struct{}, n)}
}

type listener struct {
	net.Listener
	allows func(net.Addr) bool
	open   chan struct{} // contains an element for each connection
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	l.open <- struct{}{}
	for {
		nc, err := l.Listener.Accept()
		switch {
		case err != nil:
			<-l.open
			return nil, err
		case l.allows(nc.RemoteAddr()):
			return &conn{nc, sync.OnceFunc(func() { <-l.open })}, nil
		}
		nc.Close()
	}
}

type conn struct {
	net.Conn
	release func()
}

// Close implements net.Conn.
func (c *conn) Close() error {
	defer c.release()
	return c.Conn.Close()
}

// CloseWrite half-closes the connection, so that http.Server can deliver a reply before
// it resets the connection.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Accepted removes TLS and the wrapper of Listen from a connection, and returns the
// connection that was accepted. It is for use in http.Server.ConnContext.
func Accepted(nc net.Conn) net.Conn {
	if encrypted, ok := nc.(*tls.Conn); ok {
		nc = encrypted.NetConn()
	}
	if c, ok := nc.(*conn); ok {
		return c.Conn
	}
	return nc
}

// Guard sets the timeouts of srv and wraps its handler. The handler runs for at most the
// given number of requests at a time, and for three quarters of these from one address,
// not counting probes; other requests get status 503. So no address can block all others.
// The server speaks HTTP/1.1, in which a stalled reply stalls its connection, so that the
// deadline applies.
func Guard(srv *http.Server, requests int, probe func(*http.Request) bool) {
	srv.ReadHeaderTimeout, srv.ReadTimeout, srv.IdleTimeout = headerTimeout, requestTimeout, idleTimeout
	srv.MaxHeaderBytes = headerBytes
	srv.Protocols = new(http.Protocols)
	srv.Protocols.SetHTTP1(true)
	var open atomic.Int64
	srv.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			open.Add(1)
		case http.StateClosed, http.StateHijacked:
			open.Add(-1)
		}
	}
	h, all := srv.Handler, running{of: make(map[string]int), most: requests}
	srv.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		w = &response{w, control}
		if open.Load() > maxIdle {
			w.Header().Set("Connection", "close")
		}
		if !probe(r) {
			host, _, _ := net.SplitHostPort(r.RemoteAddr) // empty for a Unix socket
			if !all.begin(host) {
				w.Header().Set("Retry-After", "1")
				http.Error(w, "too many concurrent requests", http.StatusServiceUnavailable)
				return
			}
			defer all.end(host)
		}
		if r.ContentLength != 0 {
			r.Body = &body{ReadCloser: r.Body, control: control}
		}
		h.ServeHTTP(w, r)
	})
}

// running counts the running requests.
type running struct {
	mu   sync.Mutex
	n    int
	of   map[string]int // by address
	most int
}

// begin reports whether a request from an address can run. If so, end must be called when
// it ends.
func (r *running) begin(host string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.n == r.most || r.of[host] >= r.most-r.most/4 {
		return false
	}
	r.n++
	r.of[host]++
	return true
}

func (r *running) end(host string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n--
	if r.of[host]--; r.of[host] == 0 {
		delete(r.of, host)
	}
}

// A body sets a deadline for each part of a request.
type body struct {
	io.ReadCloser
	control *http.ResponseController
	ended   bool
}

// Read implements io.Reader. At the end of the body, the server removes the deadline, in
// order to detect that the client disconnects.
func (b *body) Read(p []byte) (int, error) {
	if !b.ended {
		b.control.SetReadDeadline(time.Now().Add(stallTimeout))
	}
	n, err := b.ReadCloser.Read(p)
	b.ended = b.ended || err != nil
	return n, err
}

// A response sets a deadline for each part of a reply.
type response struct {
	http.ResponseWriter
	control *http.ResponseController
}

// Write implements http.ResponseWriter.
func (w *response) Write(p []byte) (n int, err error) {
	for {
		part := p[n:min(len(p), n+chunk)]
		w.control.SetWriteDeadline(time.Now().Add(stallTimeout))
		k, err := w.ResponseWriter.Write(part)
		if n += k; err != nil || n == len(p) {
			return n, err
		}
	}
}

// FlushError is called by http.ResponseController.
func (w *response) FlushError() error {
	w.control.SetWriteDeadline(time.Now().Add(stallTimeout))
	return w.control.Flush()
}

// Unwrap is called by http.ResponseController.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }
