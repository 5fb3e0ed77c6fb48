package binlog

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// Options of Read and Write. With the zero value the engine's clock is the wall
// clock, and Write splits at 10 MiB.
type Options struct {
	// Epoch is the moment, in nanoseconds since 1970, at which the engine's
	// clock was 0. It is not negative.
	Epoch int64

	// FileSize is how large a file is at most, in bytes, unless it has only one
	// record. For Write only.
	FileSize int64
}

// Read reads all of beanstalkd's files in a directory and calls apply with a Change for
// each record, in order, and at last with a LastID, unless there was no record. An
// engine that restores them (engine.Restore) has every job as beanstalkd left it on the
// disk; jobs that were reserved are ready. A delayed job may be due already. The Due of
// a buried job is its rank in the order of burying.
//
// The Body of a Change is valid until apply returns.
//
// Damaged files are not an error: the caller must look at the Report. An error of the
// file system or of apply ends the reading, and is returned with the Report so far.
func Read(fsys vfs.FS, dir string, opt Options, apply func(engine.Change) error) (Report, error) {
	r := reader{
		fs:    fsys,
		dir:   dir,
		epoch: opt.Epoch,
		apply: apply,
		ranks: ranks{last: make(map[uint64]int64)},
		tubes: make(map[string]string),
	}
	err := r.readAll()
	return r.report, err
}

// A reader is the state of Read.
type reader struct {
	fs    vfs.FS
	dir   string
	epoch int64
	apply func(engine.Change) error

	report Report
	ranks  ranks
	tubes  map[string]string // each name once
	unsafe map[uint64]bool   // jobs with ids above engine.MaxSafeID; nil: none

	// Of the file that is being read.
	file *FileReport
	src  source
}

func (r *reader) readAll() error {
	nums, alike, err := list(r.fs, r.dir)
	if err != nil {
		return err
	}
	r.report.Ignored = alike
	for i, n := range nums {
		if i > 0 && n > nums[i-1]+1 {
			r.report.Missing = append(r.report.Missing, missing(nums[i-1]+1, n-1))
		}
		if err := r.readFile(fileName(n), i == len(nums)-1); err != nil {
			return err
		}
	}
	if r.report.LastID == 0 {
		return nil
	}
	return r.apply(engine.Change{Kind: engine.LastID, ID: r.report.LastID})
}

func missing(first, last int) string {
	if first == last {
		return fileName(first)
	}
	return fileName(first) + " to " + fileName(last)
}

func (r *reader) readFile(name string, newest bool) error {
	f, err := r.fs.Open(filepath.Join(r.dir, name))
	if err != nil {
		return fmt.Errorf("binlog: %w", err)
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return fmt.Errorf("binlog: %w", err)
	}
	r.report.Files = append(r.report.Files, FileReport{Name: name, Size: size})
	r.file = &r.report.Files[len(r.report.Files)-1]
	r.src = source{f: f, size: size, buf: r.src.buf}

	err = r.readRecords()
	if err == nil && r.file.Version == 0 && !newest {
		err = damagef("no header: only the newest file may have none")
	}
	var reason damage
	if errors.As(err, &reason) {
		r.file.Stopped = &Damage{File: name, Offset: r.file.Read, Reason: string(reason)}
		return nil
	}
	return err
}

// readRecords reads header and records of a file. It returns nil at the end, a damage if
// the rest cannot be read, or an error that ends Read.
func (r *reader) readRecords() error {
	if err := r.readHeader(); err != nil || r.file.Version == 0 {
		return err
	}
	for {
		r.file.Read = r.src.at
		if more, err := r.readRecord(); !more || err != nil {
			return err
		}
	}
}

// readHeader leaves the version 0 if the file ends before anything was written.
func (r *reader) readHeader() error {
	if r.src.left() < headerSize {
		return nil
	}
	b, err := r.src.peek(headerSize)
	if err != nil {
		return r.fsError(err)
	}
	r.file.Version = int32(le.Uint32(b))
	switch r.file.Version {
	case version:
	case 0:
		end, err := r.src.skipZeros()
		if err == nil && !end {
			return damagef("no header, but data from %d on", r.src.at)
		}
		return r.fsError(err)
	default:
		return damagef("unknown version %d", r.file.Version)
	}
	r.src.skip(headerSize)
	return nil
}

// readRecord returns false at the end of the records.
func (r *reader) readRecord() (more bool, err error) {
	start, headSize := r.src.at, lenSize+jobSize
	if r.src.left() < int64(headSize) {
		return false, r.atEnd("%d bytes, which are less than a record", r.src.left())
	}
	b, err := r.src.peek(headSize)
	if err != nil {
		return false, r.fsError(err)
	}
	n, err := nameLen(b)
	if err != nil {
		return false, err
	}
	if n == 0 && le.Uint64(b[lenSize:]) == 0 {
		return false, r.atEnd("a record without an id")
	}
	headSize += n
	if r.src.left() < int64(headSize) {
		return false, r.cutOff(int64(headSize))
	}
	if b, err = r.src.peek(headSize); err != nil {
		return false, r.fsError(err)
	}
	j, err := decodeJob(b[lenSize+n:])
	switch {
	case err != nil:
		return false, err
	case j.id == 0:
		return false, damagef("a record with a tube but without an id")
	case n == 0:
		r.src.skip(headSize)
		return true, r.short(&j, start)
	}

	if name := b[lenSize:][:n]; !validTube(name) {
		return false, damagef("%q cannot be the name of a tube", name)
	}
	if j.state == stateDeleted {
		return false, damagef("a full record of the deleted job %d", j.id)
	}
	if whole := int64(headSize) + int64(j.size); r.src.left() < whole {
		return false, r.cutOff(whole)
	}
	if b, err = r.src.peek(headSize + j.size); err != nil {
		return false, r.fsError(err)
	}
	r.src.skip(headSize + j.size)
	return true, r.full(&j, start, b[lenSize:][:n], b[headSize:])
}

// atEnd is called where there is no further record: nothing but zeros may follow.
func (r *reader) atEnd(format string, args ...any) error {
	reason := damagef(format, args...)
	end, err := r.src.skipZeros()
	if err == nil && !end {
		return damagef("%v; not zero at %d", reason, r.src.at)
	}
	return r.fsError(err)
}

func (r *reader) cutOff(size int64) error {
	return damagef("a record of %d bytes or more is cut off after %d", size, r.src.left())
}

// short applies the short record that begins at start.
func (r *reader) short(j *job, start int64) error {
	if j.id > engine.MaxSafeID && !r.unsafe[j.id] {
		r.drop(start, j, "a record of job %d dropped: there is no such job, and no server has counted as far", j.id)
		return nil
	}
	r.good(j)
	c := r.changeOf(engine.JobState, j, false)
	if j.state == stateDeleted {
		c = engine.Change{Kind: engine.JobDeleted, ID: j.id, BodyLen: c.BodyLen}
	}
	return r.apply(c)
}

// full applies the full record that begins at start.
func (r *reader) full(j *job, start int64, tube, body []byte) error {
	if j.id > engine.MaxID {
		r.drop(start, j, "job %d dropped: no job can have this id", j.id)
		return nil
	}
	body, ok := cutBodyEnd(body)
	if !ok {
		// The head is also valid for an earlier copy of the job, if there is one. That
		// copy has the right body, because bodies never change.
		r.drop(start, j, "job %d dropped: its body of %d bytes does not end with CR LF", j.id, j.size)
		if j.id <= engine.MaxSafeID {
			r.report.LastID = max(r.report.LastID, j.id)
		}
		return r.apply(r.changeOf(engine.JobState, j, true))
	}
	if j.id > engine.MaxSafeID {
		if r.unsafe == nil {
			r.unsafe = make(map[uint64]bool)
		}
		r.unsafe[j.id] = true
	}
	r.good(j)
	c := r.changeOf(engine.JobPut, j, true)
	c.Tube, c.Body = r.intern(tube), body
	return r.apply(c)
}

func cutBodyEnd(b []byte) (body []byte, ok bool) {
	n := len(b) - len(bodyEnd)
	return b[:n:n], string(b[n:]) == bodyEnd
}

// good counts a record that is applied.
func (r *reader) good(j *job) {
	r.file.Records++
	r.report.LastID = max(r.report.LastID, j.id)
}

// drop counts the record that begins at start, which is not applied.
func (r *reader) drop(start int64, j *job, format string, args ...any) {
	r.file.DroppedCount++
	if len(r.file.Dropped) < MaxDropped {
		r.file.Dropped = append(r.file.Dropped, Damage{r.file.Name, start, j.id, fmt.Sprintf(format, args...)})
	}
}

// changeOf returns a record as a Change, without tube and body.
func (r *reader) changeOf(kind engine.ChangeKind, j *job, full bool) engine.Change {
	c := j.change(kind, r.epoch)
	rank := r.ranks.note(j, full)
	switch j.state {
	case stateReady, stateReserved:
		c.State = engine.Ready
	case stateBuried:
		c.State, c.Due = engine.Buried, rank
	case stateDelayed:
		c.State, c.Due = engine.Delayed, j.deadline-r.epoch
	}
	return c
}

// intern returns the tube's name as a string that all its jobs share.
func (r *reader) intern(name []byte) string {
	s, ok := r.tubes[string(name)]
	if !ok {
		s = string(name)
		r.tubes[s] = s
	}
	return s
}

// fsError says which file an error of the file system came from.
func (r *reader) fsError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("binlog: %s: %w", filepath.Join(r.dir, r.file.Name), err)
}

// ranks finds the order in which jobs were buried.
//
// A short record with state buried is the burying itself. A full one is a copy by
// compaction: the job keeps the rank of its last burying. If that record is missing, it
// was in a file that was removed. Such files are the oldest, so these jobs were buried
// before all others.
type ranks struct {
	last map[uint64]int64 // rank of each buried job, unknown jobs included

	copies   int64 // number of buried jobs that have a copy only
	buryings int64 // number of records of burying
}

// firstBurying is larger than any number of copies.
const firstBurying = 1 << 32

// note notes a record, and returns the rank of the job if it is buried.
func (r *ranks) note(j *job, full bool) int64 {
	if j.state != stateBuried {
		delete(r.last, j.id)
		return 0
	}
	rank, known := r.last[j.id]
	switch {
	case !full:
		r.buryings++
		rank = firstBurying + r.buryings
	case !known:
		r.copies++
		rank = r.copies
	}
	r.last[j.id] = rank
	return rank
}
