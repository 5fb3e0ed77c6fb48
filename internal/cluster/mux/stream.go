package mux

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"
)

// ErrWouldBlock is the error of TryRead while no data is available.
var ErrWouldBlock error = syscall.EAGAIN

// ErrGone is the error of writes to a stream that the other side no longer reads.
var ErrGone = errors.New("mux: the other side has closed the stream")

// ErrLost is the error of reads from a stream on whose other side Lose was called.
var ErrLost error = syscall.ECONNABORTED

// marks contains the last mark and the last note that a stream has received.
type marks struct {
	text     []byte // the note, then the state
	note     int    // length of the note in text
	position uint64
	at       time.Duration // time from Session.began until the mark arrived; 0 before the first mark
}

// A Stream is a connection within a session. The session's mu guards its fields.
type Stream struct {
	s       *Session
	changed sync.Cond // uses the session's mu
	notify  func()

	in     []byte // received data; nil if it was all read
	at     int    // number of bytes of in that were read
	read   int    // bytes read since the last credit was granted
	credit int    // bytes that can be sent
	marks  *marks // nil before the first mark

	id       uint32
	marked   bool // in the session's list of marked streams
	blocked  bool // in the session's list of blocked streams
	ended    bool // no more data will arrive
	gone     bool // the other side no longer reads
	shut     bool // this side no longer sends
	closed   bool // this side has closed the stream
	lost     bool // the other side has called Lose
	unmarked bool // data has arrived since the last mark, or since the stream was opened
}

// Mark sends a mark, which replaces the previous one. state is the state after all data
// that this side has written; position is the number of bytes of the other side's data
// that were used. If note is nil, the previous note remains valid. Only the side that
// accepts streams can send marks, before it ends the stream. Marks need no credit: the
// caller must not send more than one for each write. note and state must be shorter than
// [Window] bytes.
func (st *Stream) Mark(position uint64, note, state []byte) {
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	if st.s.err != nil || st.closed || st.gone {
		return
	}
	if note != nil {
		st.s.frame(st.id, kindNote, len(note), note)
	}
	st.s.frame(st.id, kindMark, markHead+len(state), nil)
	st.s.pending = append(binary.BigEndian.AppendUint64(st.s.pending, position), state...)
}

const markHead = 8 // the position

// takeMark stores a mark, or a note.
func (st *Stream) takeMark(kind byte, b []byte) {
	if st.marks == nil {
		st.marks = new(marks)
	}
	m := st.marks
	if kind == kindNote {
		m.text, m.note = slices.Concat(b, m.text[m.note:]), len(b)
		return
	}
	m.position, m.text = binary.BigEndian.Uint64(b), append(m.text[:m.note], b[markHead:]...)
	m.at, st.unmarked = time.Since(st.s.began)+1, false
}

// LastMark returns a copy of the last mark and the time when it arrived. ok is false if
// data has arrived since the mark. If there was no mark, the time is zero, and ok is
// false if any data has arrived.
func (st *Stream) LastMark() (note, state []byte, at time.Time, ok bool) {
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	if m := st.marks; m != nil && m.at > 0 {
		text := bytes.Clone(m.text)
		note, state, at = text[:m.note:m.note], text[m.note:], st.s.began.Add(m.at)
	}
	return note, state, at, !st.unmarked
}

// Used returns the position in the last mark, or 0.
func (st *Stream) Used() uint64 {
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	if st.marks == nil {
		return 0
	}
	return st.marks.position
}

// Lose is like Close, but the other side gets ErrLost instead of io.EOF.
func (st *Stream) Lose() {
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	st.close(1)
}

// Notify sets a function that is called when there is more to read, or space for the rest
// of an incomplete write. f can be called from any goroutine, and sometimes without a
// reason. It must not block.
func (st *Stream) Notify(f func()) {
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	st.notify = f
}

// Ready reports whether TryRead and TryWrite would make progress, and whether the other
// side has stopped sending.
func (st *Stream) Ready() (readable, writable, ended bool) {
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	over := st.s.err != nil || st.closed
	return st.unread() > 0 || st.ended || over, over || st.gone || st.credit > 0 && len(st.s.pending) < maxPending, st.ended || over
}

// TryRead reads available data. The error is ErrWouldBlock if no data is available yet,
// and io.EOF at the end of the stream.
func (st *Stream) TryRead(b []byte) (int, error) {
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	return st.tryRead(b)
}

func (st *Stream) tryRead(b []byte) (int, error) {
	switch {
	case st.closed:
		return 0, net.ErrClosed
	case st.in != nil:
	case st.lost:
		return 0, ErrLost
	case st.ended:
		return 0, io.EOF
	case st.s.err != nil:
		return 0, st.s.err
	default:
		return 0, ErrWouldBlock
	}
	n := copy(b, st.in[st.at:])
	if st.at += n; st.at == len(st.in) {
		st.free()
	}
	if st.read += n; st.read >= Window/4 && !st.ended {
		st.s.frame(st.id, kindCredit, st.read, nil)
		st.read = 0
	}
	return n, nil
}

// Unread returns the number of received bytes that were not read.
func (st *Stream) Unread() int {
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	return st.unread()
}

func (st *Stream) unread() int { return len(st.in) - st.at }

// Held returns the size of the buffer for received data, in bytes.
func (st *Stream) Held() int {
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	return cap(st.in)
}

// Small buffers are reused, so that commands need no allocation.
const (
	spareSize  = 4 << 10
	maxSpare   = 256 // maximum number of spare buffers of a session
	firstSpare = 512 // size in bytes
)

// take stores received bytes.
func (st *Stream) take(b []byte) {
	if len(b) == 0 {
		return
	}
	if n := len(st.s.spare); st.in == nil && n > 0 {
		st.in, st.s.spare = st.s.spare[n-1], st.s.spare[:n-1]
	} else if st.in == nil {
		st.in = make([]byte, 0, max(firstSpare, len(b)))
	}
	if st.at > len(st.in)/2 {
		st.in, st.at = st.in[:copy(st.in, st.in[st.at:])], 0
	}
	st.in = append(st.in, b...)
}

// free releases the buffer for received data.
func (st *Stream) free() {
	if st.in != nil && cap(st.in) <= spareSize && len(st.s.spare) < maxSpare {
		st.s.spare = append(st.s.spare, st.in[:0])
	}
	st.in, st.at = nil, 0
}

// TryWrite writes as many bytes as the window and the pending data allow, possibly none.
// It returns their number.
func (st *Stream) TryWrite(b []byte) (int, error) {
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	return st.tryWrite(b)
}

func (st *Stream) tryWrite(b []byte) (n int, err error) {
	switch {
	case st.closed || st.shut:
		return 0, net.ErrClosed
	case st.s.err != nil:
		return 0, st.s.err
	case st.gone:
		return 0, ErrGone
	case len(st.s.pending) >= maxPending:
		st.s.block(st)
		return 0, nil
	}
	if n = min(len(b), st.credit); n > 0 {
		st.s.frame(st.id, kindData, n, b[:n])
		st.credit -= n
	}
	return n, nil
}

// Read is like TryRead, but waits until data is available.
func (st *Stream) Read(b []byte) (int, error) {
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	for {
		n, err := st.tryRead(b)
		if err != ErrWouldBlock || len(b) == 0 {
			return n, err
		}
		st.changed.Wait()
	}
}

// Write is like TryWrite, but waits until all bytes are accepted.
func (st *Stream) Write(b []byte) (n int, err error) {
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	for {
		m, err := st.tryWrite(b[n:])
		n += m
		switch {
		case err != nil || n == len(b):
			return n, err
		case m == 0:
			st.changed.Wait()
		}
	}
}

// CloseWrite ends this side's data. This side can still read.
func (st *Stream) CloseWrite() error {
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	if !st.shut && !st.closed {
		st.shut = true
		st.s.frame(st.id, kindEnd, 0, nil)
	}
	return nil
}

// Close ends the stream. Data that was written earlier still arrives.
func (st *Stream) Close() error {
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	st.close(0)
	return nil
}

// close closes the stream. lost is 1 if the other side must get ErrLost.
func (st *Stream) close(lost int) {
	if st.closed {
		return
	}
	st.closed = true
	st.free()
	delete(st.s.streams, st.id)
	if !st.gone {
		st.s.frame(st.id, kindGone, lost, nil)
	}
	st.changed.Broadcast()
}
