package memnet

import (
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/beanpole-mq/beanpole/internal/server/epoll"
)

// A Kernel is a network for event loops. Its sockets do not block, and its
// level-triggered pollers report ready sockets. S and P are the server's interfaces for
// them. Its fields must be set before its first use.
type Kernel[S, P any] struct {
	Rand       *rand.Rand          // random sizes of short reads and writes, order of events, and failures of accept; nil disables these
	Buffer     int                 // number of bytes that are buffered for a client that does not read; 0 means the size of a Conn's buffer
	BeforeWait func(time.Duration) // called by each Wait with its timeout; can be nil

	net.Listener // nil, because a loop does not call Accept

	mu          sync.Mutex
	pollers     []*poller[S, P]
	waiting     []*Conn // connections to be accepted
	closed      bool
	pass, total Traffic // traffic since the last Wait, and before it
	most        Traffic
}

// Traffic counts the loops' calls of socket methods, and the bytes passed to Write.
type Traffic struct{ Reads, Written, Closes int }

// Counts returns the total traffic, and the maximum between two calls of Wait.
func (k *Kernel[S, P]) Counts() (total, most Traffic) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.total, k.most
}

// Waiting returns the number of clients that wait to be accepted.
func (k *Kernel[S, P]) Waiting() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.waiting)
}

// Dial returns the client's end of a new connection, without waiting for an accept.
func (k *Kernel[S, P]) Dial() (net.Conn, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	size := k.Buffer
	if size == 0 {
		size = Buffer
	}
	client, server := pipe(size, Buffer)
	k.waiting = append(k.waiting, server)
	k.ring()
	return client, nil
}

func (k *Kernel[S, P]) ring() {
	for _, p := range k.pollers {
		p.ring()
	}
}

func (k *Kernel[S, P]) Addr() net.Addr { return &net.UnixAddr{Name: "mem", Net: "unix"} }

func (k *Kernel[S, P]) Close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = true
	return nil
}

// AcceptSocket implements a method of the server's listener.
func (k *Kernel[S, P]) AcceptSocket() (s S, addr net.Addr, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.closed:
		return s, nil, net.ErrClosed
	case len(k.waiting) == 0:
		return s, nil, epoll.ErrWouldBlock
	case k.Rand != nil && k.Rand.IntN(10) == 0:
		return s, nil, syscall.EMFILE
	}
	conn := k.waiting[0]
	k.waiting = k.waiting[1:]
	return any(&socket[S, P]{net: k, conn: conn}).(S), k.Addr(), nil
}

// Watch implements a method of the server's listener.
func (k *Kernel[S, P]) Watch(p P, on bool) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	any(p).(*poller[S, P]).listens = on
	return nil
}

// NewPoller implements a method of the server's listener.
func (k *Kernel[S, P]) NewPoller() (P, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	p := &poller[S, P]{net: k, rung: make(chan struct{}, 1)}
	k.pollers = append(k.pollers, p)
	return any(p).(P), nil
}

// draw returns a random number below n.
func (k *Kernel[S, P]) draw(n int) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.Rand.IntN(n)
}

// A poller waits for the sockets of a loop; net.mu guards it.
type poller[S, P any] struct {
	net     *Kernel[S, P]
	rung    chan struct{} // signals a possible change
	socks   []*socket[S, P]
	woken   bool
	listens bool // whether it reports clients that wait to be accepted
	closed  bool
}

func (p *poller[S, P]) ring() {
	select {
	case p.rung <- struct{}{}:
	default:
	}
}

func (p *poller[S, P]) Add(s S, index int, events epoll.Events) error {
	k := any(s).(*socket[S, P])
	p.net.mu.Lock()
	defer p.net.mu.Unlock()
	k.poller, k.index, k.interest = p, index, events
	p.socks = append(p.socks, k)
	for _, s := range []*stream{k.conn.in, k.conn.out} {
		s.mu.Lock()
		s.ring = p.ring
		s.mu.Unlock()
	}
	return nil
}

func (p *poller[S, P]) Modify(s S, _ int, events epoll.Events) error {
	p.net.mu.Lock()
	defer p.net.mu.Unlock()
	any(s).(*socket[S, P]).interest = events
	return nil
}

func (p *poller[S, P]) Remove(s S) error {
	p.net.mu.Lock()
	defer p.net.mu.Unlock()
	any(s).(*socket[S, P]).interest = 0
	return nil
}

func (p *poller[S, P]) Wait(timeout time.Duration) []epoll.Event {
	if p.net.BeforeWait != nil {
		p.net.BeforeWait(timeout)
	}
	var over <-chan time.Time
	if timeout > 0 {
		over = time.After(timeout)
	}
	for {
		if events, woken := p.look(); len(events) > 0 || woken || timeout == 0 {
			return events
		}
		select {
		case <-p.rung:
		case <-over:
			timeout = 0
		}
	}
}

// look returns the current events.
func (p *poller[S, P]) look() (events []epoll.Event, woken bool) {
	k := p.net
	k.mu.Lock()
	defer k.mu.Unlock()
	if p.closed {
		panic("a closed poller waits")
	}
	k.most = Traffic{max(k.most.Reads, k.pass.Reads), max(k.most.Written, k.pass.Written), max(k.most.Closes, k.pass.Closes)}
	k.pass = Traffic{}
	first := 0
	if p.listens && len(k.waiting) > 0 && !k.closed {
		events = append(events, epoll.Event{Index: epoll.Listeners, Events: epoll.Readable})
		first = 1
	}
	for _, s := range p.socks {
		if ev := s.conn.events() & (s.interest | epoll.HungUp | epoll.Failed); ev != 0 {
			events = append(events, epoll.Event{Index: s.index, Events: ev})
		}
	}
	if others := events[first:]; k.Rand != nil {
		k.Rand.Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
	}
	woken, p.woken = p.woken, false
	return events[:min(len(events), epoll.MaxEvents)], woken
}

func (p *poller[S, P]) Wake() {
	p.net.mu.Lock()
	defer p.net.mu.Unlock()
	if p.closed {
		panic("a closed poller is woken")
	}
	p.woken = true
	p.ring()
}

func (p *poller[S, P]) Close() {
	p.net.mu.Lock()
	defer p.net.mu.Unlock()
	p.closed = true
}

// events returns the current events of one end of a connection.
func (c *Conn) events() (ev epoll.Events) {
	c.in.mu.Lock()
	if c.in.r < c.in.w || c.in.ended != nil {
		ev |= epoll.Readable
	}
	if c.in.ended != nil {
		ev |= epoll.HalfClosed
	}
	if c.in.ended == syscall.ECONNRESET {
		ev |= epoll.HungUp | epoll.Failed
	}
	c.in.mu.Unlock()
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	if c.out.abandoned || c.out.w-c.out.r < len(c.out.buf) {
		ev |= epoll.Writable
	}
	return ev
}

// A socket is the server's end of a connection.
type socket[S, P any] struct {
	net      *Kernel[S, P]
	conn     *Conn
	poller   *poller[S, P] // net.mu guards this and the following fields
	index    int
	interest epoll.Events
	closed   bool
}

// count counts a call on an open socket.
func (s *socket[S, P]) count(call func(*Traffic)) {
	s.net.mu.Lock()
	defer s.net.mu.Unlock()
	if s.closed {
		panic("a closed socket is used")
	}
	call(&s.net.pass)
	call(&s.net.total)
}

func (s *socket[S, P]) Read(buf []byte) (int, error) {
	s.count(func(t *Traffic) { t.Reads++ })
	if n := s.conn.Unread(); s.net.Rand != nil && n > 0 {
		buf = buf[:min(len(buf), 1+s.net.draw(2*n))]
	}
	s.conn.in.mu.Lock()
	defer s.conn.in.mu.Unlock()
	return s.conn.in.take(buf)
}

func (s *socket[S, P]) Write(buf []byte) (int, error) {
	s.count(func(t *Traffic) { t.Written += len(buf) })
	if s.net.Rand != nil && s.net.draw(3) == 0 {
		buf = buf[:s.net.draw(min(len(buf), len(s.conn.out.buf))+1)]
	}
	s.conn.out.mu.Lock()
	defer s.conn.out.mu.Unlock()
	return s.conn.out.put(buf)
}

func (s *socket[S, P]) Unacknowledged() int {
	s.conn.out.mu.Lock()
	defer s.conn.out.mu.Unlock()
	return s.conn.out.w - s.conn.out.r
}

func (s *socket[S, P]) CloseWrite() error { return s.conn.CloseWrite() }

func (s *socket[S, P]) Close() error {
	s.count(func(t *Traffic) { t.Closes++ })
	s.net.mu.Lock()
	s.closed = true
	if p := s.poller; p != nil {
		p.socks = slices.DeleteFunc(p.socks, func(o *socket[S, P]) bool { return o == s })
	}
	s.net.mu.Unlock()
	return s.conn.Close()
}
