package catchup

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/journal/record"
)

// The stream. A number without a width is a varint; fixed numbers are little-endian.
//
//	stream := magic (8 bytes) mark item* 0 mark jobs       from the first mark, until the second
//	item   := length record                                a whole job, a pause or the last id; see package record
//	mark   := index u64, term u64, stamp i64
const magic = "bpwalk1\n"

// A Mark names an entry of the log. Stamp is the cluster's time of it, in ns since 1970.
type Mark struct {
	Index, Term uint64
	Stamp       int64
}

const markSize = 24

func appendMark(b []byte, m Mark) []byte {
	b = binary.LittleEndian.AppendUint64(b, m.Index)
	b = binary.LittleEndian.AppendUint64(b, m.Term)
	return binary.LittleEndian.AppendUint64(b, uint64(m.Stamp))
}

func readMark(b []byte) Mark {
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(b[8*i:]) }
	return Mark{word(0), word(1), int64(word(2))}
}

// A Donor is the member whose engine is walked: one that follows, or the leader.
type Donor struct {
	// Turn runs f within a turn of the donor, and returns when the turn is over. If it does
	// not run f, or with another engine than before, the walk ends with an error.
	Turn func(f func(e *engine.Engine))

	// Applied names an entry up to which the engine has all. It is called within a turn.
	Applied func() Mark

	// Settled waits until nothing that the engine has had in turns before the call can be
	// lost any more, and names an entry that none of it comes after. At a member that
	// follows that is the last one that it has applied, at once.
	Settled func(ctx context.Context) (Mark, error)

	// Pause is called between two turns of the walk, so that the donor's own work goes on.
	// Nil: there is none.
	Pause func()

	// Epoch is the moment, in ns since 1970, at which the engine's clock was 0.
	Epoch int64
}

// Sent says what was sent.
type Sent struct {
	From, Until Mark
	Jobs        uint64
	Bytes       int64
}

const (
	sliceBytes = 1 << 20 // of a turn, about
	keptBuffer = 4 << 20 // of a larger slice, which had a large job, the memory is given back
)

// Send walks over the engine of a donor and writes all that there is. It reports what it has
// sent; after an error the receiver has nothing that counts.
func Send(ctx context.Context, w io.Writer, d *Donor) (sent Sent, err error) {
	s := sender{donor: d, w: w, sent: &sent, buf: []byte(magic)}
	if err := s.walk(ctx); err != nil {
		return sent, fmt.Errorf("catchup: send: %w", err)
	}
	return sent, nil
}

type sender struct {
	donor *Donor
	w     io.Writer
	sent  *Sent
	buf   []byte // of one turn
	head  []byte // scratch

	eng  *engine.Engine // that is walked
	tour Walk
	done bool
}

// errReplaced: the donor has lost its leadership, or has caught up itself, and has another engine.
var errReplaced = errors.New("the donor has another engine now, or none")

func (s *sender) walk(ctx context.Context) error {
	for first := true; !s.done; first = false {
		if err := ctx.Err(); err != nil {
			return err
		}
		if !first && s.donor.Pause != nil {
			s.donor.Pause()
		}
		same := false
		s.donor.Turn(func(e *engine.Engine) {
			if first {
				s.eng, s.sent.From = e, s.donor.Applied()
				s.buf = appendMark(s.buf, s.sent.From)
			}
			if same = e == s.eng; same {
				s.slice()
			}
		})
		if !same {
			return errReplaced
		}
		if err := s.write(); err != nil {
			return err
		}
	}
	return s.end(ctx)
}

// slice takes what one turn visits; after all jobs and pauses, the last id.
func (s *sender) slice() {
	if s.done = s.tour.Slice(s.eng, sliceBytes, s.add); s.done {
		s.add(&engine.Change{Kind: engine.LastID, ID: s.eng.LastID()})
	}
}

func (s *sender) add(c *engine.Change) (bytes int) {
	before := len(s.buf)
	s.head = record.Append(s.head[:0], c, s.donor.Epoch)
	s.buf = binary.AppendUvarint(s.buf, uint64(len(s.head)+len(c.Body)))
	s.buf = append(append(s.buf, s.head...), c.Body...)
	if c.Kind == engine.JobPut {
		s.sent.Jobs++
	}
	return len(s.buf) - before
}

func (s *sender) end(ctx context.Context) (err error) {
	if s.sent.Until, err = s.donor.Settled(ctx); err != nil {
		return fmt.Errorf("what was sent may be lost again: %w", err)
	}
	s.buf = appendMark(append(s.buf, 0), s.sent.Until)
	s.buf = binary.AppendUvarint(s.buf, s.sent.Jobs)
	return s.write()
}

func (s *sender) write() error {
	n, err := s.w.Write(s.buf)
	s.sent.Bytes += int64(n)
	if s.buf = s.buf[:0]; cap(s.buf) > keptBuffer {
		s.buf = nil
	}
	return err
}
