package server

import (
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/conversation"
	"github.com/beanpole-mq/beanpole/internal/engine"
)

// The tests in this file need kernel sockets.

// eventually waits until is returns true because of the kernel or another process.
func (r *rig) eventually(what string, is func() bool) {
	r.tb.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			r.tb.Fatalf("timeout: %s", what)
		}
	}
}

// nobodyWaits reports whether no client waits.
func (r *rig) nobodyWaits() bool { return r.stats().Waiting == 0 }

// The server notices a hang-up while the client waits in a reserve, regardless of the
// amount of input after the reserve. The next job goes to another client.
func TestHangUpWhileWaitingTCP(t *testing.T) {
	for name, after := range map[string]int{
		"nothing":             0,
		"a little":            100,
		"all that is read":    conversation.MaxAhead,
		"more than is read":   conversation.MaxAhead + 1000,
		"much more than that": 3 * conversation.MaxAhead,
	} {
		for how, hangUp := range map[string]func(*client){
			"close":      func(c *client) { c.nc.Close() },
			"half-close": func(c *client) { c.halfClose() },
			"reset": func(c *client) {
				c.nc.(*net.TCPConn).SetLinger(0)
				c.nc.Close()
			},
		} {
			t.Run(name+"/"+how, func(t *testing.T) {
				r := start(t, Options{})
				// The end of the stream arrives only if the kernel can buffer the data
				// before it.
				l := listenOn(r.tb, "tcp")
				setReadBuffer(t, l, 4*conversation.MaxAhead)
				c := r.dialListener(l)
				command := "use x\n"
				n := after / (len(command) + 1)
				c.send("reserve\n" + strings.Repeat(command, n))
				r.eventually("it waits", func() bool { return r.stats().Waiting == 1 })
				hangUp(c)
				r.eventually("it waits no longer", r.nobodyWaits)
				if how == "half-close" {
					c.want("TIMED_OUT\n" + strings.Repeat("USING x\n", n))
					c.wantEnd()
				}
				r.eventually("the connection ends", func() bool { return r.stats().Sessions == 0 })
			})
		}
	}
}

// setReadBuffer sets the kernel's receive buffer for each connection of a listener, in
// bytes.
func setReadBuffer(tb testing.TB, l net.Listener, size int) {
	tb.Helper()
	raw, err := l.(*net.TCPListener).SyscallConn()
	if err == nil {
		raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, size) })
	}
	if err != nil {
		tb.Fatal(err)
	}
}

// A reset ends a connection outside of a reserve, and releases its jobs.
func TestReset(t *testing.T) {
	r := start(t, Options{})
	c := r.dialTCP()
	c.do("put 0 0 9 1\nx\nreserve\n", "INSERTED 1\nRESERVED 1 1\nx\n")
	c.nc.(*net.TCPConn).SetLinger(0)
	c.nc.Close()
	r.eventually("the job is ready", func() bool { return r.stats().Ready == 1 })
}

// Urgent data disturbs neither a waiting connection nor others. Input after a waiting
// reserve, beyond the server's read-ahead, is executed after the reply.
func TestUrgentData(t *testing.T) {
	r := start(t, Options{})
	c, producer := r.dialTCP(), r.dialTCP()
	urgent := func() {
		t.Helper()
		raw, err := c.nc.(*net.TCPConn).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		var sendErr error
		raw.Control(func(fd uintptr) { sendErr = unix.Send(int(fd), []byte("!"), unix.MSG_OOB) })
		if sendErr != nil {
			t.Fatal(sendErr)
		}
	}
	urgent()
	c.do("use x\n", "USING x\n")
	for i, after := range []int{0, 4 * conversation.MaxAhead} {
		n := after / len("use x\r\n")
		c.send("reserve\n" + strings.Repeat("use x\n", n))
		urgent()
		r.eventually("it waits", func() bool { return r.stats().Waiting == 1 })
		urgent()
		producer.do("put 0 0 9 1\nx\n", fmt.Sprintf("INSERTED %d\n", i+1))
		c.want("RESERVED ")
		c.line("x")
		c.want(strings.Repeat("USING x\n", n))
	}
}

// deposingLog is a broker.Log. When it is armed, the next change deposes its server.
type deposingLog struct {
	failingLog
	armed atomic.Bool
}

func (l *deposingLog) Append(changes []engine.Change) error {
	if l.armed.Load() {
		l.err = fmt.Errorf("raft: %w", broker.ErrDeposed)
	}
	return l.err
}

// When a server is deposed, its loops close, without a reply, all connections with
// commands in that turn or later. Idle connections are closed when another member leads.
// Then nothing refers to the old engine, and another engine can serve new clients.
func TestLogDeposedTCP(t *testing.T) {
	log := &deposingLog{}
	r := startLogged(t, Options{Loops: 2}, broker.Options{Log: log})
	l := listenOn(r.tb, "tcp")
	clients := []*client{r.dialListener(l)}
	for len(clients) < 6 {
		clients = append(clients, dialTo(t, l))
	}
	worker, producer, holder, late := clients[0], clients[1], clients[2], clients[3]
	silent := clients[4:] // one in each loop
	holder.do("put 0 0 99 1\nh\nreserve\n", "INSERTED 1\nRESERVED 1 1\nh\n")
	for _, c := range append(silent, late) {
		c.do("use x\n", "USING x\n")
	}
	worker.send("reserve\n")
	r.eventually("the worker waits", func() bool { return r.stats().Waiting == 1 })

	log.armed.Store(true)
	producer.send("list-tube-used\nput 0 0 9 1\na\nlist-tube-used\n")
	producer.wantEnd()
	worker.wantEnd()
	holder.send("delete 1\n")
	holder.wantEnd()
	late.send("list-tube-used\n")
	late.wantEnd()
	r.Follow(Leadership{Leader: 7})
	for _, c := range silent {
		c.wantEnd()
	}
	r.wantConns(0)

	r.broker.Replace(func(*engine.Engine) *engine.Engine {
		log.armed.Store(false)
		log.err = nil
		return engine.New(engine.Options{Logged: true})
	})
	dialTo(t, l).do("put 0 0 9 1\na\nreserve\n", "INSERTED 1\nRESERVED 1 1\na\n")
}
