// Package memnet implements a network in memory for tests. It blocks only on channels and
// condition variables, so that a testing/synctest bubble detects that all goroutines
// wait. A [Listener] is for blocking servers, and a [Kernel] for event loops.
package memnet

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// Buffer is the size of a Conn's buffer for one direction, in bytes. It corresponds to a
// socket's kernel buffers.
const Buffer = 64 << 10

// A Listener is a separate network. Dial returns the client's ends of its connections,
// and Accept the server's ends.
type Listener struct {
	queue chan net.Conn
	Errs  chan error // Accept returns these errors first
	done  chan struct{}
	close sync.Once
}

// Listen returns a listener on a new network.
func Listen() *Listener {
	return &Listener{queue: make(chan net.Conn), Errs: make(chan error), done: make(chan struct{})}
}

func (l *Listener) Accept() (net.Conn, error) {
	select {
	case <-l.done:
		return nil, net.ErrClosed
	case err := <-l.Errs:
		return nil, err
	case c := <-l.queue:
		return c, nil
	}
}

func (l *Listener) Dial() (net.Conn, error) {
	client, server := Pipe()
	select {
	case <-l.done:
		return nil, syscall.ECONNREFUSED
	case l.queue <- server:
		return client, nil
	}
}

func (l *Listener) Close() error {
	l.close.Do(func() { close(l.done) })
	return nil
}

func (l *Listener) Addr() net.Addr { return addr{} }

type addr struct{}

func (addr) Network() string { return "mem" }
func (addr) String() string  { return "mem" }

// Pipe returns two ends of a connection.
func Pipe() (a, b *Conn) { return pipe(Buffer, Buffer) }

// pipe is Pipe with given sizes of the receive buffers.
func pipe(toA, toB int) (a, b *Conn) {
	x, y := newStream(toA), newStream(toB)
	return &Conn{in: x, out: y}, &Conn{in: y, out: x}
}

// A Conn is one end of a connection in memory. Like a TCP connection, it has buffers and
// can be half-closed. Closing an end with unread data resets the connection.
type Conn struct{ in, out *stream }

func (c *Conn) Read(p []byte) (int, error)  { return c.in.read(p) }
func (c *Conn) Write(p []byte) (int, error) { return c.out.write(p) }

// Unread returns the number of received bytes that were not read.
func (c *Conn) Unread() int {
	c.in.mu.Lock()
	defer c.in.mu.Unlock()
	return c.in.w - c.in.r
}

func (c *Conn) CloseWrite() error {
	c.out.end(io.EOF)
	return nil
}

func (c *Conn) Close() error {
	reason := io.EOF
	if c.in.abandon() {
		reason = syscall.ECONNRESET
	}
	c.out.end(reason)
	return nil
}

func (c *Conn) SetDeadline(t time.Time) error {
	c.SetReadDeadline(t)
	return c.SetWriteDeadline(t)
}

func (c *Conn) SetReadDeadline(t time.Time) error {
	c.in.setDeadline(&c.in.readBy, t)
	return nil
}

func (c *Conn) SetWriteDeadline(t time.Time) error {
	c.out.setDeadline(&c.out.writeBy, t)
	return nil
}

func (c *Conn) LocalAddr() net.Addr  { return addr{} }
func (c *Conn) RemoteAddr() net.Addr { return addr{} }

// A stream is one direction of a connection.
type stream struct {
	mu      sync.Mutex
	changed sync.Cond
	ring    func() // called at each change, with mu held; can be nil

	buf             []byte // data[r:w] has been written and not yet read
	r, w            int
	ended           error // set when the writer is closed; reads return it after the data
	abandoned       bool  // whether the reader is closed
	readBy, writeBy deadline
}

type deadline struct {
	at    time.Time
	timer *time.Timer
}

func (d *deadline) passed() bool { return !d.at.IsZero() && !time.Now().Before(d.at) }

func newStream(size int) *stream {
	s := &stream{buf: make([]byte, size)}
	s.changed.L = &s.mu
	return s
}

// notify wakes all goroutines that wait for a change.
func (s *stream) notify() {
	s.changed.Broadcast()
	if s.ring != nil {
		s.ring()
	}
}

func (s *stream) read(p []byte) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if n, err = s.take(p); !errors.Is(err, syscall.EAGAIN) {
			return n, err
		}
		s.changed.Wait()
	}
}

// take reads available data. The error is EAGAIN if no data is available yet.
func (s *stream) take(p []byte) (int, error) {
	switch {
	case s.abandoned:
		return 0, net.ErrClosed
	case s.readBy.passed():
		return 0, os.ErrDeadlineExceeded
	case errors.Is(s.ended, syscall.ECONNRESET):
		return 0, s.ended
	case s.r < s.w:
		n := copy(p, s.buf[s.r:s.w])
		if s.r += n; s.r == s.w {
			s.r, s.w = 0, 0
		}
		s.notify()
		return n, nil
	case s.ended != nil:
		return 0, s.ended
	}
	return 0, syscall.EAGAIN
}

func (s *stream) write(p []byte) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		k, err := s.put(p[n:])
		if n += k; err != nil || n == len(p) {
			return n, err
		}
		if k == 0 {
			s.changed.Wait()
		}
	}
}

// put writes as many bytes as fit into the buffer.
func (s *stream) put(p []byte) (n int, err error) {
	switch {
	case s.ended != nil:
		return 0, net.ErrClosed
	case s.abandoned:
		return 0, syscall.EPIPE
	case s.writeBy.passed():
		return 0, os.ErrDeadlineExceeded
	}
	if len(p) > len(s.buf)-s.w && s.r > 0 {
		s.r, s.w = 0, copy(s.buf, s.buf[s.r:s.w])
	}
	if n = copy(s.buf[s.w:], p); n > 0 {
		s.w += n
		s.notify()
	}
	return n, nil
}

// end closes the writer's side.
func (s *stream) end(reason error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended == nil || errors.Is(reason, syscall.ECONNRESET) {
		s.ended = reason
	}
	s.setTimer(&s.writeBy, time.Time{})
	s.notify()
}

// abandon closes the reader's side. It reports whether data was left unread.
func (s *stream) abandon() (unread bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.abandoned = true
	s.setTimer(&s.readBy, time.Time{})
	s.notify()
	return s.r < s.w
}

func (s *stream) setDeadline(d *deadline, t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setTimer(d, t)
	s.notify()
}

func (s *stream) setTimer(d *deadline, t time.Time) {
	d.at = t
	switch left := time.Until(t); {
	case d.timer == nil && (t.IsZero() || left <= 0):
	case t.IsZero() || left <= 0:
		d.timer.Stop()
	case d.timer == nil:
		d.timer = time.AfterFunc(left, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.notify()
		})
	default:
		d.timer.Reset(left)
	}
}
