package server

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/internal/conversation"
	"github.com/beanpole-mq/beanpole/internal/server/epoll"
)

// An endlessStream is a leader's stream that delivers a number of pieces as fast as the
// client reads.
type endlessStream struct {
	MemberStream // nil; the tests call no other methods
	client       net.Conn
	pieces       int
	last         int // number of unread bytes of the last piece
	ended        bool
	held         int
	drains       bool // the client reads each piece before the next arrives
	silent       bool // there are no replies
}

func (s *endlessStream) TryRead(b []byte) (int, error) {
	if s.silent {
		return 0, epoll.ErrWouldBlock
	}
	if s.drains {
		if _, err := io.ReadFull(s.client, make([]byte, s.last)); err != nil {
			return 0, err
		}
		s.last = 0
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
func (s *endlessStream) Used() uint64                   { return 0 }
func (s *endlessStream) Mark(uint64, []byte, []byte)    {}
func (s *endlessStream) Notify(func())                  {}
func (s *endlessStream) Close() error                   { return nil }

// newProxyLoop returns a loop that the test runs, with proxied clients.
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
	r.slots.taken = len(clients)
	t.Cleanup(func() {
		for _, c := range clients {
			l.end(c, errAborted)
		}
		for len(l.closing) > 0 {
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
	stream.client = dialTo(t, listener).nc.(net.Conn)
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	fd, err := epoll.Take(conn)
	if err != nil {
		t.Fatal(err)
	}
	s := &socket{srv: l.srv, fd: fd, client: unnamed, loop: l}
	s.proxy = &proxy{socket: s, loop: l, stream: stream}
	s.Conversation = conversation.New(&l.srv.shared, s, "")
	s.index = l.clients.add(s)
	if err := l.poll.Add(fd, s.index, 0); err != nil {
		t.Fatal(err)
	}
	l.list(s)
	return s
}

// A proxied client that reads as fast as its leader replies gets a bounded share of each
// iteration, like a local client.
func TestProxyOfFastReader(t *testing.T) {
	t.Parallel()
	stream := &endlessStream{pieces: 10*writesPerBatch + 1, drains: true}
	l, clients := newProxyLoop(t, stream)
	for clients[0].proxy != nil {
		before := stream.pieces
		l.step()
		if n := before - stream.pieces; n > writesPerBatch {
			t.Fatalf("an iteration passes back %d pieces of one client, want %d at most", n, writesPerBatch)
		}
	}
	if stream.pieces > 0 {
		t.Errorf("%d pieces are left", stream.pieces)
	}
}

// A leader ends the stream before the client has read the last replies. The client's own
// conversation writes them, with its limits: a client that reads slowly gets all replies,
// and a client that does not read is disconnected.
func TestProxyOfSteadyReader(t *testing.T) {
	t.Parallel()
	for _, takes := range []bool{true, false} {
		stream := &endlessStream{pieces: 100, ended: true}
		l, clients := newProxyLoop(t, stream)
		c := clients[0]
		for c.proxy != nil { // fill the client's kernel buffers
			l.step()
		}
		for got := 0; takes && got < 100*readSize; got += readSize {
			stream.client.SetReadDeadline(time.Now().Add(10 * time.Second))
			if _, err := io.ReadFull(stream.client, make([]byte, readSize)); err != nil {
				t.Fatalf("the client lost replies after %d bytes: %v", got, err)
			}
			l.now += int64(DefaultStallTimeout) - 1
			c.Advance(l.batch.Batch, l.now)
			l.proceed(c)
		}
		l.now += int64(DefaultStallTimeout)
		c.Advance(l.batch.Batch, l.now)
		l.proceed(c)
		if want := map[bool]error{true: conversation.ErrPassedOn, false: conversation.ErrUnread}[takes]; !c.closing || c.Reason() != want {
			t.Errorf("client reads replies: %v; closed: %v, because of %v, want %v", takes, c.closing, c.Reason(), want)
		}
	}
}

// A client of a Unix socket closes its connection while the leader is busy. The loop gets
// no events for it until the leader replies.
func TestProxiedClientHangsUp(t *testing.T) {
	stream := &endlessStream{silent: true}
	l, clients := newProxyLoop(t, stream)
	io.WriteString(stream.client, "use y\r\n")
	stream.client.Close()
	for range 100 {
		l.inbox.deferDue() // the loop does not wait
		if l.step(); clients[0].proxy.shut && len(l.poll.Wait(0)) == 0 {
			return
		}
	}
	t.Error("the loop gets repeated events of the hang-up")
}

// A requestStream contains the input of another member's client, sent before that member
// closed the stream.
type requestStream struct {
	endlessStream
	request, replies []byte
}

func (s *requestStream) TryRead(b []byte) (n int, err error) {
	if len(s.request) == 0 {
		return 0, io.EOF
	}
	n = copy(b, s.request)
	s.request = s.request[n:]
	return n, nil
}

func (s *requestStream) TryWrite(b []byte) (int, error) {
	s.replies = append(s.replies, b...)
	return len(b), nil
}

// A loop that hands over a client does not serve it before the client has a session. This
// is true even if the same loop gets the client and has an event for it in the same
// iteration.
func TestHandOver(t *testing.T) {
	t.Parallel()
	r := start(t, Options{Cluster: &Cluster{ID: 1}, Loops: 1})
	l, err := newLoop(r.Server, newSystemPoller)
	if err != nil {
		t.Fatal(err)
	}
	l.driving.Lock()
	r.mu.loops = loops{all: []*loop{l}, polls: true}
	stream := &requestStream{request: []byte("put 0 0 9 1\r\na\r\n")}
	s := &socket{client: unnamed, proxied: new(proxiedClient), fd: streamSocket{stream}}
	r.prepare(s)
	if err := r.handOut(s); err != nil {
		t.Fatal(err)
	}
	l.step()
	r.Follow(Leadership{Leader: 1, Term: 1, Epoch: 1})
	r.eventually("the leader has gathered its clients", func() bool {
		l.inbox.Lock()
		defer l.inbox.Unlock()
		return len(l.inbox.gathered) > 0
	})
	stream.ended = true
	l.inbox.arrive(s)
	for len(stream.replies) == 0 || l.clients.taken() > 0 {
		l.step()
	}
	if got := string(stream.replies); got != "INSERTED 1\r\n" {
		t.Errorf("got %q", got)
	}
	r.mu.loops = loops{}
	l.close()
}

// pendingClient returns a client that is pending in the first of two loops, which the
// test steps by hand. The next client goes to the second loop.
func pendingClient(t *testing.T) (r *rig, all [2]*loop, s *socket) {
	r = start(t, Options{Cluster: &Cluster{ID: 1}})
	for i := range all {
		l, err := newLoop(r.Server, newSystemPoller)
		if err != nil {
			t.Fatal(err)
		}
		all[i] = l
	}
	r.mu.loops = loops{all: all[:], next: 1, polls: true}
	s = &socket{client: unnamed, proxied: new(proxiedClient), fd: streamSocket{new(endlessStream)}}
	r.prepare(s)
	if err := r.handOut(s); err != nil {
		t.Fatal(err)
	}
	for _, l := range all {
		l.driving.Lock()
	}
	all[0].step()
	return r, all, s
}

// The connection of a client that is dismissed while another loop receives it is closed.
func TestDismissDuringHandOver(t *testing.T) {
	t.Parallel()
	r, all, s := pendingClient(t)
	s.Dismiss(errDismissed)
	r.mu.lead = Leadership{Leader: 1, Term: 1, Epoch: 1}
	s.proxy.route()
	for _, l := range all {
		l.step()
	}
	if s.loop != all[1] || s.Reason() != errDismissed {
		t.Errorf("the client ends because of %v", s.Reason())
	}
	r.stop()
	for _, l := range all {
		l.driving.Unlock()
		l.run()
	}
	r.mu.loops = loops{}
}

// A client that is handed over while the server stops is not assigned to a loop that has
// ended.
func TestHandOverWhileStopping(t *testing.T) {
	t.Parallel()
	r, all, s := pendingClient(t)
	first := all[0]
	r.Follow(Leadership{Leader: 1, Term: 1, Epoch: 1})
	r.stop()
	all[1].driving.Unlock()
	all[1].run()
	s.proxy.route()
	first.driving.Unlock()
	first.run()
	if s.loop != first || !s.closing || r.mu.sockets > 0 {
		t.Errorf("client closed: %v; %d clients are served", s.closing, r.mu.sockets)
	}
	r.mu.loops = loops{}
}

// An event of a closed client does not affect the next client with the same index.
func TestEventOfClosedSocket(t *testing.T) {
	t.Parallel()
	l, clients := newProxyLoop(t, &endlessStream{silent: true})
	index := clients[0].index
	l.events = []epoll.Event{{Index: index, Events: epoll.Failed}}
	l.end(clients[0], errAborted)
	l.closeSome()
	next := newProxied(t, l, &endlessStream{silent: true})
	l.gather()
	if next.index != index || next.closing {
		t.Errorf("client at %d closed: %v", next.index, next.closing)
	}
	l.end(next, errAborted)
}
