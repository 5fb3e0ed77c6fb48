package server

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"

	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/server/epoll"
)

const (
	tlsPiece = 64 << 10 // number of bytes that are encrypted at a time

	// tlsOverhead is the maximum number of bytes that encryption adds to a piece. The
	// first records of a connection are small, so that a client can start to decrypt.
	tlsOverhead = 4 << 10
)

// A tlsSocket is a kernel socket with TLS. A goroutine waits for the handshake. After
// that, the loop encrypts, decrypts and polls the socket like any other.
//
// The tls.Conn reads and writes through lower. It can continue after a temporary read
// error, such as ErrWouldBlock, but not after a write error. So lower accepts all bytes,
// and Write returns 0 until the kernel has accepted them.
type tlsSocket struct {
	conn *tls.Conn
	fd   Socket // nil during the handshake

	out     []byte // encrypted bytes that the kernel has not accepted; nil if none
	sent    int    // bytes of out that the kernel has accepted
	taken   int    // number of bytes of the reply that are encrypted in out
	drained bool   // the kernel probably has no more input
	left    bool   // the last Read left received bytes
	shut    bool   // no more bytes will be encrypted
}

// newTLSSocket returns a TLS connection before its handshake.
func newTLSSocket(nc net.Conn, config *tls.Config) *tlsSocket {
	t := new(tlsSocket)
	t.conn = tls.Server(lower{nc, t}, config)
	return t
}

// handshake encrypts the connection and adds the client's certificate, if any, to its
// credentials. It returns an error when running is canceled.
func (t *tlsSocket) handshake(running context.Context, e *access.Credentials) error {
	ctx, cancel := context.WithTimeout(running, handshakeTimeout)
	defer cancel()
	if err := t.conn.HandshakeContext(ctx); err != nil {
		return &rejection{fmt.Sprintf("TLS: %v", err)}
	}
	if certs := t.conn.ConnectionState().PeerCertificates; len(certs) > 0 {
		e.Certificate = certs[0]
	}
	return nil
}

// begin passes the socket to a loop after the handshake.
func (t *tlsSocket) begin(fd Socket) { t.fd, t.left = fd, true }

// Read implements Socket.
func (t *tlsSocket) Read(b []byte) (n int, err error) {
	defer t.flush() // writes a close_notify, or the answer to a key update
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
	t.left = true // there might be more
	return n, nil
}

// Write implements Socket. The caller must write the remaining bytes again.
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

// tlsOutput contains buffers for encrypted bytes. Idle sockets have none.
var tlsOutput = sync.Pool{New: func() any { return new([tlsPiece + tlsOverhead]byte) }}

// flush writes as much as the kernel accepts.
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

// CloseWrite implements Socket. A client that receives no close_notify must assume that
// replies were truncated.
func (t *tlsSocket) CloseWrite() error {
	t.shut = true
	if err := t.conn.CloseWrite(); err != nil {
		return err
	}
	return t.flush()
}

// Close implements Socket. It does not wait for the kernel to accept the close_notify.
func (t *tlsSocket) Close() error {
	t.conn.CloseWrite()
	t.flush()
	return t.fd.Close()
}

// Ready implements buffered.
func (t *tlsSocket) Ready() (readable, writable, ended bool) { return t.left, false, false }

// Held implements buffered.
func (t *tlsSocket) Held() int { return cap(t.out) }

// lower is the connection below a tls.Conn: a net.Conn until the end of the handshake,
// then the buffer and descriptor of the tlsSocket.
type lower struct {
	net.Conn
	t *tlsSocket
}

func (l lower) Read(b []byte) (int, error) {
	switch {
	case l.t.fd == nil:
		return l.Conn.Read(b)
	case l.t.drained:
		return 0, epoll.ErrWouldBlock
	}
	n, err := l.t.fd.Read(b)
	l.t.drained = n < len(b)
	return n, err
}

func (l lower) Write(b []byte) (int, error) {
	if l.t.fd == nil {
		return l.Conn.Write(b)
	}
	if l.t.out == nil {
		l.t.out = tlsOutput.Get().(*[tlsPiece + tlsOverhead]byte)[:0]
	}
	l.t.out = append(l.t.out, b...)
	return len(b), nil
}

// CloseWrite is called by a pump.
func (l lower) CloseWrite() error {
	closeWrite(l.Conn)
	return nil
}
