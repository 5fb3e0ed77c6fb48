package sim

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/internal/server"
	"github.com/beanpole-mq/beanpole/internal/server/epoll"
)

// On Linux, clients are served by event loops: the simulated ones are, too.
func TestClientsOfLoops(t *testing.T) {
	eachSeed(t, 8, func(t *testing.T, name string, seed uint64) {
		livesOfClients(t, name, seed, func(rng *rand.Rand) network { return newLoopNetwork(rng) })
	})
}

// kernelBuffer is how many bytes of replies the kernel takes for a client that does
// not read.
const kernelBuffer = 700

// A loopNetwork connects the clients with the loops of a server. It is the kernel
// that these see: sockets whose reads and writes are as short as its dice say,
// one that listens, and pollers.
type loopNetwork struct {
	net.Listener // none: a loop does not call its Accept
	mu           sync.Mutex
	changed      sync.Cond // something has happened to a socket
	rng          *rand.Rand
	pollers      []*poller
	waiting      []*socket // to be accepted
	closed       bool
}

func newLoopNetwork(rng *rand.Rand) *loopNetwork {
	n := &loopNetwork{rng: rng}
	n.changed.L = &n.mu
	return n
}

func (n *loopNetwork) dial() net.Conn {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := &socket{net: n}
	n.waiting = append(n.waiting, s)
	n.changed.Broadcast()
	return clientEnd{socket: s}
}

func (n *loopNetwork) Addr() net.Addr { return &net.UnixAddr{Name: "sim", Net: "unix"} }

func (n *loopNetwork) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	return nil
}

// AcceptSocket implements server.Listening. Now and then it fails.
func (n *loopNetwork) AcceptSocket() (server.Socket, net.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.closed:
		return nil, nil, net.ErrClosed
	case len(n.waiting) == 0:
		return nil, nil, epoll.ErrWouldBlock
	case n.rng.IntN(10) == 0:
		return nil, nil, syscall.EMFILE
	}
	s := n.waiting[0]
	n.waiting = n.waiting[1:]
	return s, n.Addr(), nil
}

// Watch implements server.Listening.
func (n *loopNetwork) Watch(p server.Poller, on bool) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	p.(*poller).listens = on
	return nil
}

// NewPoller implements server.Network.
func (n *loopNetwork) NewPoller() (server.Poller, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := &poller{net: n}
	n.pollers = append(n.pollers, p)
	return p, nil
}

// A poller is level-triggered, like epoll.
type poller struct {
	net     *loopNetwork
	socks   []*socket
	woken   bool
	listens bool // it reports who waits to be accepted
	late    bool // the timeout of Wait is over
	closed  bool
}

func (p *poller) Add(s server.Socket, index int, events epoll.Events) error {
	p.net.mu.Lock()
	defer p.net.mu.Unlock()
	k := s.(*socket)
	k.poller, k.index, k.interest = p, index, events
	p.socks = append(p.socks, k)
	return nil
}

func (p *poller) Modify(s server.Socket, index int, events epoll.Events) error {
	p.net.mu.Lock()
	defer p.net.mu.Unlock()
	s.(*socket).interest = events
	return nil
}

func (*poller) Remove(server.Socket) error { return nil }

func (p *poller) Wait(timeout time.Duration) (events []epoll.Event) {
	p.net.mu.Lock()
	defer p.net.mu.Unlock()
	p.late = timeout == 0
	if timeout > 0 {
		timer := time.AfterFunc(timeout, func() { p.end(&p.late) })
		defer timer.Stop()
	}
	for {
		if p.closed {
			panic("waiting went on after Close")
		}
		first := 0
		if p.listens && len(p.net.waiting) > 0 && !p.net.closed {
			events = append(events, epoll.Event{Index: epoll.Listeners, Events: epoll.Readable})
			first = 1
		}
		for _, s := range p.socks {
			if ev := s.events() & (s.interest | epoll.HungUp | epoll.Failed); ev != 0 {
				events = append(events, epoll.Event{Index: s.index, Events: ev})
			}
		}
		if len(events) > 0 || p.woken || p.late {
			p.woken = false
			others := events[first:]
			p.net.rng.Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
			return events
		}
		p.net.changed.Wait()
	}
}

// end makes Wait return, because of what the flag says.
func (p *poller) end(flag *bool) {
	p.net.mu.Lock()
	defer p.net.mu.Unlock()
	*flag = true
	p.net.changed.Broadcast()
}

func (p *poller) Wake() {
	if p.closed {
		panic("a closed poller is woken")
	}
	p.end(&p.woken)
}

func (p *poller) Close() { p.end(&p.closed) }

// A socket is the server's end of a connection; net.mu guards it.
type socket struct {
	net     *loopNetwork
	in, out bytes.Buffer // as the server sees them
	gone    bool         // the client has closed its end
	closed  bool         // and the server

	finished bool // the server writes no more

	poller   *poller
	index    int
	interest epoll.Events
}

// events returns what there is to say of the socket.
func (s *socket) events() (ev epoll.Events) {
	if s.closed {
		return 0
	}
	if s.in.Len() > 0 || s.gone {
		ev |= epoll.Readable
	}
	if s.gone {
		ev |= epoll.HalfClosed
	}
	if s.out.Len() < kernelBuffer {
		ev |= epoll.Writable
	}
	return ev
}

func (s *socket) Read(buf []byte) (int, error) {
	s.net.mu.Lock()
	defer s.net.mu.Unlock()
	switch {
	case s.closed:
		panic("a closed socket is read")
	case s.in.Len() > 0:
		n := 1 + s.net.rng.IntN(2*s.in.Len())
		return s.in.Read(buf[:min(n, len(buf))])
	case s.gone:
		return 0, io.EOF
	}
	return 0, epoll.ErrWouldBlock
}

func (s *socket) Write(buf []byte) (int, error) {
	s.net.mu.Lock()
	defer s.net.mu.Unlock()
	switch {
	case s.closed:
		panic("a closed socket is written")
	case s.gone:
		return 0, syscall.EPIPE
	}
	n := min(len(buf), max(0, kernelBuffer-s.out.Len()))
	if s.net.rng.IntN(3) == 0 {
		n = s.net.rng.IntN(n + 1)
	}
	s.net.changed.Broadcast()
	return s.out.Write(buf[:n])
}

func (s *socket) Unacknowledged() int {
	s.net.mu.Lock()
	defer s.net.mu.Unlock()
	return s.out.Len()
}

func (s *socket) CloseWrite() error {
	s.net.mu.Lock()
	defer s.net.mu.Unlock()
	s.finished = true
	s.net.changed.Broadcast()
	return nil
}

func (s *socket) Close() error {
	s.net.mu.Lock()
	defer s.net.mu.Unlock()
	s.closed = true
	s.net.changed.Broadcast()
	return nil
}

// A clientEnd is the other end of a socket, and blocks.
type clientEnd struct {
	*socket
	net.Conn // none: a client has no use for the rest of it
}

func (c clientEnd) Read(buf []byte) (int, error) {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	for c.out.Len() == 0 {
		if c.closed || c.gone || c.finished {
			return 0, io.EOF
		}
		c.net.changed.Wait()
	}
	c.net.changed.Broadcast()
	return c.out.Read(buf)
}

func (c clientEnd) Write(buf []byte) (int, error) {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	if c.closed || c.gone {
		return 0, syscall.EPIPE
	}
	c.net.changed.Broadcast()
	return c.in.Write(buf)
}

func (c clientEnd) Close() error {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	c.gone = true
	c.net.changed.Broadcast()
	return nil
}
