package transport

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/yamux"
)

// A stream is a multiplexed connection.
type stream struct{ *yamux.Stream }

// CloseWrite says that nothing more will be written. What the other side writes can still be read.
func (s stream) CloseWrite() error { return s.Stream.Close() }

func streamConfig() *yamux.Config {
	c := yamux.DefaultConfig()
	c.AcceptBacklog = 4096
	c.KeepAliveInterval = time.Second
	c.ConnectionWriteTimeout = silence
	c.StreamOpenTimeout = handshakeTimeout
	c.StreamCloseTimeout = time.Minute
	c.LogOutput = io.Discard
	return c
}

// streams is the connection of a link for clients, made when the first comes.
type streams struct {
	mu      sync.Mutex
	session *yamux.Session
	closed  bool
}

// client opens a stream for a client.
func (l *link) client(ctx context.Context) (net.Conn, error) {
	session, err := l.session(ctx)
	if err != nil {
		return nil, err
	}
	s, err := session.OpenStream()
	if err != nil {
		return nil, err
	}
	return stream{s}, nil
}

// session returns the session for clients. If there is none, one caller makes it, and the
// others wait for that.
func (l *link) session(ctx context.Context) (*yamux.Session, error) {
	st := &l.streams
	st.mu.Lock()
	defer st.mu.Unlock()
	switch {
	case st.closed:
		return nil, net.ErrClosed
	case st.session != nil && !st.session.IsClosed():
		return st.session, nil
	}
	conn, err := dial(ctx, l.t.opt.Credentials, l.address, l.id, forClients)
	if err != nil {
		return nil, err
	}
	st.session, err = yamux.Client(newBatcher(conn), streamConfig())
	return st.session, err
}

func (st *streams) close() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.closed = true
	if st.session != nil {
		st.session.Close()
	}
}

// A batcher is a connection for yamux, which writes each header and each body by itself. Here all that was
// written while the last write was under way goes out with the next: one record of TLS and one
// system call, for many clients.
type batcher struct {
	*tls.Conn
	done chan struct{} // closed when the goroutine has ended

	mu      sync.Mutex
	changed *sync.Cond // pending, err
	pending []byte
	err     error
}

// maxPending is how many bytes may wait to be written; then Write waits.
const maxPending = 1 << 20

func newBatcher(conn *tls.Conn) *batcher {
	b := &batcher{Conn: conn, done: make(chan struct{})}
	b.changed = sync.NewCond(&b.mu)
	go b.run()
	return b
}

// Write implements io.Writer. An error is that of an earlier write.
func (b *batcher) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.pending) > maxPending && b.err == nil {
		b.changed.Wait()
	}
	if b.err != nil {
		return 0, b.err
	}
	b.pending = append(b.pending, p...)
	b.changed.Broadcast()
	return len(p), nil
}

// run writes what is pending, until the connection fails or is closed.
func (b *batcher) run() {
	defer close(b.done)
	var out []byte
	for {
		b.mu.Lock()
		for len(b.pending) == 0 && b.err == nil {
			b.changed.Wait()
		}
		if b.err != nil {
			b.mu.Unlock()
			return
		}
		out, b.pending = b.pending, out[:0]
		b.changed.Broadcast()
		b.mu.Unlock()
		b.Conn.SetWriteDeadline(time.Now().Add(silence))
		if _, err := b.Conn.Write(out); err != nil {
			b.fail(err)
			b.Conn.NetConn().Close() // so that yamux, which reads, hears of it
			return
		}
	}
}

func (b *batcher) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil {
		b.err = err
	}
	b.changed.Broadcast()
}

// Close implements io.Closer. What is pending is lost.
func (b *batcher) Close() error {
	b.fail(net.ErrClosed)
	err := b.Conn.NetConn().Close()
	<-b.done
	return err
}
