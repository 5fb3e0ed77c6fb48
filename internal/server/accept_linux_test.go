package server

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/server/epoll"
)

// After a client has connected, every stats reply counts it, as with beanstalkd. This is
// true for every loop, while other clients work, and while changes wait for a sync.
func TestStatsCountsConnectedClients(t *testing.T) {
	t.Parallel()
	for _, network := range []string{"tcp", "unix"} {
		for _, loops := range []int{1, 3} {
			for name, log := range map[string]broker.Log{"memory": nil, "log": &changedLog{}} {
				t.Run(fmt.Sprintf("%s/loops=%d/%s", network, loops, name), func(t *testing.T) {
					r := startLogged(t, Options{Loops: loops}, broker.Options{Log: log})
					l := listenOn(t, network)
					askers := []*client{r.dialListener(l)}
					for range 2 * loops {
						askers = append(askers, dialTo(t, l))
					}
					busy := keepBusy(t, l)
					const clients = 300
					for i := range clients {
						dialTo(t, l)
						want := strconv.Itoa(len(askers) + 1 + i + 1)
						if got := askers[i%len(askers)].stat("current-connections"); got != want {
							t.Fatalf("%s connections, want %s", got, want)
						}
						if got := askers[i%len(askers)].stat("total-connections"); got != want {
							t.Fatalf("%s connections in all, want %s", got, want)
						}
					}
					busy()
				})
			}
		}
	}
}

// No lock is held during a turn: while a turn hangs, another client can connect, and a
// manager can dismiss the first client.
func TestDismissDuringTurn(t *testing.T) {
	t.Parallel()
	r := start(t, Options{Loops: 2})
	l := listenOn(t, "tcp")
	c := r.dialListener(l)
	c.do("use x\n", "USING x\n")
	s := r.conn()
	begun, over := make(chan struct{}), make(chan struct{})
	var turn sync.WaitGroup
	turn.Go(func() {
		r.broker.Call(func(*engine.Engine, int64) {
			close(begun)
			<-over
		})
	})
	<-begun
	dialTo(t, l)
	r.eventually("the second client is accepted", func() bool {
		r.slots.Lock()
		defer r.slots.Unlock()
		return r.slots.taken == 2
	})
	s.Dismiss(errDismissed)
	close(over)
	c.wantEnd()
	turn.Wait()
}

// changedLog is a broker.Log that requires a sync for each turn with changes.
type changedLog struct {
	failingLog
	changed bool
}

func (l *changedLog) Append([]engine.Change) error {
	l.changed = true
	return nil
}

func (l *changedLog) Flush() (durable bool, err error) {
	durable, l.changed = !l.changed, false
	return durable, nil
}

// keepBusy connects a client that works until the returned function is called.
func keepBusy(t *testing.T, l net.Listener) (end func()) {
	c := dialTo(t, l)
	c.do("use x\n", "USING x\n")
	var working sync.WaitGroup
	over := make(chan struct{})
	working.Go(func() {
		for {
			select {
			case <-over:
				return
			default:
				c.send("put 0 0 9 1\nx\n")
				c.line("INSERTED")
			}
		}
	})
	return func() {
		close(over)
		working.Wait()
	}
}

// Connections inherit their options from the listening socket. A client that connected
// before the options were set gets them when it is accepted.
func TestAcceptedSocketsHaveOptions(t *testing.T) {
	l := listenOn(t, "tcp")
	defer l.Close()
	fd, err := epoll.Dup(l.(*net.TCPListener))
	if err != nil {
		t.Fatal(err)
	}
	defer fd.Close()
	dialTo(t, l)
	s := newListeningSocket(fd, 2*time.Minute)
	checkOptions(t, "connected before", s)
	if _, _, err := s.AcceptSocket(); err != epoll.ErrWouldBlock {
		t.Fatalf("no client waits: %v", err)
	}
	if !s.inherits {
		t.Error("options would be set on sockets accepted from now on")
	}
	dialTo(t, l)
	checkOptions(t, "connected afterwards", s)
}

// checkOptions accepts a client and checks the options of its socket.
func checkOptions(t *testing.T, who string, l *listeningSocket) {
	t.Helper()
	s, _, err := l.AcceptSocket()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	fd := int(s.(epoll.Socket))
	for name, o := range map[string]struct{ level, name, want int }{
		"TCP_NODELAY":      {unix.IPPROTO_TCP, unix.TCP_NODELAY, 1},
		"SO_KEEPALIVE":     {unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
		"TCP_KEEPIDLE":     {unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 60},
		"TCP_KEEPINTVL":    {unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, 15},
		"TCP_KEEPCNT":      {unix.IPPROTO_TCP, unix.TCP_KEEPCNT, 4},
		"TCP_USER_TIMEOUT": {unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 120_000},
	} {
		got, err := unix.GetsockoptInt(fd, o.level, o.name)
		if err != nil || got != o.want {
			t.Errorf("%s: %s is %d, %v, want %d", who, name, got, err, o.want)
		}
	}
}

// The server owns the socket of a TCP listener, which package net and the Go runtime have
// released. The server closes the socket when it stops.
func TestTakenListener(t *testing.T) {
	r := start(t, Options{})
	l := listenOn(t, "tcp")
	r.dialListener(l).do("use x\n", "USING x\n")
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept of package net: %v, want net.ErrClosed", err)
	}
	if err := l.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Close of package net: %v, want net.ErrClosed", err)
	}
	dialTo(t, l).do("use x\n", "USING x\n")
	if err := r.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if nc, err := net.Dial("tcp", l.Addr().String()); err == nil {
		nc.Close()
		t.Error("a connection was accepted after the server stopped")
	}
}

// A service manager keeps its listening socket open, so clients can connect while the
// server stops. The loop gets no events for them.
func TestListenersAreNotWatchedDuringShutdown(t *testing.T) {
	l := listenOn(t, "unix").(*net.UnixListener)
	l.SetUnlinkOnClose(false)
	kept, err := l.File()
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	fd, err := epoll.Dup(l)
	if err != nil {
		t.Fatal(err)
	}
	defer fd.Close()
	r := start(t, Options{Loops: 1})
	n := &keptListener{UnixListener: l, listeningSocket: &listeningSocket{fd: fd}, srv: r.Server}
	r.serve(n)
	c := dialTo(t, l)
	c.do("put 0 0 9 60000\n"+strings.Repeat("x", 60000)+"\n", "INSERTED 1\n")
	c.send(strings.Repeat("peek 1\n", 10)) // more than the kernel buffers before the client reads
	r.eventually("the replies are there", func() bool { return r.count("peek") > 0 })
	ended := make(chan error, 1)
	go func() { ended <- r.Shutdown(t.Context()) }()
	r.eventually("the listener is closed", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.running.Err() != nil
	})
	dialTo(t, l)
	<-c.readAll()
	c.nc.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if n.late.Load() {
		t.Error("the loop got an event of a client that it does not accept")
	}
}

// A keptListener is a listener whose socket another process also holds open.
type keptListener struct {
	*net.UnixListener
	*listeningSocket
	srv  *Server
	late atomic.Bool // a poller reported a client after the server had stopped
}

func (n *keptListener) Close() error { return n.UnixListener.Close() }

func (n *keptListener) NewPoller() (Poller, error) {
	p, err := newSystemPoller()
	return &listenPoller{p, n}, err
}

type listenPoller struct {
	Poller
	net *keptListener
}

func (p *listenPoller) Wait(timeout time.Duration) []epoll.Event {
	events := p.Poller.Wait(timeout)
	if slices.ContainsFunc(events, func(ev epoll.Event) bool { return ev.Index == epoll.Listeners }) && p.net.srv.running.Err() != nil {
		p.net.late.Store(true)
	}
	return events
}

// The number of connections per address is limited, except for Unix sockets, which have
// no address. The limit can change at run time.
func TestConnectionsPerAddress(t *testing.T) {
	t.Parallel()
	log := &logged{}
	r := start(t, Options{ConnectionsPerAddress: 2, Logger: slog.New(log)})
	l := listenOn(r.tb, "tcp")
	r.serve(l)
	first := dialFrom(t, "127.0.0.1", l)
	first.do("use x\n", "USING x\n")
	dialFrom(t, "127.0.0.1", l).do("use x\n", "USING x\n")
	dialFrom(t, "127.0.0.1", l).wantEnd()
	other := dialFrom(t, "127.0.0.2", l)
	if got := other.stat("rejected-connections-of-address"); got != "1" {
		t.Errorf("%s connections were rejected, want 1", got)
	}
	if n := log.count("a connection was refused"); n != 1 {
		t.Errorf("%d lines in the log, want 1", n)
	}
	u := listenOn(t, "unix")
	r.dialListener(u).do("use x\n", "USING x\n")
	for range 3 {
		dialTo(t, u).do("use x\n", "USING x\n")
	}
	r.access.SetConnectionsPerAddress(3)
	dialFrom(t, "127.0.0.1", l).do("use x\n", "USING x\n")
	dialFrom(t, "127.0.0.1", l).wantEnd()
	first.do("quit\n", "")
	first.wantEnd()
	for { // until the server has released the connection
		nc := dialFrom(t, "127.0.0.1", l).nc
		io.WriteString(nc, "use x\r\n")
		if _, err := io.ReadFull(nc, make([]byte, len("USING x\r\n"))); err == nil {
			break
		}
	}
}

func dialFrom(t *testing.T, ip string, l net.Listener) *client {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}}
	nc, err := d.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return newClient(t, nc)
}

// count returns the number of executed commands with a verb.
func (r *rig) count(verb string) (n uint64) {
	r.broker.Call(func(*engine.Engine, int64) { n = r.Counts().Commands[verb] })
	return n
}
