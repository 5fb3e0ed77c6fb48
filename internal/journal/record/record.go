// Package record encodes the engine's Changes in bytes: one Change, one record. The
// journal keeps them in its segments, and a cluster can send them.
//
//	rec := record.Append(nil, &change, epoch)        // the head; the Body follows it
//	change, err := record.Decode(rec, epoch, names)  // of head and Body together
//
// The encoding never changes: each version reads the records of earlier versions
// (testdata/records.txt). The packages that keep records add checksums and lengths.
package record

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// Records. A number without a width is a varint (base 128, least significant
// group first, as in package encoding/binary); fixed numbers are little-endian.
// Times are nanoseconds since 1970.
//
//	record   := put | state | deleted | paused | last | applied | policy
//	put      := kind (1) job tube [origin] [run] body   a whole job
//	state    := kind (2) job                            a job's new state
//	deleted  := kind (3) id
//	paused   := kind (4) tube seconds until i64         0 seconds: not paused, or gone
//	last     := kind (5) id                             the highest id ever assigned
//	applied  := kind (10) index term stamp i64          cluster member: the records before contain all changes up to this entry
//	policy   := kind (11) tube settings                 settings of a pattern from run time; empty if they were removed
//	schedule := kind (12) name settings                 definition of a schedule from run time; empty if it was removed
//	mark     := kind (13) name mark                     progress of a schedule; empty if it was removed
//
//	job      := flags u8 id pri delay ttr created i64 [due] [counters] [failure]
//	flags    := state (1 ready, 3 delayed, 4 buried), and the sum of the optional parts:
//	            16 counters, 32 origin, 64 failure, 128 run
//	origin   := tube                                    from which a policy moved the job
//	run      := name length mark                        of the schedule that put the job
//	due      := i64 when a delayed job becomes ready | rank of a buried job
//	counters := reserves timeouts releases buries kicks
//	failure  := length, an engine.FailureRecord
//	tube     := length u8, name
//	body     := the rest of the record, without CR LF
//	settings := the rest of the record: lines such as max-attempts=5, by name
//	mark     := JSON, see engine.Mark
//	name     := tube
const (
	kindPut     = 1
	kindState   = 2
	kindDeleted = 3
	kindPaused  = 4
	kindLast    = 5

	kindApplied = 10

	kindPolicy   = 11 // the kinds of names have the order of the engine
	kindSchedule = 12
	kindMark     = 13

	flagCounters = 16
	flagOrigin   = 32
	flagFailure  = 64
	flagRun      = 128
	stateMask    = flagCounters - 1
)

// MaxLen returns the maximum length in bytes of a change's record, with a tube's name and
// a body of the given lengths. It supports the kinds of the engine.
func MaxLen(kind engine.ChangeKind, tube, body int) int {
	const job = 1 + 1 + binary.MaxVarintLen64 + 3*binary.MaxVarintLen32 + 8 + binary.MaxVarintLen64 + 5*binary.MaxVarintLen32
	const failure = 2 + engine.MaxFailure
	switch kind {
	case engine.JobPut: // a JobPut has neither an origin nor a failure
		return job + 1 + tube + body
	case engine.JobMoved:
		return job + failure + 1 + tube + 1 + maxTube + body
	case engine.JobState:
		return job + failure
	case engine.JobDeleted, engine.LastID:
		return 1 + binary.MaxVarintLen64
	case engine.PolicySet, engine.ScheduleSet, engine.ScheduleMark:
		return 1 + 1 + tube + body
	}
	return 1 + 1 + tube + binary.MaxVarintLen32 + 8
}

// AppliedMark is a kind of change that only a journal contains. Its Body is an Applied.
const AppliedMark = engine.ChangeKind(0x80 + kindApplied)

// PutID returns the id of the job in a record. ok is false if the record does not contain
// a whole job.
func PutID(rec []byte) (id uint64, ok bool) {
	if rec[0] != kindPut || len(rec) < 3 {
		return 0, false
	}
	id, _ = binary.Uvarint(rec[2:]) // after the kind and the flags
	return id, true
}

// Append appends the record of c without its Body, which follows it in the log. epoch is
// the time at which the engine's clock was 0.
func Append(dst []byte, c *engine.Change, epoch int64) []byte {
	switch c.Kind {
	case engine.JobPut, engine.JobMoved:
		dst = appendJobFields(append(dst, kindPut), c, epoch)
		dst = appendTube(dst, c.Tube)
		if c.Origin != "" {
			dst = appendTube(dst, c.Origin)
		}
		if c.MarkLen() > 0 {
			dst = binary.AppendUvarint(appendTube(dst, c.From), uint64(len(c.Was)))
			dst = append(dst, c.Was...)
		}
	case engine.JobState:
		dst = appendJobFields(append(dst, kindState), c, epoch)
	case engine.JobDeleted:
		dst = binary.AppendUvarint(append(dst, kindDeleted), c.ID)
	case engine.TubePaused, engine.TubeGone:
		dst = appendTube(append(dst, kindPaused), c.Tube)
		dst = binary.AppendUvarint(dst, uint64(c.Delay))
		dst = appendMoment(dst, c.Due, epoch)
	case engine.PolicySet, engine.ScheduleSet, engine.ScheduleMark:
		dst = appendTube(append(dst, kindPolicy+byte(c.Kind-engine.PolicySet)), c.Tube)
	case engine.LastID:
		dst = binary.AppendUvarint(append(dst, kindLast), c.ID)
	case AppliedMark:
		dst = append(dst, kindApplied)
	}
	return dst
}

func appendJobFields(dst []byte, c *engine.Change, epoch int64) []byte {
	flags := byte(c.State)
	if c.Counts != (engine.Counts{}) {
		flags |= flagCounters
	}
	if c.Origin != "" && c.Kind != engine.JobState {
		flags |= flagOrigin
	}
	if len(c.Failure) > 0 {
		flags |= flagFailure
	}
	if c.MarkLen() > 0 {
		flags |= flagRun
	}
	dst = append(dst, flags)
	dst = binary.AppendUvarint(dst, c.ID)
	dst = binary.AppendUvarint(dst, uint64(c.Pri))
	dst = binary.AppendUvarint(dst, uint64(c.Delay))
	dst = binary.AppendUvarint(dst, uint64(c.TTR))
	dst = appendMoment(dst, c.Created, epoch)
	switch c.State {
	case engine.Delayed:
		dst = appendMoment(dst, c.Due, epoch)
	case engine.Buried:
		dst = binary.AppendUvarint(dst, uint64(c.Due))
	}
	if flags&flagCounters != 0 {
		for _, n := range c.All() {
			dst = binary.AppendUvarint(dst, uint64(*n))
		}
	}
	if len(c.Failure) > 0 {
		dst = append(binary.AppendUvarint(dst, uint64(len(c.Failure))), c.Failure...)
	}
	return dst
}

func appendTube(dst []byte, name string) []byte {
	return append(append(dst, byte(len(name))), name...)
}

func appendMoment(dst []byte, t, epoch int64) []byte {
	return binary.LittleEndian.AppendUint64(dst, uint64(t+epoch))
}

// ErrInvalid reports bytes that no version of beanpole writes. Errors of Decode wrap it.
var ErrInvalid = errors.New("invalid record")

// Decode is the inverse of Append. It also sets Body and BodyLen; Body and Failure alias
// the record. tubes collects the names, so that each is allocated once.
func Decode(rec []byte, epoch int64, tubes map[string]string) (engine.Change, error) {
	d := decoder{rest: rec, epoch: epoch, tubes: tubes}
	var c engine.Change
	switch kind := d.byte(); kind {
	case kindPut:
		c.Kind = engine.JobPut
		flags := d.job(&c)
		c.Tube = d.tube()
		if flags&flagOrigin != 0 {
			c.Origin = d.tube()
		}
		if flags&flagRun != 0 {
			c.From = d.tube()
			c.Was = string(d.bytes(int(min(d.uvarint(), uint64(len(d.rest)+1)))))
		}
		c.Body, d.rest = d.rest, nil
		c.BodyLen = len(c.Body)
	case kindState:
		c.Kind = engine.JobState
		d.bad = d.job(&c)&(flagOrigin|flagRun) != 0 || d.bad
	case kindDeleted:
		c.Kind = engine.JobDeleted
		c.ID = d.uvarint()
	case kindPaused:
		c.Kind = engine.TubePaused
		c.Tube = d.tube()
		c.Delay = d.uint32()
		c.Due = d.moment()
	case kindPolicy, kindSchedule, kindMark:
		c.Kind = engine.PolicySet + engine.ChangeKind(kind-kindPolicy)
		c.Tube = d.tube()
		c.Body, d.rest = d.rest, nil
		c.BodyLen = len(c.Body)
	case kindLast:
		c.Kind = engine.LastID
		c.ID = d.uvarint()
	case kindApplied:
		c.Kind = AppliedMark
		c.Body = d.applied()
	default:
		return c, fmt.Errorf("%w: kind %d", ErrInvalid, kind)
	}
	if d.bad || len(d.rest) > 0 {
		return engine.Change{}, fmt.Errorf("%w: kind %d of %d bytes", ErrInvalid, rec[0], len(rec))
	}
	return c, nil
}

// A decoder reads a record from its start. It keeps its first error.
type decoder struct {
	rest  []byte
	epoch int64
	tubes map[string]string
	bad   bool
}

// job reads the attributes of a job, and returns the flags.
func (d *decoder) job(c *engine.Change) (flags byte) {
	flags = d.byte()
	c.State = engine.State(flags & stateMask)
	c.ID = d.uvarint()
	c.Pri, c.Delay, c.TTR = d.uint32(), d.uint32(), d.uint32()
	c.Created = d.moment()
	switch c.State {
	case engine.Ready:
	case engine.Delayed:
		c.Due = d.moment()
	case engine.Buried:
		c.Due = int64(d.uvarint())
	default:
		d.bad = true
	}
	if flags&flagCounters != 0 {
		for _, n := range [...]*uint32{&c.Reserves, &c.Timeouts, &c.Releases, &c.Buries, &c.Kicks} {
			*n = d.uint32()
		}
	}
	if flags&flagFailure != 0 {
		c.Failure = d.failure()
	}
	if c.TTR == 0 {
		d.bad = true
	}
	return flags
}

func (d *decoder) failure() engine.FailureRecord {
	n := d.uvarint()
	if n > engine.MaxFailure {
		d.bad = true
		return nil
	}
	r := engine.FailureRecord(d.bytes(int(n)))
	d.bad = d.bad || !r.Valid()
	return r
}

func (d *decoder) bytes(n int) []byte {
	if n > len(d.rest) {
		d.bad = true
		d.rest = nil
		return make([]byte, n)
	}
	b := d.rest[:n]
	d.rest = d.rest[n:]
	return b
}

func (d *decoder) byte() byte { return d.bytes(1)[0] }

func (d *decoder) moment() int64 {
	return int64(binary.LittleEndian.Uint64(d.bytes(8))) - d.epoch
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 {
		d.bad = true
		d.rest = nil
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

func (d *decoder) uint32() uint32 {
	v := d.uvarint()
	if v > 1<<32-1 {
		d.bad = true
	}
	return uint32(v)
}

func (d *decoder) tube() string {
	b := d.bytes(int(d.byte()))
	if len(b) == 0 || len(b) > maxTube {
		d.bad = true
	}
	name, ok := d.tubes[string(b)]
	if !ok {
		name = string(b)
		d.tubes[name] = name
	}
	return name
}

// applied returns the rest of the record if it is an Applied.
func (d *decoder) applied() []byte {
	b := d.rest
	d.rest = nil
	if _, ok := DecodeApplied(b); !ok {
		d.bad = true
	}
	return b
}

// maxTube is the length of the longest name of a tube, in bytes.
const maxTube = 200
