package connlimit

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/internal/test/memnet"
)

// A site is a server behind a Listener, in a synctest bubble.
type site struct {
	t        *testing.T
	network  *memnet.Listener
	listener *Listener
	begun    chan string   // gets the path of a request that is answered later
	answer   chan struct{} // one for each of them
}

func newSite(t *testing.T, opt Options) *site {
	s := &site{t: t, network: memnet.Listen(), begun: make(chan string, 100), answer: make(chan struct{})}
	opt.Probe = func(r *http.Request) bool { return r.URL.Path == "/probe" }
	s.listener = New(s.network, opt)
	srv := &http.Server{Handler: http.HandlerFunc(s.serve)}
	s.listener.Guard(srv)
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(s.listener) }()
	t.Cleanup(func() {
		srv.Close()
		<-ended
	})
	return s
}

// serve answers: /long when it is told to, /large with a lot, and /read with what it has read.
func (s *site) serve(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/long":
		s.begun <- r.URL.Path
		select {
		case <-s.answer:
		case <-r.Context().Done():
		}
		if err := r.Context().Err(); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	case "/large":
		io.WriteString(w, large)
	case "/read":
		n, err := io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, n, err)
	case "/events":
		for range 100 {
			time.Sleep(time.Minute)
			if _, err := io.WriteString(w, "event\n"); err != nil {
				return
			}
			http.NewResponseController(w).Flush()
		}
	}
}

var large = strings.Repeat("x", 10*memnet.Buffer)

func get(path string) string { return "GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n" }

func (s *site) dial(request string) net.Conn {
	nc, err := s.network.Dial()
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { nc.Close() })
	io.WriteString(nc, request)
	synctest.Wait()
	return nc
}

// wantStatus reads a response, and returns its body.
func (s *site) wantStatus(nc net.Conn, status int) string {
	s.t.Helper()
	res, err := http.ReadResponse(bufio.NewReader(nc), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != status {
		s.t.Fatalf("%s, want %d: %s %v", res.Status, status, text, err)
	}
	return string(text)
}

// closed reports whether the server has closed a connection.
func closed(nc net.Conn) bool {
	nc.SetReadDeadline(time.Now().Add(time.Millisecond))
	_, err := io.Copy(io.Discard, nc)
	timeout, ok := err.(net.Error)
	return !ok || !timeout.Timeout()
}

// Whatever a client leaves undone, probes and others are answered at once, and it is
// closed after seconds.
func TestStuckClients(t *testing.T) {
	for name, request := range map[string]string{
		"nothing":                                "",
		"half a header":                          "GET / HTTP/1.1\r\nHost: x\r\n",
		"a body that does not come":              "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n",
		"a chunk that does not come":             "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n",
		"a body that does not come, and is read": "POST /read HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n",
		"a reply that is not read":               get("/large"),
		"many replies that are not read":         strings.Repeat(get("/large"), 100),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t, Options{Requests: 64})
				var stuck []net.Conn
				for range 200 {
					stuck = append(stuck, s.dial(request))
				}
				start := time.Now()
				s.wantStatus(s.dial(get("/probe")), 200)
				s.wantStatus(s.dial(get("/")), 200)
				if waited := time.Since(start); waited != 0 {
					t.Errorf("they were answered after %v", waited)
				}
				time.Sleep(2 * headerTimeout)
				synctest.Wait()
				if n := len(s.listener.inside); n > 2 { // those that were answered
					t.Errorf("%d connections are there after 10 s", n)
				}
				for _, nc := range stuck {
					if !closed(nc) {
						t.Fatal("a connection is not closed")
					}
				}
			})
		})
	}
}

// A client whose request is refused before its body has come gets the reply.
func TestReplyToUnreadBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, Options{Requests: 2})
		nc := s.dial("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 20000\r\n\r\n" + strings.Repeat("x", 10000))
		s.wantStatus(nc, 200)
		time.Sleep(time.Second)
		if !closed(nc) {
			t.Error("the connection goes on")
		}
	})
}

// The connection that has waited for its client longest makes room; one that is being
// served never does.
func TestRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, Options{Requests: 2})
		served := s.dial(get("/long"))
		idle := s.dial(get("/"))
		s.wantStatus(idle, 200)
		for range s.listener.opt.Connections() - 2 {
			time.Sleep(time.Millisecond)
			s.dial("")
		}
		if closed(idle) {
			t.Error("a connection was closed though there was room")
		}
		last := s.dial(get("/probe"))
		s.wantStatus(last, 200)
		if !closed(idle) {
			t.Error("the connection that was idle longest is not closed")
		}
		s.answer <- struct{}{}
		s.wantStatus(served, 200)
	})
}

// When as many requests are being served as may be, probes are, too, and others are
// told to come later.
func TestCrowded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, Options{Requests: 2})
		first, second := s.dial(get("/long")), s.dial(get("/long"))
		s.wantStatus(s.dial(get("/probe")), 200)
		s.wantStatus(s.dial(get("/")), 503)
		s.answer <- struct{}{}
		s.answer <- struct{}{}
		s.wantStatus(first, 200)
		s.wantStatus(second, 200)
		s.wantStatus(s.dial(get("/")), 200)
	})
}

// One machine has half of the connections at most.
func TestMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := netip.MustParseAddr("192.0.2.1")
		s := newSite(t, Options{Requests: 4, Machine: func(net.Addr) netip.Addr { return next }})
		half := s.listener.opt.Connections() / 2
		var one []net.Conn
		for range 2 * half {
			time.Sleep(time.Millisecond)
			one = append(one, s.dial(""))
		}
		for i, nc := range one {
			if closed(nc) != (i < half) {
				t.Errorf("connection %d of one machine: closed is %v", i, closed(nc))
			}
		}
		next = netip.MustParseAddr("192.0.2.2")
		other := s.dial(get("/"))
		s.wantStatus(other, 200)
		if n := len(s.listener.inside); n != half+1 {
			t.Errorf("%d connections are inside", n)
		}
	})
}

func TestAllows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, Options{Requests: 4, Allows: func(net.Addr) bool { return false }})
		if !closed(s.dial(get("/"))) {
			t.Error("a client that may not come in was let in")
		}
	})
}

// What takes long is not cut off: a handler that works, a client that sends or reads slowly but
// steadily, events that go on.
func TestSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, Options{Requests: 4})
		worked := s.dial("POST /long HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
		events := s.dial(get("/events"))

		sends := s.dial("POST /read HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n")
		for range 100 {
			time.Sleep(stallTimeout - time.Second)
			io.WriteString(sends, "x")
		}
		if text := s.wantStatus(sends, 200); text != "100 <nil>" {
			t.Errorf("of a slow client's body the server has read %s", text)
		}

		reads := s.dial(get("/large"))
		part := make([]byte, chunk)
		read := 0
		for read < 10*memnet.Buffer {
			time.Sleep(stallTimeout - time.Second)
			n, err := reads.Read(part)
			if err != nil {
				t.Fatalf("after %d bytes of a slow client's reply: %v", read, err)
			}
			read += n
		}

		s.answer <- struct{}{}
		s.wantStatus(worked, 200)
		if text := s.wantStatus(events, 200); strings.Count(text, "event") != 100 {
			t.Errorf("the stream of events ended with %q", text)
		}
	})
}

// A request whose client goes is told so, and a Close ends all.
func TestGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, Options{Requests: 4})
		s.dial(get("/long")).Close()
		synctest.Wait()
		if n := len(s.listener.inside); n != 0 {
			t.Errorf("%d connections are there", n)
		}
	})
}

// ConnContext gets what the listener has accepted.
func TestConnContext(t *testing.T) {
	var got net.Conn
	below, _ := memnet.Pipe()
	connContext(func(ctx context.Context, nc net.Conn) context.Context {
		got = nc
		return ctx
	})(t.Context(), &conn{Conn: below})
	if got != net.Conn(below) {
		t.Errorf("got %v", got)
	}
}
