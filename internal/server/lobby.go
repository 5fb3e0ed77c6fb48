package server

import (
	"errors"
	"io"
	"os"
	"time"

	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/conversation"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

// maxLobby is how many bytes of a client are kept while it waits for a leader: a job of the default
// size, and a little.
const maxLobby = 66 << 10

// A lobby is where a client waits for a leader. What it sends is kept, and is executed as if it had been sent
// when the leader was there. Only stats is answered at once, by what this member knows. A command that has
// waited for too long is answered INTERNAL_ERROR, at its end if it is longer than what is kept, and a reserve at the
// end of its timeout.
type lobby struct {
	srv     *Server
	c       *netConn
	visitor visitor
	parser  wire.Parser // without what it remembers: each look begins with the whole input
	stats   bool        // the client may ask for stats

	input []byte    // that is not answered
	since time.Time // when the first command of it began to wait, or more of it came that is discarded

	// discards is not nil while the rest of a command is discarded that is longer than maxLobby and has waited for
	// too long. Until its end the connection stays here.
	discards *wire.Parser
}

func (s *Server) newLobby(c *netConn, t *ListenOptions, e access.Evidence) *lobby {
	l := &lobby{srv: s, c: c, parser: wire.Parser{MaxBody: s.opt.MaxJobSize, Compat: s.opt.Compat, Auth: s.access.Asks()}}
	if c.visitor != nil {
		return l // it gets its stats at its own member
	}
	l.visitor = s.visitorOf(c, t, e)
	id, known := s.access.Identify(e)
	l.stats = (known || !t.Required) && id.Meets(wire.Stats.Need())
	return l
}

// wait waits until the leadership changes, or for as long as retry says if that is not 0. An
// error says that the connection has ended, or is to end.
func (l *lobby) wait(changed <-chan struct{}, retry time.Duration) error {
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-changed:
			l.c.wake()
		case <-done:
		}
	}()
	var until time.Time
	if retry > 0 {
		until = time.Now().Add(retry)
	}
	for {
		due, err := l.answer()
		if err != nil {
			return err
		}
		if l.discards == nil && (due.IsZero() || !until.IsZero() && until.Before(due)) {
			due = until
		}
		l.c.readUntil(due)
		if l.discards == nil && isClosed(changed) {
			return l.c.readUntil(time.Time{})
		}
		switch err := l.read(due); {
		case l.c.dismissed.Load() != nil:
			return *l.c.dismissed.Load()
		case l.c.stopped.Load():
			return conversation.ErrStopped
		case err != nil:
			return err
		case l.discards == nil && !until.IsZero() && !time.Now().Before(until):
			return l.c.readUntil(time.Time{})
		}
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// read reads, until a deadline that is set or somebody calls wake.
func (l *lobby) read(due time.Time) error {
	if len(l.input) >= maxLobby {
		var over <-chan time.Time
		if !due.IsZero() {
			over = time.After(time.Until(due))
		}
		select {
		case <-l.c.woken:
		case <-over:
		}
		return nil
	}
	buf := make([]byte, min(relayBuffer, maxLobby-len(l.input)))
	n, err := l.c.nc.Read(buf)
	if n > 0 && (len(l.input) == 0 || l.discards != nil) {
		l.since = time.Now()
	}
	l.input = append(l.input, buf[:n]...)
	l.c.Beside(cap(l.input))
	switch {
	case n > 0, errors.Is(err, os.ErrDeadlineExceeded):
		return nil
	case err == nil:
		return io.ErrNoProgress
	}
	return err
}

// answer answers what is not to wait any longer, and returns when there is more to do; the zero time is never.
func (l *lobby) answer() (due time.Time, err error) {
	for len(l.input) > 0 || l.discards != nil {
		n, a := l.first()
		if a.never {
			return time.Time{}, nil
		}
		if due = l.since.Add(a.after); time.Now().Before(due) {
			return due, nil
		}
		if a.discard {
			l.discard()
			continue
		}
		if _, err := l.c.nc.Write(a.reply); err != nil {
			return due, err
		}
		if a.end != nil {
			return due, a.end
		}
		l.input, l.since = l.input[n:], time.Now()
	}
	l.input = nil
	l.c.Beside(0)
	return time.Time{}, nil
}

// first returns the outcome of the first command, and its length if it is whole.
func (l *lobby) first() (n int, a outcome) {
	var cmd wire.Command
	if l.discards != nil {
		n, ok := l.discards.Next(l.input, &cmd)
		if ok {
			l.discards = nil
			return n, outcome{reply: wire.AppendWord(nil, wire.InternalError)}
		}
		l.input = l.input[n:]
		return 0, l.stalls()
	}
	p := l.parser
	switch n, ok := p.Next(l.input, &cmd); {
	case ok:
		return n, l.answerTo(&cmd)
	case len(l.input) >= maxLobby: // more is not kept
		return 0, outcome{after: l.srv.patienceFor(l.since), discard: true}
	}
	return 0, l.stalls()
}

// discard begins to discard the first command, which is not whole.
func (l *lobby) discard() {
	p := l.parser
	var cmd wire.Command
	n, _ := p.Next(l.input, &cmd)
	if n == 0 { // it waits for the body of a put; what is too long is discarded anyway
		p.Refuse(wire.FaultRefused)
	}
	l.input, l.discards = l.input[n:], &p
}

// An outcome is what becomes of the first command if no leader comes.
type outcome struct {
	never bool          // it waits
	after time.Duration // since it began to wait
	reply []byte
	end   error // of the connection, after the reply; nil: it goes on

	discard bool // there is no reply before its end
}

// stalls is the outcome of a command that has not arrived as a whole.
func (l *lobby) stalls() outcome {
	stall := l.srv.opt.StallTimeout
	return outcome{never: stall <= 0, after: stall, end: conversation.ErrStalled}
}

// answerTo returns the outcome of a command.
func (l *lobby) answerTo(cmd *wire.Command) outcome {
	failed := outcome{after: l.srv.patienceFor(l.since), reply: wire.AppendWord(nil, wire.InternalError)}
	if cmd.Fault != wire.None {
		return failed
	}
	switch cmd.Op {
	case wire.Quit:
		return outcome{end: conversation.ErrQuit}
	case wire.Reserve:
		return outcome{never: true}
	case wire.ReserveTimeout:
		if cmd.Timeout == wire.Forever {
			return outcome{never: true}
		}
		return outcome{after: time.Duration(cmd.Timeout) * time.Second, reply: wire.AppendWord(nil, wire.TimedOut)}
	case wire.Stats:
		if reply := l.ownStats(); l.stats && reply != nil {
			return outcome{reply: reply}
		}
	}
	return failed
}

// ownStats returns what this member knows; nil if it knows nothing at the moment.
func (l *lobby) ownStats() (reply []byte) {
	s := l.srv
	s.broker.Look(func(e *engine.Engine, _ int64) {
		reply = wire.AppendStats(nil, s.stats(e, s.shared.Commands(), l.c))
	})
	return reply
}
