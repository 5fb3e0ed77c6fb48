package wal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// Copy copies a log, which another process may be writing, to an empty directory. The
// names of the files are not durable, and whether the copy is whole only reading it
// shows. It ends as if the log had been closed; see OpenFiles.
//
// If the other process has removed a file before all were open, the error, or that of
// reading the copy, wraps fs.ErrNotExist or is a [*CorruptError], and Copy can be called
// again.
func Copy(fsys vfs.FS, dir, to string) error {
	files, err := OpenFiles(fsys, dir, 0)
	if err != nil {
		return err
	}
	defer files.Close()
	return files.Each(func(name string, _ int64, content io.Reader) error {
		return WriteFile(fsys, filepath.Join(to, name), content)
	})
}

// WriteFile writes the copy of a file of a log, and makes its content durable, one piece
// after the other: a sync of another file on the same disk waits for one of them at most.
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

// syncedPiece is how many bytes of a copy are written between two syncs.
const syncedPiece = 1 << 20

// Files are the segments of a log, open to be copied. It does not matter any more when
// the process that writes the log removes one, which then takes its room until Close.
type Files struct {
	segments []found
	open     []vfs.File // in the same order
	at       int64      // the end of the records of the last one
	end      []byte     // what its copy has after them
}

// ErrTooMany is the error of OpenFiles for a log of more files than it may open.
var ErrTooMany = errors.New("wal: too many files to open them all")

// OpenFiles opens the files of a log, at most so many; 0: all. They end with what was
// flushed before the call, and with the beginning of what is flushed while it lasts. See
// Copy for its errors.
func OpenFiles(fsys vfs.FS, dir string, most int) (*Files, error) {
	l, err := Open(fsys, dir, Options{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	files := &Files{segments: l.scan.segments}
	if most > 0 && len(files.segments) > most {
		return nil, ErrTooMany
	}
	for i := range files.segments {
		f, err := fsys.Open(files.segments[i].path)
		if err != nil {
			files.Close()
			return nil, fmt.Errorf("wal: copy: %w", err)
		}
		files.open = append(files.open, f)
	}
	if last := len(files.open) - 1; last >= 0 { // it grows
		if files.at, files.end, err = endOf(files.open[last], &files.segments[last]); err != nil {
			files.Close()
			return nil, fmt.Errorf("wal: copy %s: %w", files.segments[last].path, err)
		}
	}
	return files, nil
}

// Close closes the files.
func (s *Files) Close() {
	for _, f := range s.open {
		f.Close()
	}
}

// Len returns how many files there are.
func (s *Files) Len() int { return len(s.segments) }

// Each calls f for each file, with its length in bytes. The newest file ends as if the
// log had been closed. Others have nothing after their end either: the file may lose what
// is there while it is read.
func (s *Files) Each(f func(name string, size int64, content io.Reader) error) error {
	for i, file := range s.open {
		at, end, err := s.at, s.end, error(nil)
		if i < len(s.open)-1 {
			at, end = s.segments[i].end, make([]byte, nextSize)
			err = readNext(file, end, at)
		}
		if err == nil {
			content := io.MultiReader(io.NewSectionReader(file, 0, at), bytes.NewReader(end))
			err = f(filepath.Base(s.segments[i].path), at+int64(len(end)), content)
		}
		if err != nil {
			return fmt.Errorf("wal: copy %s: %w", s.segments[i].path, err)
		}
	}
	return nil
}

// readNext reads the name of the next segment, if it is there yet.
func readNext(file vfs.File, b []byte, at int64) error {
	n, err := file.ReadAt(b, at)
	if errors.Is(err, io.EOF) {
		clear(b[n:])
		return nil
	}
	return err
}

// endOf finds the end of the valid records of a segment, and returns what a copy has
// after it: a closing record, unless the segment has one, and no name of a next segment.
func endOf(from vfs.File, f *found) (at int64, end []byte, err error) {
	size, err := from.Size()
	if err != nil {
		return 0, nil, err
	}
	seed, closed := f.seed(), false
	at = headerSize
	w := window{file: from, path: f.path, size: size}
	for more := true; more && !closed; {
		buf, reason, err := w.records(at, w.size, defaultBlockSize)
		if shorter, e := from.Size(); errors.Is(err, io.ErrUnexpectedEOF) && e == nil && shorter < w.size {
			w.size = shorter // it was cut to its records, because it is full
			continue
		}
		if err != nil {
			return 0, nil, err
		}
		valid := int64(0)
		for valid < int64(len(buf)) && !closed && check(buf[valid:], seed, at+valid) == "" {
			n, internal := recordLength(buf[valid:])
			closed = internal && payloadOf(buf[valid:])[0] == kindClosing
			valid += Cost(n)
		}
		more = reason == "" && valid == int64(len(buf)) && at+valid < w.size
		at += valid
	}
	end = make([]byte, 0, endSize)
	if !closed {
		end = appendRecord(end, seed, at, at, 1|internalBit, []byte{kindClosing})
	}
	return at, append(end, make([]byte, nextSize)...), nil
}
