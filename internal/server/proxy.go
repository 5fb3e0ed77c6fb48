package server

import (
	"io"
	"slices"
	"syscall"
	"time"

	"github.com/beanpole-mq/beanpole/internal/conversation"
	"github.com/beanpole-mq/beanpole/internal/server/epoll"
)

// leaderRetry is how long a client waits before its member tries again to reach a leader.
const leaderRetry = 250 * time.Millisecond

// A proxy is the state of a client whose commands another member executes. It belongs to
// the first loop of a member that does not lead. The client is pending until there is a
// stream to the leader. Then the loop copies the client's bytes to the stream, and the
// leader's replies back.
type proxy struct {
	came    int64 // ns
	header  proxiedClient
	retryAt int64 // ns; when to try again to reach the leader; 0: it has not failed
	stream  Stream
	reason  error // why the connection ends

	input   []byte // of the client, that the stream has not taken
	replies []byte // of the leader, that the client has not taken
	shut    bool   // the client sends no more, and the leader knows
	holding conversation.Holding
}

// route decides where a pending client is served: here, by the leader, or nowhere yet.
func (l *loop) route(s *socket) {
	switch lead := l.srv.leadership(); {
	case s.gone:
	case l.stopping:
		l.end(s, conversation.ErrStopped)
	case lead.Here:
		l.srv.shared.Memory.Set(&s.proxy.holding, s, 0)
		switch ok, err := l.srv.converse(s); {
		case err != nil:
			l.srv.reject(s.client, err)
			l.end(s, err)
		case ok:
			l.handOver(s)
		}
	case lead.Leader == 0, lead.Leader == l.srv.opt.Member.ID:
		l.pend(s)
	case s.proxied != nil: // its member knows already that this one leads, or does not know yet that it leads no more
		l.pend(s)
	default:
		l.dial(s, lead)
	}
}

// pend makes a client wait until there is a leader, or until the next attempt to reach it.
// The kernel keeps what the client sends meanwhile.
func (l *loop) pend(s *socket) {
	at := l.srv.patience(s.proxy.came)
	if s.proxy.retryAt > l.now {
		at = min(at, s.proxy.retryAt)
	}
	l.timers.set(s, at)
	l.expect(s, epoll.HalfClosed)
}

// dial opens a stream to the leader, and passes on what the client has sent.
func (l *loop) dial(s *socket, lead Leadership) {
	p := s.proxy
	header, err := p.header.append(nil)
	if err != nil {
		l.end(s, err)
		return
	}
	nc, err := l.srv.opt.Member.Dial(lead.Leader)
	if err != nil {
		l.srv.log.Debug("the leader cannot be reached", "client", s.Client(), "err", err)
		p.retryAt = l.now + int64(leaderRetry)
		l.pend(s)
		return
	}
	stream := l.srv.streamOf(nc)
	if !l.srv.follows(lead, s) {
		stream.Close()
		l.route(s)
		return
	}
	l.expect(s, epoll.Once)
	p.input, p.stream = header, stream
	l.notify(s, p.stream, false)
	l.passOn(s)
	if !s.gone {
		l.passBack(s)
	}
}

// handOver gives a client that was pending to the loop that serves it here.
func (l *loop) handOver(s *socket) {
	if v, ok := s.fd.(streamSocket); ok {
		v.Notify(func() {})
	} else {
		l.poll.Remove(s.fd) // an error is that of a connection that has failed, which reading will tell
	}
	for i := range l.events {
		if l.events[i].Index == s.index {
			l.events[i].Events = 0
		}
	}
	l.timers.remove(s)
	l.clients.remove(s.index)
	s.listed = false
	s.loop.post(func(m *mailbox) { m.entered = append(m.entered, s) })
}

// proxyDue handles a client whose timer has expired.
func (l *loop) proxyDue(s *socket) {
	switch p := s.proxy; {
	case s.gone:
	case p.stream != nil:
	case l.srv.patience(p.came) <= l.now:
		l.end(s, errNoLeader)
	default:
		l.route(s)
	}
}

// handleProxied handles the events of a client that is pending, or whose bytes are passed
// on.
func (l *loop) handleProxied(s *socket, events epoll.Events) {
	switch p := s.proxy; {
	case s.gone:
	case events.Has(epoll.Failed):
		l.end(s, syscall.ECONNRESET)
	case p.stream != nil:
		if events.Has(epoll.Readable | epoll.HalfClosed | epoll.HungUp) {
			l.passOn(s)
		}
		if !events.Has(epoll.Writable) || s.gone {
			return
		}
		if l.written >= passOutput {
			l.list(s)
			return
		}
		l.passBack(s)
	case events.Has(epoll.HalfClosed | epoll.HungUp):
		l.end(s, io.EOF)
	}
}

// passBoth passes bytes on and back after an event of the client's stream, or of the client
// if that is a stream itself.
func (l *loop) passBoth(s *socket) {
	if s.proxy.stream == nil {
		l.handleProxied(s, s.readiness())
		return
	}
	if len(s.proxy.input) > 0 || s.readiness().Has(epoll.Readable|epoll.HalfClosed) {
		l.passOn(s)
	}
	if !s.gone {
		l.passBack(s)
	}
}

// scratch returns a buffer for what is passed on.
func (l *loop) scratch() []byte { return l.in[len(l.in):][:readSize] }

// passOn reads from the client once, and writes to the stream what it takes.
func (l *loop) passOn(s *socket) {
	p := s.proxy
	if len(p.input) == 0 && !p.shut {
		n, err := s.fd.Read(l.scratch())
		switch {
		case err == io.EOF:
			l.shut(s)
			return
		case err == epoll.ErrWouldBlock:
			return
		case err != nil:
			l.end(s, err)
			return
		}
		p.input = l.scratch()[:n]
	}
	if len(p.input) > 0 {
		n, err := p.stream.TryWrite(p.input)
		if err != nil { // its replies may still come
			p.input, p.shut = nil, true
		} else if n < len(p.input) {
			p.input = slices.Clone(p.input[n:])
		} else if p.input = nil; p.shut {
			p.stream.CloseWrite()
		}
	}
	l.expectProxied(s)
}

// passBack writes the leader's replies to the client: a few pieces, so that other clients
// have their turn even if the leader answers as fast as this one reads.
func (l *loop) passBack(s *socket) {
	p := s.proxy
	for range writesPerRound {
		if len(p.replies) == 0 {
			n, err := p.stream.TryRead(l.scratch())
			switch {
			case err == epoll.ErrWouldBlock:
				l.expectProxied(s)
				return
			case err == io.EOF:
				l.conclude(s)
				return
			case err != nil:
				l.end(s, err)
				return
			}
			p.replies = l.scratch()[:n]
		}
		n, err := s.fd.Write(p.replies)
		l.written += n
		switch {
		case err != nil:
			l.end(s, err)
			return
		case n < len(p.replies):
			p.replies = slices.Clone(p.replies[n:])
			if _, _, ended := p.stream.Ready(); ended {
				l.conclude(s)
				return
			}
			l.expectProxied(s)
			return
		default:
			p.replies = nil
		}
	}
	l.list(s)
	l.expectProxied(s)
}

// shut tells the leader that the client sends no more. The leader still answers what it was
// sent before.
func (l *loop) shut(s *socket) {
	p := s.proxy
	p.shut = true
	if len(p.input) == 0 {
		p.stream.CloseWrite()
	}
	l.expectProxied(s)
}

// conclude hands the last replies of a leader that has ended its stream to the client's
// own conversation. It writes them, and lingers, as if it had executed the commands.
func (l *loop) conclude(s *socket) {
	p := s.proxy
	for { // no more than the stream holds
		n, err := p.stream.TryRead(l.scratch())
		if err == io.EOF {
			break
		}
		if err != nil {
			l.end(s, err)
			return
		}
		p.replies = append(p.replies, l.scratch()[:n]...)
	}
	p.stream.Close()
	l.srv.shared.Memory.Set(&p.holding, s, 0)
	s.proxy = nil
	s.EndPassedOn(l.now, p.replies)
	l.proceed(s)
}

// expectProxied tells the poller which events of the client to report, and accounts for
// the bytes that the leader or the client has not taken.
func (l *loop) expectProxied(s *socket) {
	p, held := s.proxy, 0
	if s.gone {
		return
	}
	if len(p.input)+len(p.replies) > 0 {
		held = cap(p.input) + cap(p.replies) + p.stream.Held()
		if s.buffer != nil {
			held += s.buffer.Held()
		}
	}
	l.srv.shared.Memory.Set(&p.holding, s, int64(held))
	events := epoll.Events(0)
	if !p.shut && len(p.input) == 0 {
		events |= epoll.Readable | epoll.HalfClosed
	}
	if len(p.replies) > 0 {
		events |= epoll.Writable
	}
	if events == 0 {
		events = epoll.Once // that the client has hung up is reported all the same, and would be again and again
	}
	l.expect(s, events)
}

// endProxied closes the stream to the leader and gives up the buffers of a proxy.
func (l *loop) endProxied(s *socket, reason error) {
	p := s.proxy
	if p.reason = reason; p.stream != nil {
		p.stream.Close()
	}
	p.input, p.replies = nil, nil
	l.srv.shared.Memory.Set(&p.holding, s, 0)
	l.remove(s)
}

// endsFirst tells the leader of the clients that have hung up, before it is sent what other
// clients have sent since.
func (l *loop) endsFirst() {
	for i, ev := range l.events {
		if ev.Index < 0 || !ev.Events.Has(epoll.HalfClosed|epoll.HungUp|epoll.Failed) {
			continue
		}
		if s := l.clients.all[ev.Index]; s != nil && s.proxy != nil {
			l.handleProxied(s, ev.Events)
			l.events[i].Events = 0
		}
	}
}
