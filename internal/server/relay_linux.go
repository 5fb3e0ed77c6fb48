package server

import (
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/beanpole-mq/beanpole/internal/conversation"
	"github.com/beanpole-mq/beanpole/internal/server/epoll"
)

// A relayLoop passes on the bytes of clients to the leader, and back: of all that have a socket of the kernel, from one goroutine.
// Clients with TLS have goroutines of their own (relay.go).
type relayLoop struct {
	srv  *Server
	poll Poller

	mail struct {
		sync.Mutex
		relayMail
		asleep bool // the loop waits for events: wake it when there is mail
		closed bool // the loop has ended
	}

	// Owned by the goroutine.
	clients   places[relayed]
	stopping  bool
	ready     []*relayed // for the next round: something has happened to their streams, or more may be there than was their share of this one
	serving   []*relayed // those of this round
	written   int        // bytes of replies in this round
	lingering []*relayed // are closed when their time has come
	lookedAt  time.Time  // when the loop last looked for those
	buf       [maxRelayBuffer]byte
}

// relayMail is what others want of a relayLoop.
type relayMail struct {
	joined  []*relayed
	arrived []*relayed // something has happened to their streams
	evicted []*relayed // hold too much
	before  uint32     // those are to be ended at once whose leads is less
	stop    bool       // they are to be ended when what they have sent is answered, and then the loop
}

// A relayed client is one whose bytes a relayLoop passes on.
type relayed struct {
	fd     epoll.Socket
	client net.Addr
	stream Stream
	index  int
	leads  uint32 // Server.mu.leads when it came

	interest epoll.Events
	input    []byte // of the client, that the stream has not taken
	replies  []byte // of the leader, that the client has not taken
	shut     bool   // the client sends no more, and the leader knows
	ended    bool   // the leader sends no more, and the client knows
	listed   bool   // in relayLoop.ready
	closeAt  time.Time
	holding  conversation.Holding
	loop     *relayLoop
	unacked  int // bytes that the client's kernel had not acknowledged when closeAt was set for its last replies
}

// relayInLoop lets the loop pass on a client's bytes. It returns false if the connection stays with its goroutine.
func (s *Server) relayInLoop(c *netConn, stream net.Conn, lead Leadership) bool {
	st, ok := stream.(Stream)
	if !ok || c.nc != net.Conn(c.kernel) || c.kernel.raw == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closing || s.mu.lead != lead {
		return false
	}
	rl, err := s.startRelayLoop()
	if err != nil {
		return false
	}
	client := c.nc.RemoteAddr()
	fd, err := epoll.Take(c.kernel.Conn)
	if err != nil {
		return false
	}
	delete(s.mu.netConns, c)
	s.mu.relayed++
	rl.post(func(m *relayMail) {
		m.joined = append(m.joined, &relayed{fd: fd, client: client, stream: st, loop: rl, leads: s.mu.leads})
	})
	return true
}

// startRelayLoop starts the loop, unless it runs, with mu locked.
func (s *Server) startRelayLoop() (*relayLoop, error) {
	if s.mu.relays != nil {
		return s.mu.relays, nil
	}
	poll, err := newSystemPoller()
	if err != nil {
		return nil, err
	}
	s.mu.relays = &relayLoop{srv: s, poll: poll}
	s.wg.Go(s.mu.relays.run)
	return s.mu.relays, nil
}

// post puts something into the mailbox. A nil loop has no clients.
func (l *relayLoop) post(put func(*relayMail)) {
	if l == nil {
		return
	}
	l.mail.Lock()
	defer l.mail.Unlock()
	put(&l.mail.relayMail)
	l.wake()
}

// dismiss ends all connections at once that were there before the leadership changed for the nth time.
func (l *relayLoop) dismiss(nth uint32) { l.post(func(m *relayMail) { m.before = nth }) }

// stop lets all clients have the replies to what they have sent, and ends their connections and the loop.
func (l *relayLoop) stop() { l.post(func(m *relayMail) { m.stop = true }) }

func (l *relayLoop) wake() {
	if l.mail.asleep && !l.mail.closed {
		l.mail.asleep = false
		l.poll.Wake()
	}
}

func (l *relayLoop) run() {
	for !l.stopping || l.clients.taken() > 0 {
		l.serve(l.wait())
		l.closeOverdue()
	}
	l.mail.Lock()
	defer l.mail.Unlock()
	l.mail.closed = true
	l.poll.Close()
}

// wait returns what has come, and the events of the sockets.
func (l *relayLoop) wait() (relayMail, []epoll.Event) {
	timeout := time.Duration(-1)
	if len(l.lingering) > 0 {
		timeout = lingerCheck
	}
	l.mail.Lock()
	if m := &l.mail.relayMail; len(l.ready)+len(m.joined)+len(m.arrived)+len(m.evicted) > 0 || m.before > 0 || m.stop && !l.stopping {
		timeout = 0
	}
	l.mail.asleep = timeout != 0
	l.mail.Unlock()
	events := l.poll.Wait(timeout)
	l.mail.Lock()
	defer l.mail.Unlock()
	l.mail.asleep = false
	got := l.mail.relayMail
	l.mail.relayMail = relayMail{stop: got.stop}
	return got, events
}

// lingerCheck is how often the loop looks for clients that take too long to close their connections, or need not do it.
const lingerCheck = 50 * time.Millisecond

func (l *relayLoop) serve(got relayMail, events []epoll.Event) {
	for _, r := range got.arrived {
		l.list(r)
	}
	l.serving, l.ready = l.ready, l.serving[:0]
	l.written = 0
	for _, r := range got.joined {
		l.join(r)
	}
	for _, r := range got.evicted {
		if l.has(r) {
			l.srv.disconnected(r.client.String(), conversation.ErrMemory)
			l.end(r)
		}
	}
	for i, r := range l.serving {
		if l.written >= passOutput {
			l.ready = slices.Insert(l.ready, 0, l.serving[i:]...)
			break
		}
		r.listed = false
		if l.has(r) && len(r.input) > 0 {
			l.passOn(r)
		}
		if l.has(r) {
			l.passBack(r)
		}
	}
	clear(l.serving)
	// The leader hears of the end of a client before it gets what somebody has sent after that.
	for _, ends := range []bool{true, false} {
		for _, ev := range events {
			if r := l.clients.all[ev.Index]; r != nil && ends == ev.Events.Has(epoll.HalfClosed|epoll.HungUp|epoll.Failed) {
				l.handle(r, ev.Events)
			}
		}
	}
	if got.before > 0 {
		l.each(func(r *relayed) {
			if r.leads < got.before {
				l.end(r)
			}
		})
	}
	if got.stop && !l.stopping {
		l.stopping = true
		l.each(l.shut)
	}
}

// handle deals with what has happened to a client's socket.
func (l *relayLoop) handle(r *relayed, events epoll.Events) {
	if events.Has(epoll.Failed) {
		l.end(r)
		return
	}
	if events.Has(epoll.Readable | epoll.HalfClosed | epoll.HungUp) {
		l.passOn(r)
	}
	if l.has(r) && !r.listed && events.Has(epoll.Writable) {
		if l.written >= passOutput {
			l.list(r)
			return
		}
		l.passBack(r)
	}
}

// list lets the next round look at a client's stream. It is listed once, however often something happens to it.
func (l *relayLoop) list(r *relayed) {
	if !r.listed {
		r.listed = true
		l.ready = append(l.ready, r)
	}
}

func (l *relayLoop) has(r *relayed) bool { return l.clients.all[r.index] == r }

func (l *relayLoop) each(do func(*relayed)) {
	for _, r := range l.clients.all {
		if r != nil {
			do(r)
		}
	}
}

func (l *relayLoop) join(r *relayed) {
	r.index = l.clients.add(r)
	r.interest = epoll.Readable | epoll.HalfClosed
	if err := l.poll.Add(r.fd, r.index, r.interest); err != nil {
		l.end(r)
		return
	}
	r.stream.Notify(func() {
		l.mail.Lock()
		defer l.mail.Unlock()
		l.mail.arrived = append(l.mail.arrived, r)
		l.wake()
	})
	l.list(r) // what has come already was told to nobody
	if l.stopping {
		l.shut(r)
	}
}

// passOn passes on what the client has sent, once.
func (l *relayLoop) passOn(r *relayed) {
	if r.ended { // it is thrown away until the client closes the connection
		if n, err := r.fd.Read(l.buf[:]); n == 0 && err != epoll.ErrWouldBlock {
			l.end(r)
		}
		return
	}
	if len(r.input) == 0 && !r.shut {
		n, err := r.fd.Read(l.buf[:])
		switch {
		case err == io.EOF:
			l.shut(r)
			return
		case err == epoll.ErrWouldBlock:
			return
		case err != nil:
			l.end(r)
			return
		}
		r.input = l.buf[:n]
	}
	if len(r.input) > 0 {
		n, err := r.stream.TryWrite(r.input)
		if err != nil { // its replies may still come
			r.input, r.shut = nil, true
		} else if n < len(r.input) {
			r.input = slices.Clone(r.input[n:])
		} else if r.input = nil; r.shut {
			r.stream.CloseWrite()
		}
	}
	l.expect(r)
}

// passBack passes back what the leader has answered. If that comes as fast as the client takes it, others come in between.
func (l *relayLoop) passBack(r *relayed) {
	if r.ended {
		return
	}
	for range writesPerRound {
		if len(r.replies) == 0 {
			n, err := r.stream.TryRead(l.buf[:])
			switch {
			case err == epoll.ErrWouldBlock:
				l.expect(r)
				return
			case err == io.EOF:
				l.answered(r)
				return
			case err != nil:
				l.end(r)
				return
			}
			r.replies = l.buf[:n]
		}
		n, err := r.fd.Write(r.replies)
		l.written += n
		if n > 0 && !r.closeAt.IsZero() {
			l.letTake(r)
		}
		switch {
		case err != nil:
			l.end(r)
			return
		case n < len(r.replies):
			r.replies = slices.Clone(r.replies[n:])
			if _, _, ended := r.stream.Ready(); ended && r.closeAt.IsZero() {
				l.letTake(r)
			}
			l.expect(r)
			return
		default:
			r.replies = nil
		}
	}
	l.list(r)
	l.expect(r)
}

// shut tells the leader that the client sends no more: what it has sent is answered before.
func (l *relayLoop) shut(r *relayed) {
	r.shut = true
	if len(r.input) == 0 {
		r.stream.CloseWrite()
	}
	l.expect(r)
}

// answered tells the client that there are no more replies, and gives it time to close its connection until its kernel
// has acknowledged everything.
func (l *relayLoop) answered(r *relayed) {
	r.ended, r.input = true, nil
	r.fd.CloseWrite() // an error is that of a connection that has failed, which reading will tell
	l.closeBy(r, relayLinger)
	l.expect(r)
}

// lastTaken is how many bytes of the last replies a client's kernel has to acknowledge in a stall timeout, unless it takes more of
// them. It is what is asked of local clients.
const lastTaken = 4 << 10

// letTake gives a client time to take the last replies, and again whenever it has taken some: the leader has ended the stream
// and does not look at it any more.
func (l *relayLoop) letTake(r *relayed) {
	r.unacked = r.fd.Unacknowledged()
	l.closeBy(r, l.srv.opt.StallTimeout)
}

// takes reports whether a client has taken something of the last replies since letTake.
func (r *relayed) takes() bool {
	if r.ended {
		return false
	}
	n := r.fd.Unacknowledged()
	return r.unacked-n >= lastTaken || n == 0 && r.unacked > 0
}

func (l *relayLoop) closeBy(r *relayed, after time.Duration) {
	if r.closeAt.IsZero() {
		l.lingering = append(l.lingering, r)
	}
	if after <= 0 {
		after = DefaultStallTimeout
	}
	r.closeAt = time.Now().Add(after)
}

// closeOverdue closes the connections of clients that linger for too long.
func (l *relayLoop) closeOverdue() {
	if len(l.lingering) == 0 {
		return
	}
	now := time.Now()
	if now.Sub(l.lookedAt) < lingerCheck {
		return
	}
	l.lookedAt = now
	l.lingering = slices.DeleteFunc(l.lingering, func(r *relayed) bool {
		switch {
		case !l.has(r):
		case r.ended && r.fd.Unacknowledged() == 0 && r.fd.Unread() == 0:
			l.end(r)
		case r.takes():
			l.letTake(r)
		case now.After(r.closeAt):
			l.end(r)
		}
		return !l.has(r)
	})
}

// Dismiss makes the loop end a connection, soon. Any goroutine may call it.
func (r *relayed) Dismiss(error) {
	r.loop.post(func(m *relayMail) { m.evicted = append(m.evicted, r) })
}

// account tells how much is held for a client, while the leader or the client does not take it.
func (l *relayLoop) account(r *relayed) {
	held := 0
	if len(r.input)+len(r.replies) > 0 {
		held = cap(r.input) + cap(r.replies) + r.stream.Held()
	}
	l.srv.shared.Memory.Set(&r.holding, r, int64(held))
}

// expect tells the poller what to wait for.
func (l *relayLoop) expect(r *relayed) {
	l.account(r)
	events := epoll.Events(0)
	if r.ended || !r.shut && len(r.input) == 0 {
		events |= epoll.Readable | epoll.HalfClosed
	}
	if len(r.replies) > 0 {
		events |= epoll.Writable
	}
	if events == 0 {
		events = epoll.Once // that the client has hung up is reported all the same, and would be again and again
	}
	if events == r.interest || !l.has(r) {
		return
	}
	r.interest = events
	if err := l.poll.Modify(r.fd, r.index, events); err != nil {
		l.end(r)
	}
}

// end closes a connection.
func (l *relayLoop) end(r *relayed) {
	if !l.has(r) {
		return
	}
	r.fd.Close()
	r.stream.Close()
	l.srv.shared.Memory.Set(&r.holding, r, 0)
	l.clients.remove(r.index)
	l.srv.removeRelayed(r)
}

func (s *Server) removeRelayed(r *relayed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.relayed--
	s.leave(r.client)
}
