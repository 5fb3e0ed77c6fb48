package server

import (
	"cmp"
	"net"
	"net/netip"
	"slices"

	"github.com/beanpole-mq/beanpole/internal/conversation"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/server/epoll"
)

// A socket is a client's connection in a loop. The loop drives its conversation, or
// forwards its bytes to the leader of the cluster.
type socket struct {
	conversation.Conversation

	// Constant after join.
	srv     *Server
	fd      Socket
	client  net.Addr
	buffer  buffered       // fd if it is buffered, or nil
	proxied *proxiedClient // set for a client of another member
	loop    *loop
	index   int    // in loop.clients
	leads   uint32 // Server.mu.leads when the client connected, or when its leader was reached

	proxy *proxy // nil if the conversation is local, or if the leader has ended it
	here  bool   // the engine that serves the conversation is, or was, on this member

	origin    *proxy     // the previous proxy of the socket; nil for a proxied client
	term      uint64     // term of the leadership, if the client is served here
	taken     uint64     // number of bytes read from the stream of a proxied client
	suspended *suspended // last state of a client that is not proxied
	entering  bool       // in Server.mu.entering, which mu guards
	joining   bool       // the socket has a session, and is on its way to its loop
	early     bool       // the wait of the client ended before the socket reached the loop
	dismissal error      // reason of a dismissal before the socket reached the loop, or nil

	watched int  // index in hangups.watched, from 1; 0 if absent. The lock of hangups guards watched and hungUp
	hungUp  bool // in hangups.pending

	waitErr error // error of Settled; set before the socket is posted

	// Owned by the loop.
	interest  epoll.Events // events that the poller reports
	iteration uint64       // the last iteration in which it was served or became Ready
	listed    bool         // in loop.runnable or loop.deferred
	closing   bool         // must be closed
	counts    bool         // its buffer counts toward the memory of all clients
	timer     timer
}

// Unacknowledged implements conversation.Owner.
func (s *socket) Unacknowledged() int { return s.fd.Unacknowledged() }

// WaitOver implements engine.Waiter. It is called within the turn that ends the wait.
func (s *socket) WaitOver(job engine.Job, outcome engine.Outcome) {
	s.Answer(job, outcome)
	s.srv.broker.Await(s)
}

// Settled implements broker.Settler. It is called when the turn that ended the wait is
// settled.
func (s *socket) Settled(err error) {
	s.waitErr = err
	s.loop.inbox.answer(s)
}

// address returns the client's address as text, or "unix" if it has none.
func (s *socket) address() string {
	if network := s.client.Network(); network == "unix" {
		return network
	}
	return s.client.String()
}

// Worker implements engine.Worker.
func (s *socket) Worker() (identity string, address netip.AddrPort) {
	if tcp, ok := s.client.(*net.TCPAddr); ok {
		a := tcp.AddrPort()
		address = netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
	}
	return s.Identity(), address
}

func (s *socket) isStream() bool {
	_, ok := s.fd.(streamSocket)
	return ok
}

func (s *socket) isEncrypted() bool {
	_, ok := s.fd.(*tlsSocket)
	return ok
}

// isIn reports whether a loop has the socket. A pending socket might have been passed to
// another loop, or might wait until this loop opens its session.
func (s *socket) isIn(l *loop) bool { return s.loop == l && l.clients.all[s.index] == s }

// Dismiss implements conversation.Owner.
func (s *socket) Dismiss(reason error) {
	s.srv.mu.Lock()
	defer s.srv.mu.Unlock()
	s.loop.inbox.dismiss(s, reason)
}

// join adds a new client to the loop. If the client is served here, its session is open.
func (l *loop) join(s *socket) {
	s.index = l.clients.add(s)
	if s.interest = epoll.Readable | epoll.HalfClosed; s.proxy != nil {
		s.interest = epoll.Once
	}
	if v, ok := s.fd.(streamSocket); ok {
		l.notify(s, v.Stream, s.proxy == nil)
	} else if err := cmp.Or(l.poll.Add(s.fd, s.index, s.interest), l.srv.hangups.watch(s)); err != nil {
		l.end(s, err)
		return
	}
	if s.proxy != nil {
		s.proxy.loop = l
		if v := s.proxied; v != nil && s.proxy.last != nil {
			l.srv.arrive(v.Member, v.Term, 1, -1)
		}
		s.proxy.route()
		return
	}
	l.checkBuffer(s)
	if s.early {
		s.Answered(l.now, s.waitErr)
	}
	resumed := s.joining
	if s.joining, s.early = false, false; resumed {
		l.proceed(s)
	}
	if s.dismissal != nil {
		l.end(s, s.dismissal)
	}
	if l.ending.stop {
		s.Stop(l.batch.Batch)
	}
	l.timers.set(s, s.Next())
}

// end ends a connection at once.
func (l *loop) end(s *socket, reason error) {
	if s.proxy != nil {
		s.proxy.end(reason)
		return
	}
	if s.End(l.batch.Batch, reason); s.State() == conversation.Closed {
		l.remove(s)
	}
}

// remove passes a socket whose conversation is over to closeSome.
func (l *loop) remove(s *socket) {
	if s.closing {
		return // the socket has two tasks in one batch, or has had an event since
	}
	s.closing = true
	l.timers.remove(s)
	l.closing = append(l.closing, s)
}

// closeSome closes some of the removed sockets. A socket keeps its slot until it is
// closed.
func (l *loop) closeSome() {
	n := min(len(l.closing), closesPerBatch)
	for _, s := range l.closing[:n] {
		s.fd.Close()
		l.free(s)
		l.srv.hangups.forget(s)
		l.srv.remove(s)
		reason := s.Reason()
		if s.proxy != nil {
			reason = s.proxy.reason
		}
		l.srv.disconnected(s, reason)
	}
	l.closing = slices.Delete(l.closing, 0, n)
}

// free frees the index of a socket. Events that the poller reported for the index in this
// iteration do not apply to the next socket with that index.
func (l *loop) free(s *socket) {
	for i := range l.events {
		if l.events[i].Index == s.index {
			l.events[i].Events = 0
		}
	}
	l.clients.remove(s.index)
}

// stop ends the connections, either at once or when their clients have received all
// replies.
func (l *loop) stop() {
	for _, s := range l.clients.all {
		switch {
		case s == nil || s.closing:
		case l.ending.abort:
			l.end(s, errAborted)
		case s.proxy == nil:
			s.Stop(l.batch.Batch)
		case s.proxy.stream == nil:
			l.end(s, conversation.ErrStopped)
		default:
			s.proxy.stop()
		}
	}
}

// changeLeader ends all connections that are older than the change of leadership, and
// routes pending clients, which wait for it. A stream stays open until another leader is
// known: its leader can return, or can still report the input that it has not used.
func (l *loop) changeLeader() {
	lead := l.srv.leadership()
	for _, s := range l.clients.all {
		switch {
		case s == nil || s.closing || s.leads >= l.ending.leads || l.ending.abort: // stop ends all connections
		case s.proxy != nil && s.proxied != nil && lead.Leader != 0 && lead.Leader != l.srv.opt.Cluster.ID:
			l.lose(s, errLeadership)
		case s.proxy != nil && s.proxy.stream == nil:
			s.proxy.route()
		case s.proxy != nil && (s.proxy.doubt || lead.Leader == 0 || lead.Term == s.proxy.header.Term):
		case s.proxy != nil:
			s.proxy.lose(errLeadership)
		case s.here:
			l.suspend(s)
		default:
			l.end(s, errLeadership)
		}
	}
}
