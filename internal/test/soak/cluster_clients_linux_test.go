package soak

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"time"
)

// A load is the clients of a cluster.
type load struct {
	c      *group
	h      *history
	stop   chan struct{}
	done   sync.WaitGroup
	once   sync.Once
	probes probes
}

// How long clients wait for a reply before they look for another member.
const (
	commandTimeout = 5 * time.Second
	probeTimeout   = 500 * time.Millisecond
)

// begin starts clients: some that do everything, and one whose puts show how long there is no service.
func (c *group) begin(h *history) *load {
	l := &load{c: c, h: h, stop: make(chan struct{})}
	for i := range 6 {
		rng := rand.New(rand.NewPCG(c.s.seed, uint64(i)+10))
		l.done.Go(func() { l.run(&clients{c: c, h: h, rng: rng, first: i, timeout: commandTimeout}) })
	}
	l.done.Go(l.probe)
	return l
}

// end stops the clients and waits for them.
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

// await waits until so many more commands are acknowledged.
func (l *load) await(acks int) {
	want := l.h.acknowledged() + acks
	until(l.c.s.t, fmt.Sprintf("%d more commands are acknowledged", acks), func() bool { return l.h.acknowledged() >= want })
}

func (l *load) run(k *clients) {
	defer k.disconnect()
	for !l.stopped() {
		if !k.step() {
			k.wait(l.stop)
		}
	}
}

// clients are one client after the other.
type clients struct {
	c       *group
	h       *history
	rng     *rand.Rand
	first   int // member to be tried next
	timeout time.Duration

	conn    net.Conn
	r       *bufio.Reader
	session int
	held    []uint64
	puts    int
}

// wait waits a little, as a client does that was refused.
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

// connect connects to the next member.
func (k *clients) connect() bool {
	if k.conn != nil {
		return true
	}
	p := k.c.members[k.first%len(k.c.members)]
	k.first++
	conn, err := net.DialTimeout("tcp", p.clients, k.timeout)
	if err != nil {
		return false
	}
	k.conn, k.r, k.session = conn, bufio.NewReader(conn), k.h.newSession()
	return true
}

// step does something to a job. It returns false if nobody has answered.
func (k *clients) step() bool {
	if len(k.held) > 0 && k.rng.IntN(2) == 0 {
		i := k.rng.IntN(len(k.held))
		id := k.held[i]
		k.held = append(k.held[:i:i], k.held[i+1:]...)
		return k.do([]string{"bury", "release", "delete"}[k.rng.IntN(3)], id)
	}
	id := k.h.anyID(k.rng)
	verb := []string{"put", "put", "put", "put", "peek", "peek", "reserve-job", "reserve-job", "kick-job", "delete", "delete"}[k.rng.IntN(11)]
	if id == 0 {
		verb = "put"
	}
	return k.do(verb, id)
}

// do sends a command and notes what came of it. It returns false if that is not known.
func (k *clients) do(verb string, id uint64) bool {
	if !k.connect() {
		return false
	}
	line, body := fmt.Sprintf("%s %d\r\n", verb, id), ""
	switch verb {
	case "put":
		k.puts++
		body = fmt.Sprintf("session %d put %d", k.session, k.puts)
		line = fmt.Sprintf("put 0 0 120 %d\r\n%s\r\n", len(body), body)
	case "bury":
		line = fmt.Sprintf("bury %d 0\r\n", id)
	case "release":
		line = fmt.Sprintf("release %d 0 0\r\n", id)
	}
	op := k.h.begin(verb, id, k.session, body)
	reply, found := k.exchange(line)
	ok := k.h.answered(op, reply, found)
	if !ok {
		k.disconnect()
	} else if verb == "reserve-job" && strings.HasPrefix(reply, "RESERVED") {
		k.held = append(k.held, id)
	}
	return ok
}

// exchange sends a command and reads the reply, with a job's body if there is one; empty: there was none.
func (k *clients) exchange(line string) (reply, body string) {
	k.conn.SetDeadline(time.Now().Add(k.timeout))
	if _, err := k.conn.Write([]byte(line)); err != nil {
		return "", ""
	}
	reply, err := k.r.ReadString('\n')
	if err != nil {
		return "", ""
	}
	if strings.HasPrefix(reply, "FOUND") || strings.HasPrefix(reply, "RESERVED") {
		if body, err = k.r.ReadString('\n'); err != nil {
			return "", ""
		}
	}
	return strings.TrimSuffix(reply, "\r\n"), strings.TrimSuffix(body, "\r\n")
}

// probes are the times at which the puts of one client were acknowledged.
type probes struct {
	mu sync.Mutex
	at []int64
}

func (p *probes) add(at int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at = append(p.at, at)
}

// longest returns the longest time without a put since a moment.
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

// probe puts one job after the other. When its connection ends or does not answer it tries
// the members in turn.
func (l *load) probe() {
	k := &clients{c: l.c, h: l.h, timeout: probeTimeout}
	defer k.disconnect()
	for !l.stopped() {
		if k.connect() {
			k.puts++
			body := fmt.Sprintf("probe %d of session %d", k.puts, k.session)
			op := l.h.begin("put", 0, k.session, body)
			reply, _ := k.exchange(fmt.Sprintf("put 0 0 120 %d\r\n%s\r\n", len(body), body))
			if l.h.answered(op, reply, "") {
				l.probes.add(l.h.now())
				continue
			}
			k.disconnect()
		}
		select {
		case <-l.stop:
		case <-time.After(time.Millisecond):
		}
	}
}
