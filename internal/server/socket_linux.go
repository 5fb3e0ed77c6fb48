package server

import (
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/epoll"
)

// keptAnswer is the largest buffer that a socket keeps for answers of waiting
// reserves, in bytes.
const keptAnswer = 1 << 10

// A socket is a connection that is served by a loop.
//
// Between rounds out holds only what the client has not read yet; meanwhile
// nothing more is read from it or executed.
type socket struct {
	conn

	// Static after join.
	fd    epoll.Socket
	loop  *loop
	index int // in loop.socks

	// Owned by the loop.
	in       input        // read and not executed; empty most of the time
	interest epoll.Events // what the poller waits for
	queued   bool         // in loop.again
	gone     bool         // leaves in the next turn, or has left
	pass     uint64       // the last in which it was in loop.todo
	heard    int64        // when the client last sent or read something; ns, as loop.now

	// What a waiting reserve is answered. Owned by the turn that ends the wait,
	// and from Settled on by the loop.
	answered []byte
}

// WaitOver implements engine.Waiter: within some turn the wait has ended.
func (s *socket) WaitOver(job engine.Job, outcome engine.Outcome) {
	s.answered = appendReserved(s.answered, job, outcome)
	s.srv.broker.Await(s)
}

// Settled implements broker.Settler: the turn that ended the wait is settled.
func (s *socket) Settled(error) {
	s.loop.mail.Lock()
	defer s.loop.mail.Unlock()
	s.loop.mail.over = append(s.loop.mail.over, s)
	s.loop.wake()
}

// idle reports whether commands of the client may be executed now, or one that
// takes several turns may go on.
func (s *socket) idle() bool { return !s.gone && !s.waiting && len(s.out) == 0 }

// full reports whether the client has sent so much behind a waiting reserve that
// nothing more is read: its hang-up is watched for, which comes when the kernel
// has received all that was sent before.
func (s *socket) full() bool { return s.waiting && s.in.len() >= maxAhead }

// keep keeps what is unread behind the first n bytes of src; nil stands for what
// it has kept already.
func (s *socket) keep(src []byte, n int) {
	if src == nil {
		s.in.take(n)
	} else {
		s.in.put(src[n:])
	}
	if s.in.empty() {
		s.in.release()
	}
}

// join makes a new socket part of the loop.
func (l *loop) join(s *socket) {
	if n := len(l.free); n > 0 {
		s.index = l.free[n-1]
		l.free = l.free[:n-1]
		l.socks[s.index] = s
	} else {
		s.index = len(l.socks)
		l.socks = append(l.socks, s)
	}
	l.open++
	s.heard = l.now
	s.interest = epoll.Readable
	l.tasks = append(l.tasks, task{s: s, what: open})
	if err := l.poll.Add(s.fd, s.index, s.interest); err != nil {
		l.drop(s, err)
	}
}

// drop makes the next turn end the session.
func (l *loop) drop(s *socket, reason error) {
	if s == nil || s.gone {
		return
	}
	s.gone = true
	l.tasks = append(l.tasks, task{s: s, what: leave})
	l.srv.log.Debug("disconnected", "client", s.peer, "reason", reason)
}

// close ends a socket whose session has ended.
func (l *loop) close(s *socket) {
	s.fd.Close()
	s.in.release()
	l.socks[s.index] = nil
	l.free = append(l.free, s.index)
	l.open--
	l.srv.removeSocket()
}

// watch tells the poller what to wait for.
func (l *loop) watch(s *socket) {
	interest := epoll.Readable
	switch {
	case s.gone:
		return
	case len(s.out) > 0:
		interest = epoll.Writable
	case s.eof:
		interest = 0
	case s.full():
		interest = epoll.HalfClosed
	}
	if interest == s.interest {
		return
	}
	s.interest = interest
	if err := l.poll.Modify(s.fd, s.index, interest); err != nil {
		l.drop(s, err)
	}
}

// flush writes what the socket takes of the replies and keeps the rest. It
// reports whether the connection goes on.
func (l *loop) flush(s *socket) bool {
	if s.gone {
		return false
	}
	if len(s.out) == 0 {
		s.out = nil
		return true
	}
	s.traceReplies()
	n, err := s.fd.Write(s.out)
	if err != nil {
		l.drop(s, err)
		return false
	}
	s.heard = l.now
	if n < len(s.out) {
		s.out = append([]byte(nil), s.out[n:]...) // it is the round's
		return true
	}
	s.out = nil
	if s.rest != nil {
		s.formatRest() // others come first
	}
	return true
}

// drain writes more of what the client has not read yet.
func (l *loop) drain(s *socket) {
	n, err := s.fd.Write(s.out)
	if err != nil {
		l.drop(s, err)
		return
	}
	if n > 0 {
		s.heard = l.now
	}
	if s.out = s.out[n:]; len(s.out) > 0 {
		return
	}
	if s.out = s.out[:0]; s.rest != nil {
		s.formatRest()
		return
	}
	s.out = nil
	if s.quit {
		l.drop(s, errQuit)
		return
	}
	if !s.waiting {
		l.repeat(s)
	}
	l.watch(s)
}

// answer ends the wait of a socket.
func (l *loop) answer(s *socket) {
	s.waiting = false
	s.heard = l.now
	if !l.flush(s) { // what it was answered before
		return
	}
	if len(s.out) > 0 {
		s.out = append(s.out, s.answered...)
	} else {
		s.out = s.answered
		l.flush(s)
	}
	if s.answered = s.answered[:0]; cap(s.answered) > keptAnswer {
		s.answered = nil
	}
	if s.idle() {
		l.repeat(s)
	}
	l.watch(s)
}

// sweep ends the connections of those who have been silent for too long. It
// looks at all of them, but not often: limits are kept to an eighth.
func (l *loop) sweep() {
	if l.now < l.sweepAt {
		return
	}
	l.sweepAt = l.now + int64(l.sweepEvery())
	for _, s := range l.socks {
		if s == nil || s.queued {
			continue
		}
		limit, reason := l.srv.opt.StallTimeout, errStalled
		switch {
		case len(s.out) > 0:
		case s.waiting:
			continue
		default:
			limit, reason = s.silence(s.in.empty())
		}
		if limit > 0 && l.now-s.heard > int64(limit*7/8) {
			l.drop(s, reason)
		}
	}
}

// sweepEvery returns how often to sweep, or an hour if there is no limit.
func (l *loop) sweepEvery() time.Duration {
	every := time.Hour
	for _, limit := range []time.Duration{l.srv.opt.IdleTimeout, l.srv.opt.StallTimeout} {
		if limit > 0 {
			every = min(every, max(limit/8, time.Millisecond))
		}
	}
	return every
}

// untilSweep returns how long the loop may wait for events; negative: for ever.
func (l *loop) untilSweep() time.Duration {
	if l.open == 0 {
		return -1
	}
	return time.Duration(max(0, l.sweepAt-int64(time.Since(l.begun))))
}

// dismiss ends, when the server stops, the connections of those who have had
// all their replies.
func (l *loop) dismiss() {
	for _, s := range l.socks {
		if s != nil && len(s.out) == 0 && !s.queued {
			l.drop(s, errStopped)
		}
	}
}
