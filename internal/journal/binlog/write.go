package binlog

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"math"
	"path/filepath"
	"slices"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/vfs"
)

const (
	defaultFileSize = 10 << 20 // bytes; beanstalkd's -s

	// defaultWindow is how many bytes of buried jobs are held at a time.
	defaultWindow = 64 << 20
)

// A Summary says what Write has written.
type Summary struct {
	Files int
	Bytes int64
	Jobs  int

	// MaxBody is the size of the largest body in bytes. beanstalkd must be
	// started with a -z of at least MaxBody + 2 (its default is 65535), or it
	// skips that job and the rest of its file.
	MaxBody int
}

// Write writes files binlog.1, binlog.2, ... of version 7, with which beanstalkd can
// start, and makes them durable. The directory must exist and have no such files.
//
// changes is a snapshot: a JobPut for each job, in any order, and a LastID
// (engine.Snapshots and engine.LastID). Write iterates over it several times, and it must
// yield the same each time. Write leaves out a TubePaused, because beanstalkd does not
// store pauses; other kinds are errors. A body must not be larger than 1073741822 bytes,
// beanstalkd's largest -z less 2.
//
// beanstalkd gives buried jobs the order of their records, so they come first, sorted. It
// counts a burying for each of them when it starts, so they are written with one less.
// Its next id follows the highest that it finds in a full record, so Write adds a job
// with the last id, and its deletion, if that job does not exist any more.
//
// If Write fails it tries to remove the files that it made.
func Write(fsys vfs.FS, dir string, opt Options, changes iter.Seq[engine.Change]) (Summary, error) {
	w := writer{
		fs:       fsys,
		dir:      dir,
		epoch:    opt.Epoch,
		fileSize: cmp.Or(opt.FileSize, defaultFileSize),
		window:   defaultWindow,
	}
	return w.write(changes)
}

// A writer is the state of Write.
type writer struct {
	fs       vfs.FS
	dir      string
	epoch    int64
	fileSize int64 // bytes
	window   int64 // bytes

	sum    Summary
	jobs   int         // in the snapshot
	lastID uint64      // highest in the snapshot
	top    uint64      // highest of a job
	buried []buriedJob // sorted by rank

	// The current file, or nil.
	file vfs.File
	at   int64  // bytes written to it
	buf  []byte // bytes that follow
}

// A buriedJob stands for a job until its turn comes.
type buriedJob struct {
	rank int64
	id   uint64
	size int64 // bytes
}

func (w *writer) write(changes iter.Seq[engine.Change]) (Summary, error) {
	if err := w.checkDir(); err != nil {
		return Summary{}, err
	}
	err := w.survey(changes)
	if err == nil {
		err = w.writeAll(changes)
	}
	if err != nil {
		return Summary{}, errors.Join(fmt.Errorf("binlog: write to %s: %w", w.dir, err), w.undo())
	}
	return w.sum, nil
}

func (w *writer) checkDir() error {
	names, err := Files(w.fs, w.dir)
	if err == nil && len(names) > 0 {
		err = fmt.Errorf("binlog: %s has %s already: %w", w.dir, names[0], fs.ErrExist)
	}
	return err
}

// survey checks the snapshot and lists the buried jobs.
func (w *writer) survey(changes iter.Seq[engine.Change]) error {
	for c := range changes {
		switch c.Kind {
		case engine.JobPut:
			if err := checkJob(&c); err != nil {
				return err
			}
			w.jobs++
			w.top = max(w.top, c.ID)
			if c.State == engine.Buried {
				w.buried = append(w.buried, buriedJob{c.Due, c.ID, int64(len(c.Body))})
			}
		case engine.LastID:
			if c.ID == math.MaxUint64 {
				return fmt.Errorf("no id can follow %d", c.ID)
			}
			w.lastID = max(w.lastID, c.ID)
		case engine.TubePaused:
		default:
			return fmt.Errorf("a change of kind %d is no part of a snapshot", c.Kind)
		}
	}
	slices.SortFunc(w.buried, func(a, b buriedJob) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.id, b.id))
	})
	return nil
}

// checkJob reports what would make beanstalkd, or Read, refuse a record.
func checkJob(c *engine.Change) error {
	switch {
	case c.ID == 0 || c.ID == math.MaxUint64:
		return fmt.Errorf("%d cannot be the id of a job", c.ID)
	case !validTube(c.Tube):
		return fmt.Errorf("job %d: %q cannot be the name of a tube", c.ID, c.Tube)
	case len(c.Body) > maxBody-len(bodyEnd):
		return fmt.Errorf("job %d: its body of %d bytes is larger than beanstalkd can read, which is %d",
			c.ID, len(c.Body), maxBody-len(bodyEnd))
	case c.State < engine.Ready || c.State > engine.Buried:
		return fmt.Errorf("job %d: there is no state %d", c.ID, c.State)
	}
	return nil
}

func (w *writer) writeAll(changes iter.Seq[engine.Change]) error {
	for len(w.buried) > 0 {
		if err := w.writeBuried(changes); err != nil {
			return err
		}
	}
	for c := range changes {
		if c.Kind == engine.JobPut && c.State != engine.Buried {
			if err := w.put(&c); err != nil {
				return err
			}
		}
	}
	if w.sum.Jobs != w.jobs {
		return fmt.Errorf("the snapshot had %d jobs, then %d: it must stay the same", w.jobs, w.sum.Jobs)
	}
	if w.lastID > w.top {
		if err := w.putLastID(); err != nil {
			return err
		}
	}
	if err := w.finishFile(); err != nil {
		return err
	}
	return w.fs.SyncDir(w.dir)
}

// writeBuried writes the next window of buried jobs. Bodies come in the order of the
// snapshot, so it collects as many as may be in memory, and iterates over the snapshot
// again for the rest.
func (w *writer) writeBuried(changes iter.Seq[engine.Change]) error {
	n, size := 0, int64(0)
	for n < len(w.buried) && (n == 0 || size+w.buried[n].size <= w.window) {
		size += w.buried[n].size
		n++
	}
	place := make(map[uint64]int, n)
	for i, b := range w.buried[:n] {
		place[b.id] = i
	}
	held := make([]engine.Change, n)
	for c := range changes {
		if i, ok := place[c.ID]; ok && c.Kind == engine.JobPut {
			c.Body = bytes.Clone(c.Body)
			held[i] = c
		}
	}
	for i := range held {
		if held[i].ID != w.buried[i].id || held[i].State != engine.Buried {
			return fmt.Errorf("job %d: the snapshot changes while it is written", w.buried[i].id)
		}
		if err := w.put(&held[i]); err != nil {
			return err
		}
	}
	w.buried = w.buried[n:]
	return nil
}

// put writes a job as a full record.
func (w *writer) put(c *engine.Change) error {
	j := jobOf(c, w.epoch)
	if err := w.room(version7.lenSize + len(c.Tube) + version7.jobSize + j.size); err != nil {
		return err
	}
	w.buf = appendFull(w.buf, c.Tube, &j)
	if err := w.body(c.Body); err != nil {
		return err
	}
	w.sum.Jobs++
	w.sum.MaxBody = max(w.sum.MaxBody, len(c.Body))
	return nil
}

// putLastID writes a deleted job with the last id. It comes last because beanstalkd
// removes the oldest files first.
func (w *writer) putLastID() error {
	j := job{id: w.lastID, ttr: 1, size: len(bodyEnd), state: stateReady}
	full := appendFull(nil, engine.DefaultTube, &j)
	full = append(full, bodyEnd...)
	j.state = stateDeleted
	both := appendShort(full, &j)
	if err := w.room(len(both)); err != nil {
		return err
	}
	w.buf = append(w.buf, both...)
	return nil
}

// body writes a body and its end. A large body is not copied to the buffer.
func (w *writer) body(b []byte) error {
	if len(b) > chunk {
		if err := w.flush(); err != nil {
			return err
		}
		if err := w.writeOut(b); err != nil {
			return err
		}
		b = nil
	}
	w.buf = append(append(w.buf, b...), bodyEnd...)
	if len(w.buf) < chunk {
		return nil
	}
	return w.flush()
}

// room begins a new file if the current one has no room for a record of n bytes.
func (w *writer) room(n int) error {
	used := w.at + int64(len(w.buf))
	if w.file != nil && used+int64(n) <= w.fileSize {
		return nil
	}
	if err := w.finishFile(); err != nil {
		return err
	}
	f, err := w.fs.Create(w.fileName(w.sum.Files + 1))
	if err != nil {
		return err
	}
	w.sum.Files++
	w.file, w.at = f, 0
	w.buf = le.AppendUint32(w.buf[:0], uint32(version7.version))
	return nil
}

func (w *writer) fileName(num int) string { return filepath.Join(w.dir, fileName(num)) }

func (w *writer) flush() error {
	err := w.writeOut(w.buf)
	w.buf = w.buf[:0]
	return err
}

func (w *writer) writeOut(b []byte) error {
	n, err := w.file.WriteAt(b, w.at)
	w.at += int64(n)
	w.sum.Bytes += int64(n)
	return err
}

// finishFile makes the current file durable and closes it.
func (w *writer) finishFile() error {
	if w.file == nil {
		return nil
	}
	if err := w.flush(); err != nil {
		return err
	}
	if err := w.file.Sync(); err != nil {
		return err
	}
	f := w.file
	w.file = nil
	return f.Close()
}

// undo removes what was written.
func (w *writer) undo() error {
	var errs []error
	if w.file != nil {
		errs = append(errs, w.file.Close())
	}
	for n := range w.sum.Files {
		errs = append(errs, w.fs.Remove(w.fileName(n+1)))
	}
	return errors.Join(errs...)
}
