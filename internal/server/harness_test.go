package server

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/memnet"
)

// A rig is a server that runs in the test, on a network in memory.
type rig struct {
	*Server
	tb  testing.TB
	eng *engine.Engine
	net *memnet.Listener
	mem sync.Once // serves net at the first dial

	addr string // address of the kernel listener, if there is one

	served []<-chan error // one per Serve; receives the result after Shutdown
}

// start runs a server until the test ends. Then it shuts the server down and checks the
// engine.
func start(tb testing.TB, opt Options) *rig {
	tb.Helper()
	return startLogged(tb, opt, broker.Options{})
}

func startLogged(tb testing.TB, opt Options, bopt broker.Options) *rig {
	tb.Helper()
	return startEngine(tb, opt, bopt, engine.Options{Logged: bopt.Log != nil})
}

func startEngine(tb testing.TB, opt Options, bopt broker.Options, eopt engine.Options) *rig {
	tb.Helper()
	eng := engine.New(eopt)
	b := broker.New(eng, bopt)
	r := &rig{Server: New(b, opt), tb: tb, eng: eng, net: memnet.Listen()}
	tb.Cleanup(func() {
		if err := r.Shutdown(tb.Context()); err != nil && tb.Context().Err() == nil {
			tb.Errorf("Shutdown: %v", err)
		}
		for _, served := range r.served {
			if err := <-served; err != nil {
				tb.Errorf("Serve: %v", err)
			}
		}
		if err := b.Close(); err != nil {
			tb.Errorf("broker: %v", err)
		}
		if err := eng.Check(); err != nil {
			tb.Error(err)
		}
	})
	return r
}

// serve serves the clients of a listener until the test ends.
func (r *rig) serve(l net.Listener) {
	r.goServe(func() error { return r.Serve(l, ListenOptions{}) })
}

// serveWith is serve with options.
func (r *rig) serveWith(l net.Listener, t ListenOptions) net.Listener {
	r.goServe(func() error { return r.Serve(l, t) })
	return l
}

// goServe runs a function that returns when the server is shut down.
func (r *rig) goServe(serve func() error) {
	served := make(chan error, 1)
	r.served = append(r.served, served)
	go func() { served <- serve() }()
}

// stats returns the engine's statistics, read in a turn.
func (r *rig) stats() (st engine.Stats) {
	r.broker.Call(func(e *engine.Engine, _ int64) { st = e.Stats() })
	return st
}

// dial connects a client until the test ends.
func (r *rig) dial() *client {
	r.tb.Helper()
	nc, err := r.pipe()
	if err != nil {
		r.tb.Fatal(err)
	}
	return newClient(r.tb, nc)
}

// pipe is like dial, but the server can have stopped.
func (r *rig) pipe() (net.Conn, error) {
	r.mem.Do(func() { r.serve(r.net) })
	return r.net.Dial()
}

// dialMemory returns dial, in the form of dialPlain.
func (r *rig) dialMemory(testing.TB) func() *client { return r.dial }

// A kernel simulates the kernel's network for loops.
type kernel = memnet.Kernel[Socket, Poller]

// dialKernel connects a client through a simulated kernel, which the server can serve
// later.
func (r *rig) dialKernel(n *kernel) *client {
	r.tb.Helper()
	nc, err := n.Dial()
	if err != nil {
		r.tb.Fatal(err)
	}
	return newClient(r.tb, nc)
}

// dialTCP connects a client through the loopback interface.
func (r *rig) dialTCP() *client {
	r.tb.Helper()
	return r.dialListener(listenOn(r.tb, "tcp"))
}

// listenOn returns a listener for tcp or unix.
func listenOn(tb testing.TB, network string) net.Listener {
	tb.Helper()
	addr := "127.0.0.1:0"
	if network == "unix" {
		addr = filepath.Join(tb.TempDir(), "s")
	}
	l, err := net.Listen(network, addr)
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

// dialListener serves a listener and connects a client through it.
func (r *rig) dialListener(l net.Listener) *client {
	r.tb.Helper()
	r.serve(l)
	return dialTo(r.tb, l)
}

func dialTo(tb testing.TB, l net.Listener) *client {
	tb.Helper()
	nc, err := net.Dial(l.Addr().Network(), l.Addr().String())
	if err != nil {
		tb.Fatal(err)
	}
	return newClient(tb, nc)
}

// A client is a test connection; an error on it ends the test.
type client struct {
	tb testing.TB
	nc io.ReadWriteCloser
}

func newClient(tb testing.TB, nc io.ReadWriteCloser) *client {
	tb.Cleanup(func() { nc.Close() })
	return &client{tb, nc}
}

// crlf replaces newlines with CR LF.
var crlf = strings.NewReplacer("\n", "\r\n")

// send writes text, whose newlines become CR LF.
func (c *client) send(text string) {
	c.tb.Helper()
	if _, err := io.WriteString(c.nc, crlf.Replace(text)); err != nil {
		c.tb.Fatalf("send %.40q: %v", text, err)
	}
}

// want reads as many bytes as text has and compares them.
func (c *client) want(text string) {
	c.tb.Helper()
	text = crlf.Replace(text)
	got := make([]byte, len(text))
	n, err := io.ReadFull(c.nc, got)
	if string(got[:n]) != text {
		c.tb.Fatalf("got %.200q (%v), want %.200q", got[:n], err, text)
	}
}

func (c *client) do(command, answer string) {
	c.tb.Helper()
	c.send(command)
	c.want(answer)
}

// wantEnd checks that the connection is closed without further data.
func (c *client) wantEnd() {
	c.tb.Helper()
	var rest bytes.Buffer
	if io.Copy(&rest, c.nc); rest.Len() > 0 {
		c.tb.Fatalf("got %.200q, want the connection to be closed", rest.Bytes())
	}
}

func (c *client) halfClose() {
	c.tb.Helper()
	if err := c.nc.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		c.tb.Fatal(err)
	}
}

// conn returns the server's end of its only connection. In a synctest bubble, its fields
// can be read after synctest.Wait.
func (r *rig) conn() *socket {
	r.tb.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.sockets != 1 {
		r.tb.Fatalf("%d connections, want 1", r.mu.sockets)
	}
	for _, l := range r.mu.loops.all {
		l.driving.Lock()
		all := slices.DeleteFunc(slices.Clone(l.clients.all), func(s *socket) bool { return s == nil })
		l.driving.Unlock()
		if len(all) > 0 {
			return all[0]
		}
	}
	return nil
}

func (r *rig) wantConns(n int) {
	r.tb.Helper()
	r.slots.Lock()
	defer r.slots.Unlock()
	if have := r.slots.taken; have != n {
		r.tb.Errorf("%d connections, want %d", have, n)
	}
}

// bubble runs a test on fake time.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

// line reads lines until one starts with the prefix, and returns that line.
func (c *client) line(prefix string) string {
	c.tb.Helper()
	var line []byte
	for {
		var b [1]byte
		if _, err := io.ReadFull(c.nc, b[:]); err != nil {
			c.tb.Fatalf("no line starts with %q: %v", prefix, err)
		}
		if line = append(line, b[0]); b[0] == '\n' {
			if s := strings.TrimRight(string(line), "\r\n"); strings.HasPrefix(s, prefix) {
				return s
			}
			line = line[:0]
		}
	}
}

func (c *client) stat(key string) (value string) {
	c.tb.Helper()
	c.send("stats\n")
	var size int
	if _, err := fmt.Sscanf(c.line("OK "), "OK %d", &size); err != nil {
		c.tb.Fatal(err)
	}
	text := make([]byte, size+len("\r\n"))
	if _, err := io.ReadFull(c.nc, text); err != nil {
		c.tb.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if v, ok := strings.CutPrefix(line, key+": "); ok {
			return strings.TrimSpace(v)
		}
	}
	c.tb.Fatalf("stats has no %s:\n%s", key, text)
	return ""
}

func controlOf(t *testing.T, c access.Config) *access.Control {
	t.Helper()
	p, err := access.New(c)
	if err != nil {
		t.Fatal(err)
	}
	control, err := access.NewControl(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	return control
}

// A safeBuffer is a buffer for several goroutines.
type safeBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
