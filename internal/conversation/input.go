package conversation

import "sync"

const (
	minInput  = 1 << 10  // size of the first buffer, in bytes
	stepInput = 64 << 10 // size up to which the buffer doubles when a read fills it, in bytes
)

// input is the buffer of received bytes; buf[r:w] has not been executed. The buffer grows
// when reads fill it or a long body arrives. It is freed when all input is consumed.
type input struct {
	buf  []byte
	r, w int
	more bool // the input might contain complete commands
	full bool // the last read filled the buffer, so there might be more input
}

func (in *input) empty() bool    { return in.r == in.w }
func (in *input) len() int       { return in.w - in.r }
func (in *input) unread() []byte { return in.buf[in.r:in.w] }
func (in *input) consume(n int)  { in.r += n }

// space returns the free part of the buffer. It grows the buffer to hold a total of need
// unread bytes, but to at most four times the received bytes. It at least doubles the
// size, so that a body in many small pieces is not copied for each piece.
func (in *input) space(need int) []byte {
	in.makeRoom(need)
	return in.buf[in.w:]
}

// filled records that the first n bytes of space were read.
func (in *input) filled(n int) {
	in.w += n
	in.full = in.w == len(in.buf)
}

func (in *input) makeRoom(need int) {
	if in.empty() {
		in.r, in.w = 0, 0
	}
	grown := min(need, max(stepInput, 4*in.len()))
	switch size := len(in.buf); {
	case grown > size && (grown == need || grown >= 2*size):
		in.move(grown)
	case in.full && size < stepInput, in.r == 0 && in.w == size:
		in.move(max(2*size, minInput))
	case in.w == size, in.r > 0 && need > size-in.r:
		in.w = copy(in.buf, in.unread())
		in.r = 0
	}
}

// move copies the unread bytes to a new buffer.
func (in *input) move(size int) {
	buf := newBuffer(size)
	in.w = copy(buf, in.unread())
	in.r = 0
	freeBuffer(in.buf)
	in.buf = buf
}

// append appends bytes that were read into another buffer.
func (in *input) append(b []byte) {
	if len(b) > len(in.buf)-in.w {
		in.move(in.len() + len(b) + minInput)
	}
	in.w += copy(in.buf[in.w:], b)
}

// free frees the buffer with all unread input.
func (in *input) free() {
	freeBuffer(in.buf)
	*in = input{}
}

// pooledInput is the size of pooled buffers, in bytes. It is enough for a body of the
// default maximum size. Few of many connections need a buffer at the same time.
const pooledInput = 128 << 10

var inputBuffers = sync.Pool{New: func() any { return new([pooledInput]byte) }}

// newBuffer returns a buffer of the given size. It pools only the common size: small
// buffers are not worth pooling, and huge ones are too rare.
func newBuffer(size int) []byte {
	if size <= 4*minInput || size > pooledInput {
		return make([]byte, size)
	}
	return inputBuffers.Get().(*[pooledInput]byte)[:size]
}

func freeBuffer(buf []byte) {
	if cap(buf) == pooledInput {
		inputBuffers.Put((*[pooledInput]byte)(buf[:pooledInput]))
	}
}
