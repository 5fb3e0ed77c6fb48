package wal

import (
	"cmp"
	"fmt"
	"slices"
)

// tidy makes the log one that can be written.
func (l *Log) tidy(report *Report) error {
	sc := l.scan
	if err := sc.tidy(report); err != nil {
		return err
	}
	for _, f := range sc.segments {
		l.sealed = append(l.sealed, Segment{f.sequence, f.end})
		report.Segments++
		report.Bytes += f.end
	}
	if last := sc.last(); last != nil {
		l.prev = Pos{last.sequence, last.end}
	}
	l.removed = sc.oldest
	l.scan = nil
	return nil
}

// last returns the newest segment; nil if there is none.
func (sc *scan) last() *found {
	if len(sc.segments) == 0 {
		return nil
	}
	return &sc.segments[len(sc.segments)-1]
}

// tidy checks the ends of the log. If they are good it removes what a crash has left.
func (sc *scan) tidy(report *Report) error {
	last := sc.last()
	if last != nil {
		if err := sc.checkTail(last, last.end, report); err != nil {
			return err
		}
	}
	for i := range sc.torn {
		if err := sc.checkTail(&sc.torn[i], headerSize, report); err != nil {
			return err
		}
	}
	if last != nil {
		if !last.closed && last.isShort() {
			return last.corrupt(last.end, "the file is shorter than it was: it has no closing record, and is not as long as one that was not closed")
		}
		if err := sc.checkOldest(); err != nil {
			return err
		}
	}
	if sc.readOnly {
		return nil
	}
	if err := sc.clean(last); err != nil {
		return fmt.Errorf("wal: clean up: %w", err)
	}
	return nil
}

// checkOldest returns an error if segments are missing that are older than the first
// one and needed.
func (sc *scan) checkOldest() error {
	first := &sc.segments[0]
	for i := range sc.segments { // the first that is not void
		if first = &sc.segments[i]; first.end > 0 {
			break
		}
	}
	before := first.link.prev.Segment
	switch {
	case before == 0 || sc.oldest > before:
		return nil
	case sc.gap != nil:
		return sc.gap
	}
	return first.corrupt(headerSize, "the segment before, %s, is missing: the oldest that is needed is %s", FileName(before), FileName(sc.oldest))
}

// clean completes the last segment. It puts files without records into the pool again,
// or removes them.
func (sc *scan) clean(last *found) error {
	if last != nil {
		if err := sc.closeLast(last); err != nil {
			return err
		}
	}
	slices.SortFunc(sc.remove, func(a, b found) int { return cmp.Compare(a.sequence, b.sequence) })
	unused := sc.torn
	for _, f := range sc.remove {
		if !sc.pool.adopt(&f) {
			unused = append(unused, f)
		}
	}
	for _, f := range unused {
		if err := removeFile(sc.pool.fs, f.path); err != nil {
			return err
		}
	}
	return sc.pool.fs.SyncDir(sc.pool.dir) // also for the removals of a process that was killed before its SyncDir
}

// closeLast makes the last segment durable and complete. It always syncs: a process
// that was killed may have left records that are only in the kernel's cache. Then it
// appends a closing record if there is none, and cuts the file there.
func (sc *scan) closeLast(last *found) error {
	f, err := sc.pool.fs.OpenWrite(last.path)
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

// checkTail decides about the bytes after x, where the valid records of the last segment
// end: they are the torn end of a write, or damage.
func (sc *scan) checkTail(f *found, x int64, report *Report) error {
	w, err := openWindow(sc.pool.fs, f.path)
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
		if proof > 0 && sc.readOnly { // perhaps a server has written there meanwhile
			w.forget()
			if _, reason, err := w.record(f.seed(), x); err != nil || reason == "" {
				return err
			}
		}
		if proof > 0 {
			return f.corrupt(x, "no valid record, but a later one, at offset %d, proves that there was one", proof)
		}
	}
	t := Tear{File: f.path, Offset: x, Length: last + 1 - x, Closed: f.closed}
	if !f.closed {
		t.Records, err = w.countRecords(f.seed(), x+alignment, last+1)
	}
	report.Torn = append(report.Torn, t)
	return err
}
