package sim

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/journal"
	"github.com/beanpole-mq/beanpole/internal/memnet"
	"github.com/beanpole-mq/beanpole/internal/rights"
	"github.com/beanpole-mq/beanpole/internal/server"
	"github.com/beanpole-mq/beanpole/internal/test/faultfs"
	"github.com/beanpole-mq/beanpole/internal/test/ledger"
	"github.com/beanpole-mq/beanpole/internal/test/seeds"
)

// Clients connect to a whole server, which is killed several times. After each restart
// the server must have the jobs that the clients' account requires.
func TestClients(t *testing.T) {
	eachSeed(t, 3, func(t *testing.T, name string, seed uint64) {
		livesOfClients(t, name, seed, func(*rand.Rand) network { return memnet.Listen() })
	})
}

// On Linux, event loops serve the clients. This test simulates the clients' sockets, with
// random short reads and writes.
func TestClientsOfLoops(t *testing.T) {
	eachSeed(t, 8, func(t *testing.T, name string, seed uint64) {
		livesOfClients(t, name, seed, func(rng *rand.Rand) network {
			return &memnet.Kernel[server.Socket, server.Poller]{Rand: rng, Buffer: 700}
		})
	})
}

// A network connects clients with a server.
type network interface {
	net.Listener
	Dial() (net.Conn, error)
}

func livesOfClients(t *testing.T, name string, seed uint64, connect func(*rand.Rand) network) {
	w := newWorld(t, name, seed, journal.Options{SegmentSize: 1024 << (seed % 4)})
	a := &account{ledger.New[string](), w, connect}
	for round := range 4 {
		w.mustBoot()
		a.audit()
		w.disk.CutAt(w.disk.Ops() + 1 + w.rng.IntN(400))
		if w.rng.IntN(3) == 0 { // the journal fails, and heals
			w.fsys.Set(faultfs.Fault{Op: faultfs.Sync, N: 1 + w.rng.IntN(40), How: faultfs.How(w.rng.IntN(2))})
		}
		a.serve(round)
		w.fsys.Set()
		w.end()
	}
	w.mustBoot()
	a.audit()
	w.kill()
}

// An account contains the results that the clients of a world have received for their
// jobs, by body.
type account struct {
	*ledger.Ledger[string]
	world   *world
	connect func(*rand.Rand) network
}

// serve runs a server and some clients until the clients have done enough or get an
// error.
func (a *account) serve(round int) {
	rng := a.world.rng
	opt := server.Options{
		Loops: 1 + rng.IntN(2), SlowSync: time.Duration(rng.IntN(2)) - 1,
	}
	if rng.IntN(2) == 0 {
		var err error
		if opt.Access, err = control(); err != nil {
			a.world.fatalf("%v", err)
		}
	}
	srv := server.New(a.world.broker, opt)
	l := a.connect(newRand(rng.Uint64()))
	defer a.world.serve(srv, l)()
	var wg sync.WaitGroup
	for i := range 4 {
		c := newClient(a, l, newRand(a.world.rng.Uint64()), fmt.Sprintf("%d.%d", round, i))
		c.person = anyPerson(rng, opt.Access != nil)
		wg.Go(c.work)
	}
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	for working := true; working; {
		select {
		case <-done:
			working = false
		case <-time.After(50 * time.Millisecond):
		}
		synctest.Wait()
		if seeds.Race {
			continue // it cannot see that these goroutines wait
		}
		if err := srv.Check(); err != nil {
			a.world.fatalf("%v", err)
		}
	}
}

// serve serves clients until stop is called.
func (w *world) serve(srv *server.Server, l net.Listener) (stop func()) {
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l, server.ListenOptions{}) }()
	return func() {
		if err := errors.Join(srv.Shutdown(context.Background()), <-served); err != nil {
			w.fatalf("shutdown: %v", err)
		}
		synctest.Wait()
	}
}

// audit compares the account with the jobs of a server that has just started.
func (a *account) audit() {
	w := a.world
	w.t.Helper()
	var err error
	w.broker.Call(func(e *engine.Engine, _ int64) {
		err = a.Restarted(func(yield func(string, uint64) bool) {
			for c := range e.Snapshots {
				if !yield(string(c.Body), c.ID) {
					return
				}
			}
		})
	})
	if err != nil {
		w.fatalf("%v", err)
	}
}

// A client puts jobs, works on jobs, and manages the queue.
type client struct {
	*account
	person
	net    network
	nc     net.Conn
	in     *bufio.Reader
	rng    *rand.Rand
	name   string
	used   string // tube in use
	crowds int    // number of crowds that the client has put
}

func newClient(a *account, net network, rng *rand.Rand, name string) *client {
	c := &client{account: a, person: anybody, net: net, rng: rng, name: name, used: "default"}
	c.dial()
	return c
}

func (c *client) dial() {
	var err error
	if c.nc, err = c.net.Dial(); err != nil {
		panic(err) // the network is closed only after its clients
	}
	c.in = bufio.NewReader(c.nc)
}

// put records a put of a job. If cleared is true, other clients can clear the job.
func (c *client) put(body string, cleared bool) {
	if c.Put(body); cleared {
		c.Clear(body)
	}
}

// work returns when the client has done enough, or when the server has answered with an
// error.
func (c *client) work() {
	defer func() { c.nc.Close() }()
	ok := c.greet()
	for n := 0; ok && n < 60; n++ {
		switch c.rng.IntN(12) {
		case 0, 1, 2:
			ok = c.produce(n)
		case 3, 4, 5:
			ok = c.consume()
		case 6:
			_, ok = c.ask(rights.Manage, []string{c.used}, "kick %d\r\n", 1+c.rng.IntN(3))
		case 7:
			time.Sleep(time.Duration(c.rng.IntN(500)) * time.Millisecond)
		case 8:
			ok = c.reconnect()
		default:
			ok = c.manage()
		}
	}
}

// reconnect closes the connection, sometimes in the middle of a command, and connects
// again.
func (c *client) reconnect() bool {
	io.WriteString(c.nc, []string{"", "reserve\r\n", "reserve\r\npeek 1\r\n", "put 0 0 1 10\r\nx", "list-tubes\r\nstats\r\n", "quit\r\n"}[c.rng.IntN(6)])
	if c.rng.IntN(2) == 0 {
		time.Sleep(time.Duration(c.rng.IntN(100)) * time.Millisecond)
	}
	c.nc.Close()
	c.dial()
	return c.greet()
}

// do sends a command and returns the words of the reply. ok is false if the server
// reports an internal error.
func (c *client) do(format string, args ...any) (words []string, ok bool) {
	fmt.Fprintf(c.nc, format, args...)
	line, err := c.in.ReadString('\n')
	words = strings.Fields(line)
	return words, err == nil && words[0] != "INTERNAL_ERROR" && words[0] != "OUT_OF_MEMORY"
}

func (c *client) produce(n int) bool {
	body := fmt.Sprintf("%s.%d ", c.name, n) + strings.Repeat("x", c.rng.IntN(300))
	c.put(body, cleared(c.used))
	words, ok := c.ask(rights.Put, []string{c.used}, "put %d %d %d %d\r\n%s\r\n", c.rng.IntN(9), c.rng.IntN(2)*c.rng.IntN(3), 1+c.rng.IntN(9), len(body), body)
	if ok && words[0] == "INSERTED" {
		c.Inserted(body, number(words[1]))
	}
	return ok
}

func (c *client) consume() bool {
	if c.rng.IntN(3) == 0 {
		return c.consumeBatch()
	}
	words, ok := c.do("reserve-with-timeout %d\r\n", c.rng.IntN(3))
	if !ok || words[0] != "RESERVED" {
		return ok
	}
	b := make([]byte, number(words[2])+2)
	if _, err := io.ReadFull(c.in, b); err != nil {
		return false
	}
	id, body := words[1], string(b[:len(b)-2])
	if c.rng.IntN(4) == 0 {
		if _, ok = c.do("note %s because of %d\r\n", id, c.rng.IntN(99)); !ok {
			return false
		}
	}
	switch c.rng.IntN(5) {
	case 0:
		_, ok = c.do("release %s %d %d\r\n", id, c.rng.IntN(9), c.rng.IntN(3))
	case 1:
		_, ok = c.do("bury %s 0\r\n", id)
	case 2: // keep the job
	default:
		c.Shown(body, number(id), c.Now())
		c.Delete(body)
		if words, ok = c.do("delete %s\r\n", id); ok && words[0] == "DELETED" {
			c.Deleted(body)
		}
	}
	return ok
}

// consumeBatch reserves some jobs, and deletes some of them.
func (c *client) consumeBatch() bool {
	words, ok := c.do("reserve-batch %d %d\r\n", 1+c.rng.IntN(5), c.rng.IntN(3))
	if !ok || words[0] != "RESERVED_BATCH" {
		return ok
	}
	var ids, bodies []string
	for range number(words[1]) {
		line, err := c.in.ReadString('\n')
		if err != nil {
			return false
		}
		words = strings.Fields(line)
		data, ok := c.dataOf(words)
		if !ok {
			return false
		}
		body := strings.TrimSuffix(data, "\r\n")
		c.Shown(body, number(words[1]), c.Now())
		if c.rng.IntN(3) > 0 {
			ids, bodies = append(ids, words[1]), append(bodies, body)
		}
	}
	if len(ids) == 0 {
		return true
	}
	for _, body := range bodies {
		c.Delete(body)
	}
	words, ok = c.do("delete-batch %s\r\n", strings.Join(ids, " "))
	if ok && words[1] == fmt.Sprint(len(ids)) {
		for _, body := range bodies {
			c.Deleted(body)
		}
	}
	return ok
}

func number(s string) (n uint64) {
	fmt.Sscan(s, &n)
	return n
}
