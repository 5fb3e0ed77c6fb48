package load

import "errors"

// A peer is one end of a connection, ours, as bytes that come and go. It knows
// no sockets: a loop moves the bytes, and calls it from its goroutine.
type peer interface {
	// attach is called first. What pending returns then is written at once, and
	// also, with wake, when the peer got something to say by what another received.
	attach(wake func())

	// space returns where the next read goes. If it is empty, the other end has
	// sent more than it may.
	space() []byte

	// received is told that n bytes were read, and does what they ask for.
	received(n int) error

	// pending returns what has not been written, and wrote is told how much of
	// that was.
	pending() []byte
	wrote(n int)

	// done reports whether the connection is to be closed when all that is pending
	// has been written.
	done() bool

	// ended is called when the connection was closed: with nil because it was over,
	// or with what went wrong. An error that it returns ends the loop.
	ended(err error) error
}

var (
	// errHungUp is the end of a connection that the server closed.
	errHungUp = errors.New("load: the server closed the connection")

	// errAhead is that of a client that sends on and on behind a waiting reserve.
	errAhead = errors.New("load: too much behind a waiting reserve")
)

// Buffers are the bytes of a peer: in[r:w] has been read and not parsed, out has
// not been written.
type buffers struct {
	in   []byte
	r, w int
	out  []byte
	wake func() // see peer.attach
}

// minSpace is how much a read asks for at least, in bytes.
const minSpace = 4 << 10

// room returns where the next read goes, at least n bytes. The buffer grows if
// it must.
func (b *buffers) room(n int) []byte {
	if len(b.in)-b.w < n && b.r > 0 {
		b.w = copy(b.in, b.in[b.r:b.w])
		b.r = 0
	}
	if len(b.in)-b.w < n {
		bigger := make([]byte, b.w+max(n, b.w, 2*minSpace))
		copy(bigger, b.in[:b.w])
		b.in = bigger
	}
	return b.in[b.w:]
}

// parsed drops the first n bytes of the input.
func (b *buffers) parsed(n int) {
	if b.r += n; b.r == b.w {
		b.r, b.w = 0, 0
	}
}

func (b *buffers) unparsed() []byte { return b.in[b.r:b.w] }
func (b *buffers) pending() []byte  { return b.out }
func (b *buffers) wrote(n int)      { b.out = b.out[:copy(b.out, b.out[n:])] }
