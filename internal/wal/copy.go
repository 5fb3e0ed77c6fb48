package wal

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// Copy copies a log, which another process may be writing, to an empty directory, and
// reads the copy to see that it is whole. The copy ends as if the log had been closed: all
// that was flushed before the call is in it, and of what was flushed meanwhile the
// beginning.
//
// First all files are opened, so that it does not matter when the other process removes
// one. If that has happened before, the error wraps fs.ErrNotExist or is a
// [*CorruptError], and Copy can be called again.
func Copy(fsys vfs.FS, dir, to string) (Report, error) {
	l, err := Open(fsys, dir, Options{ReadOnly: true})
	if err != nil {
		return Report{}, err
	}
	var files []vfs.File
	defer func() {
		for _, f := range files {
			f.Close()
		}
	}()
	segments := l.scan.segments
	for i := range segments {
		f, err := fsys.Open(segments[i].path)
		if err != nil {
			return Report{}, fmt.Errorf("wal: copy: %w", err)
		}
		files = append(files, f)
	}
	for i := len(segments) - 1; i >= 0; i-- { // the last one grows
		if err := copySegment(fsys, files[i], &segments[i], to, i == len(segments)-1); err != nil {
			return Report{}, fmt.Errorf("wal: copy %s: %w", segments[i].path, err)
		}
	}
	if err := fsys.SyncDir(to); err != nil {
		return Report{}, fmt.Errorf("wal: copy: %w", err)
	}
	copied, err := Open(fsys, to, Options{ReadOnly: true})
	if err != nil {
		return Report{}, err
	}
	nothing := func(r []Record) (int, error) { return 0, nil }
	return Replay(copied, nothing, func(int) error { return nil })
}

// copySegment copies a segment: the last one up to its last record, which a closing
// record follows.
func copySegment(fsys vfs.FS, from vfs.File, f *found, to string, isLast bool) error {
	out, err := fsys.Create(filepath.Join(to, filepath.Base(f.path)))
	if err != nil {
		return err
	}
	size, err := from.Size()
	if err == nil && isLast {
		err = copyRecords(from, out, f, size)
	} else if err == nil {
		err = copyBytes(from, out, 0, size)
	}
	if err == nil {
		err = out.Sync()
	}
	return errors.Join(err, out.Close())
}

func copyBytes(from, to vfs.File, at, end int64) error {
	buf := make([]byte, min(end-at, defaultBlockSize))
	for at < end {
		b := buf[:min(end-at, int64(len(buf)))]
		if err := readFull(from, b, at); err != nil {
			return err
		}
		if _, err := to.WriteAt(b, at); err != nil {
			return err
		}
		at += int64(len(b))
	}
	return nil
}

// copyRecords copies header and valid records of a segment, and ends the copy with a
// closing record.
func copyRecords(from, to vfs.File, f *found, size int64) error {
	if err := copyBytes(from, to, 0, headerSize); err != nil {
		return err
	}
	seed, at, closed := f.seed(), int64(headerSize), false
	for buf, more := []byte(nil), true; more && !closed; {
		var reason string
		var err error
		if buf, reason, err = readRecords(from, buf, at, size, defaultBlockSize); err != nil {
			return err
		}
		valid := int64(0)
		for valid < int64(len(buf)) && !closed && check(buf[valid:], seed, at+valid) == "" {
			n, internal := recordLength(buf[valid:])
			closed = internal && payloadOf(buf[valid:])[0] == kindClosing
			valid += Cost(n)
		}
		more = reason == "" && valid == int64(len(buf)) && at+valid < size
		if _, err := to.WriteAt(buf[:valid], at); err != nil {
			return err
		}
		at += valid
	}
	end := make([]byte, 0, endSize)
	if !closed {
		end = appendRecord(end, seed, at, at, 1|internalBit, []byte{kindClosing})
	}
	end = append(end, make([]byte, nextSize)...)
	_, err := to.WriteAt(end, at)
	return err
}
