package binlog

import (
	"fmt"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// A Report says what Read found. The log was read completely if Damaged returns false.
type Report struct {
	Files  []FileReport // ascending
	LastID uint64       // the highest id in any record that counts; 0 if there is none

	// Missing are files that must have existed between the first and the last, as
	// ranges of names. Ignored are names that resemble those of beanstalkd, but which
	// it would not open.
	Missing []string
	Ignored []string
}

// A FileReport says how far a file was read.
type FileReport struct {
	Name    string // without the path
	Version int32  // 7; 0: nothing was ever written. Else unknown, and not read
	Size    int64  // bytes
	Read    int64  // bytes up to the end of the last record that was understood
	Records int    // that were understood, without the dropped ones

	// Stopped is why the rest of the file was not read; nil if all was read.
	Stopped *Damage

	// Dropped are records that were passed over: full ones without a valid body, and those
	// with impossible ids. They are the first [MaxDropped] of DroppedCount. An earlier copy
	// of the job, if there was one, is kept.
	Dropped      []Damage
	DroppedCount int
}

// MaxDropped is how many dropped records a FileReport describes.
const MaxDropped = 100

// Damage is a place where a file is not as beanstalkd writes it.
type Damage struct {
	File   string // name without the path
	Offset int64  // bytes; where the record begins that could not be read
	Job    uint64 // 0 if the record does not say
	Reason string
}

// String describes the damage, as part of a line.
func (d Damage) String() string {
	return fmt.Sprintf("%s at %d: %s", d.File, d.Offset, d.Reason)
}

// Damaged reports whether anything could not be read.
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

// Damage returns a line for each thing that could not be read or was ignored, in
// the order of the files.
func (r *Report) Damage() []string {
	var lines []string
	for _, name := range r.Missing {
		lines = append(lines, name+": missing")
	}
	for _, name := range r.Ignored {
		lines = append(lines, name+": ignored, not a name that beanstalkd gives")
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
		lines = append(lines, fmt.Sprintf("the job ids go up to %d, and no server has counted as far: later jobs get higher ones "+
			"('beanpole export' and 'import' into an empty directory give new ids)", r.LastID))
	}
	return lines
}
