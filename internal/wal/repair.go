package wal

import (
	"cmp"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// A Damage is a stretch of a segment file that stops a log from being opened.
type Damage struct {
	File    string // path
	Offset  int64  // at which it begins
	Length  int64  // in bytes, of which the file may have fewer
	Reason  string // what is wrong
	Removed string // path of the file that keeps the bytes; Check leaves it empty

	// What Repair does besides keeping the bytes.
	sequence uint64  // rename the file, which is this segment; 0: it has its name
	aside    bool    // rename the file, which is no part of the log
	filler   *filler // write fillers
	patch    []byte  // write this, and then zeros
}

// Check looks for all damage that [Repair] would repair, and changes nothing. It reads
// each file piece by piece. A log that is whole, or has only a torn end, has none. If
// segments have wrong names, Check finds nothing else: first they must get their own.
func Check(fsys vfs.FS, dir string) ([]Damage, error) {
	files, odd, err := findSegments(fsys, dir)
	if err != nil {
		return nil, err
	}
	var oldest uint64
	if len(files) > 0 {
		oldest = files[0].sequence
	}
	if err := checkOdd(odd, oldest); err != nil {
		return nil, err
	}
	id, err := findLogID(files)
	if err != nil {
		return nil, err
	}
	x := &examiner{fs: fsys, id: id}
	if files, err = x.foreign(files); err != nil {
		return nil, err
	}
	if misnamed := slices.DeleteFunc(slices.Clone(x.damage), func(d Damage) bool { return d.sequence == 0 }); len(misnamed) > 0 {
		return misnamed, nil
	}
	if err := x.examine(files); err != nil {
		return nil, err
	}
	return x.damage, nil
}

// Repair makes a damaged log usable. Every whole record stays where it is. Repair copies
// the bytes between them to files beside the segment, named after segment and offsets,
// with the suffix .removed, and overwrites them with fillers. A file that is no part of
// the log gets such a name, and a segment that has the name of another one its own. The
// records of a missing segment are lost. Repair returns what it has repaired.
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
	if damage[0].sequence != 0 {
		if err := rename(fsys, dir, damage); err != nil {
			return nil, fmt.Errorf("wal: rename segments: %w", err)
		}
		others, err := Check(fsys, dir)
		if err != nil {
			return nil, err
		}
		return mend(fsys, dir, damage, others)
	}
	return mend(fsys, dir, nil, damage)
}

// rename gives segments their names. It never replaces a file: a name that is taken is
// made free first. A segment there gets an unused name, under which it is found again if
// Repair is interrupted.
func rename(fsys vfs.FS, dir string, misnamed []Damage) error {
	holders := make(map[string]*Damage) // by the names that they have now
	for i := range misnamed {
		holders[misnamed[i].File] = &misnamed[i]
	}
	move := func(d *Damage, name string) error {
		from := cmp.Or(d.Removed, d.File)
		err := fsys.Rename(from, name)
		if err == nil {
			delete(holders, from)
			holders[name] = d
			d.Removed = name
		}
		return err
	}
	for i := range misnamed {
		d := &misnamed[i]
		own := filepath.Join(dir, FileName(d.sequence))
		err := move(d, own)
		if errors.Is(err, fs.ErrExist) {
			if err = vacate(fsys, dir, own, holders[own], move); err == nil {
				err = move(d, own)
			}
		}
		if err != nil {
			return err
		}
	}
	return fsys.SyncDir(dir)
}

// vacate makes a name free. The file that has it is a segment which also gets another
// name, or, if that is nil, no segment.
func vacate(fsys vfs.FS, dir, name string, holder *Damage, move func(*Damage, string) error) error {
	if holder == nil {
		other := Damage{File: name, aside: true}
		return other.keep(fsys)
	}
	files, _, err := findSegments(fsys, dir)
	if err != nil {
		return err
	}
	newest := files[len(files)-1].sequence
	if newest == MaxSequence {
		return ErrNoSequence
	}
	return move(holder, filepath.Join(dir, FileName(newest+1)))
}

// mend repairs damage, after the damage that was repaired already.
func mend(fsys vfs.FS, dir string, before, damage []Damage) ([]Damage, error) {
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
	return append(before, damage...), nil
}

// keep copies the damaged bytes to a new file, or renames the whole file.
func (d *Damage) keep(fsys vfs.FS) error {
	for n := 0; ; n++ {
		d.Removed = fmt.Sprintf("%s.%x-%x.%d.removed", d.File, d.Offset, d.Offset+d.Length, n)
		err := d.keepAs(fsys, d.Removed)
		if !errors.Is(err, fs.ErrExist) { // there are such files after an interrupted repair
			return err
		}
	}
}

func (d *Damage) keepAs(fsys vfs.FS, name string) error {
	if d.aside {
		return fsys.Rename(d.File, name)
	}
	w, err := openWindow(fsys, d.File)
	if err != nil {
		return err
	}
	defer w.close()
	f, err := fsys.Create(name)
	if err != nil {
		return err
	}
	for off, end := d.Offset, min(d.Offset+d.Length, w.size); off < end && err == nil; off += defaultBlockSize {
		var b []byte
		if b, err = w.at(off, min(end-off, defaultBlockSize)); err == nil {
			_, err = f.WriteAt(b, off-d.Offset)
		}
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func (d *Damage) mend(fsys vfs.FS) error {
	if d.aside {
		return nil
	}
	f, err := fsys.OpenWrite(d.File)
	if err != nil {
		return err
	}
	err = writeZeros(f, d.Offset+int64(len(d.patch)), d.Offset+d.Length)
	if err == nil && d.filler != nil {
		err = d.filler.write(f, d.Offset, d.Offset+d.Length)
	}
	if err == nil && len(d.patch) > 0 {
		_, err = f.WriteAt(d.patch, d.Offset)
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

var zeros [defaultBlockSize]byte

func writeZeros(f vfs.File, from, to int64) error {
	for off := from; off < to; off += int64(len(zeros)) {
		if _, err := f.WriteAt(zeros[:min(int64(len(zeros)), to-off)], off); err != nil {
			return err
		}
	}
	return nil
}

// A filler writes records that say nothing.
type filler struct {
	seed uint32
}

// write writes the headers of fillers to a stretch of zeros.
func (r *filler) write(f vfs.File, from, to int64) error {
	for off := from; off < to; {
		n := min(to-off, MaxPayload/2)
		if rest := to - off - n; rest > 0 && rest < Cost(1) {
			n -= Cost(1) // so that what remains has room for a filler
		}
		if _, err := f.WriteAt(r.header(off, n-recordHeader), off); err != nil {
			return err
		}
		off += n
	}
	return nil
}

// header returns the beginning of a filler with a payload of n bytes, which are
// its kind and zeros.
func (r *filler) header(off, n int64) []byte {
	b := make([]byte, recordHeader+1)
	b[recordHeader] = kindFiller
	sum := zerosChecksum(crc32.Checksum(b[recordHeader:], castagnoli), n-1)
	putHeader(b, r.seed, off, headerSize, uint32(n)|internalBit, sum)
	return b
}

// zerosChecksum continues a checksum over n zeros.
func zerosChecksum(sum uint32, n int64) uint32 {
	for ; n > 0; n -= int64(len(zeros)) {
		sum = crc32.Update(sum, castagnoli, zeros[:min(n, int64(len(zeros)))])
	}
	return sum
}
