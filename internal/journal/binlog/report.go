package binlog

import (
	"fmt"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// A Report is the result of Read. The log was read completely if Damaged returns false.
type Report struct {
	Files  []FileReport // ascending
	LastID uint64       // the highest id in any record that counts, or 0

	// Missing contains missing files between the first and the last one, as ranges of
	// names.
	Missing []string
}

// A FileReport describes the reading of a file.
type FileReport struct {
	Name    string // without the path
	Version int32  // 7, or 0 if nothing was ever written; files of other versions are not read
	Size    int64  // bytes
	Read    int64  // bytes up to the end of the last valid record
	Records int    // number of valid records, without the dropped ones

	// Stopped is the reason why the rest of the file was not read, or nil if all was
	// read.
	Stopped *Damage

	// Dropped contains the skipped records: full records without a valid body, and
	// records with impossible ids. They are the first [MaxDropped] of DroppedCount. Read
	// keeps an earlier copy of the job, if there is one.
	Dropped      []Damage
	DroppedCount int
}

// MaxDropped is the maximum number of dropped records that a FileReport describes.
const MaxDropped = 100

// Damage is a position at which a file is not valid.
type Damage struct {
	File   string // name without the path
	Offset int64  // start of the unreadable record, in bytes
	Job    uint64 // 0 if the record contains none
	Reason string
}

// String describes the damage, without a line end.
func (d Damage) String() string {
	return fmt.Sprintf("%s at %d: %s", d.File, d.Offset, d.Reason)
}

// Damaged reports whether part of the log was unreadable.
func (r *Report) Damaged() bool {
	if len(r.Missing) > 0 || r.LastID > engine.MaxSafeID {
		return true
	}
	for i := range r.Files {
		if f := &r.Files[i]; f.Stopped != nil || f.DroppedCount > 0 {
			return true
		}
	}
	return false
}

// Damage returns a line for each unreadable or ignored part, in the order of the files.
func (r *Report) Damage() []string {
	var lines []string
	for _, name := range r.Missing {
		lines = append(lines, name+": missing")
	}
	for i := range r.Files {
		f := &r.Files[i]
		for _, d := range f.Dropped {
			lines = append(lines, d.String())
		}
		if more := f.DroppedCount - len(f.Dropped); more > 0 {
			lines = append(lines, fmt.Sprintf("%s: %d more records dropped", f.Name, more))
		}
		if f.Stopped != nil {
			lines = append(lines, fmt.Sprintf("%v; %d bytes not read", *f.Stopped, f.Size-f.Read))
		}
	}
	if r.LastID > engine.MaxSafeID {
		lines = append(lines, fmt.Sprintf("implausible job ids up to %d; later jobs get higher ids "+
			"('beanpole export' and 'import' into an empty directory assign new ids)", r.LastID))
	}
	return lines
}
