package transport

import (
	"context"
	"crypto/tls"
	"net"
	"sync"

	"golang.org/x/sync/singleflight"

	"github.com/beanpole-mq/beanpole/internal/cluster/mux"
)

// streams is the connection of a link for clients, made when the first comes.
type streams struct {
	dials singleflight.Group // of the session, which all clients share that come meanwhile

	mu      sync.Mutex
	session *mux.Session
	closed  bool
}

// client opens a stream for a client, over the session; if there is none, one is made.
// Who waits for that may give it up: the attempt goes on for the others, and its failure
// is that of all who wait.
func (l *link) client(ctx context.Context) (*mux.Stream, error) {
	session, err := l.streams.current()
	if session == nil && err == nil {
		select {
		case dialed := <-l.streams.dials.DoChan("", l.dialSession):
			session, _ = dialed.Val.(*mux.Session)
			err = dialed.Err
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	if err != nil {
		return nil, err
	}
	return session.Open()
}

// current returns the session, or nil if one has to be made.
func (st *streams) current() (*mux.Session, error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.closed {
		return nil, net.ErrClosed
	}
	if st.session != nil {
		select {
		case <-st.session.Over():
			st.session = nil
		default:
		}
	}
	return st.session, nil
}

// dialSession makes the session, unless somebody just has.
func (l *link) dialSession() (any, error) {
	if s, err := l.streams.current(); s != nil || err != nil {
		return s, err
	}
	conn, err := dial(l.ctx, l.t.opt.Credentials, l.address, l.id, forClients)
	if err != nil {
		return nil, err
	}
	st := &l.streams
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.closed {
		conn.Close()
		return nil, net.ErrClosed
	}
	st.session = mux.New(conn, nil)
	return st.session, nil
}

// close ends the session, and waits until nobody dials.
func (st *streams) close() {
	st.mu.Lock()
	st.closed = true
	session := st.session
	st.mu.Unlock()
	if session != nil {
		session.Close()
	}
	st.dials.Do("", func() (any, error) { return nil, net.ErrClosed }) // or what is under way
}

// serveClients serves the clients that a member passes on.
func (t *Transport) serveClients(conn *tls.Conn, from uint64) {
	session := mux.New(conn, func(s *mux.Stream) {
		t.wg.Go(func() { t.opt.Client(from, s) })
	})
	<-session.Over()
	session.Close()
}
