package wal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// Copy copies a log to an empty directory, even while another process writes the log. The
// names of the files are not durable, and only a reader of the copy can detect whether it
// is complete. The copy has the same content as [Log.Files].
//
// If the other process removes a file during the copy, the error of Copy, or of reading
// the copy, wraps fs.ErrNotExist or is a [*CorruptError]. Copy can then be called again.
func Copy(fsys vfs.FS, dir, to string) error {
	files, err := scanFiles(fsys, dir)
	if err != nil {
		return err
	}
	return files.Each(func(name string, _ int64, content io.Reader) error {
		return WriteFile(fsys, filepath.Join(to, name), content)
	})
}

// WriteFile writes the copy of a log file and makes its content durable piece by piece.
// So a sync of another file on the same disk waits for at most one piece.
func WriteFile(fsys vfs.FS, path string, content io.Reader) error {
	out, err := fsys.Create(path)
	if err != nil {
		return err
	}
	to, buf := io.NewOffsetWriter(out, 0), make([]byte, defaultBlockSize)
	for n := int64(syncedPiece); err == nil && n == syncedPiece; {
		if n, err = io.CopyBuffer(to, io.LimitReader(content, syncedPiece), buf); err == nil {
			err = out.Sync()
		}
	}
	return errors.Join(err, out.Close())
}

// syncedPiece is the number of bytes of a copy that are written between two syncs.
const syncedPiece = 1 << 20

// Files are the segments of a log during a copy. The log does not remove them before
// Close.
type Files struct {
	fs       vfs.FS
	segments []segmentInfo
	at       int64  // end of the records of the last segment
	end      []byte // the bytes that the copy has after these records
	release  func() // nil if another process writes the log
}

// Files returns the segments of the log for a copy, while the owner uses the log. The log
// removes no segment before Close. The segments contain all records that were flushed
// before the call, and possibly some later ones. Any goroutine can call it.
func (l *Log) Files() (*Files, error) {
	release := l.pool.removals.pin()
	s, err := scanFiles(l.fs, l.dir)
	if err != nil {
		release()
		return nil, err
	}
	s.release = release
	return s, nil
}

// scanFiles finds the segments of a log, and the end of the last one, which grows.
func scanFiles(fsys vfs.FS, dir string) (*Files, error) {
	l, err := Open(fsys, dir, Options{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	s := &Files{fs: fsys, segments: l.recovery.segments}
	last := l.recovery.last()
	if last == nil {
		return s, nil
	}
	file, err := fsys.Open(last.path)
	if err == nil {
		s.at, s.end, err = endOf(file, last)
		file.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("wal: copy %s: %w", last.path, err)
	}
	return s, nil
}

// Close lets the log remove segments again.
func (s *Files) Close() { s.release() }

// Len returns the number of files.
func (s *Files) Len() int { return len(s.segments) }

// Each calls f for each file, with its length in bytes. The newest file ends as if the
// log had been closed. Each file ends with its last record, because the log can truncate
// the rest at any time.
func (s *Files) Each(f func(name string, size int64, content io.Reader) error) error {
	for i := range s.segments {
		if err := s.each(i, f); err != nil {
			return fmt.Errorf("wal: copy %s: %w", s.segments[i].path, err)
		}
	}
	return nil
}

func (s *Files) each(i int, f func(name string, size int64, content io.Reader) error) error {
	segment := &s.segments[i]
	file, err := s.fs.Open(segment.path)
	if err != nil {
		return err
	}
	defer file.Close()
	at, end := s.at, s.end
	if i < len(s.segments)-1 {
		at, end = segment.end, nil
	}
	content := io.MultiReader(io.NewSectionReader(file, 0, at), bytes.NewReader(end))
	return f(filepath.Base(segment.path), at+int64(len(end)), content)
}

// endOf finds the end of the valid records of a segment, and returns the bytes that a
// copy has after it: a closing record, unless the segment has one.
func endOf(from vfs.File, f *segmentInfo) (at int64, end []byte, err error) {
	size, _, err := from.Stat()
	if err != nil {
		return 0, nil, err
	}
	seed, closed := f.seed(), false
	w := window{file: from, path: f.path, size: size}
	for at = headerSize; !closed; {
		rec, reason, err := w.record(seed, at)
		if errors.Is(err, io.ErrUnexpectedEOF) {
			if shorter, _, e := from.Stat(); e == nil && shorter < w.size {
				w.size = shorter // the file was truncated to its records, because it is full
				continue
			}
		}
		if err != nil {
			return 0, nil, err
		}
		if reason != "" {
			break
		}
		internal := internalOf(rec)
		closed = internal != nil && internal[0] == kindClosing
		at += int64(len(rec))
	}
	if !closed {
		end = appendRecord(nil, seed, at, at, 1|internalBit, []byte{kindClosing})
	}
	return at, end, nil
}
