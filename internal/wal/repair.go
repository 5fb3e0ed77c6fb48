package wal

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// A Damage is a stretch of a segment file that stops a log from being opened.
type Damage struct {
	File    string // path
	Offset  int64  // at which it begins
	Length  int64  // in bytes, of which the file may have fewer
	Reason  string // what is wrong
	Removed string // path of the file that keeps the bytes; Check leaves it empty

	old []byte // what is there
	new []byte // what Repair writes
}

// Check looks for all damage that [Repair] would mend, and changes nothing. It
// holds one segment in memory at a time. A log that is in good order, or has
// only a torn tail, has none.
func Check(fsys vfs.FS, dir string) ([]Damage, error) {
	files, err := findSegments(fsys, dir)
	if err != nil {
		return nil, err
	}
	id, err := findLogID(files)
	if err != nil {
		return nil, err
	}
	x := &examiner{fs: fsys, id: id}
	if err := x.examine(files); err != nil {
		return nil, err
	}
	return x.damage, nil
}

// Repair makes a damaged log one that can be opened. It keeps every record that
// is whole, where it is, and overwrites what lies between with fillers, after
// copying that to files beside the segment, named after segment and offsets,
// with the suffix .removed. What a missing segment held is lost. It returns what
// it mended.
//
// Repair locks the log. If it fails or is interrupted it can be run again.
func Repair(fsys vfs.FS, dir string) (damage []Damage, err error) {
	lock, err := fsys.Lock(lockName(dir))
	if err != nil {
		return nil, fmt.Errorf("wal: %w", err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	damage, err = Check(fsys, dir)
	if err != nil || len(damage) == 0 {
		return nil, err
	}
	for i := range damage {
		if err := damage[i].keep(fsys); err != nil {
			return nil, fmt.Errorf("wal: keep damaged bytes: %w", err)
		}
	}
	if err := fsys.SyncDir(dir); err != nil {
		return nil, fmt.Errorf("wal: keep damaged bytes: %w", err)
	}
	for _, d := range damage {
		if err := d.mend(fsys); err != nil {
			return nil, fmt.Errorf("wal: repair: %w", err)
		}
	}
	return damage, nil
}

// keep copies the damaged bytes to a new file.
func (d *Damage) keep(fsys vfs.FS) error {
	var f vfs.File
	for n := 0; ; n++ {
		d.Removed = fmt.Sprintf("%s.%x-%x.%d.removed", d.File, d.Offset, d.Offset+d.Length, n)
		var err error
		if f, err = fsys.Create(d.Removed); err == nil {
			break
		}
		if !errors.Is(err, fs.ErrExist) { // as after an interrupted repair
			return err
		}
	}
	_, err := f.WriteAt(d.old, 0)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func (d *Damage) mend(fsys vfs.FS) error {
	f, err := fsys.OpenWrite(d.File)
	if err != nil {
		return err
	}
	if _, err = f.WriteAt(d.new, d.Offset); err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// findLogID returns the number of the log, from the newest header or link that
// has it.
func findLogID(files []found) (uint64, error) {
	for i := len(files) - 1; i >= 0; i-- {
		switch f := &files[i]; {
		case errors.Is(f.headerErr, errNewVersion):
			return 0, f.corrupt(0, "%v", f.headerErr)
		case f.headerErr == nil:
			return f.header.log, nil
		case f.linked:
			return f.link.log, nil
		}
	}
	if len(files) == 0 {
		return 0, nil
	}
	// Nothing can be checked without it, not even whether a record is one.
	return 0, files[0].corrupt(0, "no segment has a header or link that is whole: nothing can be repaired")
}

// An examiner finds the damage of a log, from its last segment to its first.
type examiner struct {
	fs     vfs.FS
	id     uint64
	damage []Damage
}

// examine expects the log's segment files in order.
func (x *examiner) examine(files []found) error {
	end := int64(-1) // of the segment, as the next one says; -1: there is none
	for i := len(files) - 1; i >= 0; {
		f := &files[i]
		b, err := x.load(f)
		if err != nil {
			return err
		}
		records, err := x.records(f, b)
		if err != nil {
			return err
		}
		if end < 0 && records == nil && !f.linked {
			// Never used, or its first write was torn: Open removes it. If it
			// has not even a header nobody knows what it was, so all of it is
			// kept.
			if f.headerErr != nil && !blank(b) {
				x.add(f, b, 0, "the header is damaged, and nothing else is whole", append(x.encodeHeader(f), make([]byte, len(b)-headerSize)...))
			}
			i--
			continue
		}
		if f.headerErr != nil || f.header.sequence != f.sequence || f.header.log != x.id {
			x.header(f, b)
		}
		x.gaps(f, b, records, end)
		prev, next, err := x.previous(files, i)
		if err != nil {
			return err
		}
		if !f.linked || f.link.log != x.id || f.link.prev != prev {
			l := link{x.id, prev}
			x.add(f, b, headerSize, "the link to the segment before is damaged, or that segment is missing",
				l.appendTo(nil, x.seed(f)))
		}
		end, i = prev.Offset, next
	}
	return nil
}

func (x *examiner) seed(f *found) uint32 { return header{log: x.id, sequence: f.sequence}.seed() }

// load reads a segment. One with the name of another is for people to sort out.
func (x *examiner) load(f *found) ([]byte, error) {
	file, err := x.fs.Open(f.path)
	if err != nil {
		return nil, fmt.Errorf("wal: %w", err)
	}
	defer file.Close()
	b := make([]byte, f.size)
	if err := readFull(file, b, 0); err != nil {
		return nil, fmt.Errorf("wal: read %s: %w", f.path, err)
	}
	if f.headerErr == nil && f.header.sequence != f.sequence && !blank(b) {
		return nil, f.corrupt(0, "the file was renamed: it is segment %d; give it that name again", f.header.sequence)
	}
	return b, nil
}

// A span is a stretch of a file that holds nothing but valid records.
type span struct{ from, to int64 }

// records finds all valid records after the link. A record that is not where
// the one before ends is looked for at all multiples of 8.
func (x *examiner) records(f *found, b []byte) ([]span, error) {
	seed, size := x.seed(f), int64(len(b))
	var spans []span
	budget := int64(proofBudget)
	for off := int64(firstRecord); off < size; {
		n, reason := frame(b[off:], size-off)
		if reason == "" {
			if budget -= n; budget < 0 {
				return nil, f.corrupt(off, "what follows looks like records too often to find those that are")
			}
			reason = checkRecord(b[off:], seed, off)
		}
		if reason != "" {
			off += alignment
			continue
		}
		last := len(spans) - 1
		switch {
		case last >= 0 && spans[last].to == off:
			spans[last].to += n
		case last >= 0 && off-spans[last].to < Cost(1), last < 0 && off > firstRecord && off-firstRecord < Cost(1):
			// There is no room for a filler, so no record was in between:
			// this is part of one that is damaged.
			off += alignment
			continue
		default:
			spans = append(spans, span{off, off + n})
		}
		off += n
	}
	return spans, nil
}

// gaps notes what is damaged between the records, and between them and the end,
// which is -1 if no later segment says where it is.
func (x *examiner) gaps(f *found, b []byte, records []span, end int64) {
	at := int64(firstRecord)
	for _, s := range records {
		if end >= 0 && s.from >= end {
			break
		}
		if at < s.from {
			if end < 0 && findProof(b[at:], x.seed(f), at) == 0 {
				return // a torn tail, which Open cuts
			}
			x.fill(f, b, at, s.from)
		}
		at = s.to
	}
	if at < end {
		x.fill(f, b, at, end)
	}
}

// fill notes damage that is to be replaced by fillers.
func (x *examiner) fill(f *found, b []byte, from, to int64) {
	var fillers []byte
	for left := to - from; left > 0; {
		n := min(left, MaxPayload/2)
		if rest := left - n; rest > 0 && rest < Cost(1) {
			n -= Cost(1) // so that what remains has room for a filler
		}
		payload := make([]byte, n-recordHeader)
		payload[0] = kindFiller
		fillers = appendRecord(fillers, x.seed(f), to-left, headerSize, uint32(len(payload))|internalBit, payload)
		left -= n
	}
	_, reason := frame(b[min(from, int64(len(b))):], int64(len(b))-from)
	if reason == "" {
		reason = badChecksum
	}
	x.add(f, b, from, reason, fillers)
}

// header notes a damaged header.
func (x *examiner) header(f *found, b []byte) {
	x.add(f, b, 0, "the header is damaged", x.encodeHeader(f))
}

func (x *examiner) encodeHeader(f *found) []byte {
	return header{log: x.id, sequence: f.sequence}.encode()
}

func (x *examiner) add(f *found, b []byte, off int64, reason string, with []byte) {
	size := int64(len(b))
	x.damage = append(x.damage, Damage{
		File: f.path, Offset: off, Length: int64(len(with)), Reason: reason,
		old: b[min(off, size):min(off+int64(len(with)), size)], new: with,
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
		if i == 0 || files[0].sequence > f.link.prev.Segment {
			return f.link.prev, -1, nil // the oldest; others before it are void
		}
	}
	// The link is damaged, or the segment that it names is missing: take the
	// next older one that holds records.
	unused := true
	for j := i - 1; j >= 0; j-- {
		older := &files[j]
		b, err := x.load(older)
		if err != nil {
			return Pos{}, -1, err
		}
		records, err := x.records(older, b)
		if err != nil {
			return Pos{}, -1, err
		}
		if len(records) > 0 {
			return Pos{older.sequence, records[len(records)-1].to}, j, nil
		}
		unused = unused && blank(b)
	}
	if linked && unused {
		return f.link.prev, -1, nil
	}
	return Pos{}, -1, nil
}

// blank reports whether a file holds nothing but a header.
func blank(b []byte) bool {
	for _, c := range b[min(headerSize, len(b)):] {
		if c != 0 {
			return false
		}
	}
	return true
}

// String describes the damage in a line.
func (d Damage) String() string {
	return fmt.Sprintf("%s: %d bytes at offset %d: %s", filepath.Base(d.File), d.Length, d.Offset, d.Reason)
}
