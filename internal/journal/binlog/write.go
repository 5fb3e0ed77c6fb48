package binlog

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/vfs"
)

const defaultFileSize = 10 << 20 // bytes; beanstalkd's -s

// A Summary is the result of Write.
type Summary struct {
	Files int
	Jobs  int

	// MaxBody is the size of the largest body in bytes. beanstalkd must be
	// started with a -z of at least MaxBody + 2 (its default is 65535), or it
	// skips that job and the rest of its file.
	MaxBody int
}

// Write writes the jobs of an engine to files binlog.1, binlog.2, ... of version 7, with
// which beanstalkd can start, and makes them durable. The directory must exist and
// contain no such files. After an error it can contain some of them. Write omits pauses,
// because beanstalkd does not store them.
//
// beanstalkd orders buried jobs by their records, so Write writes them first, sorted.
// When beanstalkd starts, it increments the buries of each, so Write decrements them. Its
// next id follows the highest id in a full record. Therefore Write adds a job with the
// last id, and its deletion, if that job no longer exists.
func Write(fsys vfs.FS, dir string, opt Options, eng *engine.Engine) (Summary, error) {
	w := writer{fs: fsys, dir: dir, epoch: opt.Epoch, fileSize: cmp.Or(opt.FileSize, defaultFileSize)}
	if err := w.writeAll(eng); err != nil {
		return Summary{}, fmt.Errorf("binlog: write to %s: %w", dir, err)
	}
	return w.sum, nil
}

// A writer is the state of Write.
type writer struct {
	fs       vfs.FS
	dir      string
	epoch    int64
	fileSize int64 // bytes
	sum      Summary

	// file is the current file, or nil.
	file vfs.File
	out  *bufio.Writer // keeps its first error until Flush
	at   int64         // number of bytes written to it
	head []byte        // scratch for a record without its body
}

func (w *writer) writeAll(eng *engine.Engine) error {
	type ranked struct {
		rank int64
		id   uint64
	}
	var buried []ranked
	top := uint64(0)
	for c := range eng.Snapshots {
		top = max(top, c.ID)
		if c.State == engine.Buried {
			buried = append(buried, ranked{c.Due, c.ID})
		}
	}
	slices.SortFunc(buried, func(a, b ranked) int { return cmp.Compare(a.rank, b.rank) })
	for _, b := range buried {
		c, _ := eng.Snapshot(b.id)
		if err := w.put(&c); err != nil {
			return err
		}
	}
	for c := range eng.Snapshots {
		if c.State != engine.Buried {
			if err := w.put(&c); err != nil {
				return err
			}
		}
	}
	if last := eng.LastID(); last > top {
		if err := w.putLastID(last); err != nil {
			return err
		}
	}
	if err := w.finishFile(); err != nil {
		return err
	}
	return w.fs.SyncDir(w.dir)
}

// put writes a job as a full record.
func (w *writer) put(c *engine.Change) error {
	j := jobOf(c, w.epoch)
	w.head = appendRecord(w.head[:0], c.Tube, &j)
	if err := w.write(w.head, c.Body, []byte(bodyEnd)); err != nil {
		return err
	}
	w.sum.Jobs++
	w.sum.MaxBody = max(w.sum.MaxBody, len(c.Body))
	return nil
}

// putLastID writes a deleted job with the last id. It must come last, because beanstalkd
// removes the oldest files first.
func (w *writer) putLastID(id uint64) error {
	j := job{id: id, ttr: 1, size: len(bodyEnd), state: stateReady}
	full := append(appendRecord(nil, engine.DefaultTube, &j), bodyEnd...)
	j.state = stateDeleted
	return w.write(appendRecord(full, "", &j))
}

// write writes the parts of a record, in a new file if they do not fit into the current
// file.
func (w *writer) write(parts ...[]byte) error {
	n := int64(0)
	for _, p := range parts {
		n += int64(len(p))
	}
	if w.file == nil || w.at+n > w.fileSize {
		if err := w.nextFile(); err != nil {
			return err
		}
	}
	w.at += n
	for _, p := range parts {
		w.out.Write(p)
	}
	return nil
}

// nextFile finishes the current file and creates the next one.
func (w *writer) nextFile() error {
	if err := w.finishFile(); err != nil {
		return err
	}
	f, err := w.fs.Create(filepath.Join(w.dir, fileName(w.sum.Files+1)))
	if err != nil {
		return err
	}
	w.sum.Files++
	w.file, w.at = f, headerSize
	w.out = bufio.NewWriterSize(io.NewOffsetWriter(f, 0), 1<<20)
	w.out.Write(le.AppendUint32(nil, version))
	return nil
}

// finishFile makes the current file durable and closes it.
func (w *writer) finishFile() error {
	if w.file == nil {
		return nil
	}
	if err := cmp.Or(w.out.Flush(), w.file.Sync()); err != nil {
		return err
	}
	f := w.file
	w.file = nil
	return f.Close()
}
