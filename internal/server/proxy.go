package server

import (
	"io"
	"slices"
	"syscall"
	"time"

	"github.com/beanpole-mq/beanpole/internal/conversation"
	"github.com/beanpole-mq/beanpole/internal/server/epoll"
)

// leaderRetry is the pause before another attempt to reach the leader for a client.
const leaderRetry = 250 * time.Millisecond

// A proxy is the state of a client whose commands another member executes. It belongs to
// the first loop of a member that is not the leader. The client is pending until it has a
// stream to the leader. Then the loop copies the client's bytes to the stream, and the
// leader's replies to the client.
type proxy struct {
	socket  *socket
	loop    *loop // set by join
	came    int64 // time in ns at which the client started to wait for a leader
	header  proxiedClient
	retryAt int64 // time in ns of the next attempt to reach the leader; 0 if none has failed
	stream  MemberStream
	reason  error // reason for ending the connection

	input   []byte // client's bytes that the stream has not accepted
	replies []byte // leader's bytes that the client has not accepted
	shut    bool   // the client sends nothing more, and the leader has been notified
	doubt   bool   // a lost leader can still end the stream, until doubtTime after came
	head    uint16 // number of bytes of input that describe the client

	last     *suspended // the client's state at its last leader; nil if it had none
	sent     []byte     // input of the client that the leader might not have used
	sentFrom uint64     // position of sent in the input of the stream
	holding  conversation.Holding
}

// route decides whether a pending client is served here, is served by the leader, or
// stays pending.
func (p *proxy) route() {
	l, s := p.loop, p.socket
	switch lead := l.srv.leadership(); {
	case s.closing:
	case l.ending.stop:
		l.end(s, conversation.ErrStopped)
	case lead.here() && l.srv.isGathering():
		p.pend()
	case lead.here() && p.last != nil:
		l.resume([]*socket{s}, false)
	case lead.here():
		l.srv.shared.Memory.Set(&p.holding, s, 0)
		if err := l.srv.converse(s); err != nil {
			l.srv.reject(s.client, err)
			l.end(s, err)
		}
	case lead.Leader == 0, lead.Leader == l.srv.opt.Cluster.ID:
		p.pend()
	case s.proxied != nil: // the member already has the new leader, or still has the old one
		p.pend()
	case lead.Term == p.header.Term && l.now < p.retryAt: // the connection to this leader was lost
		p.pend()
	default:
		p.dial(lead)
	}
}

// pend makes a client wait for a leader, or for the next attempt to reach it. The kernel
// buffers the client's input.
func (p *proxy) pend() {
	l, s := p.loop, p.socket
	at := l.srv.leaderDeadline(p.came)
	if p.retryAt > l.now {
		at = min(at, p.retryAt)
	}
	l.timers.set(s, at)
	l.expect(s, epoll.HalfClosed)
}

// dial opens a stream to the leader and forwards the client's input.
func (p *proxy) dial(lead Leadership) {
	l, s := p.loop, p.socket
	p.header.Term = lead.Term
	v := streamHeader{proxiedClient: p.header}
	if last := p.last; last != nil {
		v.Resumes, v.Note, v.State, v.Elapsed = true, last.note, last.state, max(0, l.srv.now()-last.at)
	}
	header, err := v.append(nil)
	if err != nil {
		l.end(s, err)
		return
	}
	stream, err := l.srv.opt.Cluster.Dial(lead.Leader)
	if err != nil {
		l.srv.log.Debug("the leader is unreachable", "client", s.Client(), "err", err)
		p.retryAt = l.now + int64(leaderRetry)
		p.pend()
		return
	}
	if !l.srv.follows(lead, s) {
		stream.Close()
		p.route()
		return
	}
	l.expect(s, epoll.Once)
	l.timers.remove(s) // lose sets a later one
	p.input, p.stream, p.head = append(header, p.input...), stream, uint16(len(header))
	if p.last != nil {
		if l.sentTerm != lead.Term {
			l.sentTerm, l.sentClients = lead.Term, 0
		}
		l.sentClients++
	}
	l.notify(s, p.stream, false)
	p.passOn()
	if !s.closing {
		p.passBack()
	}
}

// serve acts on the events of a client that is pending or forwarded. runnable reports
// whether its timer fired or its stream has events.
func (p *proxy) serve(events epoll.Events, runnable bool) {
	l, s := p.loop, p.socket
	switch {
	case s.closing:
	case events.Has(epoll.Failed):
		l.end(s, syscall.ECONNRESET)
	case p.doubt && p.came+int64(doubtTime) <= l.now:
		p.lose(errLeadership)
	case p.stream != nil:
		if runnable && len(p.input) > 0 || events.Has(epoll.Readable|epoll.HalfClosed|epoll.HungUp) {
			p.passOn()
		}
		switch {
		case s.closing, !runnable && !events.Has(epoll.Writable):
		case l.written >= iterationOutput:
			l.list(s)
		default:
			p.passBack()
		}
	case events.Has(epoll.HalfClosed | epoll.HungUp):
		l.end(s, io.EOF)
	case !runnable:
	case l.srv.leaderDeadline(p.came) <= l.now:
		l.end(s, errNoLeader)
	default:
		p.route()
	}
}

// passOn reads from the client once and writes as much to the stream as it accepts.
func (p *proxy) passOn() {
	l, s := p.loop, p.socket
	if len(p.input) == 0 && !p.shut {
		n, err := s.fd.Read(l.scratch())
		switch {
		case err == io.EOF:
			p.stop()
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
		head := min(n, int(p.head))
		p.head -= uint16(head)
		p.keepSent(p.input[head:n])
		if err != nil { // replies can still arrive, and reading them returns the error
			p.input = slices.Clone(p.input)
		} else if n < len(p.input) {
			p.input = slices.Clone(p.input[n:])
		} else if p.input = nil; p.shut {
			p.stream.CloseWrite()
		}
	}
	p.expect()
}

// passBack writes some of the leader's replies to the client. It limits the amount, so
// that other clients are served even if the leader replies as fast as this client reads.
func (p *proxy) passBack() {
	l, s := p.loop, p.socket
	for range writesPerBatch {
		if len(p.replies) == 0 {
			n, err := p.stream.TryRead(l.scratch())
			switch {
			case err == epoll.ErrWouldBlock:
				p.expect()
				return
			case err == io.EOF:
				p.conclude()
				return
			case err != nil:
				p.lose(err)
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
				p.conclude()
				return
			}
			p.expect()
			return
		default:
			p.replies = nil
			p.trimSent()
		}
	}
	l.list(s)
	p.expect()
}

// stop passes the end of the client's input to the leader. The leader still answers
// earlier commands.
func (p *proxy) stop() {
	p.shut = true
	if len(p.input) == 0 {
		p.stream.CloseWrite()
	}
	p.expect()
}

// conclude passes the last replies of a leader that has ended its stream to the client's
// local conversation. The conversation writes them and lingers, as if it had executed the
// commands.
func (p *proxy) conclude() {
	l, s := p.loop, p.socket
	for { // the stream contains a limited number of bytes
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

// expect sets the client's events that the poller reports, and accounts for the bytes
// that the leader or the client has not taken.
func (p *proxy) expect() {
	l, s := p.loop, p.socket
	held := 0
	if s.closing {
		return
	}
	if len(p.input)+len(p.replies) > 0 {
		held = cap(p.input) + cap(p.replies) + p.stream.Held()
		if s.buffer != nil {
			held += s.buffer.Held()
		}
	}
	l.srv.shared.Memory.Set(&p.holding, s, int64(held+cap(p.sent)))
	events := epoll.Events(0)
	if !p.shut && len(p.input) == 0 {
		events |= epoll.Readable | epoll.HalfClosed
	}
	if len(p.replies) > 0 {
		events |= epoll.Writable
	}
	if events == 0 {
		events = epoll.Once // otherwise the client's disconnect would be reported repeatedly
	}
	l.expect(s, events)
}

// end closes the stream to the leader and frees the buffers of a proxy.
func (p *proxy) end(reason error) {
	l, s := p.loop, p.socket
	if p.reason = reason; p.stream != nil {
		p.stream.Close()
	}
	p.input, p.replies, p.sent = nil, nil, nil
	l.srv.shared.Memory.Set(&p.holding, s, 0)
	l.remove(s)
}

// scratch returns a buffer for forwarded bytes.
func (l *loop) scratch() []byte { return l.in[len(l.in):][:readSize] }

// endsFirst forwards the disconnects of clients to the leader before later input of other
// clients.
func (l *loop) endsFirst() {
	for i, ev := range l.events {
		if ev.Index < 0 || !ev.Events.Has(epoll.HalfClosed|epoll.HungUp|epoll.Failed) {
			continue
		}
		if s := l.clients.all[ev.Index]; s != nil && s.proxy != nil {
			s.proxy.serve(ev.Events, false)
			l.events[i].Events = 0
		}
	}
}
