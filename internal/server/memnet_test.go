package server

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// memSocket is how many bytes one direction of a memConn buffers, as the
// kernel's buffers do for a socket.
const memSocket = 64 << 10

// A memListener is a network of its own: what Dial returns is connected with
// what Accept returns. It blocks on channels and condition variables only, so
// that a testing/synctest bubble sees when everybody waits.
type memListener struct {
	queue chan net.Conn
	errs  chan error // Accept fails with these first
	done  chan struct{}
	close sync.Once
}

func newMemListener() *memListener {
	return &memListener{queue: make(chan net.Conn), errs: make(chan error), done: make(chan struct{})}
}

func (l *memListener) Accept() (net.Conn, error) {
	select {
	case <-l.done:
		return nil, net.ErrClosed
	case err := <-l.errs:
		return nil, err
	case c := <-l.queue:
		return c, nil
	}
}

func (l *memListener) Dial() (net.Conn, error) {
	client, server := memPipe()
	select {
	case <-l.done:
		return nil, syscall.ECONNREFUSED
	case l.queue <- server:
		return client, nil
	}
}

func (l *memListener) Close() error {
	l.close.Do(func() { close(l.done) })
	return nil
}

func (l *memListener) Addr() net.Addr { return memAddr{} }

type memAddr struct{}

func (memAddr) Network() string { return "mem" }
func (memAddr) String() string  { return "mem" }

// memPipe returns two ends of a connection.
func memPipe() (a, b *memConn) {
	x, y := newMemStream(), newMemStream()
	return &memConn{in: x, out: y}, &memConn{in: y, out: x}
}

// A memConn is one end of a connection in memory. Like a TCP connection it
// buffers, can be half-closed, and is reset when an end is closed that has not
// read everything.
type memConn struct{ in, out *memStream }

func (c *memConn) Read(p []byte) (int, error)  { return c.in.read(p) }
func (c *memConn) Write(p []byte) (int, error) { return c.out.write(p) }

func (c *memConn) CloseWrite() error {
	c.out.end(io.EOF)
	return nil
}

func (c *memConn) Close() error {
	reason := io.EOF
	if c.in.abandon() {
		reason = syscall.ECONNRESET
	}
	c.out.end(reason)
	return nil
}

func (c *memConn) SetDeadline(t time.Time) error {
	c.SetReadDeadline(t)
	return c.SetWriteDeadline(t)
}

func (c *memConn) SetReadDeadline(t time.Time) error {
	c.in.setDeadline(&c.in.readBy, t)
	return nil
}

func (c *memConn) SetWriteDeadline(t time.Time) error {
	c.out.setDeadline(&c.out.writeBy, t)
	return nil
}

func (c *memConn) LocalAddr() net.Addr  { return memAddr{} }
func (c *memConn) RemoteAddr() net.Addr { return memAddr{} }

// A memStream is one direction of a connection.
type memStream struct {
	mu      sync.Mutex
	changed sync.Cond

	buf             []byte // data[r:w] has been written and not yet read
	r, w            int
	ended           error // the writer has gone: what a read gets behind the data
	abandoned       bool  // the reader has gone
	readBy, writeBy memDeadline
}

type memDeadline struct {
	at    time.Time
	timer *time.Timer
}

func (d *memDeadline) passed() bool { return !d.at.IsZero() && !time.Now().Before(d.at) }

func newMemStream() *memStream {
	s := &memStream{buf: make([]byte, memSocket)}
	s.changed.L = &s.mu
	return s
}

func (s *memStream) read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
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
			s.changed.Broadcast()
			return n, nil
		case s.ended != nil:
			return 0, s.ended
		}
		s.changed.Wait()
	}
}

func (s *memStream) write(p []byte) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.ended != nil:
			return n, net.ErrClosed
		case s.abandoned:
			return n, syscall.EPIPE
		case s.writeBy.passed():
			return n, os.ErrDeadlineExceeded
		case n == len(p):
			return n, nil
		}
		if s.r > 0 {
			s.r, s.w = 0, copy(s.buf, s.buf[s.r:s.w])
		}
		if k := copy(s.buf[s.w:], p[n:]); k > 0 {
			s.w += k
			n += k
			s.changed.Broadcast()
			continue
		}
		s.changed.Wait()
	}
}

// end is the writer's last word.
func (s *memStream) end(reason error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended == nil || errors.Is(reason, syscall.ECONNRESET) {
		s.ended = reason
	}
	s.setTimer(&s.writeBy, time.Time{})
	s.changed.Broadcast()
}

// abandon is the reader's; it tells whether something was left unread.
func (s *memStream) abandon() (unread bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.abandoned = true
	s.setTimer(&s.readBy, time.Time{})
	s.changed.Broadcast()
	return s.r < s.w
}

func (s *memStream) setDeadline(d *memDeadline, t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setTimer(d, t)
	s.changed.Broadcast()
}

func (s *memStream) setTimer(d *memDeadline, t time.Time) {
	d.at = t
	switch left := time.Until(t); {
	case d.timer == nil && (t.IsZero() || left <= 0):
	case t.IsZero() || left <= 0:
		d.timer.Stop()
	case d.timer == nil:
		d.timer = time.AfterFunc(left, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.changed.Broadcast()
		})
	default:
		d.timer.Reset(left)
	}
}

// The network of the tests does what they rely on.
func TestMemNet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var buf [memSocket]byte
		a, b := memPipe()

		if n, err := a.Write(make([]byte, memSocket)); n != memSocket || err != nil {
			t.Fatalf("filling the buffer: %d, %v", n, err)
		}
		start := time.Now()
		a.SetWriteDeadline(start.Add(time.Second))
		if n, err := a.Write([]byte("x")); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a write to a full buffer: %d, %v", n, err)
		}
		if d := time.Since(start); d != time.Second {
			t.Errorf("the deadline of one second took %v", d)
		}
		a.SetWriteDeadline(time.Time{})
		go a.Write([]byte("behind"))
		synctest.Wait()
		io.ReadFull(b, buf[:])
		if n, err := b.Read(buf[:]); string(buf[:n]) != "behind" || err != nil {
			t.Errorf("a write that had to wait: %q, %v", buf[:n], err)
		}

		go func() {
			time.Sleep(time.Second)
			b.SetReadDeadline(time.Unix(1, 0))
		}()
		if _, err := b.Read(buf[:]); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a read that is interrupted: %v", err)
		}
		b.SetReadDeadline(time.Time{})

		a.Write([]byte("last"))
		a.CloseWrite()
		if all, err := io.ReadAll(b); string(all) != "last" || err != nil {
			t.Errorf("after a half-close: %q, %v", all, err)
		}
		b.Write([]byte("still open"))
		if n, err := a.Read(buf[:]); !bytes.Equal(buf[:n], []byte("still open")) || err != nil {
			t.Errorf("the other direction: %q, %v", buf[:n], err)
		}
		b.Close()
		if _, err := a.Read(buf[:]); err != io.EOF {
			t.Errorf("after a close: %v", err)
		}

		c, d := memPipe()
		c.Write([]byte("unread"))
		d.Write([]byte("lost"))
		d.Close()
		if _, err := c.Read(buf[:]); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("after a close with unread input: %v", err)
		}
		if _, err := c.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("a write to a closed connection: %v", err)
		}
	})
}
