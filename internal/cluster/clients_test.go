package cluster

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/internal/cluster/mux"
	"github.com/beanpole-mq/beanpole/internal/memnet"
	"github.com/beanpole-mq/beanpole/internal/server"
	"github.com/beanpole-mq/beanpole/internal/test/seeds"
)

// A front is the server of a node, with connections to the servers of other nodes. The
// connections survive network failures that are shorter than longCut.
type front struct {
	*server.Server
	sim     *simulation
	id      uint64
	member  *Member
	opened  chan struct{} // closed when member and Server are set
	clients *memnet.Listener

	following sync.Mutex
	leads     bool

	sends chan struct{} // receives when bytes of this process are in transit

	mu       sync.Mutex
	dead     bool
	sessions map[uint64]*mux.Session
	ends     []io.Closer // connections that end with the process
	done     sync.WaitGroup
}

const longCut = 2 * time.Second

func newFront(sim *simulation, id uint64) *front {
	return &front{sim: sim, id: id, opened: make(chan struct{}), clients: memnet.Listen(), sessions: map[uint64]*mux.Session{}, sends: make(chan struct{})}
}

func (f *front) start(member *Member) {
	f.member = member
	f.Server = server.New(member.Broker(), server.Options{
		Loops: 1, Logger: slog.New(slog.NewTextHandler(f.sim, nil)).With("server", f.id),
		Cluster: &server.Cluster{ID: f.id, Dial: f.dial, Heard: f.heard},
	})
	close(f.opened)
	f.done.Go(func() { f.Serve(addressed{f.clients, f}, server.ListenOptions{}) })
	f.done.Go(func() {
		for {
			changed := member.Watch()
			f.follow(false)
			select {
			case <-changed:
			case <-member.Failed():
				f.follow(true)
				return
			}
		}
	})
}

// follow does the work of member.follow in package daemon.
func (f *front) follow(settled bool) {
	f.following.Lock()
	defer f.following.Unlock()
	if lead := f.member.Lead(); !f.leads || lead.Epoch != 0 || settled {
		f.leads = lead.Epoch != 0
		f.Follow(server.Leadership(lead))
	}
}

// crash ends the connections of the process at once. Close of the member and then
// done.Wait end its goroutines.
func (f *front) crash() {
	f.mu.Lock()
	f.dead = true
	ends := f.ends
	f.mu.Unlock()
	for _, c := range ends {
		c.Close()
	}
	atOnce, cancel := context.WithCancel(context.Background())
	cancel()
	f.done.Go(func() { f.Shutdown(atOnce) })
}

func (f *front) isDead() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.dead
}

// endsWith registers a connection that ends with the process.
func (f *front) endsWith(c io.Closer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ends = append(f.ends, c)
}

func (f *front) heard() []uint64 {
	if f.sim.fault == earlyService {
		return nil
	}
	return f.member.Heard()
}

// dial opens a stream to another node.
func (f *front) dial(leader uint64) (server.MemberStream, error) {
	f.sim.mu.Lock()
	to := f.sim.nodes[leader-1].front
	f.sim.mu.Unlock()
	f.mu.Lock()
	s := f.sessions[leader]
	f.mu.Unlock()
	if s != nil {
		select {
		case <-s.Over():
			s = nil
		default:
		}
	}
	if s == nil {
		if to == nil || to == f || f.sim.isCut(f.id, leader) {
			return nil, errors.New("no route to host")
		}
		s = f.connect(to)
	}
	st, err := s.Open()
	if err != nil || f.sim.fault == "" {
		return st, err
	}
	return &faultyStream{Stream: st, f: f}, nil
}

func (f *front) connect(to *front) *mux.Session {
	a, x := memnet.Pipe()
	y, b := memnet.Pipe()
	own := mux.New(a, nil)
	other := mux.New(b, func(s *mux.Stream) { go to.ServeProxied(f.id, s) })
	f.endsWith(own)
	to.endsWith(other)
	f.mu.Lock()
	f.sessions[to.id] = own
	f.mu.Unlock()
	go f.carry(to, x, y)
	go to.carry(f, y, x)
	return own
}

// carry transfers bytes to another process. If this process dies before they arrive, it
// delivers only some of them.
func (f *front) carry(to *front, from, dest net.Conn) {
	defer from.Close()
	defer dest.Close()
	b := make([]byte, mux.Window)
	for {
		n, err := from.Read(b)
		if err != nil || f.isDead() {
			return
		}
		select {
		case f.sends <- struct{}{}:
		default:
		}
		time.Sleep(100*time.Microsecond + time.Duration(f.sim.draw(400))*time.Microsecond)
		for began := time.Now(); f.sim.isCut(f.id, to.id); time.Sleep(10 * time.Millisecond) {
			if time.Since(began) > longCut {
				return
			}
		}
		dead := f.isDead()
		if dead {
			n = f.sim.draw(n + 1)
		}
		if _, err := dest.Write(b[:n]); err != nil || dead {
			return
		}
	}
}

func (sim *simulation) isCut(from, to uint64) bool {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	return sim.cut[[2]uint64{from, to}]
}

func (sim *simulation) draw(n int) int {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	return sim.rng.IntN(n)
}

// addressed gives each client an address.
type addressed struct {
	net.Listener
	f *front
}

type addressedConn struct {
	net.Conn
	addr net.TCPAddr
	f    *front
}

func (c *addressedConn) RemoteAddr() net.Addr { return &c.addr }

// Write fails if the process is dead: its server still replies to clients after crash has
// disconnected other clients.
func (c *addressedConn) Write(b []byte) (int, error) {
	if c.f.isDead() {
		return 0, syscall.EPIPE
	}
	return c.Conn.Write(b)
}

func (l addressed) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.f.endsWith(c)
	return &addressedConn{c, net.TCPAddr{IP: net.IPv4(10, 1, 0, byte(l.f.id)), Port: 1 + l.f.sim.draw(65000)}, l.f}, nil
}

// A faultyStream plants a fault in a member's server.
type faultyStream struct {
	*mux.Stream
	f      *front
	headed bool
	old    *mux.Stream // the stream to the last leader
}

func (v *faultyStream) LastMark() (note, state []byte, at time.Time, ok bool) {
	note, state, at, ok = v.Stream.LastMark()
	return note, state, at, ok || v.f.sim.fault == keptUpdate
}

func (v *faultyStream) TryWrite(b []byte) (int, error) {
	if !v.headed {
		v.headed = true
		head := b[2:][:binary.BigEndian.Uint16(b)]
		var fields map[string]json.RawMessage
		var state []byte
		json.Unmarshal(head, &fields)
		json.Unmarshal(fields["state"], &state)
		sim := v.f.sim
		if sim.fault == staleClaim && len(state) > 0 && sim.clients.wasApart(v.f.id, sim.now()-longCut) {
			state[0] = 100 // the term
			fields["state"], _ = json.Marshal(state)
			text, _ := json.Marshal(fields)
			b = slices.Concat(b[:2], text, b[2+len(head):])
		}
		sim.mu.Lock()
		address := string(fields["address"])
		v.old, sim.clients.streams[address] = sim.clients.streams[address], v.Stream
		sim.mu.Unlock()
	}
	return v.Stream.TryWrite(b)
}

func (v *faultyStream) Close() error {
	if v.f.sim.fault == lateReply {
		return nil
	}
	return v.Stream.Close()
}

func (v *faultyStream) Notify(f func()) {
	v.Stream.Notify(f)
	if v.old != nil {
		v.old.Notify(f)
	}
}

func (v *faultyStream) TryRead(b []byte) (int, error) {
	if v.old != nil && v.f.sim.fault == lateReply {
		if n, err := v.old.TryRead(b); err == nil {
			return n, nil
		}
	}
	return v.Stream.TryRead(b)
}

// A clientele contains the clients of all nodes, and a ledger of the jobs that they hold.
// It checks that no two clients hold a job within its TTR, and that no delete of a held
// job fails. It also checks that only clients with a command in progress are
// disconnected. The exceptions are those in doc/cluster.md: clients whose member dies or
// cannot reach the leader.
type clientele struct {
	sim     *simulation
	streams map[string]*mux.Stream // streams of clients, by address

	mu     sync.Mutex
	held   map[uint64]hold
	upsets []time.Duration          // times at which a process died or the network failed
	apart  map[uint64]time.Duration // time until which a node might not be able to reach the leader, by node
	over   bool
}

type hold struct {
	client *netClient
	since  time.Duration
}

const (
	clientTTR = 12 // seconds
	surely    = clientTTR*time.Second - longCut - time.Second
	outage    = 2 * time.Second       // maximum time until there is another leader
	settling  = 20 * time.Millisecond // maximum time between a reply and the update that follows it
)

func (sim *simulation) now() time.Duration { return time.Since(sim.start) }

// upset records a failure. During the given time, the nodes might not reach the leader.
func (c *clientele) upset(duration time.Duration, nodes ...*node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.upsets = append(c.upsets, c.sim.now())
	for _, m := range nodes {
		c.apart[m.id] = c.sim.now() + duration + 2*time.Second
	}
}

// wasApart reports whether a node might have been unable to reach the leader since a
// time.
func (c *clientele) wasApart(id uint64, since time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.apart[id] >= since
}

// awaitSend waits until bytes of the process are in transit.
func (f *front) awaitSend() {
	select {
	case <-f.sends:
	case <-time.After(5 * time.Second):
	}
}

// isNear reports whether there was a failure between two times.
func (c *clientele) isNear(from, to time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.upsets, func(at time.Duration) bool { return at >= from && at <= to })
}

func (c *clientele) wrong(format string, args ...any) {
	c.sim.mu.Lock()
	defer c.sim.mu.Unlock()
	c.sim.wrong = cmp.Or(c.sim.wrong, fmt.Errorf("%v: %s", c.sim.now(), fmt.Sprintf(format, args...)))
}

// A netClient is a client of one node.
type netClient struct {
	*clientele
	node *node
	rng  *rand.Rand
	name string

	conn     *memnet.Conn
	in       *bufio.Reader
	slow     int           // maximum time between commands, in ms
	produces bool          // whether it only puts jobs
	command  string        // the command in progress
	last     time.Duration // time of the last command or reply
	served   time.Duration // time of the last reply
	holds    uint64
}

func (k *netClient) run() {
	for !k.isOver() {
		k.sim.mu.Lock()
		f := k.node.front
		k.sim.mu.Unlock()
		if f == nil || f.isDead() {
			time.Sleep(100 * time.Millisecond)
			continue
		}
		conn, err := f.clients.Dial()
		if err != nil {
			continue
		}
		k.mu.Lock()
		k.conn, k.in, k.last = conn.(*memnet.Conn), bufio.NewReader(conn), k.sim.now()
		k.mu.Unlock()
		for err = nil; err == nil; {
			err = k.step()
		}
		k.ended(f, err)
		k.drop()
		k.command = ""
		conn.Close()
		time.Sleep(100 * time.Millisecond)
	}
}

func (k *netClient) isOver() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.over
}

// ended checks that there was a reason for the end of a connection.
func (k *netClient) ended(f *front, err error) {
	now := k.sim.now()
	switch {
	case k.isOver(), f.isDead(), k.wasApart(k.node.id, now-10*time.Second):
	case k.command == "reserve" && k.isNear(k.last-outage, k.last+settling): // the wait had not started
	case k.command == "reserve" || k.command == "":
		if !k.isNear(k.last-settling, k.last+settling) {
			k.wrong("%s is disconnected (%v), no command in progress since %v: %q", k.name, err, k.last, k.command)
		}
	case !k.isNear(k.last-outage, now):
		k.wrong("%s is disconnected without a reason (%v), %q in progress since %v", k.name, err, k.command, k.last)
	}
}

// idle waits for a period in which nothing arrives.
func (k *netClient) idle(ms int) error {
	k.conn.SetReadDeadline(time.Now().Add(time.Duration(1+k.rng.IntN(ms)) * time.Millisecond))
	b, err := k.in.Peek(1)
	if err == nil {
		k.wrong("%s gets %q without a command", k.name, b)
		return io.EOF
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	return err
}

// do sends a command and returns the first word of its reply, and the rest.
func (k *netClient) do(command string) (word, rest string, err error) {
	k.command, k.last = command, k.sim.now()
	k.conn.SetReadDeadline(time.Time{})
	if command != "reserve" {
		k.conn.SetReadDeadline(time.Now().Add(30 * time.Second))
	}
	if _, err := io.WriteString(k.conn, command+"\r\n"); err != nil {
		return "", "", err
	}
	line, err := k.in.ReadString('\n')
	if err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			k.wrong("%s gets no reply to %q", k.name, command)
		}
		return "", "", err
	}
	k.mu.Lock()
	k.command, k.last, k.served = "", k.sim.now(), k.sim.now()
	k.mu.Unlock()
	word, rest, _ = strings.Cut(strings.TrimSpace(line), " ")
	return word, rest, nil
}

func (k *netClient) step() error {
	if k.produces {
		if err := k.idle(k.slow); err != nil {
			return err
		}
		return k.put()
	}
	sent := k.sim.asked.Now()
	word, rest, err := k.do("reserve")
	if err != nil {
		return err
	}
	var id, size uint64
	if fmt.Sscan(rest, &id, &size); word != "RESERVED" || size == 0 {
		k.wrong("%s gets %s %s for a reserve", k.name, word, rest)
		return io.EOF
	}
	body := make([]byte, size+2)
	if _, err := io.ReadFull(k.in, body); err != nil {
		return err
	}
	key := keyOf(body[:size])
	k.sim.asked.Shown(key, id, sent)
	k.hold(id)
	if err := k.idle(k.slow); err != nil {
		return err
	}
	if k.rng.IntN(3) == 0 {
		if word, _, err = k.do(fmt.Sprintf("touch %d", id)); err != nil {
			return err
		}
		k.want(id, word, "TOUCHED")
		if err := k.idle(k.slow); err != nil {
			return err
		}
	}
	verb, want := "release %d 0 0", "RELEASED"
	if k.rng.IntN(3) > 0 {
		verb, want = "delete %d", "DELETED"
		k.sim.asked.Delete(key)
	}
	surely := k.surely(id)
	k.drop()
	if word, _, err = k.do(fmt.Sprintf(verb, id)); err != nil {
		return err
	}
	if word != want && surely {
		k.wrong("%s gets %s for job %d, want %s", k.name, word, id, want)
	}
	if word == "DELETED" {
		k.sim.asked.Deleted(key)
	}
	return nil
}

func (k *netClient) put() error {
	k.sim.mu.Lock()
	k.sim.puts++
	key := fmt.Sprintf("a job of %s, put %d", k.name, k.sim.puts)
	k.sim.mu.Unlock()
	k.sim.asked.Put(key)
	word, rest, err := k.do(fmt.Sprintf("put 0 0 %d %d\r\n%s", clientTTR, len(key), key))
	if err != nil {
		return err
	}
	var id uint64
	if fmt.Sscan(rest, &id); word != "INSERTED" {
		k.wrong("%s gets %s %s for a put", k.name, word, rest)
		return io.EOF
	}
	k.sim.asked.Inserted(key, id)
	return nil
}

// hold records that the client has received a job.
func (k *netClient) hold(id uint64) {
	k.mu.Lock()
	other := k.held[id]
	k.mu.Unlock()
	if other.client != nil && other.client.surely(id) {
		k.wrong("%s gets job %d, which %s holds since %v", k.name, id, other.client.name, other.since)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.held[id], k.holds = hold{k, k.sim.now()}, id
}

// surely reports whether the client must still hold its job.
func (k *netClient) surely(id uint64) bool {
	k.mu.Lock()
	h := k.held[id]
	k.mu.Unlock()
	return h.client == k && k.sim.now() < h.since+surely && !k.wasApart(k.node.id, h.since-longCut)
}

// want checks the reply to a command for a held job.
func (k *netClient) want(id uint64, word, want string) {
	if word != want && k.surely(id) {
		k.wrong("%s gets %s for job %d, want %s", k.name, word, id, want)
	}
}

// drop records that the client no longer has its job.
func (k *netClient) drop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.held[k.holds].client == k {
		delete(k.held, k.holds)
	}
	k.holds = 0
}

// serve runs the clients of three nodes during some changes of leader.
func (sim *simulation) serve(seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 9))
	sim.refusals, sim.patient, sim.opt.Engine.Claims = rng.IntN(2) == 0, true, true
	c := &clientele{sim: sim, streams: map[string]*mux.Stream{}, held: map[uint64]hold{}, apart: map[uint64]time.Duration{}}
	sim.clients = c
	sim.grow(3)
	var all []*netClient
	var done sync.WaitGroup
	for n := range 18 {
		k := &netClient{clientele: c, node: sim.nodes[n%3], rng: rand.New(rand.NewPCG(seed, uint64(n))), slow: 1000 + 400*(n/3), produces: n < 3, name: fmt.Sprintf("client %d of node %d", n, n%3+1)}
		all = append(all, k)
		done.Go(k.run)
	}
	sim.stop = func() {
		c.mu.Lock()
		c.over = true
		for _, k := range all {
			if k.conn != nil {
				k.conn.Close()
			}
		}
		c.mu.Unlock()
		done.Wait()
	}
	time.Sleep(2 * time.Second)
	for range 8 {
		sim.trouble(rng)
		time.Sleep(2*time.Second + time.Duration(rng.IntN(2000))*time.Millisecond)
		sim.leader()
	}
	calm := sim.now()
	sim.until("all clients are served", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return !slices.ContainsFunc(all, func(k *netClient) bool { return k.served < calm })
	})
	sim.stop()
	sim.stop = nil
	sim.audit()
	sim.close()
}

// trouble causes a failure that can change the leader.
func (sim *simulation) trouble(rng *rand.Rand) {
	c, l := sim.clients, sim.nodeOf(sim.leader())
	other := sim.nodes[(l.id+rng.Uint64N(2))%3]
	duration := time.Duration(rng.IntN(3000)) * time.Millisecond
	m := l
	switch kind := rng.IntN(8); kind {
	case 0, 1, 2:
		if kind == 0 {
			m = other
		}
		m.front.awaitSend()
		c.upset(duration, m)
		m.kill(rng.IntN(2) == 0)
		time.Sleep(duration)
		m.boot()
	case 3, 4:
		if kind == 3 {
			m = other
		}
		m.front.awaitSend()
		c.upset(duration, m)
		sim.part(m)
		time.Sleep(duration)
		c.upset(0, m)
		sim.heal()
	case 5: // the claims of a member that was absent conflict with another member's claims
		c.upset(longCut+time.Second, other)
		sim.part(other)
		time.Sleep(longCut + time.Second)
		sim.heal()
		c.upset(time.Second, other, l)
		l.kill(false)
		time.Sleep(time.Second)
		l.boot()
	default:
		ctx, cancel := context.WithTimeout(sim.t.Context(), 3*time.Second)
		defer cancel()
		sim.must(l.member.Transfer(ctx, 0))
	}
}

// TestClients checks that clients with held jobs and waiting reserves survive changes of
// leader.
func TestClients(t *testing.T) {
	seeds.Each(t, 1, func(t *testing.T, seed uint64) {
		synctest.Test(t, func(t *testing.T) { emptySimulation(t, seed).serve(seed) })
	})
}

// TestPlantedClients checks that the simulation of clients detects each fault planted in
// package server.
func TestPlantedClients(t *testing.T) {
	if seeds.Race {
		t.Skip("the race detector finds nothing more here than in TestClients")
	}
	for p, seed := range map[fault]uint64{earlyService: 1, keptUpdate: 1, staleClaim: 1, lateReply: 1} {
		t.Run(string(p), func(t *testing.T) {
			seeds.Find(t, seed, func(t *testing.T, seed uint64) string {
				return finds(t, seed, p, func(sim *simulation) { sim.serve(seed) })
			})
		})
	}
}
