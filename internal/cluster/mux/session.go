package mux

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

const (
	// Window is the maximum number of bytes in flight in a stream.
	Window = 64 << 10

	headLength = 8
	maxPending = 1 << 20 // number of bytes waiting to be written above which streams accept no data
	maxKept    = 256 << 10

	pingEvery = time.Second
	silence   = 5 * time.Second
)

// Kinds of frames.
const (
	kindOpen = 1 + iota
	kindData
	kindEnd
	kindGone
	kindCredit
	kindPing
	kindMark
	kindNote
)

// ErrClosed is the error of streams whose session was closed by this side.
var ErrClosed = errors.New("mux: the session is closed")

// errProtocol is wrapped by the errors of frames that this package never sends.
var errProtocol = errors.New("mux: invalid frame")

// A Session is one side of a connection with streams.
type Session struct {
	conn   net.Conn
	accept func(*Stream) // nil if this side opens the streams
	began  time.Time
	done   sync.WaitGroup
	over   chan struct{} // closed after err is set

	mu      sync.Mutex
	wake    sync.Cond // for the writing goroutine; signals pending and err
	streams map[uint32]*Stream
	last    uint32    // the highest number of a stream
	pending []byte    // frames to write
	wrote   bool      // data was written since the last tick
	blocked []*Stream // streams that wait until pending has space, each once
	marked  []*Stream // streams whose Notify functions must be called
	spare   [][]byte  // buffers for received data
	pinger  *time.Timer
	err     error // the reason why the session has ended
}

// New creates a session on a connection and takes ownership of the connection. The
// reading goroutine calls accept for each stream that the other side opens; accept must
// not block. It is nil if this side opens the streams.
func New(conn net.Conn, accept func(*Stream)) *Session {
	s := &Session{conn: conn, accept: accept, began: time.Now(), streams: make(map[uint32]*Stream), over: make(chan struct{})}
	s.wake.L = &s.mu
	s.mu.Lock()
	s.pinger = time.AfterFunc(pingEvery, s.ping) // the callback waits for mu
	s.mu.Unlock()
	s.done.Go(func() { s.end(s.read()) })
	s.done.Go(func() { s.end(s.write()) })
	return s
}

// Open opens a stream.
func (s *Session) Open() (*Stream, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.err != nil:
		return nil, s.err
	case s.accept != nil || s.last == 1<<32-1:
		return nil, errors.New("mux: no more streams")
	}
	s.last++
	s.frame(s.last, kindOpen, 0, nil)
	return s.add(s.last), nil
}

// add adds a stream.
func (s *Session) add(id uint32) *Stream {
	st := &Stream{s: s, id: id, credit: Window}
	st.changed.L = &s.mu
	s.streams[id] = st
	return st
}

// Over returns a channel that is closed when the session has ended.
func (s *Session) Over() <-chan struct{} { return s.over }

// Close ends all streams and closes the connection. Unwritten data is lost.
func (s *Session) Close() error {
	s.end(ErrClosed)
	s.done.Wait()
	return nil
}

// end ends the session.
func (s *Session) end(err error) {
	s.mu.Lock()
	if s.err == nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF // io.EOF is reserved for the end of a stream
		}
		s.err = err
		s.pinger.Stop()
		close(s.over)
		for _, st := range s.streams {
			s.mark(st)
		}
		s.wake.Signal()
	}
	s.notify()
	underTLS(s.conn).Close() // skip the TLS close_notify, which would wait for a dead machine
}

// underTLS returns the connection below TLS.
func underTLS(conn net.Conn) net.Conn {
	if t, ok := conn.(interface{ NetConn() net.Conn }); ok {
		return t.NetConn()
	}
	return conn
}

// mark records that a stream has changed, so that notify calls its function.
func (s *Session) mark(st *Stream) {
	st.changed.Broadcast()
	if st.notify != nil && !st.marked {
		st.marked = true
		s.marked = append(s.marked, st)
	}
}

// notify unlocks mu and calls the functions of the marked streams.
func (s *Session) notify() {
	marked := s.marked
	s.marked = nil
	functions := make([]func(), 0, len(marked))
	for _, st := range marked {
		st.marked = false
		functions = append(functions, st.notify)
	}
	s.mu.Unlock()
	for _, f := range functions {
		f()
	}
}

// frame appends the header of a frame and b to the pending data.
func (s *Session) frame(id uint32, kind byte, length int, b []byte) {
	if s.err != nil {
		return
	}
	if len(s.pending) == 0 {
		s.wake.Signal()
	}
	s.pending = binary.BigEndian.AppendUint32(s.pending, id)
	s.pending = binary.BigEndian.AppendUint32(s.pending, uint32(kind)<<24|uint32(length))
	s.pending = append(s.pending, b...)
}

// write writes frames until the session ends.
func (s *Session) write() error {
	var out []byte
	for {
		s.mu.Lock()
		for len(s.pending) == 0 && s.err == nil {
			s.wake.Wait()
		}
		if s.err != nil {
			s.mu.Unlock()
			return s.err
		}
		if cap(out) > maxKept {
			out = nil
		}
		out, s.pending, s.wrote = s.pending, out[:0], true
		for _, st := range s.blocked {
			st.blocked = false
			s.mark(st)
		}
		clear(s.blocked)
		s.blocked = s.blocked[:0]
		s.notify()
		s.conn.SetWriteDeadline(time.Now().Add(silence))
		if _, err := s.conn.Write(out); err != nil {
			return err
		}
	}
}

// block makes notify call the stream's function when pending has space. The caller holds
// mu.
func (s *Session) block(st *Stream) {
	if !st.blocked {
		st.blocked = true
		s.blocked = append(s.blocked, st)
	}
}

// ping sends a ping if nothing was written since the last tick.
func (s *Session) ping() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return
	}
	if !s.wrote {
		s.frame(0, kindPing, 0, nil)
	}
	s.wrote = false
	s.pinger.Reset(pingEvery)
}

// read handles frames until the session ends.
func (s *Session) read() error {
	r := bufio.NewReaderSize(s.conn, headLength+Window)
	for {
		s.conn.SetReadDeadline(time.Now().Add(silence))
		if _, err := r.Peek(headLength); err != nil {
			return err
		}
		s.mu.Lock()
		for r.Buffered() >= headLength {
			head, _ := r.Peek(headLength)
			id, kind := binary.BigEndian.Uint32(head), head[4]
			length := int(binary.BigEndian.Uint32(head[4:]) & (1<<24 - 1))
			size := headLength
			if kind == kindData || kind == kindMark || kind == kindNote {
				size += length
			}
			if length > Window {
				s.notify()
				return fmt.Errorf("%w: %d bytes", errProtocol, length)
			}
			if r.Buffered() < size {
				s.notify() // before the next read blocks
				if _, err := r.Peek(size); err != nil {
					return err
				}
				s.mu.Lock()
			}
			frame, _ := r.Peek(size)
			if err := s.handle(id, kind, length, frame[headLength:]); err != nil {
				s.notify()
				return err
			}
			r.Discard(size)
		}
		s.notify()
	}
}

// handle handles a frame.
func (s *Session) handle(id uint32, kind byte, length int, b []byte) error {
	if kind == kindPing {
		return nil
	}
	if kind == kindOpen {
		if s.accept == nil || id != s.last+1 {
			return fmt.Errorf("%w: stream %d opened after stream %d", errProtocol, id, s.last)
		}
		s.last = id
		st := s.add(id)
		s.mu.Unlock()
		s.accept(st)
		s.mu.Lock()
		return nil
	}
	st := s.streams[id]
	if st == nil {
		if id > s.last {
			return fmt.Errorf("%w: kind %d for unknown stream %d", errProtocol, kind, id)
		}
		return nil // the stream has ended
	}
	switch kind {
	case kindData:
		if st.ended || length > Window-st.unread()-st.read {
			return fmt.Errorf("%w: data for stream %d exceeds the window", errProtocol, id)
		}
		st.take(b)
		st.unmarked = true
	case kindMark, kindNote:
		if s.accept != nil || kind == kindMark && len(b) < markHead {
			return fmt.Errorf("%w: mark of stream %d", errProtocol, id)
		}
		st.takeMark(kind, b)
		return nil
	case kindEnd:
		st.ended = true
	case kindGone:
		st.ended, st.gone = true, true
		st.lost = length == 1
	case kindCredit:
		if st.credit += length; st.credit > Window {
			return fmt.Errorf("%w: credit for stream %d exceeds the window", errProtocol, id)
		}
		if len(s.pending) >= maxPending { // the session cannot send yet; block will notify the stream
			s.block(st)
		}
	default:
		return fmt.Errorf("%w: kind %d", errProtocol, kind)
	}
	s.mark(st)
	return nil
}
