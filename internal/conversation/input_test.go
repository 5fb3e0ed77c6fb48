package conversation

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"pgregory.net/rapid"
)

// source returns the bytes 0, 1, 2, ... in pieces of the requested size.
type source struct {
	sent int64
	left int
	err  error
}

func (s *source) Read(p []byte) (int, error) {
	n := min(s.left, len(p))
	if n == 0 {
		return 0, s.err
	}
	for i := range n {
		p[i] = byte(s.sent)
		s.sent++
	}
	s.left -= n
	return n, nil
}

func (in *input) fill(from io.Reader, need int) error {
	n, err := from.Read(in.space(need))
	in.filled(n)
	return err
}

// For all sequences of reads and takes, the unread bytes equal those in a plain slice.
// The size of the buffer is proportional to the unread bytes.
func TestInput(t *testing.T) {
	errNothing := errors.New("no data")
	rapid.Check(t, func(t *rapid.T) {
		var in input
		from := &source{err: errNothing}
		var twin []byte // the expected unread bytes
		most := 0       // maximum number of unread bytes so far
		t.Repeat(map[string]func(*rapid.T){
			"arrive": func(t *rapid.T) {
				from.left += rapid.OneOf(rapid.IntRange(1, 100), rapid.IntRange(1, 200_000)).Draw(t, "bytes")
			},
			"fill": func(t *rapid.T) {
				need := rapid.SampledFrom([]int{0, 0, len(twin) + 1, len(twin) + 5000, 1 << 20, 1 << 30}).Draw(t, "need")
				begun := from.sent
				err := in.fill(from, need)
				if from.sent == begun && err != errNothing {
					t.Fatalf("no byte was read: %v", err)
				}
				if from.sent > begun && err != nil {
					t.Fatal(err)
				}
				for b := begun; b < from.sent; b++ {
					twin = append(twin, byte(b))
				}
				most = max(most, len(twin))
				if room := max(stepInput, 4*most) + minInput; len(in.buf) > 2*room {
					t.Fatalf("the buffer has %d bytes, but at most %d were unread", len(in.buf), most)
				}
			},
			"take": func(t *rapid.T) {
				n := rapid.IntRange(0, len(twin)).Draw(t, "bytes")
				if rapid.Bool().Draw(t, "all") {
					n = len(twin)
				}
				in.consume(n)
				twin = twin[n:]
			},
			"append": func(t *rapid.T) {
				from.left = rapid.IntRange(1, 70_000).Draw(t, "bytes")
				b := make([]byte, from.left)
				from.Read(b)
				in.append(b)
				twin = append(twin, b...)
				most = max(most, len(twin))
			},
			"free": func(t *rapid.T) {
				if !in.empty() {
					t.Skip("only an empty input can be freed")
				}
				in.free()
			},
			"": func(t *rapid.T) {
				if !bytes.Equal(in.unread(), twin) || in.len() != len(twin) || in.empty() != (len(twin) == 0) {
					t.Fatalf("%d bytes are unread, want %d", in.len(), len(twin))
				}
			},
		})
	})
}

// The memory for a body in many small pieces is proportional to its size, not to the
// number of pieces.
func TestInputGrowth(t *testing.T) {
	const size = 4 << 20
	var in input
	from := &source{err: io.EOF}
	allocated, last := 0, 0
	for in.len() < size {
		from.left = 1000
		if err := in.fill(from, size); err != nil {
			t.Fatal(err)
		}
		if len(in.buf) != last {
			last = len(in.buf)
			allocated += last
		}
		if most := max(stepInput, 4*in.len()); len(in.buf) > most {
			t.Fatalf("with %d bytes, the buffer has %d bytes", in.len(), len(in.buf))
		}
	}
	if allocated > 3*size {
		t.Errorf("%d bytes were allocated for %d", allocated, size)
	}
}
