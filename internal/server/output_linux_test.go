package server

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/internal/server/epoll"
)

// A loop bounds the output of an iteration, no matter how many clients read long replies,
// and how fast. Each client gets its share.
func TestOutputOfPassIsBounded(t *testing.T) {
	const clients, body = 50, 4 << 20
	r := start(t, Options{Loops: 1, MaxJobSize: body})
	r.putLarge(body)
	n := &readers{left: clients, done: make(chan struct{}), woken: make(chan struct{}, 1)}
	r.serve(n)
	<-n.done
	if err := r.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	// A first piece can follow that amount, and each body has a line before it.
	if most := iterationOutput + maxPiece + clients*100; n.most > most {
		t.Errorf("%d bytes were written in an iteration, want %d at most", n.most, most)
	}
	if n.behind < body/2 {
		t.Errorf("a client had only %d of %d bytes when another had all", n.behind, body)
	}
}

// readers is a network with clients that peek at the same job and read all output at
// once. The loop owns it.
type readers struct {
	net.Listener
	left   int // clients that were not accepted
	all    []*reader
	pass   int // bytes that were written since the last wait
	most   int
	behind int // lowest number of bytes of a client when the first had all
	ended  int
	done   chan struct{}
	woken  chan struct{}
}

func (n *readers) Addr() net.Addr             { return unnamed }
func (n *readers) Close() error               { return nil }
func (n *readers) NewPoller() (Poller, error) { return (*readersPoller)(n), nil }
func (n *readers) Watch(Poller, bool) error   { return nil }

func (n *readers) AcceptSocket() (Socket, net.Addr, error) {
	if n.left == 0 {
		return nil, nil, epoll.ErrWouldBlock
	}
	n.left--
	s := &reader{net: n, in: "peek 1\r\n"}
	n.all = append(n.all, s)
	return s, unnamed, nil
}

// readersPoller reports events always in the same order, like epoll with few events.
type readersPoller readers

func (p *readersPoller) Add(s Socket, index int, events epoll.Events) error {
	s.(*reader).index, s.(*reader).interest = index, events
	return nil
}

func (p *readersPoller) Modify(s Socket, _ int, events epoll.Events) error {
	s.(*reader).interest = events
	return nil
}

func (p *readersPoller) Wait(timeout time.Duration) (events []epoll.Event) {
	p.most, p.pass = max(p.most, p.pass), 0
	if p.left > 0 {
		return []epoll.Event{{Index: epoll.Listeners, Events: epoll.Readable}}
	}
	for _, s := range p.all {
		ev := epoll.Writable
		if s.in != "" {
			ev |= epoll.Readable
		}
		if ev &= s.interest; ev != 0 {
			events = append(events, epoll.Event{Index: s.index, Events: ev})
		}
	}
	if len(events) == 0 && timeout != 0 {
		<-p.woken
	}
	return events
}

func (p *readersPoller) Wake() {
	select {
	case p.woken <- struct{}{}:
	default:
	}
}

func (*readersPoller) Remove(Socket) error { return nil }

func (p *readersPoller) Close() {}

// A reader is the socket of a client of readers.
type reader struct {
	net      *readers
	index    int
	interest epoll.Events
	in       string
	got      int
}

func (s *reader) Read(buf []byte) (int, error) {
	if s.in == "" {
		return 0, epoll.ErrWouldBlock
	}
	n := copy(buf, s.in)
	s.in = s.in[n:]
	return n, nil
}

func (s *reader) Write(out []byte) (int, error) {
	s.got += len(out)
	s.net.pass += len(out)
	if strings.HasSuffix(string(out[max(0, len(out)-2):]), "\r\n") && s.got > 1000 {
		s.end()
	}
	return len(out), nil
}

// end records that the client has the whole reply.
func (s *reader) end() {
	n := s.net
	if n.ended++; n.ended == 1 {
		n.behind = s.got
		for _, o := range n.all {
			n.behind = min(n.behind, o.got)
		}
	}
	if n.ended == len(n.all) {
		close(n.done)
	}
}

func (s *reader) Unacknowledged() int { return 0 }
func (s *reader) CloseWrite() error   { return nil }
func (s *reader) Close() error        { return nil }

// The output to proxied clients is bounded in the same way.
func TestOutputOfProxyIsBounded(t *testing.T) {
	const clients = 40
	streams := make([]*endlessStream, clients)
	for i := range streams {
		streams[i] = &endlessStream{pieces: 3}
	}
	loop, _ := newProxyLoop(t, streams...)
	left := func() (n int) {
		for _, s := range streams {
			n += s.pieces
		}
		return n
	}
	for left() > 0 {
		before := left()
		loop.step()
		if n := before - left(); n > iterationOutput/readSize+writesPerBatch {
			t.Fatalf("an iteration passes back %d pieces, want %d at most", n, iterationOutput/readSize+writesPerBatch)
		}
	}
}
