package wal

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// findLogID returns the number of the log: the one in most headers and links, and if
// several are as frequent, that of the newest.
func findLogID(files []found) (uint64, error) {
	votes := make(map[uint64]int)
	var best uint64
	for i := len(files) - 1; i >= 0; i-- {
		f := &files[i]
		switch {
		case errors.Is(f.headerErr, errVersion):
			return 0, f.corrupt(0, "%v", f.headerErr)
		case f.headerErr == nil:
			votes[f.header.log]++
			if best == 0 || votes[f.header.log] > votes[best] {
				best = f.header.log
			}
		case f.linked:
			votes[f.link.log]++
			if best == 0 || votes[f.link.log] > votes[best] {
				best = f.link.log
			}
		}
	}
	if len(files) == 0 || len(votes) > 0 {
		return best, nil
	}
	// Without the number no record can be checked.
	return 0, files[0].corrupt(0, "no segment has a header or link that is whole: nothing can be repaired")
}

// An examiner finds the damage of a log, from its last segment to its first.
type examiner struct {
	fs     vfs.FS
	id     uint64
	oldest uint64 // sequence of the oldest segment that is needed, as far as was read; 0: not known
	damage []Damage
}

// foreign notes files that are no part of the log, and those that have only a wrong name,
// and returns the others.
func (x *examiner) foreign(files []found) ([]found, error) {
	named := make(map[uint64]bool) // sequences whose file has that header
	for i := range files {
		named[files[i].sequence] = files[i].headerErr == nil && files[i].header.sequence == files[i].sequence
	}
	var ours []found
	for _, f := range files {
		if f.headerErr != nil || f.header.sequence == f.sequence && f.header.log == x.id {
			ours = append(ours, f)
			continue
		}
		switch blank, err := isZero(x.fs, f.path, headerSize); {
		case err != nil:
			return nil, err
		case blank:
			ours = append(ours, f)
		case f.header.log != x.id:
			x.setAside(&f, "the file belongs to another log; what the segment held is lost")
		case named[f.header.sequence]:
			x.setAside(&f, "the file is a copy of %s; what %s held is lost", FileName(f.header.sequence), FileName(f.sequence))
		default:
			x.misnamed(&f, files)
		}
	}
	return ours, nil
}

// misnamed notes a segment that has the name of another one.
func (x *examiner) misnamed(f *found, files []found) {
	name := FileName(f.header.sequence)
	reason := "the file was renamed: it is " + name
	for _, g := range files {
		switch {
		case g.sequence != f.header.sequence:
		case g.headerErr == nil && g.header.log == x.id:
			reason += fmt.Sprintf(", and in that place is %s", FileName(g.header.sequence))
		default:
			reason += ", and in that place is a file that is no segment of this log"
		}
	}
	x.damage = append(x.damage, Damage{File: f.path, Length: f.size, Reason: reason, sequence: f.header.sequence})
}

func (x *examiner) setAside(f *found, format string, args ...any) {
	x.damage = append(x.damage, Damage{File: f.path, Length: f.size, Reason: fmt.Sprintf(format, args...), aside: true})
}

// examine expects the log's segment files in order.
func (x *examiner) examine(files []found) error {
	end := int64(-1) // of the segment, as the next one says; -1: there is none
	for i := len(files) - 1; i >= 0; {
		used, err := x.segment(&files[i], end)
		if err != nil {
			return err
		}
		if !used {
			i--
			continue
		}
		f := &files[i]
		prev, next, err := x.previous(files, i)
		if err != nil {
			return err
		}
		if !f.linked || f.link.log != x.id || f.link.prev != prev {
			l := link{log: x.id, prev: prev, oldest: f.link.oldest}
			if !f.linked {
				l.oldest = files[0].sequence // what it said is not known
			}
			reason := "the link to the segment before is damaged"
			if f.linked && f.link.log == x.id {
				reason = fmt.Sprintf("the segment before, %s, is missing", FileName(f.link.prev.Segment))
			}
			x.patch(f, headerSize, 0, reason, l.appendTo(nil, x.seed(f)))
		}
		end, i = prev.Offset, next
	}
	return nil
}

// segment examines a segment, except for its link. It reports whether the segment
// counts: the newest files may never have been used.
func (x *examiner) segment(f *found, end int64) (used bool, err error) {
	w, err := openWindow(x.fs, f.path)
	if err != nil {
		return false, err
	}
	defer w.close()
	c, err := x.contents(f, w)
	if err != nil {
		return false, err
	}
	if end < 0 && len(c.records) == 0 && !f.linked {
		// Never used, or its first write was torn: Open removes it. Without a header
		// it is not known what it was.
		last, err := w.lastNonZero(headerSize)
		switch {
		case err != nil || last < 0:
		case f.headerErr != nil:
			x.setAside(f, "the header is damaged, and nothing else is whole")
		case f.isShort():
			x.setAside(f, "the file is shorter than it was, and nothing in it is whole")
		}
		return false, err
	}
	if f.headerErr != nil || f.header.sequence != f.sequence || f.header.log != x.id {
		x.patch(f, 0, 0, "the header is damaged", header{log: x.id, sequence: f.sequence}.encode())
	}
	if f.linked {
		x.oldest = max(x.oldest, f.link.oldest)
	}
	isLast := end < 0
	isShort := isLast && f.isShort()
	if n := len(c.records); isShort && n > 0 {
		end = c.records[n-1].to // it was closed once, so nothing in it is torn
	}
	at, err := x.gaps(f, w, c.records, end)
	if err != nil {
		return false, err
	}
	for _, o := range c.oldest {
		if o.at < at {
			x.oldest = max(x.oldest, o.sequence)
		}
	}
	if isLast {
		return true, x.end(f, w, c, at, isShort)
	}
	return true, nil
}

// end notes what is wrong with the end of the last segment, whose records end at
// an offset.
func (x *examiner) end(f *found, w *window, c contents, at int64, isShort bool) error {
	if c.closed == 0 || at != c.closed {
		if isShort {
			closing := appendRecord(nil, x.seed(f), at, headerSize, 1|internalBit, []byte{kindClosing})
			x.patch(f, at, max(endSize, f.size-at), "the file is shorter than it was", closing)
		}
		return nil
	}
	next, err := w.next(x.seed(f), at)
	if err == nil && next != 0 {
		x.patch(f, at, nextSize, fmt.Sprintf("the segment that follows, %s, is missing, or its beginning is damaged", FileName(next)), nil)
	}
	return err
}

func (x *examiner) seed(f *found) uint32 { return header{log: x.id, sequence: f.sequence}.seed() }

// contents are what is whole in a segment.
type contents struct {
	records []span
	closed  int64 // where the closing record ends; 0: there is none
	oldest  []oldestAt
}

// A span is a stretch of a file that holds nothing but valid records.
type span struct{ from, to int64 }

// An oldestAt is a record that names the oldest segment needed.
type oldestAt struct {
	at       int64
	sequence uint64
}

// contents finds all valid records after the link. If there is none where the one before
// ends, it tries all multiples of 8.
func (x *examiner) contents(f *found, w *window) (c contents, err error) {
	seed := x.seed(f)
	for off := firstRecord; off < w.size && c.closed == 0; {
		n, internal, reason, err := w.record(seed, off)
		if err != nil {
			return c, err
		}
		if reason != "" {
			off += alignment
			continue
		}
		last := len(c.records) - 1
		switch {
		case last >= 0 && c.records[last].to == off:
			c.records[last].to += n
		case last >= 0 && off-c.records[last].to < Cost(1), last < 0 && off > firstRecord && off-firstRecord < Cost(1):
			// There is no room for a filler, so no record can have been in between:
			// this is part of a damaged one.
			off += alignment
			continue
		default:
			c.records = append(c.records, span{off, off + n})
		}
		off += n
		if o := pointee(kindOldest, internal); o != 0 {
			c.oldest = append(c.oldest, oldestAt{off - n, o})
		}
		if len(internal) > 0 && internal[0] == kindClosing {
			c.closed = off
		}
	}
	return c, nil
}

// gaps notes the damage between the records, and between them and the end, which is -1
// if no later segment says where it is. It returns the end of what is whole or can be
// repaired.
func (x *examiner) gaps(f *found, w *window, records []span, end int64) (int64, error) {
	at := firstRecord
	for _, s := range records {
		if end >= 0 && s.from >= end {
			break
		}
		if at < s.from {
			if end < 0 {
				proof, err := w.findProof(x.seed(f), at, w.size)
				if err != nil || proof == 0 {
					return at, err // a torn tail, which Open cuts
				}
			}
			if err := x.fill(f, w, at, s.from); err != nil {
				return 0, err
			}
		}
		at = s.to
	}
	if at < end {
		return end, x.fill(f, w, at, end)
	}
	return at, nil
}

// fill notes damage that Repair replaces by fillers.
func (x *examiner) fill(f *found, w *window, from, to int64) error {
	reason := endOfRecords
	if from < w.size {
		var err error
		if _, _, reason, err = w.record(x.seed(f), from); err != nil {
			return err
		}
	}
	if reason == "" { // a part of a larger one
		reason = badChecksum
	}
	x.damage = append(x.damage, Damage{
		File: f.path, Offset: from, Length: to - from, Reason: reason, filler: &filler{x.seed(f)},
	})
	return nil
}

// patch notes damage that Repair replaces by some bytes, and zeros up to length.
func (x *examiner) patch(f *found, off, length int64, reason string, with []byte) {
	x.damage = append(x.damage, Damage{
		File: f.path, Offset: off, Length: max(length, int64(len(with))), Reason: reason, patch: with,
	})
}

// previous returns where files[i] should link to, and the index of that file.
func (x *examiner) previous(files []found, i int) (prev Pos, index int, err error) {
	f := &files[i]
	linked := f.linked && f.link.log == x.id
	if linked {
		for j := i - 1; j >= 0; j-- {
			if files[j].sequence == f.link.prev.Segment {
				return f.link.prev, j, nil
			}
			if files[j].sequence < f.link.prev.Segment {
				break
			}
		}
		switch {
		case x.oldest > f.link.prev.Segment:
			return f.link.prev, -1, nil // the oldest that is needed
		case x.oldest == 0 && (i == 0 || files[0].sequence > f.link.prev.Segment):
			return f.link.prev, -1, nil // the oldest; others before it are void
		}
	}
	// The link is damaged, or the segment that it names is missing: take the
	// next older one that holds records.
	unused := true
	for j := i - 1; j >= 0; j-- {
		records, blank, err := x.lastRecord(&files[j])
		if err != nil {
			return Pos{}, -1, err
		}
		if records > 0 {
			return Pos{files[j].sequence, records}, j, nil
		}
		unused = unused && blank
	}
	if linked && unused && x.oldest == 0 {
		return f.link.prev, -1, nil
	}
	return Pos{}, -1, nil
}

// lastRecord returns where the last valid record of a segment ends, 0 if there is
// none, and whether it holds nothing but a header.
func (x *examiner) lastRecord(f *found) (end int64, blank bool, err error) {
	w, err := openWindow(x.fs, f.path)
	if err != nil {
		return 0, false, err
	}
	defer w.close()
	c, err := x.contents(f, w)
	if err != nil {
		return 0, false, err
	}
	if n := len(c.records); n > 0 {
		return c.records[n-1].to, false, nil
	}
	last, err := w.lastNonZero(headerSize)
	return 0, last < 0, err
}

// String describes the damage in a line.
func (d Damage) String() string {
	return fmt.Sprintf("%s: %d bytes at offset %d: %s", filepath.Base(d.File), d.Length, d.Offset, d.Reason)
}
