package server

import (
	"io"
	"net"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/server/epoll"
)

// endlessStream is a stream of a leader that answers as fast as its client takes it, which is so many pieces.
type endlessStream struct {
	client net.Conn
	pieces int
	last   int // bytes of the last piece, which the client has not read
	ended  bool
	held   int
	drains bool // the client reads a piece before the next comes
	silent bool // there are no answers
}

func (s *endlessStream) TryRead(b []byte) (int, error) {
	if s.silent {
		return 0, epoll.ErrWouldBlock
	}
	if s.drains {
		if _, err := io.ReadFull(s.client, make([]byte, s.last)); err != nil {
			return 0, err
		}
	}
	if s.pieces == 0 {
		return 0, io.EOF
	}
	s.pieces--
	s.last = len(b)
	return len(b), nil
}

func (s *endlessStream) Ready() (readable, writable, ended bool) { return true, true, s.ended }

func (s *endlessStream) TryWrite(b []byte) (int, error) { return len(b), nil }
func (s *endlessStream) CloseWrite() error              { return nil }
func (s *endlessStream) Unread() int                    { return 0 }
func (s *endlessStream) Held() int                      { return s.held }
func (s *endlessStream) Notify(func())                  {}
func (s *endlessStream) Close() error                   { return nil }

// newProxyLoop returns a loop that the test runs, with clients whose bytes it passes on.
func newProxyLoop(t *testing.T, streams ...*endlessStream) (*loop, []*socket) {
	t.Helper()
	r := start(t, Options{})
	l, err := newLoop(r.Server, newSystemPoller)
	if err != nil {
		t.Fatal(err)
	}
	l.driving.Lock()
	var clients []*socket
	for _, s := range streams {
		clients = append(clients, newProxied(t, l, s))
	}
	r.mu.proxied, r.mu.slots = len(clients), len(clients)
	t.Cleanup(func() {
		for _, c := range clients {
			l.end(c, errAborted)
		}
		for len(l.gone) > 0 {
			l.closeSome()
		}
		l.close()
	})
	return l, clients
}

func newProxied(t *testing.T, l *loop, stream *endlessStream) *socket {
	t.Helper()
	listener := listenOn(t, "unix")
	defer listener.Close()
	stream.client = dialTo(t, listener).nc
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	fd, err := epoll.Take(conn)
	if err != nil {
		t.Fatal(err)
	}
	s := &socket{fd: fd, client: unnamed, loop: l, proxy: &proxy{stream: stream}}
	s.index = l.clients.add(s)
	if err := l.poll.Add(fd, s.index, 0); err != nil {
		t.Fatal(err)
	}
	l.list(s)
	return s
}

// A client that reads as fast as its leader answers has a share of each pass, as a local one has, and no more.
func TestProxyOfFastReader(t *testing.T) {
	t.Parallel()
	stream := &endlessStream{pieces: 10*writesPerRound + 1, drains: true}
	l, clients := newProxyLoop(t, stream)
	for !clients[0].proxy.ended {
		before := stream.pieces
		l.step()
		if n := before - stream.pieces; n > writesPerRound {
			t.Fatalf("a pass passes back %d pieces of one client, want %d at most", n, writesPerRound)
		}
	}
	if stream.pieces > 0 {
		t.Errorf("%d pieces are left", stream.pieces)
	}
}

// The leader has ended the stream. A client that takes the last replies slowly gets all the time that it uses, and one that takes
// nothing does not.
func TestProxyOfSteadyReader(t *testing.T) {
	stream := &endlessStream{pieces: 100, ended: true}
	l, clients := newProxyLoop(t, stream)
	c := clients[0]
	for c.proxy.closeAt == 0 { // until the client's kernel takes no more
		l.step()
	}
	late := func() {
		c.proxy.closeAt = 1
		l.checkLinger(c)
	}
	read := func() {
		t.Helper()
		if _, err := io.ReadFull(stream.client, make([]byte, readSize)); err != nil {
			t.Fatal(err)
		}
	}
	for range 5 {
		read()
		c.proxy.closeAt = 1
		l.passBoth(c) // which writes more
		if l.checkLinger(c); c.gone {
			t.Fatal("the client has taken some of the last replies, and has lost the others")
		}
	}
	read()
	if late(); c.gone {
		t.Fatal("the client's kernel has acknowledged some of the last replies, and the client has lost the others")
	}
	l.passBoth(c)
	if late(); !c.gone {
		t.Error("the client takes nothing and stays connected")
	}
}

// A client that has all replies and is at work need not close its connection before the loop ends.
func TestProxyDoesNotWaitForClientsAtWork(t *testing.T) {
	stream := &endlessStream{pieces: 1}
	l, clients := newProxyLoop(t, stream)
	c := clients[0]
	for !c.proxy.ended {
		l.step()
	}
	if l.checkLinger(c); c.gone {
		t.Fatal("the client has not read its replies, and is disconnected")
	}
	if _, err := io.ReadFull(stream.client, make([]byte, stream.last)); err != nil {
		t.Fatal(err)
	}
	if l.checkLinger(c); !c.gone {
		t.Error("the loop waits for a client that has everything")
	}
}

// A client of a unix socket closes its connection while the leader is busy. Until that has answered there is nothing to do.
func TestProxiedClientHangsUp(t *testing.T) {
	stream := &endlessStream{silent: true}
	l, clients := newProxyLoop(t, stream)
	io.WriteString(stream.client, "use y\r\n")
	stream.client.Close()
	for range 100 {
		l.post(func(*mailbox) {}) // the loop does not wait
		if l.step(); clients[0].proxy.shut && len(l.poll.Wait(0)) == 0 {
			return
		}
	}
	t.Error("the loop hears of the hang-up again and again")
}
