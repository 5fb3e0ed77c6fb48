package wal

import (
	"cmp"
	"fmt"
	"slices"
)

// cleanUp makes the log writable.
func (l *Log) cleanUp(report *Report) error {
	rc := l.recovery
	if err := rc.cleanUp(report); err != nil {
		return err
	}
	for _, f := range rc.segments {
		l.sealed = append(l.sealed, Segment{f.sequence, f.end})
		report.Segments++
		report.Bytes += f.end
	}
	if last := rc.last(); last != nil {
		l.prev = Pos{last.sequence, last.end}
	}
	l.removed = rc.oldest
	l.recovery = nil
	return nil
}

// last returns the newest segment, or nil if there is none.
func (rc *recovery) last() *segmentInfo {
	if len(rc.segments) == 0 {
		return nil
	}
	return &rc.segments[len(rc.segments)-1]
}

// cleanUp checks both ends of the log. If they are valid, it removes the remains of a
// crash.
func (rc *recovery) cleanUp(report *Report) error {
	last := rc.last()
	if last != nil {
		if err := rc.checkTail(last, last.end, report); err != nil {
			return err
		}
	}
	for i := range rc.torn {
		if err := rc.checkTail(&rc.torn[i], headerSize, report); err != nil {
			return err
		}
	}
	if last != nil {
		if !last.closed && last.isShort() {
			return last.corrupt(last.end, "the end of the file is missing: it has no closing record and not its full length")
		}
		if err := rc.checkOldest(); err != nil {
			return err
		}
	}
	if rc.readOnly {
		return nil
	}
	if err := rc.clean(last); err != nil {
		return fmt.Errorf("wal: clean up: %w", err)
	}
	return nil
}

// checkOldest returns an error if a needed segment before the first one is missing.
func (rc *recovery) checkOldest() error {
	first := &rc.segments[0]
	for i := range rc.segments { // the first segment that no link skips
		if first = &rc.segments[i]; first.end > 0 {
			break
		}
	}
	before := first.link.prev.Segment
	switch {
	case before == 0 || rc.oldest > before:
		return nil
	case rc.hole != nil:
		return rc.hole
	}
	return first.corrupt(headerSize, "the previous segment, %s, is missing; the oldest needed segment is %s", FileName(before), FileName(rc.oldest))
}

// clean completes the last segment. It returns files without records to the pool, or
// removes them.
func (rc *recovery) clean(last *segmentInfo) error {
	if last != nil {
		if err := rc.closeLast(last); err != nil {
			return err
		}
	}
	slices.SortFunc(rc.remove, func(a, b segmentInfo) int { return cmp.Compare(a.sequence, b.sequence) })
	unused := rc.torn
	for _, f := range rc.remove {
		if !rc.pool.adopt(&f) {
			unused = append(unused, f)
		}
	}
	for _, f := range unused {
		if err := removeFile(rc.pool.fs, f.path); err != nil {
			return err
		}
	}
	return rc.pool.fs.SyncDir(rc.pool.dir) // also covers the removals of a process that was killed before its SyncDir
}

// closeLast makes the last segment durable and complete. It always syncs, because a
// killed process can leave records that are only in the kernel's cache. Then it appends a
// closing record if there is none, and truncates the file after it.
func (rc *recovery) closeLast(last *segmentInfo) error {
	f, err := rc.pool.fs.OpenWrite(last.path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		return err
	}
	if !last.closed {
		b := appendRecord(nil, last.seed(), last.end, last.end, 1|internalBit, []byte{kindClosing})
		if _, err := f.WriteAt(b, last.end); err != nil {
			return err
		}
		if err := f.Sync(); err != nil {
			return err
		}
		last.end += closingSize
		last.closed = true
	}
	if last.end < last.size {
		return f.Truncate(last.end)
	}
	return nil
}

// checkTail classifies the bytes after x, the end of the valid records of the last
// segment: they are zeros, the torn end of a write, or damage.
func (rc *recovery) checkTail(f *segmentInfo, x int64, report *Report) error {
	w, err := openWindow(rc.pool.fs, f.path)
	if err != nil {
		return err
	}
	defer w.close()
	last, err := w.lastNonZero(x)
	if err != nil || last < 0 {
		return err
	}
	if !f.closed {
		proof, err := w.findProof(f.seed(), x, last+1)
		if err != nil {
			return err
		}
		if proof > 0 && rc.readOnly { // a server might have written there since
			w.forget()
			if _, reason, err := w.record(f.seed(), x); err != nil || reason == "" {
				return err
			}
		}
		if proof > 0 {
			return f.corrupt(x, "invalid record; a later one at offset %d proves that it was durable", proof)
		}
	}
	t := Tear{File: f.path, Offset: x, Length: last + 1 - x, Closed: f.closed}
	if !f.closed {
		t.Records, err = w.countRecords(f.seed(), x+alignment, last+1)
	}
	report.Torn = append(report.Torn, t)
	return err
}
