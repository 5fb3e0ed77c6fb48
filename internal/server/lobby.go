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
// waited for too long is answered INTERNAL_ERROR, and a reserve at the end of its timeout.
type lobby struct {
	srv     *Server
	c       *netConn
	visitor visitor
	parser  wire.Parser // without what it remembers: each look begins with the whole input
	stats   bool        // the client may ask for stats

	input []byte    // that is not answered
	since time.Time // when the first command of it began to wait
}

func (s *Server) newLobby(c *netConn, t *Terms, e access.Evidence) *lobby {
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
		if due.IsZero() || !until.IsZero() && until.Before(due) {
			due = until
		}
		l.c.nc.SetReadDeadline(due)
		select {
		case <-changed:
			return l.c.nc.SetReadDeadline(time.Time{})
		default:
		}
		switch err := l.read(due); {
		case l.c.dismissed.Load() != nil:
			return *l.c.dismissed.Load()
		case l.c.stopped.Load():
			return conversation.ErrStopped
		case err != nil:
			return err
		case !until.IsZero() && !time.Now().Before(until):
			return l.c.nc.SetReadDeadline(time.Time{})
		}
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
	if n > 0 && len(l.input) == 0 {
		l.since = time.Now()
	}
	l.input = append(l.input, buf[:n]...)
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
	for len(l.input) > 0 {
		p := l.parser
		var cmd wire.Command
		n, ok := p.Next(l.input, &cmd)
		a := l.incomplete()
		if ok {
			a = l.answerTo(&cmd)
		}
		if a.never {
			return time.Time{}, nil
		}
		if due = l.since.Add(a.after); time.Now().Before(due) {
			return due, nil
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
	return time.Time{}, nil
}

// An outcome is what becomes of the first command if no leader comes.
type outcome struct {
	never bool          // it waits
	after time.Duration // since it began to wait
	reply []byte
	end   error // of the connection, after the reply; nil: it goes on
}

// errNoLeader ends a connection whose command is longer than the lobby keeps.
var errNoLeader = errors.New("there was no leader for a large command")

// incomplete is the outcome of a command that has not arrived as a whole.
func (l *lobby) incomplete() outcome {
	if len(l.input) >= maxLobby { // more is not kept, and what follows it cannot be found
		return outcome{after: l.srv.opt.Member.Patience, end: errNoLeader}
	}
	stall := l.srv.opt.StallTimeout
	return outcome{never: stall <= 0, after: stall, end: conversation.ErrStalled}
}

// answerTo returns the outcome of a command.
func (l *lobby) answerTo(cmd *wire.Command) outcome {
	failed := outcome{after: l.srv.opt.Member.Patience, reply: wire.AppendWord(nil, wire.InternalError)}
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
