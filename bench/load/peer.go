package load

import "slices"

// A peer is this program's end of a connection. It handles commands and replies, but not
// sockets: a loop transfers the bytes, and calls the peer from its goroutine.
type peer interface {
	// bytes returns the buffers of the connection. They are always the same.
	bytes() *buffers

	// received processes the bytes that were read. It is called once before the first
	// read, and then after each read.
	received() error

	// done reports whether the connection must be closed after all output is written.
	done() bool

	// ended is called after the connection was closed, with the error, or with nil if it
	// was finished. If ended returns an error, the loop ends.
	ended(err error) error
}

// buffers contains the input and output of a peer.
type buffers struct {
	in  input
	out []byte // not written yet
}

func (b *buffers) bytes() *buffers { return b }

// An input contains the bytes read from a connection.
type input struct {
	buf    []byte
	parsed int // number of parsed bytes at the start of buf
}

// minSpace is the minimum size of a read, in bytes.
const minSpace = 8 << 10

// space returns the buffer for the next read. It is as large as the unparsed input, so
// that a reply of megabytes needs few reads.
func (in *input) space() []byte {
	if in.parsed > 0 {
		in.buf = in.buf[:copy(in.buf, in.unparsed())]
		in.parsed = 0
	}
	in.buf = slices.Grow(in.buf, max(minSpace, len(in.buf)))
	return in.buf[len(in.buf):cap(in.buf)]
}

// add records that n bytes were read into space.
func (in *input) add(n int) { in.buf = in.buf[:len(in.buf)+n] }

func (in *input) unparsed() []byte { return in.buf[in.parsed:] }
