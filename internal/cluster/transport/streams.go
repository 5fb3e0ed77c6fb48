package transport

import (
	"context"
	"crypto/tls"
	"net"
	"sync"

	"github.com/beanpole-mq/beanpole/internal/mux"
)

// streams is the connection of a link for clients, made when the first comes.
type streams struct {
	mu      sync.Mutex
	session *mux.Session
	closed  bool
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

// session returns the session for clients. If there is none, one caller makes it, and the
// others wait for that.
func (l *link) session(ctx context.Context) (*mux.Session, error) {
	st := &l.streams
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.closed {
		return nil, net.ErrClosed
	}
	if st.session != nil {
		select {
		case <-st.session.Over():
		default:
			return st.session, nil
		}
	}
	conn, err := dial(ctx, l.t.opt.Credentials, l.address, l.id, forClients)
	if err != nil {
		return nil, err
	}
	st.session = mux.New(conn, nil)
	return st.session, nil
}

func (st *streams) close() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.closed = true
	if st.session != nil {
		st.session.Close()
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
