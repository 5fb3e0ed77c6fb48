package soak

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// A load consists of the clients of a cluster.
type load struct {
	c      *group
	stop   chan struct{}
	done   sync.WaitGroup
	once   sync.Once
	probes probes
}

// These constants limit the time that a client waits for a reply before it tries another
// member.
const (
	commandTimeout = 5 * time.Second
	probeTimeout   = 500 * time.Millisecond
)

// begin starts clients: some send all kinds of commands, and one puts jobs to measure
// interruptions of the service.
func (c *group) begin() *load {
	l := &load{c: c, stop: make(chan struct{})}
	timeout := commandTimeout
	if len(c.members) == 1 {
		timeout = patience // there is no other member
	}
	for i := range 6 {
		rng := rand.New(rand.NewPCG(c.s.rng.Uint64(), 0))
		l.done.Go(func() { l.run(&clients{c: c, rng: rng, first: i, timeout: timeout}) })
	}
	l.done.Go(l.probe)
	return l
}

func (l *load) end() {
	l.once.Do(func() { close(l.stop) })
	l.done.Wait()
}

func (l *load) stopped() bool {
	select {
	case <-l.stop:
		return true
	default:
		return false
	}
}

// await waits for another `acks` acknowledged commands.
func (l *load) await(acks int) {
	want := l.c.h.acknowledged() + acks
	until(l.c.s.t, fmt.Sprintf("%d more commands are acknowledged", acks), func() bool { return l.c.h.acknowledged() >= want })
}

func (l *load) run(k *clients) {
	defer k.disconnect()
	for !l.stopped() {
		if !k.step() {
			k.wait(l.stop)
		}
	}
}

// A clients is a sequence of clients, which connect one after the other.
type clients struct {
	c       *group
	rng     *rand.Rand
	first   int // the member to try next
	timeout time.Duration

	conn    net.Conn
	r       *bufio.Reader
	session int
	held    []uint64
	puts    int
}

// wait waits briefly, as a client does after a refused command.
func (k *clients) wait(stop <-chan struct{}) {
	select {
	case <-stop:
	case <-time.After(20 * time.Millisecond):
	}
}

func (k *clients) disconnect() {
	if k.conn != nil {
		k.conn.Close()
	}
	k.conn, k.held = nil, nil
}

func (k *clients) connect() bool {
	if k.conn != nil {
		return true
	}
	p := k.c.members[k.first%len(k.c.members)]
	k.first++
	conn, err := net.DialTimeout("tcp", p.clients, k.timeout)
	if err != nil {
		if p.socket != nil {
			k.c.h.fail("a client is refused: %v", err)
		}
		return false
	}
	k.conn, k.r, k.session = conn, bufio.NewReader(conn), k.c.h.newSession()
	return true
}

// A request is a command for a job.
type request struct {
	verb string
	id   uint64
}

func repeat(r request, n int) []request { return slices.Repeat([]request{r}, n) }

// step sends one or more commands for random jobs. It returns false if no member
// answered.
func (k *clients) step() bool {
	var all []request
	n := 1
	if k.rng.IntN(4) == 0 {
		n += k.rng.IntN(20)
	}
	for range n {
		all = append(all, k.draw())
	}
	return k.talk(all...)
}

func (k *clients) draw() request {
	if len(k.held) > 0 && k.rng.IntN(2) == 0 {
		i := k.rng.IntN(len(k.held))
		id := k.held[i]
		k.held = append(k.held[:i:i], k.held[i+1:]...)
		return request{[]string{"bury", "release", "delete"}[k.rng.IntN(3)], id}
	}
	id, many := k.c.h.anyID(k.rng)
	verb := []string{"put", "put", "put", "put", "peek", "peek", "reserve-job", "reserve-job", "kick-job", "delete", "delete"}[k.rng.IntN(11)]
	switch {
	case id == 0:
		verb = "put"
	case many && verb == "put":
		verb = "delete"
	}
	return request{verb, id}
}

func (k *clients) do(verb string, id uint64) bool { return k.talk(request{verb, id}) }

// talk sends commands and records the results. It returns false if a result is unknown.
func (k *clients) talk(all ...request) bool {
	if !k.connect() {
		return false
	}
	var text []byte
	var ops []*op
	for _, r := range all {
		body := ""
		if r.verb == "put" {
			k.puts++
			body = fmt.Sprintf("session %d put %d ", k.session, k.puts)
			if k.rng != nil && k.rng.IntN(10) == 0 {
				body += strings.Repeat("x", k.rng.IntN(20_000))
			}
		}
		ops = append(ops, k.c.h.begin(r.verb, r.id, k.session, body))
		switch r.verb {
		case "put":
			text = fmt.Appendf(text, "put 0 0 120 %d\r\n%s\r\n", len(body), body)
		case "bury":
			text = fmt.Appendf(text, "bury %d 0\r\n", r.id)
		case "release":
			text = fmt.Appendf(text, "release %d 0 0\r\n", r.id)
		default:
			text = fmt.Appendf(text, "%s %d\r\n", r.verb, r.id)
		}
	}
	k.conn.SetDeadline(time.Now().Add(k.timeout))
	go k.conn.Write(text)
	for _, o := range ops {
		reply, body := k.read()
		if !k.c.h.answered(o, reply, body) {
			k.disconnect()
			return false
		}
		if strings.HasPrefix(reply, "RESERVED") {
			k.held = append(k.held, o.id)
		}
	}
	return true
}

// read reads a reply, with the job's body if it has one. It returns an empty reply after
// an error.
func (k *clients) read() (reply, body string) {
	reply, err := k.r.ReadString('\n')
	if err == nil && (strings.HasPrefix(reply, "FOUND") || strings.HasPrefix(reply, "RESERVED")) {
		body, err = k.r.ReadString('\n')
	}
	if err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) && k.timeout == patience {
			k.c.h.fail("a command is not answered for %v", patience)
		}
		return "", ""
	}
	return strings.TrimSuffix(reply, "\r\n"), strings.TrimSuffix(body, "\r\n")
}

// probes contains the times at which the puts of one client were acknowledged.
type probes struct {
	mu sync.Mutex
	at []int64
}

func (p *probes) add(at int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at = append(p.at, at)
}

// longest returns the longest time without an acknowledged put since a given time.
func (p *probes) longest(since int64) (gap time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := 1; i < len(p.at); i++ {
		if p.at[i] > since {
			gap = max(gap, time.Duration(p.at[i]-max(p.at[i-1], since)))
		}
	}
	return gap
}

// probe puts one job after another. When its connection ends or a reply is late, it tries
// the members in turn.
func (l *load) probe() {
	k := &clients{c: l.c, timeout: probeTimeout}
	defer k.disconnect()
	for !l.stopped() {
		if k.do("put", 0) {
			l.probes.add(l.c.h.now())
			continue
		}
		select {
		case <-l.stop:
		case <-time.After(time.Millisecond):
		}
	}
}
