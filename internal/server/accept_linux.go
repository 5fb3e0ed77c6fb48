package server

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/conversation"
	"github.com/beanpole-mq/beanpole/internal/server/epoll"
)

// The loops accept connections themselves, so that clients see one another as they do
// with beanstalkd: stats counts a client as soon as it has connected. The first loop
// waits for the listening sockets together with its other sockets, and accepts before
// it serves those. And each loop accepts before a turn in which a client asks how many
// clients there are.
//
// accept also opens the sessions, in a turn for that alone, and holds one lock for all
// of it. So a loop that has had the lock knows that the engine has a session for each
// client that had connected by then. Then the sockets go to their loops.

const (
	// maxAccepted is how many connections of a listener a loop accepts in a pass: they
	// take as long as the commands of other clients may wait for them.
	maxAccepted = 8

	// maxForStats is how many it accepts before a turn with a command stats.
	maxForStats = 1024
)

// accepting is how clients come to the loops. The lock is held from the accept of a
// client until its loop has it.
type accepting struct {
	sync.Mutex
	from []*acceptor
}

// An acceptor is a listener from which loops accept; the lock of accepting guards it.
type acceptor struct {
	listening Listening
	terms     *ListenOptions
	failed    chan failure // to Serve, which waits and posts the acceptor again
	pause     backoff
	paused    bool // after a failure
	watched   bool // the poller of the first loop reports new connections
}

// Listening is what a loop needs of a socket that listens.
type Listening interface {
	// AcceptSocket accepts a client. It does not block: the error is
	// epoll.ErrWouldBlock when none waits. The socket is closed when the client
	// is refused.
	AcceptSocket() (Socket, net.Addr, error)

	// Watch makes the poller report, or no longer report, under the index
	// epoll.Listeners, that clients wait.
	Watch(p Poller, on bool) error
}

// A Network is a listener with a Poller of its own for its connections. That is how
// loops are simulated. A server has no other listeners then.
type Network interface {
	net.Listener // whose Accept is not called
	Listening
	NewPoller() (Poller, error)
}

// serveInLoop is Serve for a listener whose connections are for loops. It returns false
// at once if they are not, or if there are no loops.
func (s *Server) serveInLoop(l net.Listener, t *ListenOptions) bool {
	if t.TLS != nil {
		return false
	}
	a := &acceptor{terms: t, failed: make(chan failure, 1)}
	newPoller, files := newSystemPoller, 0
	switch l := l.(type) {
	case *net.TCPListener, *net.UnixListener:
		raw, err := l.(syscall.Conn).SyscallConn()
		if err != nil {
			return false
		}
		a.listening = &listeningSocket{raw: raw, deadAfter: s.deadAfter()}
		files = s.opt.MaxConns
	case Network:
		a.listening, newPoller = l, l.NewPoller
	default:
		return false
	}
	first, err := s.startLoops(newPoller, files)
	if err != nil {
		s.log.Warn("no event loops: each connection gets a goroutine", "err", err)
		return false
	}
	if l, ok := l.(*net.TCPListener); ok {
		if taken, err := s.takeListener(l); err == nil {
			defer s.removeListener(taken)
			a.listening = &listeningSocket{raw: taken, deadAfter: s.deadAfter()}
		}
	}
	for {
		first.post(func(m *mailbox) { m.acceptors = append(m.acceptors, a) })
		select {
		case <-s.stopped:
			return true
		case f := <-a.failed:
			s.cannotAccept(l, f)
		}
	}
}

// beginAccepting begins to accept from a listener, or goes on after a pause.
func (l *loop) beginAccepting(a *acceptor) {
	all := &l.srv.accepting
	all.Lock()
	defer all.Unlock()
	if !a.paused {
		all.from = append(all.from, a)
	}
	if a.paused = false; !a.watched {
		l.watch(a, true)
	}
}

// watch makes the poller of the first loop report, or no longer report, that clients
// wait at a listener.
func (l *loop) watch(a *acceptor, on bool) {
	a.watched = on
	if err := a.listening.Watch(l.poll, on); err != nil && !errors.Is(err, net.ErrClosed) {
		a.watched = !on
		a.fail(err)
	}
}

// unwatch makes the poller of the first loop report no clients any more, with mu and accepting locked. It would go on if a listener
// is closed whose socket a service manager keeps open.
func (s *Server) unwatch() {
	for _, a := range s.accepting.from {
		if a.watched {
			s.mu.loops.all[0].watch(a, false)
		}
	}
}

// fail makes Serve wait for a while.
func (a *acceptor) fail(err error) {
	if !a.paused {
		a.paused = true
		a.failed <- a.pause.next(err)
	}
}

// accept accepts clients that have connected, not more than so many of each listener.
// When it returns, their sessions are open.
func (l *loop) accept(atMost int) {
	all := &l.srv.accepting
	all.Lock()
	defer all.Unlock()
	var accepted []*socket
	full := false
	for _, a := range all.from {
		if !a.paused && !full {
			accepted, full = l.acceptFrom(a, atMost, accepted)
		}
	}
	for _, a := range all.from {
		if on := !a.paused && !full; l.first && a.watched != on {
			l.watch(a, on)
		}
	}
	if len(accepted) == 0 {
		return
	}
	l.openSessions(accepted)
	for _, c := range accepted {
		if c.loop == l {
			l.join(c)
		} else {
			c.loop.post(func(m *mailbox) { m.joined = append(m.joined, c) })
		}
	}
}

// acceptFrom accepts clients that wait at a listener, and appends the sockets of those
// that may stay. It reports whether all slots are taken.
func (l *loop) acceptFrom(a *acceptor, atMost int, accepted []*socket) (_ []*socket, full bool) {
	for range atMost {
		if !l.srv.takeSlot() {
			return accepted, true
		}
		fd, client, err := a.listening.AcceptSocket()
		if err == nil {
			a.pause.reset()
			accepted = l.srv.acceptSocket(fd, client, a.terms, accepted)
			continue
		}
		l.srv.giveSlotBack()
		switch err {
		case unix.EINTR, unix.ECONNABORTED:
		case epoll.ErrWouldBlock, net.ErrClosed:
			return accepted, false
		default:
			// Out of descriptors, most likely. Connected clients go on; to try
			// again at once would only burn the processor.
			a.fail(err)
			return accepted, false
		}
	}
	return accepted, false
}

// acceptSocket appends the socket of a new client if it may stay. Else it is closed.
func (s *Server) acceptSocket(fd Socket, client net.Addr, t *ListenOptions, accepted []*socket) []*socket {
	switch c, err := s.newSocket(fd, client, t); err {
	case nil:
		accepted = append(accepted, c)
	case errElsewhere:
		s.acceptElsewhere(fd, client, t)
	default:
		s.reject(client, err)
		fd.Close()
		s.giveSlotBack()
	}
	return accepted
}

// newSocket gives a new client a conversation and a loop, if it may stay.
func (s *Server) newSocket(fd Socket, client net.Addr, t *ListenOptions) (*socket, error) {
	if t.IsProxy(AddressOf(client)) {
		return nil, errElsewhere
	}
	c := &socket{fd: fd, client: client}
	e, err := t.letIn(client, c.user)
	if err == nil {
		err = s.addSocket(c, e)
	}
	if err != nil {
		return nil, err
	}
	c.Conversation = conversation.New(&s.shared, c, s.nameOf(client))
	s.admit(&c.Conversation, t, e)
	s.log.Debug("connected", "client", c.Client())
	return c, nil
}

// acceptElsewhere gives a client a goroutine that this member does not serve itself, or that comes
// through a proxy.
func (s *Server) acceptElsewhere(fd Socket, client net.Addr, t *ListenOptions) {
	own, ok := fd.(epoll.Socket)
	if !ok { // of a network that has no connections of another kind
		fd.Close()
		s.giveSlotBack()
		return
	}
	f := os.NewFile(uintptr(own), client.String())
	nc, err := net.FileConn(f) // has its own copy of the descriptor
	f.Close()
	if err != nil {
		s.reject(client, err)
		s.giveSlotBack()
		return
	}
	if nc.RemoteAddr() == nil { // the client has reset the connection, and nobody knows any more who it was
		nc.Close()
		s.giveSlotBack()
		return
	}
	s.accept(nc, t)
}

// user returns the user of the process at the other end of a unix socket.
func (s *socket) user() access.UnixUser {
	fd, ok := s.fd.(epoll.Socket)
	if !ok {
		return access.UnixUser{}
	}
	return socketUser(int(fd))
}

// addSocket counts a socket and says which loop it is for.
func (s *Server) addSocket(c *socket, e access.Evidence) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opt.Member != nil && !s.mu.lead.Here {
		return errElsewhere
	}
	if err := s.enter(e); err != nil {
		return err
	}
	s.mu.sockets++
	c.loop, c.leads = s.mu.loops.take(), s.mu.leads
	return nil
}

// openSessions opens the sessions of new sockets, in a turn. Nothing waits for that to
// be settled, except that the loop has to see to a sync, like for any other turn.
func (l *loop) openSessions(sockets []*socket) {
	now := l.srv.now()
	for _, c := range sockets {
		c.Open(l.opening, now)
	}
	r := l.newRound() // without tasks
	if settled, _ := l.opener.Start(r); settled {
		l.unused = append(l.unused, r)
	} else {
		l.unsettled++
	}
	l.opening.TurnOver()
	l.opening.Settle(nil)
	l.opening.Reset()
}

// A takenListener is a listening TCP socket that was taken away from package net. If the
// Go runtime waited for it, too, each new client would wake two threads.
type takenListener struct {
	fd     epoll.Socket
	addr   net.Addr
	closed bool // the lock of accepting guards it
}

// takeListener takes the socket of a listener, which it closes, unless there is an error.
func (s *Server) takeListener(l *net.TCPListener) (*takenListener, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closing {
		return nil, conversation.ErrStopped
	}
	fd, err := epoll.Take(l)
	if err != nil {
		return nil, err
	}
	taken := &takenListener{fd: fd, addr: l.Addr()}
	s.mu.listeners[taken] = struct{}{}
	return taken, nil
}

// Control calls f with the descriptor, as that of syscall.RawConn does.
func (l *takenListener) Control(f func(fd uintptr)) error {
	if l.closed {
		return net.ErrClosed
	}
	f(uintptr(l.fd))
	return nil
}

// Accept implements net.Listener. It is not called.
func (l *takenListener) Accept() (net.Conn, error) { return nil, net.ErrClosed }

// Addr implements net.Listener.
func (l *takenListener) Addr() net.Addr { return l.addr }

// Close implements net.Listener.
func (l *takenListener) Close() error {
	if l.closed {
		return net.ErrClosed
	}
	l.closed = true
	return l.fd.Close()
}

// A listeningSocket is one of the kernel's. That of a unix socket stays registered with
// the poller of the Go runtime: package net, to which it belongs, removes its file.
type listeningSocket struct {
	raw       interface{ Control(func(fd uintptr)) error }
	deadAfter time.Duration
	added     bool // to the Poller
	inherits  bool // all clients that came before it had its options have been accepted
}

// AcceptSocket implements Listening.
func (s *listeningSocket) AcceptSocket() (Socket, net.Addr, error) {
	var fd epoll.Socket
	var client netip.AddrPort
	var err error
	if s.raw.Control(func(listening uintptr) { fd, client, err = epoll.Socket(listening).Accept() }) != nil {
		return nil, nil, net.ErrClosed
	}
	if err != nil {
		s.inherits = s.inherits || s.added && err == epoll.ErrWouldBlock
		return nil, nil, err
	}
	if !client.IsValid() {
		return fd, unnamed, nil
	}
	if !s.inherits {
		setOptions(fd)
	}
	setDeadAfter(int(fd), s.deadAfter) // which the kernel does not pass on
	return fd, net.TCPAddrFromAddrPort(client), nil
}

// unnamed is the address that package net gives to the client of a unix socket.
var unnamed net.Addr = &net.UnixAddr{Net: "unix", Name: "@"}

// Watch implements Listening.
func (s *listeningSocket) Watch(p Poller, on bool) error {
	err := net.ErrClosed
	s.raw.Control(func(fd uintptr) {
		events := epoll.Events(0)
		if on {
			events = epoll.Readable
		}
		if s.added {
			err = p.Modify(epoll.Socket(fd), epoll.Listeners, events)
		} else {
			// One from a service manager may block.
			unix.SetNonblock(int(fd), true)
			setOptions(epoll.Socket(fd))
			err = p.Add(epoll.Socket(fd), epoll.Listeners, events)
			s.added = err == nil
		}
	})
	return err
}

// setOptions does for a TCP connection what package net does: small replies leave at
// once, and the client is asked for a sign of life (keepAlive). An error is that of a
// connection which has ended already, or of a unix socket.
//
// On Linux a connection has the options that its listening socket had when the client
// connected. So they are set once, and only clients that connected before that need their own.
func setOptions(fd epoll.Socket) {
	for _, o := range []struct{ level, name, value int }{
		{unix.IPPROTO_TCP, unix.TCP_NODELAY, 1},
		{unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
		{unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, int(keepAlive.Idle.Seconds())},
		{unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, int(keepAlive.Interval.Seconds())},
		{unix.IPPROTO_TCP, unix.TCP_KEEPCNT, keepAlive.Count},
	} {
		unix.SetsockoptInt(int(fd), o.level, o.name, o.value)
	}
}
