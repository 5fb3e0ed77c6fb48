// Package entry encodes the changes of a turn as entries of a cluster's log.
//
//	var b entry.Builder
//	b.Add(&change, epoch)                         // each change, in order
//	entries := b.Entries(stamp)                   // one, or several for many changes
//	…
//	var d entry.Decoder
//	stamp, changes, err := d.Decode(data, epoch)  // on each member
//
// An entry contains a level, which is the version of the format. A member that cannot
// decode a level must stop, because it must not skip changes that other members apply.
//
// A turn with many changes becomes several entries. This is safe, because each change is
// independent, and the turn is committed when its last entry is.
package entry

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/journal/record"
)

// Entries. Numbers without a width are varints; fixed-width numbers are little-endian.
//
//	entry := level u8  stamp i64  { length record }
//
// Package record defines record.
const headLength = 1 + 8

const (
	// Level is the highest level that this program can decode.
	Level = 3

	// Written is the level of the entries that this program writes. When the format
	// changes, Level increases one version before Written, so that rolling upgrades work.
	Written = 3
)

// wanted is the maximum size of an entry in bytes, unless the entry has a single change.
const wanted = 1 << 20

// A Builder collects the changes of a turn.
type Builder struct {
	done [][]byte
	open []byte // head without stamp, and records; reused
	head []byte // scratch
}

// Add adds a change. epoch is the time at which the engine's clock showed 0, in ns since
// 1970.
func (b *Builder) Add(c *engine.Change, epoch int64) {
	b.head = record.Append(b.head[:0], c, epoch)
	n := len(b.head) + len(c.Body)
	if len(b.open) > 0 && len(b.open)+binary.MaxVarintLen32+n > wanted {
		b.close()
	}
	if len(b.open) == 0 {
		b.open = append(b.open, make([]byte, headLength)...)
	}
	b.open = binary.AppendUvarint(b.open, uint64(n))
	b.open = append(append(b.open, b.head...), c.Body...)
}

func (b *Builder) close() {
	if len(b.open) > wanted { // a single large change
		b.done, b.open = append(b.done, b.open), nil
		return
	}
	b.done, b.open = append(b.done, bytes.Clone(b.open)), b.open[:0] // Raft retains the entry
}

// Entries returns the entries of all added changes and resets the builder. stamp is the
// cluster's time in ns since 1970.
func (b *Builder) Entries(stamp int64) [][]byte {
	if len(b.open) > 0 {
		b.close()
	}
	entries := b.done
	b.done = nil
	for _, e := range entries {
		e[0] = Written
		binary.LittleEndian.PutUint64(e[1:], uint64(stamp))
	}
	return entries
}

// Reset discards the added changes.
func (b *Builder) Reset() { b.done, b.open = nil, b.open[:0] }

var (
	// ErrUnknown is wrapped by the error of Decode for an entry of a level that this
	// program cannot decode.
	ErrUnknown = errors.New("the entry needs a newer version of beanpole")

	// ErrInvalid is wrapped by the error of Decode for an entry that no version writes.
	ErrInvalid = errors.New("invalid entry in the cluster's log")
)

// A Decoder decodes entries.
type Decoder struct {
	changes []engine.Change
	tubes   map[string]string // interns names
}

// maxNames is the maximum number of tube names in a decoder.
const maxNames = 10_000

// Stamp returns the stamp of an entry.
func Stamp(data []byte) (int64, error) {
	if len(data) < headLength {
		return 0, fmt.Errorf("%w: %d bytes", ErrInvalid, len(data))
	}
	if data[0] == 0 || data[0] > Level {
		return 0, fmt.Errorf("%w: level %d", ErrUnknown, data[0])
	}
	return int64(binary.LittleEndian.Uint64(data[1:])), nil
}

// Decode decodes an entry made by a Builder. The bodies alias data. The changes are valid
// until the next call.
func (d *Decoder) Decode(data []byte, epoch int64) (stamp int64, changes []engine.Change, err error) {
	if stamp, err = Stamp(data); err != nil {
		return 0, nil, err
	}
	if len(d.tubes) > maxNames || d.tubes == nil {
		d.tubes = make(map[string]string)
	}
	d.changes = d.changes[:0]
	for rest := data[headLength:]; len(rest) > 0; {
		length, n := binary.Uvarint(rest)
		if n <= 0 || length > uint64(len(rest)-n) {
			return 0, nil, fmt.Errorf("%w: truncated record", ErrInvalid)
		}
		rest = rest[n:]
		c, err := record.Decode(rest[:length:length], epoch, d.tubes)
		if err != nil {
			return 0, nil, err
		}
		if !ofEngine(c.Kind) {
			return 0, nil, fmt.Errorf("%w: a record of a journal", ErrInvalid)
		}
		d.changes = append(d.changes, c)
		rest = rest[length:]
	}
	return stamp, d.changes, nil
}

// ofEngine reports whether an entry can contain changes of this kind. It cannot contain
// the highest id, since each put has its id.
func ofEngine(kind engine.ChangeKind) bool {
	switch kind {
	case engine.JobPut, engine.JobState, engine.JobDeleted, engine.TubePaused, engine.PolicySet, engine.ScheduleSet, engine.ScheduleMark:
		return true
	}
	return false
}
