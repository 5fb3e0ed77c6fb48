package wal

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"slices"

	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// A scan is what Open knows of a log that Replay has not read yet.
type scan struct {
	pool     *pool
	readOnly bool

	segments []found // that count, oldest first; empty in a new log
	remove   []found // segments that are not needed, and files without records: preallocated segments, if they are usable
	torn     []found // segments whose first write was torn: to be checked, then removed
	oldest   uint64  // sequence of the oldest segment that is needed; 0: not known yet
	gap      error   // the log is damaged in this way if a segment before the first one is needed
}

// A found is a segment file in the directory.
type found struct {
	sequence uint64
	path     string
	size     int64

	header    header
	headerErr error // nil or errNoHeader

	link   link
	linked bool // the link is valid

	end    int64 // of the records, as the next segment says; in the last one, the size
	closed bool  // what ends there is a closing record
}

func (f *found) seed() uint32 { return f.header.seed() }

// isShort reports whether the file is shorter than it was made. Only a sealed segment
// may be.
func (f *found) isShort() bool { return f.headerErr == nil && f.size < f.header.size }

// Open opens the log in a directory, which must exist; a directory without segments is
// a new log. It locks the log and finds its segments, but reads no records: call
// [Replay] next.
//
// If the log is open already, the error wraps vfs.ErrLocked. If a segment is missing or
// the beginning of one is damaged, it is a [*CorruptError].
func Open(fsys vfs.FS, dir string, opt Options) (*Log, error) {
	l := &Log{fs: fsys, dir: dir, opt: opt, pool: pool{mu: vfs.NewWorkLock()}}
	if !opt.ReadOnly {
		lock, err := fsys.Lock(lockName(dir))
		if err != nil {
			return nil, fmt.Errorf("wal: %w", err)
		}
		l.lock = lock
	}
	err := l.start()
	if err == nil && !opt.ReadOnly {
		err = probe(fsys, dir)
	}
	if err != nil {
		if l.lock != nil {
			l.lock.Close()
		}
		return nil, err
	}
	return l, nil
}

// probe returns an error if no file may be made in the directory: preallocated segments
// may last for long before that shows. A full disk is no error.
func probe(fsys vfs.FS, dir string) error {
	name := filepath.Join(dir, "beanpole.probe")
	f, err := fsys.Create(name)
	if err == nil {
		f.Close()
		err = fsys.Remove(name)
	}
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("wal: %w", err)
	}
	return nil
}

func (l *Log) start() error {
	files, err := findSegments(l.fs, l.dir)
	if err != nil {
		return err
	}
	l.pool.fs, l.pool.dir = l.fs, l.dir
	id := cmp.Or(l.opt.LogID, rand.Uint64()) // #nosec G404 -- a name, no secret
	l.scan = &scan{pool: &l.pool, readOnly: l.opt.ReadOnly}
	if err := l.scan.chain(files); err != nil {
		return err
	}
	// The names of files that Replay will remove do not count.
	var next uint64 = 1
	if last := l.scan.last(); last != nil {
		id, next = last.header.log, last.sequence+1
	}
	size := cmp.Or(l.opt.SegmentSize, DefaultSegmentSize)
	l.pool.log, l.pool.created, l.pool.next = id, l.opt.Created, next
	l.pool.size = (min(max(size, MinSegmentSize), MaxSegmentSize) + alignment - 1) &^ (alignment - 1)
	return nil
}

// findSegments reads the beginnings of all segment files, in the order of their
// sequences. What has the name of one and is no regular file is an error.
func findSegments(fsys vfs.FS, dir string) (files []found, err error) {
	names, err := fsys.List(dir)
	if err != nil {
		return nil, fmt.Errorf("wal: %w", err)
	}
	for _, name := range names {
		sequence, ok := parseName(name)
		if !ok {
			continue
		}
		f := found{sequence: sequence, path: filepath.Join(dir, name)}
		if sequence > MaxSequence {
			return nil, f.corrupt(0, "the number in the file's name is too large for a segment, the largest is %x: move the file away", uint64(MaxSequence))
		}
		switch err := f.read(fsys); {
		case err != nil:
			return nil, fmt.Errorf("wal: %w", err)
		case errors.Is(f.headerErr, ErrVersion):
			return nil, fmt.Errorf("wal: %s: %w", f.path, f.headerErr)
		default:
			files = append(files, f)
		}
	}
	slices.SortFunc(files, func(a, b found) int { return Pos{a.sequence, 0}.Compare(Pos{b.sequence, 0}) })
	return files, nil
}

// read reads header and link.
func (f *found) read(fsys vfs.FS) error {
	file, err := fsys.Open(f.path)
	if err != nil {
		return err
	}
	defer file.Close()
	if f.size, err = file.Size(); err != nil {
		return err
	}
	b := make([]byte, min(f.size, firstRecord))
	if err := readFull(file, b, 0); err != nil {
		return err
	}
	f.header, f.headerErr = decodeHeader(b)
	if len(b) > headerSize {
		f.link, f.linked = decodeLink(b[headerSize:], f.sequence)
	}
	return nil
}

func (f *found) corrupt(off int64, format string, args ...any) error {
	return &CorruptError{f.path, off, fmt.Sprintf(format, args...)}
}

// chain follows the links from the last segment to the oldest.
func (sc *scan) chain(files []found) error {
	last := len(files) - 1
	for ; last >= 0 && !files[last].linked; last-- {
		if err := sc.unlinked(files[last]); err != nil {
			return err
		}
	}
	if last < 0 {
		return nil
	}
	files[last].end = files[last].size
	log, i := files[last].header.log, last
	for {
		cur := &files[i]
		if err := cur.check(); err != nil {
			return err
		}
		if cur.header.log != log {
			return cur.corrupt(0, "the segment belongs to another log than %s", filepath.Base(files[last].path))
		}
		sc.segments = append(sc.segments, *cur)
		sc.oldest = max(sc.oldest, cur.link.oldest)
		prev := cur.link.prev
		for i--; i >= 0 && files[i].sequence > prev.Segment; i-- {
			if err := sc.void(&files[i], log); err != nil {
				return err
			}
		}
		if prev.Segment < sc.oldest {
			break
		}
		if i < 0 {
			break
		}
		if files[i].sequence != prev.Segment {
			sc.gap = cur.corrupt(headerSize, "the segment before, %s, is missing, but older ones are there", FileName(prev.Segment))
			break
		}
		files[i].end = prev.Offset
	}
	slices.Reverse(sc.segments)
	for _, f := range files[:i+1] { // a process that was killed had no time to remove them
		if f.isOf(log) && f.sequence < sc.oldest {
			sc.remove = append(sc.remove, f)
		}
	}
	return nil
}

// isOf reports whether the file is a segment of a log.
func (f *found) isOf(log uint64) bool {
	return f.headerErr == nil && f.header.log == log && f.header.sequence == f.sequence
}

// void notes a segment that a link jumps over. A file without records could not be opened
// when its turn came; it is removed.
// A segment of another log is left alone.
func (sc *scan) void(f *found, log uint64) error {
	blank, err := isZero(sc.pool.fs, f.path, headerSize)
	switch {
	case err != nil:
		return err
	case blank:
		sc.remove = append(sc.remove, *f)
	case f.isOf(log):
		f.end = 0
		sc.segments = append(sc.segments, *f)
	}
	return nil
}

// checkHeader returns what is wrong with the header, or nil.
func (f *found) checkHeader() error {
	switch {
	case f.headerErr != nil:
		return f.corrupt(0, "%v", f.headerErr)
	case f.header.sequence != f.sequence:
		return f.corrupt(0, "the file was renamed, or is a copy: it is %s", FileName(f.header.sequence))
	}
	return nil
}

// check returns what is wrong with the beginning of a segment that counts, or nil.
func (f *found) check() error {
	if err := f.checkHeader(); err != nil {
		return err
	}
	switch {
	case f.size < f.end:
		return f.corrupt(f.size, "the file is shorter than it was: %d bytes are missing", f.end-f.size)
	case !f.linked:
		return f.corrupt(headerSize, "the link to the segment before is damaged")
	case f.link.log != f.header.log:
		return f.corrupt(headerSize, "header and link belong to different logs")
	case f.end < firstRecord:
		return f.corrupt(headerSize, "the next segment says that this one ends at %d", f.end)
	}
	return nil
}

// unlinked decides about a file that has no valid link and is newer than all that have
// one. The header of a segment is durable before anything else is written to it. So a
// file without a valid header holds nothing, or is damaged.
func (sc *scan) unlinked(f found) error {
	blank, err := isZero(sc.pool.fs, f.path, headerSize)
	if err == nil && !blank {
		err = f.checkHeader()
	}
	switch {
	case err != nil:
		return err
	case blank:
		sc.remove = append(sc.remove, f)
	case f.isShort():
		return f.corrupt(f.size, "the file is shorter than it was, and its beginning is damaged")
	default:
		sc.torn = append(sc.torn, f)
	}
	return nil
}

// isZero reports whether all bytes of a file from an offset on are 0.
func isZero(fsys vfs.FS, path string, from int64) (bool, error) {
	w, err := openWindow(fsys, path)
	if err != nil {
		return false, err
	}
	defer w.close()
	last, err := w.lastNonZero(from)
	return last < 0, err
}
