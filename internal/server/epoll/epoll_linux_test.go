package epoll

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func newPoller(t *testing.T) *Poller {
	t.Helper()
	p, err := New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// socketPair returns two ends of a connection. Take has removed the first from package
// net.
func socketPair(t *testing.T) (Socket, net.Conn) {
	t.Helper()
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	theirs, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { theirs.Close() })
	ours, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	s, err := Take(ours)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ours.Write(nil); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after Take, the connection returns %v, want net.ErrClosed", err)
	}
	return s, theirs
}

func add(t *testing.T, p *Poller, s Socket, index int, events Events) {
	t.Helper()
	if err := p.Add(s, index, events); err != nil {
		t.Fatal(err)
	}
}

func send(t *testing.T, c io.Writer, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
}

// waitOne waits for one event, which must have the socket's index.
func waitOne(t *testing.T, p *Poller, index int) Events {
	t.Helper()
	for {
		switch events := p.Wait(-1); {
		case len(events) > 1 || len(events) == 1 && events[0].Index != index:
			t.Fatalf("got %v, want one event of %d", events, index)
		case len(events) == 1:
			return events[0].Events
		} // no event: a signal arrived
	}
}

func TestRead(t *testing.T) {
	p := newPoller(t)
	s, peer := socketPair(t)
	defer s.Close()
	add(t, p, s, 7, Readable)
	buf := make([]byte, 3)
	if n, err := s.Read(buf); n != 0 || err != ErrWouldBlock {
		t.Errorf("an empty socket read %d, %v, want ErrWouldBlock", n, err)
	}
	if events := p.Wait(0); len(events) != 0 {
		t.Errorf("unexpected events %v", events)
	}
	send(t, peer, "abcd")
	var got []byte
	for range 2 { // unread input is reported again
		if events := waitOne(t, p, 7); events != Readable {
			t.Errorf("got %#x, want Readable", events)
		}
		n, err := s.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, buf[:n]...)
	}
	if string(got) != "abcd" {
		t.Errorf("read %q", got)
	}
	peer.Close()
	if events := waitOne(t, p, 7); !events.Has(HungUp) {
		t.Errorf("got %#x, want HungUp", events)
	}
	if n, err := s.Read(buf); n != 0 || err != io.EOF {
		t.Errorf("read at the end: %d, %v, want EOF", n, err)
	}
}

// A write to a full socket is partial. The socket is writable again when the peer has
// read.
func TestWrite(t *testing.T) {
	p := newPoller(t)
	s, peer := socketPair(t)
	defer s.Close()
	out := bytes.Repeat([]byte("x"), 4<<20)
	n, err := s.Write(out)
	if err != nil || n == 0 || n == len(out) {
		t.Fatalf("wrote %d, %v, want a part of %d", n, err, len(out))
	}
	if n, err := s.Write(out); n != 0 || err != nil {
		t.Errorf("write to a full socket: %d, %v, want 0", n, err)
	}
	add(t, p, s, 0, Writable)
	if events := p.Wait(0); len(events) != 0 {
		t.Errorf("a full socket reports %v", events)
	}
	if _, err := io.ReadFull(peer, make([]byte, n)); err != nil {
		t.Fatal(err)
	}
	if events := waitOne(t, p, 0); events != Writable {
		t.Errorf("got %#x, want Writable", events)
	}
	peer.Close()
	if n, err := s.Write(out); n != 0 || !errors.Is(err, unix.EPIPE) {
		t.Errorf("write to a closed peer: %d, %v, want EPIPE", n, err)
	}
}

func TestModify(t *testing.T) {
	p := newPoller(t)
	s, peer := socketPair(t)
	defer s.Close()
	add(t, p, s, 3, HalfClosed)
	send(t, peer, "unread")
	if events := p.Wait(0); len(events) != 0 {
		t.Errorf("waiting only for the end, but got %v", events)
	}
	if err := peer.(*net.UnixConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if events := waitOne(t, p, 3); events != HalfClosed {
		t.Errorf("got %#x, want HalfClosed", events)
	}
	if err := p.Modify(s, 4, Readable|Writable); err != nil {
		t.Fatal(err)
	}
	if events := waitOne(t, p, 4); events != Readable|Writable {
		t.Errorf("got %#x, want Readable and Writable", events)
	}
	if err := p.Modify(Socket(p.fd), 0, Readable); !errors.Is(err, unix.EINVAL) {
		t.Errorf("a poller in itself: %v, want EINVAL", err)
	}
}

// A closed socket reports no events.
func TestClose(t *testing.T) {
	p := newPoller(t)
	s, peer := socketPair(t)
	add(t, p, s, 0, Readable)
	peer.Close()
	s.Close()
	if events := p.Wait(0); len(events) != 0 {
		t.Errorf("a closed socket reports %v", events)
	}
}

// Any number of calls of Wake end one Wait.
func TestWake(t *testing.T) {
	p := newPoller(t)
	s, peer := socketPair(t)
	defer s.Close()
	add(t, p, s, 1, Readable)
	woken := make(chan struct{})
	go func() {
		p.Wait(-1)
		close(woken)
	}()
	p.Wake()
	<-woken
	p.Wake()
	p.Wake()
	send(t, peer, "x")
	waitOne(t, p, 1) // and no event of Wake
	if _, err := s.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if events := p.Wait(time.Millisecond); len(events) != 0 {
		t.Errorf("unexpected events %v", events)
	}
}

func TestManyEvents(t *testing.T) {
	p := newPoller(t)
	seen := make(map[int]bool)
	for i := range MaxEvents + 1 {
		s, _ := socketPair(t)
		defer s.Close()
		add(t, p, s, i, Writable)
	}
	for len(seen) <= MaxEvents { // this ends, because the kernel reports the sockets in turn
		events := p.Wait(0)
		if len(events) > MaxEvents {
			t.Fatalf("%d events at a time", len(events))
		}
		for _, ev := range events {
			seen[ev.Index] = true
		}
	}
}

// After Take, a socket outlives the connection from which it was taken. A listener is
// also a socket.
func TestTake(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s, err := Take(l)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	p := newPoller(t)
	add(t, p, s, 0, Readable)
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	waitOne(t, p, 0)

	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if _, err := Take(f); err == nil {
		t.Error("took the socket of a closed file")
	}
}

// Listening sockets share an index. They have events only while a client waits to be
// accepted.
func TestAccept(t *testing.T) {
	p := newPoller(t)
	s, theirs := socketPair(t)
	defer s.Close()
	add(t, p, s, 7, Readable)
	var addrs []net.Addr
	var listening []Socket
	for range 2 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addrs = append(addrs, l.Addr())
		fd, err := Take(l)
		if err != nil {
			t.Fatal(err)
		}
		defer fd.Close()
		add(t, p, fd, Listeners, Readable)
		listening = append(listening, fd)
	}
	send(t, theirs, "x")
	waitOne(t, p, 7)
	for range 3 {
		for _, a := range addrs {
			nc, err := net.Dial("tcp", a.String())
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
		}
	}
	events := p.Wait(0)
	for len(events) == 0 { // a signal arrived
		events = p.Wait(0)
	}
	if len(events) != 3 || events[0] != (Event{Listeners, Readable}) || events[1] != events[0] || events[2].Index != 7 {
		t.Fatalf("got %v, want an event of each listener, then an event of 7", events)
	}
	for _, l := range listening {
		for range 3 {
			c, client, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			if client.Addr().String() != "127.0.0.1" || client.Port() == 0 {
				t.Errorf("the client is %v", client)
			}
			c.Close()
		}
		if _, _, err := l.Accept(); err != ErrWouldBlock {
			t.Errorf("no client waits: %v", err)
		}
	}
	waitOne(t, p, 7)
}
