package wal

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// A Damage is a range of a segment file that should contain records, but does not.
type Damage struct {
	File   string // path
	Offset int64  // start of the range
	Length int64  // in bytes
	Reason string // the cause
}

// String describes the damage in a line.
func (d Damage) String() string {
	if d.Length == 0 {
		return fmt.Sprintf("%s: at offset %d: %s", filepath.Base(d.File), d.Offset, d.Reason)
	}
	return fmt.Sprintf("%s: %d bytes at offset %d: %s", filepath.Base(d.File), d.Length, d.Offset, d.Reason)
}

// Salvage writes every complete record of a log to a new log in an empty directory, in
// order, even if the files are badly damaged. It does not change the first directory,
// whose lock the caller must hold.
//
// Salvage recognizes a record by its checksum alone, which covers the log, the segment
// and the offset. Each fragment identifies its record. Therefore, missing, truncated or
// renamed files and damaged links do not matter. Salvage also reads duplicate files and
// the segments of failed attempts to heal, because they repeat records in the same order.
func Salvage(fsys vfs.FS, dir, to string, opt Options) (records int, damage []Damage, err error) {
	l, err := Open(fsys, to, opt)
	if err != nil {
		return 0, nil, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	if _, err = Replay(l, func([]Record) (int, error) { return 0, nil }, func(int) error { return nil }); err != nil {
		return 0, nil, err
	}
	damage, err = Check(fsys, dir, func(payload []byte) error {
		records++
		_, err := l.Append(payload)
		if active := l.active(); err == nil && active.end-active.flushed.Load() > defaultBlockSize {
			err = l.Flush()
		}
		return err
	})
	return records, damage, err
}

// Check reads the files of a log as [Salvage] does. It calls f for each complete record
// and returns the ranges between them. Only [Replay] detects a missing segment.
func Check(fsys vfs.FS, dir string, f func(payload []byte) error) ([]Damage, error) {
	files, err := findSegments(fsys, dir)
	if err != nil {
		return nil, err
	}
	s := salvage{f: f}
	if s.log, err = findLogID(files); err != nil {
		return nil, err
	}
	if files, err = s.ours(fsys, files); err != nil {
		return nil, err
	}
	for i := range files {
		if err := s.segment(fsys, &files[i], i == len(files)-1); err != nil {
			return nil, err
		}
	}
	return s.damage, nil
}

// findLogID returns the number of the log: the most frequent number in headers and links
// or, among equally frequent numbers, the newest.
func findLogID(files []segmentInfo) (best uint64, err error) {
	votes := make(map[uint64]int)
	for _, f := range slices.Backward(files) {
		switch {
		case f.headerErr == nil:
			votes[f.header.log]++
		case f.linked:
			votes[f.link.log]++
			f.header.log = f.link.log
		default:
			continue
		}
		if len(votes) == 1 || votes[f.header.log] > votes[best] {
			best = f.header.log
		}
	}
	if len(files) > 0 && len(votes) == 0 {
		// Without the log's number, no record can be checked.
		return 0, files[0].corrupt(0, "no segment has a valid header or link; repair is impossible")
	}
	return best, nil
}

// A salvage is the state of a Check.
type salvage struct {
	log    uint64
	f      func(payload []byte) error
	join   joiner
	damage []Damage
}

func (s *salvage) note(f *segmentInfo, from, to int64, format string, args ...any) {
	s.damage = append(s.damage, Damage{f.path, from, to - from, fmt.Sprintf(format, args...)})
}

// ours returns the files of the log in the order of the sequences in their headers.
func (s *salvage) ours(fsys vfs.FS, files []segmentInfo) (ours []segmentInfo, err error) {
	for _, f := range files {
		switch blank, err := isZero(fsys, f.path, headerSize); {
		case err != nil:
			return nil, err
		case blank:
			continue // a preallocated file
		case f.headerErr != nil:
			s.note(&f, 0, headerSize, "%v", f.headerErr)
		case f.header.log != s.log:
			s.note(&f, 0, f.size, "file of another log")
			continue
		case f.header.sequence != f.sequence:
			s.note(&f, 0, headerSize, "renamed or copied file; its header belongs to %s", FileName(f.header.sequence))
			f.sequence = f.header.sequence
		}
		ours = append(ours, f)
	}
	slices.SortStableFunc(ours, func(a, b segmentInfo) int { return cmp.Compare(a.sequence, b.sequence) })
	return ours, nil
}

// segment reads the records of a file. In the newest file, an invalid end is a torn
// write, not damage.
func (s *salvage) segment(fsys vfs.FS, f *segmentInfo, newest bool) error {
	w, err := openWindow(fsys, f.path)
	if err != nil {
		return err
	}
	defer w.close()
	last, err := w.lastNonZero(headerSize)
	if err != nil {
		return err
	}
	seed := header{log: s.log, sequence: f.sequence}.seed()
	bad, why := int64(-1), "" // start of the current damage; -1 means none
	for at := int64(headerSize); at <= last; {
		rec, reason, err := w.record(seed, at)
		switch {
		case err != nil:
			return err
		case reason != "":
			if bad < 0 {
				bad, why = at, reason
			}
			at += alignment
			continue
		case bad >= 0:
			s.note(f, bad, at, "%s", why)
			bad = -1
		}
		if internal := internalOf(rec); internal != nil && internal[0] == kindClosing {
			return nil // no records follow
		}
		if err := s.record(rec); err != nil {
			return err
		}
		at += int64(len(rec))
	}
	if bad >= 0 && !newest {
		s.note(f, bad, last+1, "%s", why)
	}
	return nil
}

// record passes a record to f when it is complete, unless it is internal.
func (s *salvage) record(rec []byte) error {
	payload := payloadOf(rec)
	if internalOf(rec) != nil {
		return nil
	}
	if isFragment(rec) {
		_, payload = s.join.add(payload)
	}
	if payload == nil {
		return nil
	}
	return s.f(payload)
}
