package server

import (
	"crypto/tls"
	"net"
	"sync"
	"time"

	"github.com/beanpole-mq/beanpole/internal/server/epoll"
)

const (
	// tlsPiece is how many bytes are encrypted at a time.
	tlsPiece = 64 << 10

	// tlsOverhead is what that needs at most besides: the first records of a connection
	// are small, so that a client can begin to decrypt.
	tlsOverhead = 4 << 10
)

// A tlsSocket is a socket of the kernel with TLS. The loop encrypts and decrypts, and
// waits for the socket as for any other. Only the handshake has a goroutine: it waits.
//
// The tls.Conn has this as the connection below it. It can read on after an error that is
// temporary, such as ErrWouldBlock, but not write on. So what it writes is kept and
// always taken, and Write says that it has written nothing until the kernel has all of
// it.
type tlsSocket struct {
	conn  *tls.Conn
	below net.Conn // until the handshake is over
	fd    Socket   // from then on

	out     []byte // encrypted, and not taken by the kernel; nil: nothing
	sent    int    // bytes of out that it has taken
	taken   int    // bytes of the reply that are encrypted in out
	drained bool   // the kernel has nothing more to read, as far as is known
	left    bool   // the last Read has left some of what was received
	shut    bool   // nothing will be encrypted any more
}

// newTLSSocket returns a connection before its handshake.
func newTLSSocket(nc net.Conn, config *tls.Config) *tlsSocket {
	t := &tlsSocket{below: nc}
	t.conn = tls.Server(lower{t}, config)
	return t
}

// begin says that the handshake is over and a loop has the socket.
func (t *tlsSocket) begin(fd Socket) { t.below, t.fd, t.left = nil, fd, true }

// Read implements Socket.
func (t *tlsSocket) Read(b []byte) (n int, err error) {
	defer t.flush() // a farewell, or an answer to a message of TLS
	t.drained, t.left = false, false
	for n < len(b) {
		var m int
		m, err = t.conn.Read(b[n:])
		if n += m; err == nil {
			continue
		}
		if n > 0 && err != epoll.ErrWouldBlock {
			t.left = true // the next Read returns the error again
		}
		if n > 0 {
			return n, nil
		}
		return 0, err
	}
	t.left = true // perhaps
	return n, nil
}

// Write implements Socket. The bytes that were not written are to come again.
func (t *tlsSocket) Write(b []byte) (n int, err error) {
	for n < len(b) {
		if err := t.flush(); err != nil || t.out != nil {
			return n, err
		}
		if t.taken == 0 {
			t.taken = min(len(b)-n, tlsPiece)
			if _, err := t.conn.Write(b[n : n+t.taken]); err != nil {
				return n, err
			}
			continue
		}
		n += t.taken
		t.taken = 0
	}
	return n, nil
}

// tlsOutput has buffers for what is encrypted: most of the time none is needed.
var tlsOutput = sync.Pool{New: func() any { return new([tlsPiece + tlsOverhead]byte) }}

// flush writes what the kernel takes.
func (t *tlsSocket) flush() error {
	if t.out == nil {
		return nil
	}
	n, err := t.fd.Write(t.out[t.sent:])
	if t.sent += n; t.sent < len(t.out) && err == nil {
		return nil
	}
	if cap(t.out) == tlsPiece+tlsOverhead {
		tlsOutput.Put((*[tlsPiece + tlsOverhead]byte)(t.out[:tlsPiece+tlsOverhead]))
	}
	t.out, t.sent = nil, 0
	if t.shut && err == nil {
		err = t.fd.CloseWrite()
	}
	return err
}

// Unacknowledged implements Socket.
func (t *tlsSocket) Unacknowledged() int { return len(t.out) - t.sent + t.fd.Unacknowledged() }

// CloseWrite implements Socket. Without the farewell of TLS the client would have to
// think that replies were cut off.
func (t *tlsSocket) CloseWrite() error {
	t.shut = true
	if err := t.conn.CloseWrite(); err != nil {
		return err
	}
	return t.flush()
}

// Close implements Socket. It does not wait until the kernel takes the farewell.
func (t *tlsSocket) Close() error {
	t.conn.CloseWrite()
	t.flush()
	return t.fd.Close()
}

// Ready implements buffered.
func (t *tlsSocket) Ready() (readable, writable, ended bool) { return t.left, false, false }

// Unread returns how many bytes have arrived and were not read; 0 if that cannot be told.
func (t *tlsSocket) Unread() int {
	if u, ok := t.fd.(interface{ Unread() int }); ok {
		return u.Unread()
	}
	return 0
}

// Held implements buffered.
func (t *tlsSocket) Held() int { return cap(t.out) }

// lower is what a tlsSocket is to its tls.Conn.
type lower struct{ *tlsSocket }

func (l lower) Read(b []byte) (int, error) {
	switch {
	case l.below != nil:
		return l.below.Read(b)
	case l.drained:
		return 0, epoll.ErrWouldBlock
	}
	n, err := l.fd.Read(b)
	l.drained = n < len(b)
	return n, err
}

func (l lower) Write(b []byte) (int, error) {
	if l.below != nil {
		return l.below.Write(b)
	}
	if l.out == nil {
		l.out = tlsOutput.Get().(*[tlsPiece + tlsOverhead]byte)[:0]
	}
	l.out = append(l.out, b...)
	return len(b), nil
}

func (l lower) Close() error {
	if l.below != nil {
		return l.below.Close()
	}
	return nil
}

// CloseWrite is that of the connection below.
func (l lower) CloseWrite() error {
	if l.below != nil {
		closeWrite(l.below)
	}
	return nil
}

func (l lower) LocalAddr() net.Addr  { return &net.UnixAddr{} }
func (l lower) RemoteAddr() net.Addr { return &net.UnixAddr{} }

// SetDeadline implements net.Conn: where a loop has the socket nothing blocks.
func (l lower) SetDeadline(at time.Time) error {
	if l.below != nil {
		return l.below.SetDeadline(at)
	}
	return nil
}

func (l lower) SetReadDeadline(at time.Time) error {
	if l.below != nil {
		return l.below.SetReadDeadline(at)
	}
	return nil
}

func (l lower) SetWriteDeadline(at time.Time) error {
	if l.below != nil {
		return l.below.SetWriteDeadline(at)
	}
	return nil
}
