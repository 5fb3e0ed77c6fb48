// Package connlimit is the listener of the admin pages. It lets HTTP clients in, and sees to
// it that none of them keeps the others out: neither by the number of its connections,
// nor by requests that it does not finish or replies that it does not read.
//
//	d := connlimit.New(listener, connlimit.Options{...})
//	d.Guard(srv)  // an *http.Server: its deadlines, its handler
//	srv.Serve(d)  // or srv.Serve(tls.NewListener(d, config))
//
// A connection either is being served, while a handler works for it, or waits for its
// client: for a request, for the rest of one, or for the client to read. When there is no
// room for a new connection, the one that has waited for its client longest is closed;
// one that is being served never is. It speaks HTTP/1.1: there a connection has one request
// at a time.
//
// A client that makes no progress is closed after seconds, also when there is room.
// There is no deadline for a reply as a whole: a handler may take as long as it
// wants, and a stream of events may go on for days, as long as the client reads it.
package connlimit

import (
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

const (
	// headerTimeout is how long the header of a request, and a handshake, may take.
	headerTimeout = 5 * time.Second

	// readTimeout is how long a request as a whole may take to come.
	readTimeout = 30 * time.Second

	// stallTimeout is how long a client may take to send the next part of a request, or to
	// read the next part of a reply.
	stallTimeout = 5 * time.Second

	// idleTimeout is how long a connection without a request is kept.
	idleTimeout = time.Minute

	headerBytes = 64 << 10
)

// Options of a Listener.
type Options struct {
	// Requests is how many requests are served at once, those for probes apart.
	Requests int

	// Probe reports whether a request is that of a probe, which is answered at once,
	// whatever else is being served.
	Probe func(*http.Request) bool

	// Allows reports whether a client may come in. Nil: all may.
	Allows func(net.Addr) bool

	// Machine returns what stands for all addresses of a client's machine, which
	// may have half of the connections, and as many requests at once. The zero Addr, or nil:
	// there is no such limit.
	Machine func(net.Addr) netip.Addr
}

// spare is how many connections there may be beyond those that requests need: for
// probes, and for a request that is refused.
const spare = 16

// Connections returns how many connections a Listener has at most.
func (opt *Options) Connections() int { return opt.Requests + spare }

// share is how many connections, and requests at once, one machine has at most.
func (opt *Options) share() int { return opt.Connections() / 2 }

// A Listener is a listener for one http.Server.
type Listener struct {
	net.Listener
	opt Options

	mu     sync.Mutex
	inside map[*conn]struct{}
}

// New returns a Listener before a listener.
func New(l net.Listener, opt Options) *Listener {
	return &Listener{Listener: l, opt: opt, inside: make(map[*conn]struct{})}
}

// Accept implements net.Listener. Clients that may not come in are closed at once.
func (d *Listener) Accept() (net.Conn, error) {
	for {
		nc, err := d.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c := d.admit(nc); c != nil {
			return c, nil
		}
		nc.Close()
	}
}

// admit lets a connection in, and closes another one if there is no room. It is nil
// if all the others are being served.
func (d *Listener) admit(nc net.Conn) *conn {
	if d.opt.Allows != nil && !d.opt.Allows(nc.RemoteAddr()) {
		return nil
	}
	c := &conn{Conn: nc, listener: d, since: time.Now()}
	if d.opt.Machine != nil {
		c.machine = d.opt.Machine(nc.RemoteAddr())
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if c.machine.IsValid() {
		sameMachine := func(o *conn) bool { return o.machine == c.machine }
		if !d.makeRoom(d.opt.share(), sameMachine) {
			return nil
		}
	}
	if !d.makeRoom(d.opt.Connections(), func(*conn) bool { return true }) {
		return nil
	}
	d.inside[c] = struct{}{}
	return c
}

// makeRoom sees to it that there are less connections of a kind than a limit. It closes
// the one that has waited for its client longest, and reports whether there was one.
func (d *Listener) makeRoom(limit int, ofKind func(*conn) bool) bool {
	n := 0
	var longest *conn
	for c := range d.inside {
		if !ofKind(c) {
			continue
		}
		n++
		if c.waits() && (longest == nil || c.since.Before(longest.since)) {
			longest = c
		}
	}
	if n < limit {
		return true
	}
	if longest == nil {
		return false
	}
	delete(d.inside, longest)
	longest.Conn.Close() // not that of TLS, which would wait for the client
	return true
}

// Guard sets the deadlines of a server, and puts the Listener in front of its handler. The
// server's ConnContext, if there is one, gets the connections that the listener has
// accepted, without TLS.
func (d *Listener) Guard(srv *http.Server) {
	srv.ReadHeaderTimeout, srv.ReadTimeout, srv.IdleTimeout = headerTimeout, readTimeout, idleTimeout
	srv.MaxHeaderBytes = headerBytes
	srv.Protocols = new(http.Protocols)
	srv.Protocols.SetHTTP1(true)
	srv.ConnContext = connContext(srv.ConnContext)
	srv.Handler = d.guard(srv.Handler)
}
