// Package entry is the form of the entries of a cluster's log: what a turn has changed.
//
//	var b entry.Builder
//	b.Add(&change, epoch)                         // each in its order
//	entries := b.Entries(stamp)                   // one, or more if there is much
//	…
//	var d entry.Decoder
//	stamp, changes, err := d.Decode(data, epoch)  // at each member
//
// An entry has a level, the format's version. A member that does not know a level cannot
// go on: it must not skip what the others have.
//
// A turn of many changes makes several entries. That is no harm: each change stands
// alone, and the turn is settled when the last of them is.
package entry

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/journal/record"
)

// Entries. Numbers without a width are varints, fixed ones little-endian.
//
//	entry := level u8  stamp i64  { length record }
//
// A record is one of package record.
const headLength = 1 + 8

const (
	// Level is the highest level that this program knows.
	Level = 2

	// Written is the level in use: the one of the entries that this program writes. It
	// follows Level in a later version, so that members of two versions that come one
	// after the other understand each other while one replaces the other.
	Written = 2
)

// wanted is how many bytes an entry has at most, unless it has a single change.
const wanted = 1 << 20

// A Builder collects the changes of a turn.
type Builder struct {
	done [][]byte
	open []byte // head without stamp, and records; reused
	head []byte // scratch
}

// Add adds a change. epoch is the moment at which the engine's clock was 0, in ns since
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
	if len(b.open) > wanted { // one large change
		b.done, b.open = append(b.done, b.open), nil
		return
	}
	b.done, b.open = append(b.done, bytes.Clone(b.open)), b.open[:0] // Raft keeps the entry
}

// Entries returns the entries of all that was added, and forgets that. stamp is the
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

// Reset forgets what was added.
func (b *Builder) Reset() { b.done, b.open = nil, b.open[:0] }

var (
	// ErrUnknown is wrapped by the error of Decode for an entry of a level that this
	// program does not know.
	ErrUnknown = errors.New("this version of beanpole does not know what is in the entry; a newer one is needed")

	// ErrInvalid is wrapped by that for one which no version writes.
	ErrInvalid = errors.New("not an entry of a cluster's log")
)

// A Decoder decodes entries one after the other.
type Decoder struct {
	changes []engine.Change
	tubes   map[string]string // so that each name is allocated once
}

// maxNames is how many names of tubes a decoder keeps.
const maxNames = 10_000

// Stamp returns the stamp of an entry.
func Stamp(data []byte) (int64, error) {
	if len(data) < headLength {
		return 0, fmt.Errorf("%w: it has %d bytes", ErrInvalid, len(data))
	}
	if data[0] == 0 || data[0] > Level {
		return 0, fmt.Errorf("%w: level %d", ErrUnknown, data[0])
	}
	return int64(binary.LittleEndian.Uint64(data[1:])), nil
}

// Decode is the reverse of Add. The bodies alias data; the changes are valid until the
// next call.
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
			return 0, nil, fmt.Errorf("%w: a record is cut short", ErrInvalid)
		}
		rest = rest[n:]
		c, err := record.Decode(rest[:length:length], epoch, d.tubes)
		if err != nil {
			return 0, nil, err
		}
		if !ofEngine(c.Kind) {
			return 0, nil, fmt.Errorf("%w: a record that belongs to a journal", ErrInvalid)
		}
		d.changes = append(d.changes, c)
		rest = rest[length:]
	}
	return stamp, d.changes, nil
}

// ofEngine reports whether a change is one that an entry may have. The highest id is
// none: each put says its own.
func ofEngine(kind engine.ChangeKind) bool {
	switch kind {
	case engine.JobPut, engine.JobState, engine.JobDeleted, engine.TubePaused, engine.PolicySet:
		return true
	}
	return false
}
