package server

import (
	"io"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/internal/server/epoll"
)

// endlessStream is a stream of a leader that answers as fast as its client takes it, which is so many pieces.
type endlessStream struct {
	net.Conn // nil
	client   net.Conn
	pieces   int
	last     int // bytes of the last piece, which the client has not read
	ended    bool
	held     int
	drains   bool // the client reads a piece before the next comes
}

func (s *endlessStream) TryRead(b []byte) (int, error) {
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
func (s *endlessStream) PutBack([]byte)                 {}
func (s *endlessStream) Unread() int                    { return 0 }
func (s *endlessStream) Held() int                      { return s.held }
func (s *endlessStream) Notify(func())                  {}
func (s *endlessStream) Close() error                   { return nil }

// newRelayLoop returns a loop that the test runs, and clients for it.
func newRelayLoop(t *testing.T, streams ...*endlessStream) (*relayLoop, []*relayed) {
	t.Helper()
	poll, err := newSystemPoller()
	if err != nil {
		t.Fatal(err)
	}
	r := start(t, Options{})
	l := &relayLoop{srv: r.Server, poll: poll}
	var clients []*relayed
	for _, s := range streams {
		clients = append(clients, newRelayed(t, l, s))
	}
	r.mu.Lock()
	r.mu.relayed += len(clients)
	r.mu.Unlock()
	t.Cleanup(func() {
		for _, c := range clients {
			l.end(c)
		}
		poll.Close()
	})
	return l, clients
}

func newRelayed(t *testing.T, l *relayLoop, stream *endlessStream) *relayed {
	t.Helper()
	listener, err := net.Listen("unix", filepath.Join(t.TempDir(), "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if stream.client, err = net.Dial("unix", listener.Addr().String()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stream.client.Close() })
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	fd, err := epoll.Take(conn)
	if err != nil {
		t.Fatal(err)
	}
	return &relayed{fd: fd, client: conn.RemoteAddr(), stream: stream, loop: l}
}

// A client that reads as fast as its leader answers has a share of each round, as a local one has, and no more.
func TestRelayOfFastReader(t *testing.T) {
	t.Parallel()
	stream := &endlessStream{pieces: 10*writesPerRound + 1, drains: true}
	l, clients := newRelayLoop(t, stream)
	c := clients[0]
	for got := (relayMail{joined: clients}); !c.ended; got, _ = l.wait() {
		before := stream.pieces
		l.serve(got, nil)
		if n := before - stream.pieces; n > writesPerRound {
			t.Fatalf("a round passes back %d pieces of one client, want %d at most", n, writesPerRound)
		}
	}
	if stream.pieces > 0 {
		t.Errorf("%d pieces are left", stream.pieces)
	}
}

// The leader has ended the stream. A client that takes the last replies slowly gets all the time that it uses, and one that takes
// nothing does not.
func TestRelayOfSteadyReader(t *testing.T) {
	stream := &endlessStream{pieces: 100, ended: true}
	l, clients := newRelayLoop(t, stream)
	c := clients[0]
	got := relayMail{joined: clients}
	for l.serve(got, nil); c.closeAt.IsZero(); l.serve(got, nil) { // until the client's kernel takes no more
		got, _ = l.wait()
	}
	late := func() { c.closeAt, l.lookedAt = time.Now().Add(-time.Second), time.Time{} }
	read := func() {
		t.Helper()
		if _, err := io.ReadFull(stream.client, make([]byte, maxRelayBuffer)); err != nil {
			t.Fatal(err)
		}
	}
	for range 5 {
		read()
		late()
		l.serve(relayMail{arrived: []*relayed{c}}, nil) // which writes more
		if l.closeOverdue(); !l.has(c) {
			t.Fatal("the client has taken some of the last replies, and has lost the others")
		}
	}
	read()
	late()
	if l.closeOverdue(); !l.has(c) {
		t.Fatal("the client's kernel has acknowledged some of the last replies, and the client has lost the others")
	}
	late()
	l.serve(relayMail{arrived: []*relayed{c}}, nil)
	late()
	if l.closeOverdue(); l.has(c) {
		t.Error("the client takes nothing and stays connected")
	}
}

// A client that has all replies and is at work need not close its connection before the loop ends.
func TestRelayDoesNotWaitForClientsAtWork(t *testing.T) {
	stream := &endlessStream{pieces: 1}
	l, clients := newRelayLoop(t, stream)
	for got := (relayMail{joined: clients}); !clients[0].ended; got, _ = l.wait() {
		l.serve(got, nil)
	}
	l.lookedAt = time.Time{}
	if l.closeOverdue(); !l.has(clients[0]) {
		t.Fatal("the client has not read its replies, and is disconnected")
	}
	if _, err := io.ReadFull(stream.client, make([]byte, stream.last)); err != nil {
		t.Fatal(err)
	}
	l.lookedAt = time.Time{}
	if l.closeOverdue(); l.has(clients[0]) {
		t.Error("the loop waits for a client that has everything")
	}
}
