package binlog

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// Options of Read and Write. With the zero value the engine's clock is the wall clock,
// and files have up to 10 MiB.
type Options struct {
	// Epoch is the time, in nanoseconds since 1970, at which the engine's clock was 0. It
	// must not be negative.
	Epoch int64

	// FileSize is the maximum size of a file that Write creates, in bytes. A file with
	// one record can be larger.
	FileSize int64
}

// Read reads all beanstalkd files in a directory. It calls apply with a Change for
// each record, in order, and finally with a LastID, unless there was no record. An engine
// that restores the changes (engine.Restore) contains every job in its state on the disk;
// reserved jobs are ready. A delayed job can be due. The Due of a buried job, its rank in
// the order of burying, is its id.
//
// The Body of a Change is valid until apply returns.
//
// Damaged files are not an error: the caller must check the Report. Read stops at an
// error of the file system or of apply, and returns it with the Report so far.
func Read(fsys vfs.FS, dir string, opt Options, apply func(engine.Change) error) (Report, error) {
	r := reader{
		fs:    fsys,
		dir:   dir,
		epoch: opt.Epoch,
		apply: apply,
		tubes: make(map[string]string),
		in:    bufio.NewReaderSize(nil, chunk),
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
	tubes  map[string]string // each name once
	unsafe map[uint64]bool   // jobs with ids above engine.MaxSafeID, or nil

	// The state of the current file.
	file *FileReport
	in   *bufio.Reader
	left int64  // number of unread bytes
	body []byte // scratch
}

// chunk is the number of bytes per read or write. A larger body is read at once.
const chunk = 1 << 20

func (r *reader) readAll() error {
	nums, err := list(r.fs, r.dir)
	if err != nil {
		return err
	}
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
	size, _, err := f.Stat()
	if err != nil {
		return fmt.Errorf("binlog: %w", err)
	}
	r.report.Files = append(r.report.Files, FileReport{Name: name, Size: size})
	r.file = &r.report.Files[len(r.report.Files)-1]
	r.in.Reset(io.NewSectionReader(f, 0, size))
	r.left = size

	err = r.readRecords()
	if err == nil && r.file.Version == 0 && !newest {
		err = damagef("no header: only the newest file can lack it")
	}
	var reason damage
	if errors.As(err, &reason) {
		r.file.Stopped = &Damage{File: name, Offset: r.file.Read, Reason: string(reason)}
		return nil
	}
	return err
}

// readRecords reads the header and records of a file. It returns nil at the end, a damage
// if the rest is unreadable, or an error at which Read stops.
func (r *reader) readRecords() error {
	if err := r.readHeader(); err != nil || r.file.Version == 0 {
		return err
	}
	for {
		r.file.Read = r.at()
		if more, err := r.readRecord(); !more || err != nil {
			return err
		}
	}
}

// readHeader reads the header. The version stays 0 if the file is empty.
func (r *reader) readHeader() error {
	if r.left < headerSize {
		return nil
	}
	b, err := r.peek(headerSize)
	if err != nil {
		return err
	}
	r.file.Version = int32(le.Uint32(b))
	switch r.file.Version {
	case version:
	case 0:
		end, err := r.skipZeros()
		if err == nil && !end {
			return damagef("no header, but data from %d on", r.at())
		}
		return err
	default:
		return damagef("unknown version %d", r.file.Version)
	}
	return r.skip(headerSize)
}

// readRecord reads a record. It returns false at the end of the records.
func (r *reader) readRecord() (more bool, err error) {
	start, headSize := r.at(), lenSize+jobSize
	if r.left < int64(headSize) {
		return false, r.atEnd("%d bytes are less than a record", r.left)
	}
	b, err := r.peek(headSize)
	if err != nil {
		return false, err
	}
	n, err := nameLen(b)
	if err != nil {
		return false, err
	}
	if n == 0 && le.Uint64(b[lenSize:]) == 0 {
		return false, r.atEnd("record without an id")
	}
	headSize += n
	if r.left < int64(headSize) {
		return false, r.cutOff(int64(headSize))
	}
	if b, err = r.peek(headSize); err != nil {
		return false, err
	}
	name := b[lenSize:][:n]
	j, err := decodeJob(b[lenSize+n:])
	switch {
	case err != nil:
		return false, err
	case j.id == 0:
		return false, damagef("record with a tube but without an id")
	case n > 0 && !validTube(name):
		return false, damagef("invalid tube name %q", name)
	case n > 0 && j.state == stateDeleted:
		return false, damagef("full record of deleted job %d", j.id)
	}
	tube := r.intern(name)
	if whole := int64(headSize) + int64(j.size); n > 0 && r.left < whole {
		return false, r.cutOff(whole)
	}
	if err := r.skip(headSize); err != nil {
		return false, err
	}
	if n == 0 {
		return true, r.short(&j, start)
	}
	if err := r.readBody(j.size); err != nil {
		return false, err
	}
	return true, r.full(&j, start, tube)
}

// at returns the offset of the next unread byte.
func (r *reader) at() int64 { return r.file.Size - r.left }

// peek returns the next n bytes, at most a chunk; at least n must be left.
func (r *reader) peek(n int) ([]byte, error) {
	b, err := r.in.Peek(n)
	return b, r.fsError(err)
}

// skip skips the next n bytes, which peek returned.
func (r *reader) skip(n int) error {
	r.left -= int64(n)
	_, err := r.in.Discard(n)
	return r.fsError(err)
}

// readBody reads the next n bytes into body, which does not keep the array of a large
// body.
func (r *reader) readBody(n int) error {
	if cap(r.body) < n || cap(r.body) > 4*chunk {
		r.body = make([]byte, n)
	}
	r.body = r.body[:n]
	r.left -= int64(n)
	_, err := io.ReadFull(r.in, r.body)
	return r.fsError(err)
}

// skipZeros skips zeros and reports whether the file ends with them.
func (r *reader) skipZeros() (end bool, err error) {
	for r.left > 0 {
		b, err := r.peek(int(min(r.left, chunk)))
		if err != nil {
			return false, err
		}
		rest := len(bytes.TrimLeft(b, "\x00"))
		if err := r.skip(len(b) - rest); err != nil || rest > 0 {
			return false, err
		}
	}
	return true, nil
}

// atEnd handles the end of the records: it returns a damage if anything but zeros
// follows.
func (r *reader) atEnd(format string, args ...any) error {
	reason := damagef(format, args...)
	end, err := r.skipZeros()
	if err == nil && !end {
		return damagef("%v; not zero at %d", reason, r.at())
	}
	return err
}

func (r *reader) cutOff(size int64) error {
	return damagef("record of at least %d bytes ends after %d", size, r.left)
}

// short applies the short record at start.
func (r *reader) short(j *job, start int64) error {
	if j.id > engine.MaxSafeID && !r.unsafe[j.id] {
		r.drop(start, j, "record of unknown job %d dropped: implausible id", j.id)
		return nil
	}
	r.good(j)
	c := r.changeOf(engine.JobState, j)
	if j.state == stateDeleted {
		c = engine.Change{Kind: engine.JobDeleted, ID: j.id, BodyLen: c.BodyLen}
	}
	return r.apply(c)
}

// full applies the full record at start. Its body is in r.body.
func (r *reader) full(j *job, start int64, tube string) error {
	if j.id > engine.MaxID {
		r.drop(start, j, "job %d dropped: no job can have this id", j.id)
		return nil
	}
	body, ok := bytes.CutSuffix(r.body, []byte(bodyEnd))
	if !ok {
		// The attributes are also valid for an earlier copy of the job, if there is one.
		// That copy has the right body, because bodies never change.
		r.drop(start, j, "job %d dropped: its body of %d bytes does not end with CR LF", j.id, j.size)
		if j.id > engine.MaxSafeID && !r.unsafe[j.id] {
			return nil // the engine must not count the id
		}
		r.report.LastID = max(r.report.LastID, j.id)
		return r.apply(r.changeOf(engine.JobState, j))
	}
	if j.id > engine.MaxSafeID {
		if r.unsafe == nil {
			r.unsafe = make(map[uint64]bool)
		}
		r.unsafe[j.id] = true
	}
	r.good(j)
	c := r.changeOf(engine.JobPut, j)
	c.Tube, c.Body = tube, body
	return r.apply(c)
}

// good counts an applied record.
func (r *reader) good(j *job) {
	r.file.Records++
	r.report.LastID = max(r.report.LastID, j.id)
}

// drop counts the record at start as dropped.
func (r *reader) drop(start int64, j *job, format string, args ...any) {
	r.file.DroppedCount++
	if len(r.file.Dropped) < MaxDropped {
		r.file.Dropped = append(r.file.Dropped, Damage{r.file.Name, start, j.id, fmt.Sprintf(format, args...)})
	}
}

// changeOf returns a record as a Change, without tube and body.
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

// intern returns the tube's name as a string that the tube's jobs share.
func (r *reader) intern(name []byte) string {
	s, ok := r.tubes[string(name)]
	if !ok {
		s = string(name)
		r.tubes[s] = s
	}
	return s
}

// fsError adds the file's name to an error of the file system.
func (r *reader) fsError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF):
		err = io.ErrUnexpectedEOF // the file has become shorter
	}
	return fmt.Errorf("binlog: %s: %w", filepath.Join(r.dir, r.file.Name), err)
}
