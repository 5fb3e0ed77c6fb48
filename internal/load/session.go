package load

import (
	"bytes"
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

// A session is one connection as the load sees it: it appends commands to out
// and consumes replies from in. It knows no sockets; a client (epoll loop or
// goroutine) moves the bytes:
//
//	s.fill(now, phase)               // as many commands as may be in flight
//	... write s.out, read into s.space(), s.received(n) ...
//	err := s.replies(now, phase)     // check and time what came
//	s.fill(now, phase)
//	if s.finished() { close }
//
// One goroutine at a time owns a session. Those of a crew share the owner, or
// its lock.
type session struct {
	// Static after newSession.
	script script
	put    []byte // the whole put command
	body   []byte // what every reserved job must contain
	crew   *crew  // nil unless the mix is Wake

	// Bytes. in[r:w] has been read and not parsed, out has not been written.
	in   []byte
	r, w int
	out  []byte

	// Commands in flight, oldest at head: a ring of capacity InFlight.
	ring     []flight
	head     int
	inFlight int

	tally tally
	reply wire.Reply
}

// A flight is a command that has no reply yet.
type flight struct {
	op   wire.Op
	sent int64 // ns
}

// A tally counts replies and times them. Latencies of one batch are often all
// the same, so that they are recorded as a run.
type tally struct {
	hist     *hdrhistogram.Histogram // ns; shared by the sessions of one owner
	commands int64                   // replies received while measuring
	last     int64                   // when the last of them came, ns
	latency  int64                   // the run: this latency ...
	run      int64                   // ... so many times
	pace     int64                   // see Options.Pace, ns
	byOp     byCommand               // nil unless asked for
}

const (
	maxLatency = int64(time.Minute) // longer ones are recorded as this

	// Reads ask for at least this much. A reply longer than the buffer makes it grow.
	minSpace = 4 << 10
)

// newHistogram covers 64 ns to a minute with three significant digits.
func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(100, maxLatency, 3)
}

func (t *tally) record(latency int64) {
	if latency != t.latency {
		t.flush()
		t.latency = latency
	}
	t.run++
}

func (t *tally) flush() {
	if t.run > 0 {
		// The value is within the histogram's range, so there is no error.
		_ = t.hist.RecordValues(min(max(t.latency, 0), maxLatency), t.run)
		t.recordHeldBack()
		t.run = 0
	}
}

// recordHeldBack records the commands that a client with a pace would have sent
// while it waited for the last ones.
func (t *tally) recordHeldBack() {
	if t.pace <= 0 {
		return
	}
	for rest := min(t.latency, maxLatency) - t.pace; rest >= t.pace; rest -= t.pace {
		_ = t.hist.RecordValues(rest, t.run)
	}
}

func newSession(sc script, window int, body []byte) *session {
	return &session{
		script: sc,
		put:    wire.AppendPut(nil, putPri, 0, putTTR, body),
		body:   body,
		in:     make([]byte, 2*minSpace),
		ring:   make([]flight, window),
	}
}

const (
	putPri = 1024
	putTTR = 3600 // s; long enough that no job of a run comes back
)

// fill appends commands to out until as many are in flight as may be, or the
// script has none to send.
func (s *session) fill(now int64, ph phase) {
	for s.inFlight < len(s.ring) {
		op, id := s.script.next(now, ph)
		switch op {
		case wire.Put:
			s.out = append(s.out, s.put...)
		case wire.Reserve:
			s.out = wire.AppendReserve(s.out)
		case wire.ReserveTimeout:
			s.out = wire.AppendReserveTimeout(s.out, 0)
		case wire.Delete:
			s.out = wire.AppendDelete(s.out, id)
		default:
			return
		}
		tail := s.head + s.inFlight
		if tail >= len(s.ring) {
			tail -= len(s.ring)
		}
		s.ring[tail] = flight{op, now}
		s.inFlight++
	}
}

// space returns where the next read goes; never empty.
func (s *session) space() []byte {
	if len(s.in)-s.w < minSpace {
		if s.r > 0 {
			s.w = copy(s.in, s.in[s.r:s.w])
			s.r = 0
		}
		if len(s.in)-s.w < minSpace {
			s.in = append(s.in, make([]byte, len(s.in))...)
		}
	}
	return s.in[s.w:]
}

// received says that n bytes were read into the slice that space returned.
func (s *session) received(n int) { s.w += n }

// replies parses and checks all whole replies that have been received, now
// being the time of the read that brought them.
func (s *session) replies(now int64, ph phase) error {
	for s.r < s.w {
		n, err := wire.ParseReply(s.in[s.r:s.w], &s.reply)
		if err != nil {
			return fmt.Errorf("load: not a reply: %s: %w", firstLine(s.in[s.r:s.w]), err)
		}
		if n == 0 {
			break
		}
		if err := s.take(now, ph, s.in[s.r:s.r+n]); err != nil {
			return err
		}
		s.r += n
	}
	if s.r == s.w {
		s.r, s.w = 0, 0
	}
	return nil
}

// take handles s.reply, whose bytes are raw.
func (s *session) take(now int64, ph phase, raw []byte) error {
	if s.inFlight == 0 {
		return fmt.Errorf("load: a reply to no command: %s", firstLine(raw))
	}
	f := s.ring[s.head]
	if s.head++; s.head == len(s.ring) {
		s.head = 0
	}
	s.inFlight--

	verdict, since := s.script.answered(f, &s.reply)
	switch {
	case s.reply.Kind == wire.Reserved && !s.wasPut(s.reply.Body):
		return fmt.Errorf("load: job %d has a body of %d bytes that is not the one of %d bytes that was put (were the tubes empty before the run?)",
			s.reply.ID, len(s.reply.Body), len(s.body))
	case verdict == unexpected:
		return fmt.Errorf("load: unexpected reply to %s: %s", f.op, firstLine(raw))
	case ph != measuring || verdict == uncounted:
		return nil
	}
	s.tally.commands++
	s.tally.last = now
	if verdict == timed {
		s.tally.record(now - since)
		s.tally.byOp.record(f.op, now-since)
	}
	return nil
}

// wasPut reports whether a job with this body is one of ours.
func (s *session) wasPut(body []byte) bool {
	stamp := 0
	if s.crew != nil {
		stamp = s.crew.stamp // that part is for the crew to judge
	}
	return len(body) == len(s.body) && bytes.Equal(body[stamp:], s.body[stamp:])
}

// finished reports whether the script is over and every command answered. It
// is to be asked after fill.
func (s *session) finished() bool { return s.script.over(s.inFlight) }

// firstLine quotes the start of a reply for an error message.
func firstLine(raw []byte) string {
	line, _, _ := bytes.Cut(raw, []byte{'\n'})
	return fmt.Sprintf("%.60q", bytes.TrimRight(line, "\r"))
}
