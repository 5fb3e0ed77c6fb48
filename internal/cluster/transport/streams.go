package transport

import (
	"context"
	"crypto/tls"
	"net"
	"sync"

	"github.com/beanpole-mq/beanpole/internal/cluster/mux"
)

// streams is the connection of a link for clients, made when the first comes.
type streams struct {
	mu      sync.Mutex
	session *mux.Session
	dialing *dialing // nil: nobody dials
	closed  bool
}

// A dialing is an attempt to make the session, which all clients share that come
// meanwhile.
type dialing struct {
	done    chan struct{} // closed when it is over; then one of the others is set
	session *mux.Session
	err     error
}

// client opens a stream for a client.
func (l *link) client(ctx context.Context) (net.Conn, error) {
	session, err := l.session(ctx)
	if err != nil {
		return nil, err
	}
	s, err := session.Open()
	if err != nil {
		return nil, err
	}
	return s, nil
}

// session returns the session for clients. If there is none, one is made. Who waits for
// that may give it up: the attempt goes on for the others, and its failure is that of all
// who wait.
func (l *link) session(ctx context.Context) (*mux.Session, error) {
	s, d, err := l.sessionOrDialing()
	if d == nil {
		return s, err
	}
	select {
	case <-d.done:
		return d.session, d.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// sessionOrDialing returns the session, or the attempt to make it, which it begins if
// there is none.
func (l *link) sessionOrDialing() (*mux.Session, *dialing, error) {
	st := &l.streams
	st.mu.Lock()
	defer st.mu.Unlock()
	switch {
	case st.closed:
		return nil, nil, net.ErrClosed
	case st.dialing != nil:
		return nil, st.dialing, nil
	case st.session != nil:
		select {
		case <-st.session.Over():
		default:
			return st.session, nil, nil
		}
	}
	st.dialing = &dialing{done: make(chan struct{})}
	go l.dialSession(st.dialing)
	return nil, st.dialing, nil
}

// dialSession makes the session, until the link is closed.
func (l *link) dialSession(d *dialing) {
	defer close(d.done)
	conn, err := dial(l.ctx, l.t.opt.Credentials, l.address, l.id, forClients)
	st := &l.streams
	st.mu.Lock()
	defer st.mu.Unlock()
	st.dialing = nil
	if err == nil && st.closed {
		conn.Close()
		err = net.ErrClosed
	}
	if d.err = err; err == nil {
		d.session = mux.New(conn, nil)
		st.session = d.session
	}
}

// close ends the session, and waits until nobody dials.
func (st *streams) close() {
	st.mu.Lock()
	st.closed = true
	session, d := st.session, st.dialing
	st.mu.Unlock()
	if session != nil {
		session.Close()
	}
	if d != nil {
		<-d.done
	}
}

// serveClients serves the clients that a member passes on.
func (t *Transport) serveClients(conn *tls.Conn, from uint64) {
	session := mux.New(conn, func(s *mux.Stream) {
		t.wg.Go(func() { t.opt.Client(from, s) })
	})
	<-session.Over()
	session.Close()
}
