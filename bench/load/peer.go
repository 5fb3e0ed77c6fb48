package load

import "slices"

// A peer is one end of a connection, ours. It knows commands and replies, but no
// sockets: a loop moves the bytes, and calls it from its goroutine.
type peer interface {
	// bytes returns the buffers of the connection, always the same ones.
	bytes() *buffers

	// received is called once before the first read, and then after each read. It
	// does what the bytes ask for.
	received() error

	// done reports whether the connection is to be closed when everything has been
	// written.
	done() bool

	// ended is called when the connection was closed: with nil because it was over,
	// or with what went wrong. An error that it returns ends the loop.
	ended(err error) error
}

// buffers are the bytes of a peer.
type buffers struct {
	in  input
	out []byte // not written yet
}

func (b *buffers) bytes() *buffers { return b }

// An input is what was read from a connection.
type input struct {
	buf    []byte
	parsed int // so many bytes at the start of buf
}

// minSpace is how much a read asks for at least, in bytes.
const minSpace = 8 << 10

// space returns where the next read goes. It is as long as what is unparsed, so that
// a reply of megabytes takes few reads.
func (in *input) space() []byte {
	if in.parsed > 0 {
		in.buf = in.buf[:copy(in.buf, in.unparsed())]
		in.parsed = 0
	}
	in.buf = slices.Grow(in.buf, max(minSpace, len(in.buf)))
	return in.buf[len(in.buf):cap(in.buf)]
}

// add says that n bytes were read into space.
func (in *input) add(n int) { in.buf = in.buf[:len(in.buf)+n] }

func (in *input) unparsed() []byte { return in.buf[in.parsed:] }
