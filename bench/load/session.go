package load

import (
	"bytes"
	"fmt"
	"net"
	"time"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

// A session is the load's side of a connection: it sends commands, checks the replies and
// measures their latency.
type session struct {
	buffers

	// Constant after dial.
	run    *run
	conn   net.Conn // owned by the loop after join
	script *cycle
	put    []byte // the complete put command
	body   []byte // expected content of every reserved job

	numbers *numbering // nil if all bodies are equal

	// The commands in flight: a ring with the capacity InFlight, and the oldest command
	// at head.
	ring     []flight
	head     int
	inFlight int

	reply wire.Reply
}

// A flight is a command without a reply.
type flight struct {
	op   wire.Op
	sent int64 // in ns
}

const (
	putPri = 1024
	putTTR = 3600 // in seconds; long enough that no TTR expires during a run

	defaultTube = "default" // the tube that a new connection uses and watches
)

func newSession(sc *cycle, window int, body []byte) *session {
	return &session{
		script: sc,
		put:    wire.AppendCommand(nil, &wire.Command{Op: wire.Put, Pri: putPri, TTR: putTTR, Body: body}),
		body:   body,
		ring:   make([]flight, window),
	}
}

// choose makes the connection use and watch only the given tube, in one round trip.
func (s *session) choose(tube string) error {
	commands, n := wire.AppendCommand(wire.AppendCommand(nil, &wire.Command{Op: wire.Use, Tube: []byte(tube)}), &wire.Command{Op: wire.Watch, Tube: []byte(tube)}), 2
	if tube != defaultTube {
		commands, n = wire.AppendCommand(commands, &wire.Command{Op: wire.Ignore, Tube: []byte(defaultTube)}), 3
	}
	if _, err := s.conn.Write(commands); err != nil {
		return err
	}
	for n > 0 {
		in := s.in.unparsed()
		size, err := wire.ParseReply(in, &s.reply)
		switch {
		case err != nil || size > 0 && s.reply.Kind != wire.Using && s.reply.Kind != wire.Watching:
			return fmt.Errorf("load: unexpected reply: %s", firstLine(in))
		case size > 0:
			s.in.parsed += size
			n--
			continue
		}
		size, err = s.conn.Read(s.in.space())
		s.in.add(size)
		if size == 0 && err != nil {
			return fmt.Errorf("load: wait for a reply: %w", err)
		}
	}
	return nil
}

// received implements peer.
func (s *session) received() error {
	now, ph := s.run.now(), s.run.inPhase()
	if err := s.replies(now, ph); err != nil {
		return err
	}
	s.fill(now, ph)
	return nil
}

// done implements peer. It reports whether the script has ended and every command is
// answered.
func (s *session) done() bool { return s.inFlight == 0 }

// ended implements peer. One failure ends the run.
func (s *session) ended(err error) error { return err }

// fill appends commands to out until InFlight commands are in flight or the script has no
// command to send.
func (s *session) fill(now int64, ph phase) {
	for s.inFlight < len(s.ring) {
		op, id := s.script.next(ph)
		switch op {
		case wire.Put:
			if s.numbers != nil {
				s.numbers.stamp(s.put[len(s.put)-len("\r\n")-len(s.body):])
			}
			s.out = append(s.out, s.put...)
		case wire.Reserve:
			s.out = wire.AppendCommand(s.out, &wire.Command{Op: wire.Reserve})
		case wire.ReserveTimeout:
			s.out = wire.AppendCommand(s.out, &wire.Command{Op: wire.ReserveTimeout})
		case wire.Delete:
			s.out = wire.AppendCommand(s.out, &wire.Command{Op: wire.Delete, ID: id})
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

// replies parses and checks all complete replies. now is the time of the read that
// received them.
func (s *session) replies(now int64, ph phase) error {
	for {
		in := s.in.unparsed()
		n, err := wire.ParseReply(in, &s.reply)
		if err != nil {
			return fmt.Errorf("load: not a reply: %s: %w", firstLine(in), err)
		}
		if n == 0 {
			return nil
		}
		if err := s.handleReply(now, ph, in[:n]); err != nil {
			return err
		}
		s.in.parsed += n
	}
}

// handleReply handles s.reply, whose bytes are raw.
func (s *session) handleReply(now int64, ph phase, raw []byte) error {
	if s.inFlight == 0 {
		return fmt.Errorf("load: a reply to no command: %s", firstLine(raw))
	}
	f := s.ring[s.head]
	if s.head++; s.head == len(s.ring) {
		s.head = 0
	}
	s.inFlight--

	verdict := s.script.answered(f, &s.reply)
	switch {
	case s.reply.Kind == wire.Reserved && !s.wasPut(s.reply.Body):
		return fmt.Errorf("load: job %d has a body of %d bytes that is not the one of %d bytes that was put (were the tubes empty before the run?)",
			s.reply.ID, len(s.reply.Body), len(s.body))
	case verdict == unexpected:
		return fmt.Errorf("load: unexpected reply to %s: %s", f.op, firstLine(raw))
	case ph != measuring || verdict == uncounted:
		return nil
	}
	t := &s.run.tally
	t.commands++
	t.last = now
	t.latencies.Record(time.Duration(now - f.sent))
	return nil
}

// wasPut reports whether a job with this body was put by the run.
func (s *session) wasPut(body []byte) bool {
	if s.numbers != nil && len(body) == len(s.body) {
		copy(s.body[s.numbers.at:][:digits], body[s.numbers.at:])
	}
	return bytes.Equal(body, s.body)
}

// firstLine quotes the start of a reply, for an error message.
func firstLine(raw []byte) string {
	line, _, _ := bytes.Cut(raw, []byte{'\n'})
	return fmt.Sprintf("%.60q", bytes.TrimRight(line, "\r"))
}
