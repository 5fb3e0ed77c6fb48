package wal

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"

	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// A recovery is the state of a log between Open and Replay.
type recovery struct {
	pool     *pool
	readOnly bool

	segments []segmentInfo // oldest first; empty in a new log
	remove   []segmentInfo // unneeded segments, and files without records, which might be usable as preallocated ones
	torn     []segmentInfo // segments with a torn first write, to check and then remove
	oldest   uint64        // sequence of the oldest needed segment, or 0 if unknown
	hole     error         // the damage of the log if a segment before the first one is needed
}

// A segmentInfo describes a segment file in the directory.
type segmentInfo struct {
	sequence uint64
	path     string
	size     int64

	header    header
	headerErr error // nil or errNoHeader

	link   link
	linked bool // the link is valid

	end    int64 // end of the records, from the next segment's link; in the last segment, the size
	closed bool  // the last record is the closing one
}

func (f *segmentInfo) seed() uint32 { return f.header.seed() }

// isShort reports whether the file is shorter than its header states. Only a sealed
// segment can be shorter.
func (f *segmentInfo) isShort() bool { return f.headerErr == nil && f.size < f.header.size }

// Open opens the log in a directory, which must exist; a directory without segments is a
// new log. It locks the log and finds its segments, but reads no records: call [Replay]
// next.
//
// If the log is already open, the error wraps vfs.ErrLocked. If a segment is missing or
// the start of a segment is damaged, the error is a [*CorruptError].
func Open(fsys vfs.FS, dir string, opt Options) (*Log, error) {
	l := &Log{fs: fsys, dir: dir, opt: opt, pool: pool{mu: vfs.NewWorkLock()}}
	if !opt.ReadOnly {
		lock, err := fsys.Lock(lockName(dir))
		if err != nil {
			return nil, fmt.Errorf("wal: %w", err)
		}
		l.lock = lock
	}
	if err := l.start(); err != nil {
		if l.lock != nil {
			l.lock.Close()
		}
		return nil, err
	}
	return l, nil
}

func (l *Log) start() error {
	files, err := findSegments(l.fs, l.dir)
	if err != nil {
		return err
	}
	l.pool.fs, l.pool.dir = l.fs, l.dir
	id := cmp.Or(l.opt.LogID, rand.Uint64()) // #nosec G404 -- a name, no secret
	l.recovery = &recovery{pool: &l.pool, readOnly: l.opt.ReadOnly}
	if err := l.recovery.chain(files); err != nil {
		return err
	}
	// Ignore the names of files that Replay will remove.
	var next uint64 = 1
	if last := l.recovery.last(); last != nil {
		id, next = last.header.log, last.sequence+1
	}
	size := cmp.Or(l.opt.SegmentSize, DefaultSegmentSize)
	l.pool.log, l.pool.created, l.pool.next = id, l.opt.Created, next
	l.pool.size = (min(max(size, MinSegmentSize), MaxSegmentSize) + alignment - 1) &^ (alignment - 1)
	return nil
}

// findSegments reads the start of each segment file, in the order of their sequences. A
// directory entry with the name of a segment that is not a regular file is an error.
func findSegments(fsys vfs.FS, dir string) (files []segmentInfo, err error) {
	names, err := fsys.List(dir)
	if err != nil {
		return nil, fmt.Errorf("wal: %w", err)
	}
	for _, name := range names {
		sequence, ok := parseName(name)
		if !ok {
			continue
		}
		f := segmentInfo{sequence: sequence, path: filepath.Join(dir, name)}
		if sequence > MaxSequence {
			return nil, f.corrupt(0, "sequence above the maximum (%x); move the file away", uint64(MaxSequence))
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
	slices.SortFunc(files, func(a, b segmentInfo) int { return Pos{a.sequence, 0}.Compare(Pos{b.sequence, 0}) })
	return files, nil
}

// read reads header and link.
func (f *segmentInfo) read(fsys vfs.FS) error {
	file, err := fsys.Open(f.path)
	if err != nil {
		return err
	}
	defer file.Close()
	if f.size, _, err = file.Stat(); err != nil {
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

func (f *segmentInfo) corrupt(off int64, format string, args ...any) error {
	return &CorruptError{f.path, off, fmt.Sprintf(format, args...)}
}

// chain follows the links from the last segment to the oldest one.
func (rc *recovery) chain(files []segmentInfo) error {
	last := len(files) - 1
	for ; last >= 0 && !files[last].linked; last-- {
		if err := rc.unlinked(files[last]); err != nil {
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
			return cur.corrupt(0, "segment of another log than %s", filepath.Base(files[last].path))
		}
		rc.segments = append(rc.segments, *cur)
		rc.oldest = max(rc.oldest, cur.link.oldest)
		prev := cur.link.prev
		for i--; i >= 0 && files[i].sequence > prev.Segment; i-- {
			if err := rc.skip(&files[i], log); err != nil {
				return err
			}
		}
		if prev.Segment < rc.oldest {
			break
		}
		if i < 0 {
			break
		}
		if files[i].sequence != prev.Segment {
			rc.hole = cur.corrupt(headerSize, "the previous segment, %s, is missing, and older ones exist", FileName(prev.Segment))
			break
		}
		files[i].end = prev.Offset
	}
	slices.Reverse(rc.segments)
	for _, f := range files[:i+1] { // a killed process did not remove them
		if f.isOf(log) && f.sequence < rc.oldest {
			rc.remove = append(rc.remove, f)
		}
	}
	return nil
}

// isOf reports whether the file is a segment of a log.
func (f *segmentInfo) isOf(log uint64) bool {
	return f.headerErr == nil && f.header.log == log && f.header.sequence == f.sequence
}

// skip records a segment that a link skips. It schedules a file without records for
// removal, because the log could not open it. It ignores a segment of another log.
func (rc *recovery) skip(f *segmentInfo, log uint64) error {
	blank, err := isZero(rc.pool.fs, f.path, headerSize)
	switch {
	case err != nil:
		return err
	case blank:
		rc.remove = append(rc.remove, *f)
	case f.isOf(log):
		f.end = 0
		rc.segments = append(rc.segments, *f)
	}
	return nil
}

// checkHeader returns an error if the header is wrong.
func (f *segmentInfo) checkHeader() error {
	switch {
	case f.headerErr != nil:
		return f.corrupt(0, "%v", f.headerErr)
	case f.header.sequence != f.sequence:
		return f.corrupt(0, "renamed or copied file; its header belongs to %s", FileName(f.header.sequence))
	}
	return nil
}

// check returns an error if the header or the link of a segment in the chain is wrong, or
// if the file is too short.
func (f *segmentInfo) check() error {
	if err := f.checkHeader(); err != nil {
		return err
	}
	switch {
	case f.size < f.end:
		return f.corrupt(f.size, "%d bytes are missing at the end of the file", f.end-f.size)
	case !f.linked:
		return f.corrupt(headerSize, "damaged link to the previous segment")
	case f.link.log != f.header.log:
		return f.corrupt(headerSize, "header and link of different logs")
	case f.end < firstRecord:
		return f.corrupt(headerSize, "the next segment's link contains an impossible end, %d", f.end)
	}
	return nil
}

// unlinked classifies a file that has no valid link and is newer than all files with a
// valid link. The header of a segment is durable before any other part is written.
// Therefore, a file without a valid header is empty or damaged.
func (rc *recovery) unlinked(f segmentInfo) error {
	blank, err := isZero(rc.pool.fs, f.path, headerSize)
	if err == nil && !blank {
		err = f.checkHeader()
	}
	switch {
	case err != nil:
		return err
	case blank:
		rc.remove = append(rc.remove, f)
	case f.isShort():
		return f.corrupt(f.size, "the end of the file is missing, and its start is damaged")
	default:
		rc.torn = append(rc.torn, f)
	}
	return nil
}

// isZero reports whether all bytes of a file, starting at an offset, are zero.
func isZero(fsys vfs.FS, path string, from int64) (bool, error) {
	w, err := openWindow(fsys, path)
	if err != nil {
		return false, err
	}
	defer w.close()
	last, err := w.lastNonZero(from)
	return last < 0, err
}
