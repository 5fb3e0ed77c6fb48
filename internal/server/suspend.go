package server

import (
	"encoding/binary"
	"slices"
	"syscall"
	"time"

	"github.com/beanpole-mq/beanpole/internal/conversation"
	"github.com/beanpole-mq/beanpole/internal/server/epoll"
)

// doubtTime limits the wait for the end of an old leader's stream if that leader might
// not have used all input of a client.
const doubtTime = 200 * time.Millisecond

// A suspended is the state of a client at its last leader. state starts with the term.
type suspended struct {
	note, state []byte
	at          int64 // time in ns, as in Server.now, at which the state arrived
}

// record stores the state of a client's session, or sends it to the client's member, if
// it has changed and no command is in progress.
func (l *loop) record(s *socket) {
	note, state, unused, ok := s.Record()
	if !ok {
		return
	}
	l.state = append(binary.AppendUvarint(l.state[:0], s.term), state...)
	if s.proxied == nil {
		if s.suspended == nil {
			s.suspended = new(suspended)
		}
		s.suspended.state = append(s.suspended.state[:0], l.state...)
		s.suspended.at = l.now
		if note != nil {
			s.suspended.note = append(s.suspended.note[:0], note...)
		}
		return
	}
	s.stream().Mark(s.taken-uint64(unused), note, l.state)
}

// suspend makes a client pending when this member is no longer the leader. If a command
// is in progress, it ends the connection.
func (l *loop) suspend(s *socket) {
	l.record(s)
	if s.proxied != nil {
		if s.Rests() {
			l.lose(s, errLeadership)
		} else {
			l.end(s, errLeadership)
		}
		return
	}
	unused, ok := s.Suspend(errLeadership)
	if !ok {
		l.end(s, errLeadership)
		return
	}
	p := s.origin
	n := &socket{srv: s.srv, fd: s.fd, client: s.client, buffer: s.buffer, proxy: p, origin: p}
	n.Conversation = conversation.New(&l.srv.shared, n, l.srv.nameOf(n.client))
	if s.suspended != nil { // otherwise it has executed nothing since it was resumed
		p.last = s.suspended
	} else if p.last == nil {
		p.last = new(suspended)
	}
	p.socket, p.loop, p.came, p.retryAt, p.input = n, nil, l.srv.now(), 0, unused
	s.closing = true
	l.detach(s)
	l.srv.hangups.unwatch(s)
	srv := l.srv
	srv.mu.Lock()
	defer srv.mu.Unlock()
	n.loop = srv.mu.loops.all[0]
	n.loop.inbox.enter(n)
	srv.mu.sockets--
	srv.mu.left.Broadcast()
}

// lose ends the stream of a proxied client without a command in progress, so that its
// member finds another leader for it.
func (l *loop) lose(s *socket, reason error) {
	s.stream().Lose()
	l.end(s, reason)
}

// detach removes a socket from the loop without closing it.
func (l *loop) detach(s *socket) {
	if v, ok := s.fd.(streamSocket); ok {
		v.Notify(func() {})
	} else {
		l.poll.Remove(s.fd) // reads report the error of a failed connection
	}
	l.timers.remove(s)
	l.free(s)
	s.listed = false
}

// lose makes a client pending after its leader is lost. If a command might be in
// progress, it waits up to doubtTime for the end of the stream, and then disconnects the
// client.
func (p *proxy) lose(reason error) {
	l, s := p.loop, p.socket
	if p.shut {
		l.end(s, reason)
		return
	}
	var err error
	for n := 0; err == nil; {
		p.replies = append(p.replies, l.scratch()[:n]...)
		n, err = p.stream.TryRead(l.scratch())
	}
	given := reason == errLost || err == errLost // the leader has not executed the input after the last mark
	note, state, at, rests := p.stream.LastMark()
	used := p.stream.Used()
	delivered := true
	if len(p.replies) > 0 {
		n, err := s.fd.Write(p.replies)
		delivered = err == nil && n == len(p.replies)
	}
	rests = rests && delivered && used >= p.sentFrom && used <= p.sentFrom+uint64(len(p.sent))
	if !rests || !given && used < p.sentFrom+uint64(len(p.sent)) {
		if err == epoll.ErrWouldBlock && delivered && !p.doubt {
			p.doubt, p.came, p.replies = true, l.now, nil
			l.timers.set(s, p.came+int64(doubtTime))
			return
		}
		l.end(s, reason)
		l.inbox.announceClients() // there is one client less
		return
	}
	unused := p.sent[used-p.sentFrom:]
	switch {
	case !at.IsZero():
		p.last = &suspended{note, state, int64(at.Sub(l.srv.begun))}
	case p.last == nil:
		p.last = new(suspended)
	}
	p.input = slices.Concat(unused, p.input[p.head:])
	p.stream.Close()
	p.stream, p.replies, p.sent, p.sentFrom, p.head, p.doubt = nil, nil, nil, 0, 0, false
	p.came, p.retryAt = l.now, l.now+int64(leaderRetry)
	l.srv.shared.Memory.Set(&p.holding, s, 0)
	p.route()
}

// errLost is mux.ErrLost.
const errLost = syscall.ECONNABORTED

// keepSent keeps a copy of the input that is sent to the leader, until a mark confirms
// it.
func (p *proxy) keepSent(b []byte) {
	p.trimSent()
	p.sent = append(p.sent, b...)
}

// trimSent discards the input that the leader has used.
func (p *proxy) trimSent() {
	if len(p.sent) == 0 {
		return
	}
	n := min(len(p.sent), int(max(p.stream.Used(), p.sentFrom)-p.sentFrom))
	p.sentFrom += uint64(n)
	if p.sent = append(p.sent[:0], p.sent[n:]...); len(p.sent) == 0 {
		p.sent = nil
	}
}
