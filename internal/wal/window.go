package wal

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// A window reads a file piece by piece, so that it needs little memory for a file of
// any size.
type window struct {
	file vfs.File
	path string
	size int64  // of the file, when it was opened
	buf  []byte // the bytes from off on
	off  int64
}

func openWindow(fsys vfs.FS, path string) (*window, error) {
	f, err := fsys.Open(path)
	if err != nil {
		return nil, fmt.Errorf("wal: %w", err)
	}
	w := &window{file: f, path: path}
	if w.size, err = f.Size(); err != nil {
		f.Close()
		return nil, fmt.Errorf("wal: %w", err)
	}
	return w, nil
}

func (w *window) close() { w.file.Close() }

// at returns the n bytes at off, at most defaultBlockSize and all within the
// file. They are valid until the next call.
func (w *window) at(off, n int64) ([]byte, error) {
	if off < w.off || off+n > w.off+int64(len(w.buf)) {
		if w.buf == nil {
			w.buf = make([]byte, 0, min(w.size, defaultBlockSize))
		}
		w.off, w.buf = off, w.buf[:min(w.size-off, defaultBlockSize)]
		if err := readFull(w.file, w.buf, off); err != nil {
			w.buf = w.buf[:0]
			return nil, fmt.Errorf("wal: read %s: %w", w.path, err)
		}
	}
	return w.buf[off-w.off:][:n], nil
}

// record looks for a record at off. It returns its size, and of an internal record
// the beginning of the payload, which may name a segment. If reason is not empty
// there is no valid record.
func (w *window) record(seed uint32, off int64) (size int64, internal []byte, reason string, err error) {
	b, err := w.at(off, min(w.size-off, recordHeader))
	if err != nil {
		return 0, nil, "", err
	}
	if size, reason = frame(b, w.size-off); reason == "" {
		reason = checkHeader(b, seed, off)
	}
	if reason != "" {
		return 0, nil, reason, nil
	}
	n, isInternal := recordLength(b)
	sum := payloadChecksum(b)
	for from, end := off+recordHeader, off+recordHeader+int64(n); from < end; {
		p, err := w.at(from, min(end-from, defaultBlockSize))
		if err != nil {
			return 0, nil, "", err
		}
		sum.add(p)
		if isInternal && from == off+recordHeader {
			internal = append(internal, p[:min(len(p), pointer)]...)
		}
		from += int64(len(p))
	}
	if !sum.right() {
		return 0, nil, badChecksum, nil
	}
	return size, internal, "", nil
}

// payload returns the payload of the record at off, which is valid, and whether that is a
// fragment.
func (w *window) payload(off int64) (p []byte, fragment bool, err error) {
	b, err := w.at(off, recordHeader)
	if err != nil {
		return nil, false, err
	}
	n, _ := recordLength(b)
	p, fragment = make([]byte, n), isFragment(b)
	if err := readFull(w.file, p, off+recordHeader); err != nil {
		return nil, false, fmt.Errorf("wal: read %s: %w", w.path, err)
	}
	return p, fragment, nil
}

// forget lets the window read again what it has read before.
func (w *window) forget() { w.buf = w.buf[:0] }

// findProof looks after x, where there is no valid record, for a record that was
// written when x was known to be durable. It returns its offset, or 0. From end on
// all bytes are 0.
func (w *window) findProof(seed uint32, x, end int64) (int64, error) {
	for at := x + alignment; at < end && at+recordHeader <= w.size; at += alignment {
		b, err := w.at(at, recordHeader)
		if err != nil {
			return 0, err
		}
		if synced := recordSynced(b); synced <= x || synced > at {
			continue
		}
		switch _, _, reason, err := w.record(seed, at); {
		case err != nil:
			return 0, err
		case reason == "":
			return at, nil
		}
	}
	return 0, nil
}

// countRecords counts the valid records and fragments that begin between two offsets, except
// internal ones.
func (w *window) countRecords(seed uint32, from, end int64) (n int, err error) {
	for at := from; at < end; {
		size, internal, reason, err := w.record(seed, at)
		switch {
		case err != nil:
			return 0, err
		case reason != "":
			at += alignment
			continue
		case internal == nil:
			n++
		}
		at += size
	}
	return n, nil
}

// next returns the sequence that is written after the closing record which ends at
// end, or 0.
func (w *window) next(seed uint32, end int64) (uint64, error) {
	if end+nextSize > w.size {
		return 0, nil
	}
	_, payload, reason, err := w.record(seed, end)
	if err != nil || reason != "" {
		return 0, err
	}
	return pointee(kindNext, payload), nil
}

// lastNonZero returns the offset of the last byte from an offset on that is not
// 0, or -1 if there is none.
func (w *window) lastNonZero(from int64) (int64, error) {
	for end := w.size; end > from; {
		start := max(from, end-defaultBlockSize)
		b, err := w.at(start, end-start)
		if err != nil {
			return 0, err
		}
		if i := lastNonZeroByte(b); i >= 0 {
			return start + int64(i), nil
		}
		end = start
	}
	return -1, nil
}

// lastNonZeroByte returns the index of the last byte that is not 0, or -1. It compares
// eight at a time: a killed server that had many jobs leaves tens of megabytes of
// preallocated zeros.
func lastNonZeroByte(b []byte) int {
	for len(b) >= 8 && binary.LittleEndian.Uint64(b[len(b)-8:]) == 0 {
		b = b[:len(b)-8]
	}
	for len(b) > 0 && b[len(b)-1] == 0 {
		b = b[:len(b)-1]
	}
	return len(b) - 1
}

// readFull reads len(b) bytes. An end of the file before them is an error.
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
