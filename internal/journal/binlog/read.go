package binlog

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/vfs"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

// Options of Read and Write. With the zero value, the engine's clock is the wall clock,
// and files have up to 10 MiB.
type Options struct {
	// Epoch is the time, in nanoseconds since 1970, at which the engine's clock was 0. It
	// must not be negative.
	Epoch int64

	// FileSize is the maximum size of a file that Write creates, in bytes. A file with
	// one record can be larger.
	FileSize int64
}

// A Report is the result of Read.
type Report struct {
	Files   int    // number of files
	Records int    // number of valid records, excluding dropped ones
	LastID  uint64 // the highest id in a valid record, or 0

	// Damage contains a line for each unreadable or ignored part, in the order of the
	// files, and a line with the number of lines after the first 100.
	Damage []string
}

const maxDamage = 100

// Read reads all beanstalkd files in a directory. It calls apply with a Change for each
// record, in order, and finally with a LastID if there was a record. An engine that
// restores the changes (engine.Restore) contains every job in its state on the disk;
// reserved jobs are ready. A delayed job can be due. The Due of a buried job, its rank in
// the order of burying, is its id.
//
// The Body of a Change is valid until apply returns.
//
// Damaged files are not an error: the caller must check the Report. Read stops at an
// error of the file system or of apply, and returns it with the Report so far.
func Read(fsys vfs.FS, dir string, opt Options, apply func(engine.Change) error) (Report, error) {
	nums, err := list(fsys, dir)
	if err != nil {
		return Report{}, err
	}
	r := reader{epoch: opt.Epoch, apply: apply}
	r.report.Files = len(nums)
	for i, n := range nums {
		if i > 0 && n > nums[i-1]+1 {
			r.note("%s to %s: missing", fileName(nums[i-1]+1), fileName(n-1))
		}
		b, err := vfs.ReadFile(fsys, filepath.Join(dir, fileName(n)))
		if err != nil {
			return r.report, fmt.Errorf("binlog: %w", err)
		}
		if err := r.readFile(fileName(n), b, i == len(nums)-1); err != nil {
			return r.report, err
		}
	}
	if more := r.damage - maxDamage; more > 0 {
		r.report.Damage = append(r.report.Damage, fmt.Sprintf("%d more", more))
	}
	if r.report.LastID > 0 {
		err = apply(engine.Change{Kind: engine.LastID, ID: r.report.LastID})
	}
	return r.report, err
}

// A reader is the state of Read.
type reader struct {
	epoch  int64
	apply  func(engine.Change) error
	report Report
	damage int // number of lines of damage

	// The current file.
	name string
	size int
	rest []byte // the unread bytes
}

// note adds a line of damage.
func (r *reader) note(format string, args ...any) {
	if r.damage++; r.damage <= maxDamage {
		r.report.Damage = append(r.report.Damage, fmt.Sprintf(format, args...))
	}
}

func (r *reader) readFile(name string, b []byte, newest bool) error {
	r.name, r.size, r.rest = name, len(b), b
	err := r.readHeader(newest)
	for more := len(r.rest) > 0; more && err == nil; {
		more, err = r.readRecord()
	}
	if reason, ok := errors.AsType[damage](err); ok {
		r.note("%s at %d: %s; %d bytes not read", name, r.at(), reason, len(r.rest))
		return nil
	}
	return err
}

// at returns the offset of the next unread byte.
func (r *reader) at() int { return r.size - len(r.rest) }

// readHeader reads the header. No bytes remain if the file is empty.
func (r *reader) readHeader(newest bool) error {
	if len(r.rest) < headerSize || isZero(r.rest) {
		if !newest {
			return damagef("no header: only the newest file can lack it")
		}
		r.rest = nil
		return nil
	}
	if v := int32(le.Uint32(r.rest)); v != version {
		return damagef("unknown version %d", v)
	}
	r.rest = r.rest[headerSize:]
	return nil
}

// readRecord reads a record. It returns false at the end of the records.
func (r *reader) readRecord() (more bool, err error) {
	b, size := r.rest, lenSize+jobSize
	if len(b) < size {
		return false, atEnd(b, "%d bytes are less than a record", len(b))
	}
	length := le.Uint32(b)
	n := int(length)
	switch {
	case length > maxTube:
		return false, damagef("invalid length of a tube name: %d", length)
	case n == 0 && le.Uint64(b[lenSize:]) == 0:
		return false, atEnd(b, "record without an id")
	}
	if size += n; len(b) < size {
		return false, damagef("record of at least %d bytes ends after %d", size, len(b))
	}
	tube, body := b[lenSize:][:n], b[size:]
	j, err := decodeJob(b[lenSize+n:])
	if n > 0 && err == nil {
		if size += j.size; len(b) < size {
			err = damagef("record of at least %d bytes ends after %d", size, len(b))
		}
	}
	switch {
	case err != nil:
		return false, err
	case j.id == 0:
		return false, damagef("record with a tube but without an id")
	case n > 0 && !wire.ValidTube(tube):
		return false, damagef("invalid tube name %q", tube)
	case n > 0 && j.state == stateDeleted:
		return false, damagef("full record of deleted job %d", j.id)
	}
	switch {
	case j.id > engine.MaxSafeID:
		r.note("%s at %d: job %d dropped: implausible id", r.name, r.at(), j.id)
	case n == 0:
		err = r.short(&j)
	default:
		err = r.full(&j, string(tube), body[:j.size])
	}
	r.rest = r.rest[size:]
	return true, err
}

// atEnd handles the end of the records: it returns an error if any byte other than zero
// follows.
func atEnd(b []byte, format string, args ...any) error {
	if isZero(b) {
		return nil
	}
	return damagef(format, args...)
}

func isZero(b []byte) bool { return len(bytes.TrimLeft(b, "\x00")) == 0 }

// short applies a short record.
func (r *reader) short(j *job) error {
	c := r.changeOf(engine.JobState, j)
	if j.state == stateDeleted {
		c = engine.Change{Kind: engine.JobDeleted, ID: j.id, BodyLen: c.BodyLen}
	}
	return r.good(c)
}

// full applies a full record. body ends with CR LF if it is valid.
func (r *reader) full(j *job, tube string, body []byte) error {
	body, ok := bytes.CutSuffix(body, []byte(bodyEnd))
	if !ok {
		// The attributes are also valid for an earlier copy of the job, if there is one.
		// That copy has the correct body, because bodies never change.
		r.note("%s at %d: job %d dropped: its body of %d bytes does not end with CR LF", r.name, r.at(), j.id, j.size)
		r.report.LastID = max(r.report.LastID, j.id)
		return r.apply(r.changeOf(engine.JobState, j))
	}
	c := r.changeOf(engine.JobPut, j)
	c.Tube, c.Body = tube, body
	return r.good(c)
}

// good counts and applies a valid record.
func (r *reader) good(c engine.Change) error {
	r.report.Records++
	r.report.LastID = max(r.report.LastID, c.ID)
	return r.apply(c)
}

// changeOf returns the Change for a record, without tube and body.
func (r *reader) changeOf(kind engine.ChangeKind, j *job) engine.Change {
	c := j.change(kind, r.epoch)
	switch j.state {
	case stateReady, stateReserved:
		c.State = engine.Ready
	case stateBuried:
		c.State, c.Due = engine.Buried, int64(j.id)
	case stateDelayed:
		c.State, c.Due = engine.Delayed, j.deadline-r.epoch
	}
	return c
}
