package connlimit

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/internal/memnet"
)

const connections = 256 // maximum number of connections to a site

// A site is a guarded server in a synctest bubble.
type site struct {
	t       *testing.T
	network *memnet.Listener
	begun   chan string   // receives the path of each waiting request
	answer  chan struct{} // ends one waiting request
}

func newSite(t *testing.T, requests int, allows func(net.Addr) bool) *site {
	s := &site{t: t, network: memnet.Listen(), begun: make(chan string, 100), answer: make(chan struct{})}
	srv := &http.Server{Handler: http.HandlerFunc(s.serve)}
	Guard(srv, requests, func(r *http.Request) bool { return r.URL.Path == "/probe" })
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(Listen(s.network, connections, allows)) }()
	t.Cleanup(func() {
		srv.Close()
		<-ended
	})
	return s
}

// serve waits for a signal on /long, sends much data on /large, and replies on /read with
// the number of bytes that it has read.
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
		if err == nil {
			r.Body.Read(make([]byte, 1))
			time.Sleep(10 * stallTimeout)
		}
		fmt.Fprint(w, n, err, r.Context().Err())
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

func everyone(net.Addr) bool { return true }

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

// wantStatus reads a response, checks its status and returns its body.
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

// Clients that stall in any way do not delay probes, and are disconnected within seconds.
func TestStuckClients(t *testing.T) {
	for name, request := range map[string]string{
		"no request":                            "",
		"half a header":                         "GET / HTTP/1.1\r\nHost: x\r\n",
		"a missing body":                        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n",
		"a missing chunk":                       "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n",
		"a missing body that the handler reads": "POST /read HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n",
		"an unread reply":                       get("/large"),
		"many unread replies":                   strings.Repeat(get("/large"), 100),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t, 64, everyone)
				var stuck []net.Conn
				for range 200 {
					stuck = append(stuck, s.dial(request))
				}
				start := time.Now()
				s.wantStatus(s.dial(get("/probe")), 200)
				if waited := time.Since(start); waited != 0 {
					t.Errorf("the probe was answered after %v", waited)
				}
				time.Sleep(requestTimeout + stallTimeout + idleTimeout)
				s.wantStatus(s.dial(get("/")), 200)
				for _, nc := range stuck {
					if !closed(nc) {
						t.Fatal("a connection was not closed")
					}
				}
			})
		})
	}
}

// Idle clients do not take the connections of new clients.
func TestIdleClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, 64, everyone)
		idle := 0
		for range 2 * connections {
			nc := s.dial(get("/probe"))
			s.wantStatus(nc, 200)
			if !closed(nc) {
				idle++
			}
		}
		if idle != maxIdle {
			t.Errorf("%d connections are idle, want %d", idle, maxIdle)
		}
	})
}

// At the limit of concurrent requests, probes are served, and other requests get 503.
func TestCrowded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, 2, everyone)
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

// One address can run three quarters of the requests. The rest is reserved for other
// addresses.
func TestShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		srv := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-answer })}
		Guard(srv, 8, func(*http.Request) bool { return false })
		codes := make(map[string]int)
		var mu sync.Mutex
		ask := func(address string) {
			r, w := httptest.NewRequest("GET", "/", nil), httptest.NewRecorder()
			r.RemoteAddr = address
			go func() {
				srv.Handler.ServeHTTP(w, r)
				mu.Lock()
				codes[fmt.Sprint(address[:8], " ", w.Code)]++
				mu.Unlock()
			}()
			synctest.Wait()
		}
		for range 2 {
			for n := range 7 {
				ask(fmt.Sprintf("10.0.0.1:%d", n+1))
			}
			ask("10.0.0.2:1")
			ask("10.0.0.3:1")
			ask("10.0.0.4:1")
			for range 8 {
				answer <- struct{}{}
			}
			synctest.Wait()
		}
		want := map[string]int{"10.0.0.1 200": 12, "10.0.0.1 503": 2, "10.0.0.2 200": 2, "10.0.0.3 200": 2, "10.0.0.4 503": 2}
		if !maps.Equal(codes, want) {
			t.Errorf("%v, want %v", codes, want)
		}
	})
}

func TestAllows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, 4, func(net.Addr) bool { return false })
		if !closed(s.dial(get("/"))) {
			t.Error("a client that allows refuses was accepted")
		}
	})
}

// Slow handlers, clients that send or read slowly but steadily, and event streams are not
// interrupted.
func TestSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, 4, everyone)
		worked := s.dial("POST /long HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
		events := s.dial(get("/events"))

		sends := s.dial("POST /read HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n")
		for range 100 {
			time.Sleep(stallTimeout - time.Second)
			io.WriteString(sends, "x")
		}
		if text := s.wantStatus(sends, 200); text != "100 <nil> <nil>" {
			t.Errorf("after a slow client's body: %s", text)
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
