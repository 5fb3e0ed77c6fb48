package wal

import (
	"bytes"
	"fmt"
	"io"

	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// A window reads a file piece by piece. All readers of records use it. It needs memory
// for a block, or for one larger record.
type window struct {
	file vfs.File
	path string
	size int64  // size of the file when it was opened
	buf  []byte // the bytes starting at off
	off  int64
}

func openWindow(fsys vfs.FS, path string) (*window, error) {
	f, err := fsys.Open(path)
	if err != nil {
		return nil, fmt.Errorf("wal: %w", err)
	}
	w := &window{file: f, path: path}
	if w.size, _, err = f.Stat(); err != nil {
		f.Close()
		return nil, fmt.Errorf("wal: %w", err)
	}
	return w, nil
}

func (w *window) close() { w.file.Close() }

// at returns the n bytes at off, all within the file. They are valid until the next call.
func (w *window) at(off, n int64) ([]byte, error) {
	if off < w.off || off+n > w.off+int64(len(w.buf)) {
		want := min(w.size-off, max(n, defaultBlockSize))
		if have := int64(cap(w.buf)); have < want || have > defaultBlockSize && want <= defaultBlockSize {
			w.buf = make([]byte, want)
		}
		w.off, w.buf = off, w.buf[:want]
		if err := readFull(w.file, w.buf, off); err != nil {
			w.forget()
			return nil, fmt.Errorf("wal: read %s: %w", w.path, err)
		}
	}
	return w.buf[off-w.off:][:n], nil
}

// record returns the record at off, with its header. If reason is not empty, there is no
// valid record.
func (w *window) record(seed uint32, off int64) (rec []byte, reason string, err error) {
	b, err := w.at(off, min(w.size-off, recordHeader))
	if err != nil {
		return nil, "", err
	}
	size, reason := frame(b, w.size-off)
	if reason == "" {
		reason = checkHeader(b, seed, off)
	}
	if reason != "" {
		return nil, reason, nil
	}
	if rec, err = w.at(off, size); err != nil {
		return nil, "", err
	}
	return rec, checkPayload(rec), nil
}

// records returns the records that start at off and end before limit: at least one, and
// about the given number of bytes. It checks only their lengths. It returns a fragment
// without other records. If no record follows, reason is the cause.
func (w *window) records(off, limit int64, about int) (data []byte, reason string, err error) {
	data, err = w.at(off, min(limit-off, max(int64(about), recordHeader)))
	at, end := int64(0), int64(len(data))
	for err == nil && at < end {
		left := limit - off - at
		if end-at < min(left, recordHeader) {
			break
		}
		n, reason := frame(data[at:], left)
		switch {
		case reason != "":
			return data[:at], reason, nil
		case at > 0 && (at+n > end || isFragment(data[at:])):
			return data[:at], "", nil
		case at+n > end || isFragment(data):
			data, err = w.at(off, n)
			return data, "", err
		}
		at += n
	}
	return data[:at], "", err
}

// forget discards the buffer, so that the window reads the file again.
func (w *window) forget() { w.buf = w.buf[:0] }

// findProof searches after x, where there is no valid record, for a record that was
// written when x was known to be durable. It returns the offset of that record, or 0. All
// bytes at or after end are zero.
func (w *window) findProof(seed uint32, x, end int64) (int64, error) {
	for at := x + alignment; at < end && at+recordHeader <= w.size; at += alignment {
		b, err := w.at(at, recordHeader)
		if err != nil {
			return 0, err
		}
		if synced := recordSynced(b); synced <= x || synced > at {
			continue
		}
		switch _, reason, err := w.record(seed, at); {
		case err != nil:
			return 0, err
		case reason == "":
			return at, nil
		}
	}
	return 0, nil
}

// countRecords counts the valid records and fragments that start between two offsets,
// except internal ones.
func (w *window) countRecords(seed uint32, from, end int64) (n int, err error) {
	for at := from; at < end; {
		rec, reason, err := w.record(seed, at)
		switch {
		case err != nil:
			return 0, err
		case reason != "":
			at += alignment
			continue
		case internalOf(rec) == nil:
			n++
		}
		at += int64(len(rec))
	}
	return n, nil
}

// lastNonZero returns the offset of the last nonzero byte at or after from, or -1 if
// there is none.
func (w *window) lastNonZero(from int64) (int64, error) {
	for end := w.size; end > from; {
		start := max(from, end-defaultBlockSize)
		b, err := w.at(start, end-start)
		if err != nil {
			return 0, err
		}
		const block = 4 << 10
		for len(b) >= block && bytes.Equal(b[len(b)-block:], zeros[:block]) {
			b = b[:len(b)-block]
		}
		if n := len(bytes.TrimRight(b, "\x00")); n > 0 {
			return start + int64(n) - 1, nil
		}
		end = start
	}
	return -1, nil
}

// readFull reads len(b) bytes. It returns an error if the file ends earlier.
func readFull(r io.ReaderAt, b []byte, off int64) error {
	n, err := r.ReadAt(b, off)
	if n == len(b) {
		return nil
	}
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
