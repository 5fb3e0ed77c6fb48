package server

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/internal/server/epoll"
)

// Loops do not disconnect such a client either.
func TestStandstillOfLoop(t *testing.T) {
	for name, s := range standstill {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				opt := s.opt
				opt.Loops = 1
				r := start(t, opt)
				n := &stillNetwork{in: crlf.Replace(s.before), later: crlf.Replace(s.while), woken: make(chan struct{}, 1), replies: make(chan string, 10)}
				r.serve(n)
				for got := ""; !strings.HasSuffix(got, "USING y\r\n"); {
					reply, ok := <-n.replies
					if got += reply; !ok {
						t.Fatalf("it was disconnected after %q", got)
					}
				}
			})
		})
	}
}

// stillNetwork is a Network with one client. The process stands still when its loop waits for it, and it sends something meanwhile.
type stillNetwork struct {
	net.Listener
	accepted  bool
	index     int
	in, later string
	unacked   int // bytes, at the first look
	replies   chan string
	woken     chan struct{}
}

func (n *stillNetwork) Addr() net.Addr             { return unnamed }
func (n *stillNetwork) Close() error               { return nil }
func (n *stillNetwork) NewPoller() (Poller, error) { return (*stillPoller)(n), nil }
func (n *stillNetwork) Watch(Poller, bool) error   { return nil }

func (n *stillNetwork) AcceptSocket() (Socket, net.Addr, error) {
	if n.accepted {
		return nil, nil, epoll.ErrWouldBlock
	}
	n.accepted = true
	return (*stillSocket)(n), unnamed, nil
}

type stillPoller stillNetwork

func (p *stillPoller) Add(_ Socket, index int, _ epoll.Events) error {
	p.index = index
	return nil
}

func (p *stillPoller) Modify(Socket, int, epoll.Events) error { return nil }

func (p *stillPoller) Wait(timeout time.Duration) []epoll.Event {
	switch {
	case !p.accepted:
		return []epoll.Event{{Index: epoll.Listeners, Events: epoll.Readable}}
	case timeout > 0 && p.in == "" && p.later != "":
		time.Sleep(2 * timeout)
		p.in, p.later = p.later, ""
	}
	if p.in != "" {
		return []epoll.Event{{Index: p.index, Events: epoll.Readable}}
	}
	if timeout < 0 {
		timeout = time.Hour
	}
	if timeout > 0 {
		select {
		case <-p.woken:
		case <-time.After(timeout):
		}
	}
	return nil
}

func (p *stillPoller) Wake() {
	select {
	case p.woken <- struct{}{}:
	default:
	}
}

func (*stillPoller) Remove(Socket) error { return nil }

func (p *stillPoller) Close() {}

type stillSocket stillNetwork

func (s *stillSocket) Read(buf []byte) (int, error) {
	if s.in == "" {
		return 0, epoll.ErrWouldBlock
	}
	n := copy(buf, s.in)
	s.in = s.in[n:]
	return n, nil
}

func (s *stillSocket) Write(out []byte) (int, error) {
	s.replies <- string(out)
	return len(out), nil
}

func (s *stillSocket) Unacknowledged() int {
	n := s.unacked
	s.unacked = 0
	return n
}

func (s *stillSocket) CloseWrite() error { return nil }

func (s *stillSocket) Close() error {
	close(s.replies)
	return nil
}

// A client at work does not close its connection, and its kernel may wait some 40 ms before it acknowledges a reply. The server
// does not wait longer than that.
func TestShutdownDoesNotWaitForClientsAtWork(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t, Options{Loops: 1})
		n := &stillNetwork{in: "use x\r\n", unacked: 10, woken: make(chan struct{}, 1), replies: make(chan string, 1)}
		r.serve(n)
		<-n.replies
		begun := time.Now() // of the bubble
		if err := r.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took > 100*time.Millisecond {
			t.Errorf("it took %v", took)
		}
	})
}
