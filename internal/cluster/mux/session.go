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
	// Window is how many bytes may be under way in a stream.
	Window = 64 << 10

	headLength = 8
	maxPending = 1 << 20 // bytes that wait to be written; above, streams take nothing
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
)

// ErrClosed is the error of streams whose session was closed by this side.
var ErrClosed = errors.New("mux: the session is closed")

// errProtocol is wrapped by the errors of frames that no other side of this package
// sends.
var errProtocol = errors.New("mux: a frame makes no sense")

// A Session is one side of a connection with streams.
type Session struct {
	conn   net.Conn
	accept func(*Stream) // nil: this side opens the streams
	done   sync.WaitGroup
	over   chan struct{} // closed with err

	mu      sync.Mutex
	wake    sync.Cond // of the goroutine that writes: pending, err
	streams map[uint32]*Stream
	last    uint32    // the highest number of a stream
	pending []byte    // frames to be written
	wrote   bool      // something since the last tick
	blocked []*Stream // want to write more than pending takes, each once
	told    []*Stream // whose Notify is to be called
	spare   [][]byte  // for what arrives
	pinger  *time.Timer
	err     error // why the session is over
}

// New makes a session of a connection, which belongs to it from then on. accept is called
// for each stream that the other side opens, by the goroutine that reads, and must not
// block; nil: this side opens them.
func New(conn net.Conn, accept func(*Stream)) *Session {
	s := &Session{conn: conn, accept: accept, streams: make(map[uint32]*Stream), over: make(chan struct{})}
	s.wake.L = &s.mu
	s.mu.Lock()
	s.pinger = time.AfterFunc(pingEvery, s.ping) // which waits until it is there
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

// Over returns a channel that is closed when the session is over.
func (s *Session) Over() <-chan struct{} { return s.over }

// Close ends all streams, and the connection. What was not written is lost.
func (s *Session) Close() error {
	s.end(ErrClosed)
	s.done.Wait()
	return nil
}

// end ends the session.
func (s *Session) end(err error) {
	s.mu.Lock()
	if s.err == nil {
		s.err = noEOF(err) // that of a stream is another one
		s.pinger.Stop()
		close(s.over)
		for _, st := range s.streams {
			s.tell(st)
		}
		s.wake.Signal()
	}
	s.notify()
	underTLS(s.conn).Close() // without a farewell, for which a dead machine would have to be waited for
}

// underTLS returns the connection below TLS.
func underTLS(conn net.Conn) net.Conn {
	if t, ok := conn.(interface{ NetConn() net.Conn }); ok {
		return t.NetConn()
	}
	return conn
}

// tell notes that something has changed for a stream.
func (s *Session) tell(st *Stream) {
	st.changed.Broadcast()
	if st.notify != nil && !st.told {
		st.told = true
		s.told = append(s.told, st)
	}
}

// notify unlocks mu, and calls the functions of the streams for which something has
// changed.
func (s *Session) notify() {
	told := s.told
	s.told = nil
	functions := make([]func(), 0, len(told))
	for _, st := range told {
		st.told = false
		functions = append(functions, st.notify)
	}
	s.mu.Unlock()
	for _, f := range functions {
		f()
	}
}

// frame appends the head of a frame to what is to be written, and bytes.
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

// write writes frames until the session is over.
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
			s.tell(st)
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

// block makes st be notified when pending takes more. The caller holds mu.
func (s *Session) block(st *Stream) {
	if !st.blocked {
		st.blocked = true
		s.blocked = append(s.blocked, st)
	}
}

// ping says that this side is there, if nothing else has.
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

// read takes frames until the session is over.
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
			if kind == kindData {
				size += length
			}
			if length > Window {
				s.notify()
				return fmt.Errorf("%w: it has %d bytes", errProtocol, length)
			}
			if r.Buffered() < size {
				s.notify() // before waiting
				if _, err := r.Peek(size); err != nil {
					return noEOF(err)
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

// noEOF makes the end of the input within a frame an error.
func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// handle takes a frame.
func (s *Session) handle(id uint32, kind byte, length int, b []byte) error {
	if kind == kindPing {
		return nil
	}
	if kind == kindOpen {
		if s.accept == nil || id != s.last+1 {
			return fmt.Errorf("%w: stream %d is opened after %d", errProtocol, id, s.last)
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
			return fmt.Errorf("%w: kind %d of stream %d, which there is not", errProtocol, kind, id)
		}
		return nil // it is over
	}
	switch kind {
	case kindData:
		if st.ended || length > Window-st.unread()-st.read {
			return fmt.Errorf("%w: stream %d gets more than it may", errProtocol, id)
		}
		st.take(b)
	case kindEnd:
		st.ended = true
	case kindGone:
		st.ended, st.gone = true, true
	case kindCredit:
		if st.credit += length; st.credit > Window {
			return fmt.Errorf("%w: stream %d may send more than there is room for", errProtocol, id)
		}
		if len(s.pending) >= maxPending { // it can send nothing yet, and is to be told when it can
			s.block(st)
		}
	default:
		return fmt.Errorf("%w: kind %d", errProtocol, kind)
	}
	s.tell(st)
	return nil
}
