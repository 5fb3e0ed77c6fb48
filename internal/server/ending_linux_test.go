package server

import (
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/internal/certs"
	"github.com/beanpole-mq/beanpole/internal/certs/localca"
	"github.com/beanpole-mq/beanpole/internal/conversation"
)

// dialTLS returns a function that connects clients to a TLS listener of the rig.
func (r *rig) dialTLS(t testing.TB) func() *client { return r.serveTLS(t, listenOn(t, "tcp")) }

// serveTLS is like dialTLS, but uses an existing listener.
func (r *rig) serveTLS(t testing.TB, below net.Listener) func() *client {
	t.Helper()
	ca := localca.New(t)
	cert, key := ca.Issue("server", time.Now().Add(time.Hour))
	source, err := certs.Load(certs.Files{Cert: cert, Key: key}, nil)
	if err != nil {
		t.Fatal(err)
	}
	l := r.serveWith(below, ListenOptions{TLS: source.Config()})
	return func() *client {
		nc, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		return newClient(t, tls.Client(nc, &tls.Config{RootCAs: ca.Pool(), ServerName: "localhost"}))
	}
}

// dialPlain is like dialTLS, but without TLS.
func (r *rig) dialPlain(t testing.TB) func() *client {
	l := listenOn(r.tb, "tcp")
	r.serve(l)
	return func() *client { return dialTo(t, l) }
}

// A client that does not read its replies loses its connection after the stall timeout.
func TestUnreadReplies(t *testing.T) {
	t.Parallel()
	for name, dial := range map[string]func(*rig, testing.TB) func() *client{"plain": (*rig).dialPlain, "tls": (*rig).dialTLS} {
		t.Run(name, func(t *testing.T) {
			r := start(t, Options{StallTimeout: 200 * time.Millisecond})
			dial := dial(r, t)
			const clients = 20
			other := dial()
			other.do("list-tube-used\n", "USING default\n")
			r.putLarge(60_000)
			for range clients {
				go io.WriteString(dial().nc, strings.Repeat("peek 1\r\n", 2000))
			}
			r.eventually("they are disconnected", func() bool {
				st := r.stats()
				return st.TotalSessions == 1+clients && st.Sessions <= 1
			})
		})
	}
}

// A TLS client that reads slowly and steadily gets complete long replies.
func TestSlowTLSReader(t *testing.T) {
	r := start(t, Options{MaxJobSize: 4 << 20})
	l := listenOn(t, "tcp")
	setReadBuffer(t, l, 16<<10) // the server's buffer; the client has another one
	c := r.serveTLS(t, l)()
	body := strings.Repeat("x", 4<<20)
	c.do(fmt.Sprintf("put 0 0 9 %d\n%s\n", len(body), body), "INSERTED 1\n")
	c.send(strings.Repeat("peek 1\n", 4))
	for range 4 {
		c.want(fmt.Sprintf("FOUND 1 %d\n%s\n", len(body), body))
	}
	go io.WriteString(c.nc, strings.Repeat("use x\r\n", 100_000)) // far more than one read returns
	for range 100_000 {
		c.want("USING x\n")
	}
}

// A TLS client that sends close_notify while it waits has hung up, even if its connection
// is open. Its commands after the reserve are executed first, and the buffer for them is
// bounded.
func TestTLSFarewellWhileWaiting(t *testing.T) {
	r := start(t, Options{})
	dial := r.dialTLS(t)
	c := dial()
	c.send("reserve\nlist-tube-used\n")
	r.eventually("it waits", func() bool { return r.stats().Waiting == 1 })
	if err := c.nc.(*tls.Conn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	c.want("TIMED_OUT\nUSING default\n")
	c.wantEnd()
	floods := dial()
	floods.send("reserve\n")
	go io.WriteString(floods.nc, strings.Repeat("use x\r\n", 1_000_000))
	r.eventually("it waits", func() bool { return r.stats().Waiting == 1 })
	dial().do("put 0 0 9 1\nx\n", "INSERTED 1\n")
	floods.want("RESERVED 1 1\nx\nUSING x\n")
	if in := r.shared.Memory.Held(); in > 8*conversation.MaxAhead {
		t.Errorf("%d bytes of input after a reserve are held", in)
	}
}

// When a client sees the end of its connection, other clients can reserve its jobs, and
// stats no longer counts it.
func TestQuitEndsTheSession(t *testing.T) {
	for name, dial := range map[string]func(*rig, testing.TB) func() *client{"plain": (*rig).dialPlain, "tls": (*rig).dialTLS} {
		t.Run(name, func(t *testing.T) {
			r := start(t, Options{Loops: 2})
			dial := dial(r, t)
			a := dial()
			a.do("put 0 0 9 1\nx\n", "INSERTED 1\n")
			for range 100 {
				b := dial()
				b.do("reserve\n", "RESERVED 1 1\nx\n")
				b.send("quit\n")
				b.wantEnd()
				a.do("reserve-with-timeout 0\nrelease 1 0 0\n", "RESERVED 1 1\nx\nRELEASED\n")
				if n := a.stat("current-connections"); n != "1" {
					t.Fatalf("stats counts %s connections, want 1", n)
				}
			}
		})
	}
}

// A client sends a line of HTTP and is disconnected. It gets the replies to all earlier
// commands, even if it continues to send.
func TestRepliesBeforeHTTP(t *testing.T) {
	t.Parallel()
	const puts = 1500
	r := start(t, Options{})
	c := r.dialPlain(t)()
	if err := c.nc.(*net.TCPConn).SetReadBuffer(4096); err != nil { // the server must keep unread replies
		t.Fatal(err)
	}
	go io.WriteString(c.nc, strings.Repeat("put 0 0 9 1\r\nx\r\n", puts)+"POST / HTTP/1.1\r\n"+strings.Repeat("put 0 0 9 1\r\nx\r\n", 100000))
	r.eventually("its session ends", func() bool { st := r.stats(); return st.TotalJobs == puts && st.Sessions == 0 })
	for id := range puts {
		c.want(fmt.Sprintf("INSERTED %d\n", id+1))
	}
	c.wantEnd()
	if n := r.stats().TotalJobs; n != puts {
		t.Errorf("%d jobs were put, want %d", n, puts)
	}
}

// While the server stops, a client continues to send and reads its replies slightly late.
// It gets a reply to each executed command.
func TestStopSendsAllReplies(t *testing.T) {
	for name, dial := range map[string]func(*rig, testing.TB) func() *client{"plain": (*rig).dialPlain, "tls": (*rig).dialTLS} {
		t.Run(name, func(t *testing.T) {
			for range 5 {
				r := start(t, Options{})
				c := dial(r, t)()
				go func() {
					puts := strings.Repeat("put 0 0 9 1\r\nx\r\n", 100)
					for {
						if _, err := io.WriteString(c.nc, puts); err != nil {
							return
						}
					}
				}()
				r.eventually("jobs are put", func() bool { return r.stats().TotalJobs > 2000 })
				stopped := make(chan error, 1)
				go func() { stopped <- r.Shutdown(t.Context()) }()
				r.eventually("its session ends", func() bool { return r.stats().Sessions == 0 })
				replies, err := io.ReadAll(c.nc)
				if told, done := strings.Count(string(replies), "INSERTED"), r.stats().TotalJobs; uint64(told) != done {
					t.Errorf("%d puts were executed, but the client got %d replies (%v)", done, told, err)
				}
				c.nc.Close()
				if err := <-stopped; err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// At the limit, new clients of all kinds wait until a connection ends. Therefore a client
// that closes one connection and opens another is always served. The server logs the
// limit once.
func TestMaxConns(t *testing.T) {
	t.Parallel()
	for kind, dial := range map[string]func(*rig, testing.TB) func() *client{"plain": (*rig).dialPlain, "tls": (*rig).dialTLS, "memory": (*rig).dialMemory} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			log := &logged{}
			r := start(t, Options{MaxConns: 2, Loops: 2, Logger: slog.New(log)})
			dial := dial(r, t)
			other := dial()
			other.do("use x\n", "USING x\n")
			c := dial()
			for i := range 50 {
				c.do("use x\n", "USING x\n")
				if got := other.stat("connections-full"); got != "true" {
					t.Fatalf("connections-full is %s", got)
				}
				c.nc.Close()
				if c = dial(); i%2 == 0 {
					c.do("put 0 0 60 1\nx\n", fmt.Sprintf("INSERTED %d\n", i/2+1))
				}
			}
			c.do("use x\n", "USING x\n")
			waiting := dial()
			go io.WriteString(waiting.nc, "use y\r\n")
			for range 10 {
				if got := other.stat("current-connections"); got != "2" {
					t.Fatalf("%s connections, want 2", got)
				}
			}
			c.nc.Close()
			waiting.want("USING y\n")
			if n := log.count("maximum number of connections reached; new clients wait"); n != 1 {
				t.Errorf("logged %d times, want once: %q", n, log.lines)
			}
		})
	}
}

// The buffers of clients that send much after a waiting reserve, or do not read, together
// never exceed the buffer limit. Working clients are not affected.
func TestBuffersAreBounded(t *testing.T) {
	for name, dial := range map[string]func(*rig, testing.TB) func() *client{"plain": (*rig).dialPlain, "tls": (*rig).dialTLS} {
		t.Run(name, func(t *testing.T) {
			r := start(t, Options{MaxBuffers: 1 << 20, Loops: 2})
			dial := dial(r, t)
			worker := dial()
			for range 40 {
				c := dial()
				c.send("watch empty\nignore default\nreserve\n" + strings.Repeat("use x\n", 4000))
				c.want("WATCHING 2\nWATCHING 1\n")
				worker.do("put 0 0 9 1\nx\n", "INSERTED ")
				worker.line("")
			}
			r.eventually("some are closed", func() bool { return r.evicted.Load() > 20 })
			if n := r.shared.Memory.Held(); n > 1<<20 {
				t.Errorf("the buffers hold %d bytes", n)
			}
			if n := worker.stat("closed-for-memory"); n == "0" {
				t.Error("stats has no reply")
			}
		})
	}
}
