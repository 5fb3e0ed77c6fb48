package server

import (
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/internal/server/epoll"
)

// When very many clients leave at once, others are served in between: only some are closed in
// each pass. All are in the end, though nothing else happens any more.
func TestManyClientsLeave(t *testing.T) {
	const clients = 200
	n := &leavers{clients: clients, left: clients, poller: make(chan struct{}, 1), gone: make(chan struct{})}
	r := start(t, Options{Loops: 1})
	r.serve(n)
	<-n.gone
	n.Lock()
	defer n.Unlock()
	if n.closes.most > epoll.MaxEvents/maxRoundTasks*closesPerRound {
		t.Errorf("%d connections were closed in one pass", n.closes.most)
	}
	if n.reads.most > leavesPerPass {
		t.Errorf("%d connections were read in one pass", n.reads.most)
	}
}

// leavers is a Network with clients that connect and leave at once.
type leavers struct {
	net.Listener
	sync.Mutex
	clients int
	left    int       // clients that were not accepted
	polled  []*leaver // whose events are wanted
	reads   inPass
	closes  inPass
	closed  int
	poller  chan struct{} // has something if the wait is to end
	gone    chan struct{} // closed when all connections are
}

// inPass counts what a loop does between two waits.
type inPass struct{ now, most int }

func (c *inPass) end() { c.now, c.most = 0, max(c.most, c.now) }

func (n *leavers) Addr() net.Addr               { return unnamed }
func (n *leavers) Close() error                 { return nil }
func (n *leavers) NewPoller() (Poller, error)   { return (*leaversPoller)(n), nil }
func (n *leavers) Watch(p Poller, _ bool) error { return nil }

func (n *leavers) AcceptSocket() (Socket, net.Addr, error) {
	n.Lock()
	defer n.Unlock()
	if n.left == 0 {
		return nil, nil, epoll.ErrWouldBlock
	}
	n.left--
	return &leaver{net: n}, unnamed, nil
}

// leaversPoller tells that all clients have left as soon as all have connected.
type leaversPoller leavers

func (p *leaversPoller) Add(fd Socket, index int, _ epoll.Events) error {
	p.Lock()
	defer p.Unlock()
	s := fd.(*leaver)
	s.index = index
	p.polled = append(p.polled, s)
	return nil
}

func (p *leaversPoller) Modify(fd Socket, _ int, events epoll.Events) error {
	p.Lock()
	defer p.Unlock()
	if events == 0 {
		p.drop(fd.(*leaver))
	}
	return nil
}

// drop makes the poller report nothing more of a socket.
func (p *leaversPoller) drop(s *leaver) {
	p.polled = slices.DeleteFunc(p.polled, func(o *leaver) bool { return o == s })
}

func (p *leaversPoller) Wait(timeout time.Duration) (events []epoll.Event) {
	p.Lock()
	p.reads.end()
	p.closes.end()
	if p.left > 0 {
		events = append(events, epoll.Event{Index: epoll.Listeners, Events: epoll.Readable})
	} else {
		for _, s := range p.polled { // all of them, until they are closed
			events = append(events, epoll.Event{Index: s.index, Events: epoll.Readable | epoll.HalfClosed})
		}
	}
	p.Unlock()
	if len(events) == 0 && timeout != 0 {
		<-p.poller
	}
	return events
}

func (p *leaversPoller) Wake() {
	select {
	case p.poller <- struct{}{}:
	default:
	}
}

func (*leaversPoller) Remove(Socket) error { return nil }

func (p *leaversPoller) Close() {}

// A leaver is the socket of a client that has left.
type leaver struct {
	net   *leavers
	index int
}

func (s *leaver) Read([]byte) (int, error) {
	s.net.Lock()
	defer s.net.Unlock()
	s.net.reads.now++
	return 0, io.EOF
}

func (s *leaver) Write(out []byte) (int, error) { return len(out), nil }
func (s *leaver) Unacknowledged() int           { return 0 }
func (s *leaver) CloseWrite() error             { return nil }

func (s *leaver) Close() error {
	s.net.Lock()
	defer s.net.Unlock()
	(*leaversPoller)(s.net).drop(s)
	s.net.closes.now++
	if s.net.closed++; s.net.closed == s.net.clients {
		close(s.net.gone)
	}
	return nil
}
