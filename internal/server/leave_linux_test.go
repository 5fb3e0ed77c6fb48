package server

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/internal/epoll"
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
	if n.most > epoll.MaxEvents/maxRoundTasks*closesPerRound {
		t.Errorf("%d connections were closed in one pass", n.most)
	}
}

// leavers is a Network with clients that connect and leave at once.
type leavers struct {
	net.Listener
	sync.Mutex
	clients int
	left    int // clients that were not accepted
	indexes []int
	closes  int // since the last wait
	most    int
	closed  int
	poller  chan struct{} // has something if the wait is to end
	gone    chan struct{} // closed when all connections are
}

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
	return &leaver{n}, unnamed, nil
}

// leaversPoller tells that all clients have left as soon as all have connected.
type leaversPoller leavers

func (p *leaversPoller) Add(_ Socket, index int, _ epoll.Events) error {
	p.Lock()
	defer p.Unlock()
	p.indexes = append(p.indexes, index)
	return nil
}

func (p *leaversPoller) Modify(Socket, int, epoll.Events) error { return nil }

func (p *leaversPoller) Wait(timeout time.Duration) (events []epoll.Event) {
	p.Lock()
	p.most, p.closes = max(p.most, p.closes), 0
	if p.left > 0 {
		events = append(events, epoll.Event{Index: epoll.Listeners, Events: epoll.Readable})
	} else {
		for _, index := range p.indexes {
			events = append(events, epoll.Event{Index: index, Events: epoll.Readable | epoll.HalfClosed})
		}
		p.indexes = nil
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

func (p *leaversPoller) Close() {}

// A leaver is the socket of a client that has left.
type leaver struct{ net *leavers }

func (s *leaver) Read([]byte) (int, error)      { return 0, io.EOF }
func (s *leaver) Write(out []byte) (int, error) { return len(out), nil }
func (s *leaver) Unacknowledged() int           { return 0 }
func (s *leaver) CloseWrite() error             { return nil }

func (s *leaver) Close() error {
	s.net.Lock()
	defer s.net.Unlock()
	s.net.closes++
	if s.net.closed++; s.net.closed == s.net.clients {
		close(s.net.gone)
	}
	return nil
}
