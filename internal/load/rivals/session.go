package main

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// A session is one connection as the load sees it: it appends requests to out
// and is given what was received. It knows neither sockets nor clocks:
//
//	s.begin(now)                          // a job in each slot
//	... write s.out, read ...
//	n, err := s.received(in, now, phase)  // what was not consumed is to be given again
//	if s.active == 0 { close }
//
// One goroutine owns a session.
type session struct {
	// Static after newSession.
	proto dialect
	conn  int // its number, which makes its bodies differ from those of others

	out    []byte
	slots  []slot
	active int // slots that are not idle
	body   []byte
	seq    uint64 // of the job that was put last

	tally tally

	// jobs finished while measuring; others may look how many there are by now.
	jobs atomic.Int64
}

// A slot is a job under way. In each step one request is without a reply.
type slot struct {
	step  step
	since int64 // when its put was written, ns
}

// A tally is what a session has counted.
type tally struct {
	hist *hdrhistogram.Histogram // of jobs finished while measuring: from put to finish, ns

	// Sums of the stamps of all jobs. Over all sessions they are equal in the end
	// unless a job was lost, taken twice, or left behind by somebody else.
	put, taken uint64
}

func newTally() tally { return tally{hist: hdrhistogram.New(100, maxLatency, 3)} }

func (t *tally) add(u *tally) {
	t.hist.Merge(u.hist)
	t.put += u.put
	t.taken += u.taken
}

func (t *tally) percentile(p float64) time.Duration {
	return time.Duration(t.hist.ValueAtPercentile(p))
}

// A phase is what becomes of a job that is finished.
type phase int32

const (
	warming   phase = iota // it does not count
	measuring              // it does
	stopping               // it does not, and no other is begun in its slot
)

const (
	stampSize  = 16                 // bytes of a body that tell jobs apart, in hex
	maxLatency = int64(time.Minute) // longer ones are recorded as this
)

// newSession wants bodies of at least stampSize bytes.
func newSession(proto dialect, conn, slots, bodySize int) *session {
	return &session{
		proto: proto,
		conn:  conn,
		slots: make([]slot, slots),
		body:  bytes.Repeat([]byte{'x'}, bodySize),
		tally: newTally(),
	}
}

// begin puts a job for each slot.
func (s *session) begin(now int64) {
	for i := range s.slots {
		s.put(i, now)
	}
	s.active = len(s.slots)
}

func (s *session) put(i int, now int64) {
	s.seq++
	stamp := uint64(s.conn)<<40 | s.seq
	var raw [stampSize / 2]byte
	binary.BigEndian.PutUint64(raw[:], stamp)
	hex.Encode(s.body[:stampSize], raw[:])
	s.tally.put += stamp
	s.slots[i] = slot{put, now}
	s.out = s.proto.appendPut(s.out, i, s.body)
}

// received handles all whole messages of in, now being the time of the read
// that brought them, and returns how many bytes they are.
func (s *session) received(in []byte, now int64, ph phase) (consumed int, err error) {
	for consumed < len(in) {
		n, slot, err := s.proto.next(in[consumed:])
		if err != nil {
			return consumed, fmt.Errorf("%w: %s", err, quoted(in[consumed:]))
		}
		if n == 0 {
			break
		}
		if slot != nobody {
			if err := s.advance(slot, now, ph); err != nil {
				return consumed, fmt.Errorf("%w: %s", err, quoted(in[consumed:consumed+n]))
			}
		}
		consumed += n
	}
	return consumed, nil
}

// advance takes the job in a slot to its next step.
func (s *session) advance(i int, now int64, ph phase) error {
	sl := &s.slots[i]
	body, ok := s.proto.answer(i, sl.step)
	if !ok {
		return fmt.Errorf("unexpected reply to %s", sl.step)
	}
	switch sl.step {
	case put:
		sl.step = take
		s.out = s.proto.appendTake(s.out, i)
	case take:
		stamp, err := s.stampOf(body)
		if err != nil {
			return err
		}
		s.tally.taken += stamp
		sl.step = finish
		s.out = s.proto.appendFinish(s.out, i)
	case finish:
		s.finished(sl.since, now, ph)
		sl.step = idle
		if ph != stopping {
			s.put(i, now)
		} else {
			s.active--
		}
	default:
		return fmt.Errorf("a reply to no request")
	}
	return nil
}

func (s *session) finished(since, now int64, ph phase) {
	if ph != measuring {
		return
	}
	s.jobs.Add(1)
	// The value is within the histogram's range, so there is no error.
	_ = s.tally.hist.RecordValue(min(now-since, maxLatency))
}

// stampOf returns the stamp of a body, which must be one of ours.
func (s *session) stampOf(body []byte) (uint64, error) {
	var raw [stampSize / 2]byte
	if len(body) != len(s.body) || !bytes.Equal(body[stampSize:], s.body[stampSize:]) {
		return 0, fmt.Errorf("took a job that nobody put")
	}
	if _, err := hex.Decode(raw[:], body[:stampSize]); err != nil {
		return 0, fmt.Errorf("took a job that nobody put: %w", err)
	}
	return binary.BigEndian.Uint64(raw[:]), nil
}

// quoted is the start of what a server said, for an error message.
func quoted(raw []byte) string { return fmt.Sprintf("%.120q", raw) }
