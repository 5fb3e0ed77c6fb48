package conformance

import (
	"bytes"
	"errors"
	"net"
	"time"
)

// errNothing means that the expected data did not arrive in time. errClosed means that
// the server closed the connection first.
var (
	errNothing = errors.New("nothing arrives")
	errClosed  = errors.New("connection closed")
)

// A stream is one connection of a conversation, with time limits for reads. It uses
// channels instead of read deadlines, so that fake time works with any net.Conn.
type stream struct {
	conn net.Conn
	in   chan []byte // data read by pump; closed at the end of the stream
	buf  []byte      // data from in that no step has read yet

	// pending reports whether data was sent and none was read since, so that the server
	// might not have read it yet.
	pending bool
}

// newStream starts a goroutine that reads conn; close stops it.
func newStream(conn net.Conn) *stream {
	s := &stream{conn: conn, in: make(chan []byte, 64)}
	go s.pump()
	return s
}

func (s *stream) pump() {
	defer close(s.in)
	for {
		chunk := make([]byte, 16<<10)
		n, err := s.conn.Read(chunk)
		if n > 0 {
			s.in <- chunk[:n]
		}
		if err != nil {
			return
		}
	}
}

func (s *stream) send(data []byte) error {
	s.pending = true
	_, err := s.conn.Write(data)
	return err
}

func (s *stream) halfClose() error {
	c, ok := s.conn.(interface{ CloseWrite() error })
	if !ok {
		return errors.New("the connection has no CloseWrite")
	}
	s.pending = true
	return c.CloseWrite()
}

func (s *stream) close() {
	s.conn.Close()
	for range s.in { // until pump ends
	}
}

// fill waits until at least n bytes are buffered.
func (s *stream) fill(n int, within time.Duration) error {
	over := time.After(within)
	for len(s.buf) < n {
		select {
		case chunk, ok := <-s.in:
			if !ok {
				return errClosed
			}
			s.buf = append(s.buf, chunk...)
			s.pending = false
		case <-over:
			return errNothing
		}
	}
	return nil
}

// take returns the next n bytes.
func (s *stream) take(n int, within time.Duration) ([]byte, error) {
	err := s.fill(n, within)
	if err != nil {
		n = len(s.buf)
	}
	data := s.buf[:n]
	s.buf = s.buf[n:]
	return data, err
}

// line returns the next line without its CR LF.
func (s *stream) line(within time.Duration) ([]byte, error) {
	for from := 0; ; {
		if i := bytes.Index(s.buf[from:], []byte("\r\n")); i >= 0 {
			line := s.buf[:from+i]
			s.buf = s.buf[from+i+2:]
			return line, nil
		}
		from = max(0, len(s.buf)-1) // a CR can be the last byte
		if err := s.fill(len(s.buf)+1, within); err != nil {
			return nil, err
		}
	}
}
