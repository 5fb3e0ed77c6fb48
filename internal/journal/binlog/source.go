package binlog

import (
	"fmt"
	"io"

	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// chunk is the number of bytes per read or write. A larger record is read or written at
// once.
const chunk = 1 << 20 // bytes

// A source is the unread part of a file. A window of it is in memory.
type source struct {
	f    vfs.File
	size int64 // size of the file in bytes
	at   int64 // start of the unread part

	buf    []byte // buffer of the last source, or nil
	window []byte // part of buf; the bytes from at on
}

// left returns the number of unread bytes.
func (s *source) left() int64 { return s.size - s.at }

// peek returns the next n bytes; at least n must be left. They are valid until the next
// call.
func (s *source) peek(n int) ([]byte, error) {
	if len(s.window) < n {
		if err := s.fill(n); err != nil {
			return nil, err
		}
	}
	return s.window[:n], nil
}

// skip skips n bytes that peek returned.
func (s *source) skip(n int) {
	s.window = s.window[n:]
	s.at += int64(n)
}

// fill widens the window to n bytes or a chunk.
func (s *source) fill(n int) error {
	want := int(min(s.left(), int64(max(n, chunk))))
	// The source does not keep a buffer for a large body.
	if cap(s.buf) < want || cap(s.buf) > 4*chunk && want <= chunk {
		s.buf = make([]byte, want)
	}
	have := copy(s.buf[:want], s.window)
	s.window = s.buf[:want]
	got, err := s.f.ReadAt(s.window[have:], s.at+int64(have))
	if have+got < want {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF // the file has become shorter
		}
		return fmt.Errorf("read at %d: %w", s.at+int64(have), err)
	}
	return nil
}

// skipZeros skips zeros and reports whether the file ends with them.
func (s *source) skipZeros() (bool, error) {
	for s.left() > 0 {
		b, err := s.peek(int(min(s.left(), chunk)))
		if err != nil {
			return false, err
		}
		for i, c := range b {
			if c != 0 {
				s.skip(i)
				return false, nil
			}
		}
		s.skip(len(b))
	}
	return true, nil
}
