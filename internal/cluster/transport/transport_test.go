package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/goleak"

	"github.com/beanpole-mq/beanpole/internal/cluster"
	"github.com/beanpole-mq/beanpole/internal/cluster/directory"
	"github.com/beanpole-mq/beanpole/internal/cluster/mux"
	"github.com/beanpole-mq/beanpole/internal/cluster/raftlog"
	"github.com/beanpole-mq/beanpole/internal/test/freeport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience limits the time of steps that must succeed.
const patience = 30 * time.Second

// A peer is a member with its transport, and the messages that it has received.
type peer struct {
	*Transport
	credentials *directory.Credentials
	address     string
	steps       chan *raftpb.Message
	refused     chan uint64
	ups         ups
	step        func(*raftpb.Message) // called instead of storing a message; can be nil

	rejected    chan error   // reasons why other members have refused this one
	unreachable atomic.Int32 // number of calls

	mu         sync.Mutex
	refuses    error
	handshakes map[uint64]cluster.Handshake
}

func (p *peer) Handshake() cluster.Handshake {
	return cluster.Handshake{Starts: p.credentials.ID, Version: "test"}
}

func (p *peer) AcceptHandshake(from uint64, h cluster.Handshake) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.handshakes[from] = h
	return p.refuses
}

func (p *peer) Step(m *raftpb.Message) {
	if p.step != nil {
		p.step(m)
		return
	}
	p.steps <- m
}

func (p *peer) Unreachable(uint64) { p.unreachable.Add(1) }

func (p *peer) Rejected(by uint64, err error) {
	select {
	case p.rejected <- err:
	default:
	}
}

func (p *peer) Lead() cluster.Leadership { return cluster.Leadership{Term: 7} }

func (p *peer) Refused(id, term uint64) {
	if term != 7 {
		id = 0
	}
	select {
	case p.refused <- id:
	default:
	}
}

// newPeers creates n members, which are not running.
func newPeers(t *testing.T, n int) []*peer {
	t.Helper()
	c := directory.NewCA(directory.NewCluster(), 1)
	var all []*peer
	for i := range n {
		all = append(all, &peer{credentials: c.Issue(uint64(i + 1)), address: "127.0.0.1:0", steps: make(chan *raftpb.Message, 100), refused: make(chan uint64, 1), rejected: make(chan error, 1), ups: make(ups, 100), handshakes: map[uint64]cluster.Handshake{}})
	}
	return all
}

// start makes a member listen. It is closed at the end of the test.
func (p *peer) start(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", p.address)
	if err != nil {
		t.Fatal(err)
	}
	p.address = l.Addr().String()
	p.listen(l)
	t.Cleanup(p.Close)
}

// listen runs a member on a listener.
func (p *peer) listen(l net.Listener) {
	p.Transport = New(Options{
		Listener: l, Credentials: p.credentials, Logger: slog.New(p.ups),
		Client:   func(from uint64, stream *mux.Stream) { echo(stream) },
		Snapshot: func(from uint64, conn net.Conn) { echo(conn) },
		Admin:    func(from uint64, conn net.Conn) { echo(conn) },
		Request: func(_ context.Context, from uint64, body []byte) ([]byte, error) {
			if string(body) == "fail" {
				return nil, errors.New("as you wish")
			}
			return append([]byte{byte('0' + from)}, body...), nil
		},
		Join: func(_ context.Context, _ net.Addr, body []byte) ([]byte, error) {
			return append([]byte("join "), body...), nil
		},
	})
	p.Start(p)
}

func echo(conn io.ReadWriteCloser) {
	defer conn.Close()
	io.Copy(conn, conn)
}

// members returns the members, for SetMembers.
func members(peers []*peer) (all []raftlog.MemberInfo) {
	for _, p := range peers {
		all = append(all, raftlog.MemberInfo{ID: p.credentials.ID, Address: p.address})
	}
	return all
}

// run returns n connected members.
func run(t *testing.T, n int) []*peer {
	t.Helper()
	peers := newPeers(t, n)
	connect(t, peers)
	return peers
}

// connect runs members until they are connected.
func connect(t *testing.T, peers []*peer) {
	t.Helper()
	for _, p := range peers {
		p.start(t)
	}
	for _, p := range peers {
		p.SetMembers(members(peers))
	}
	for _, p := range peers {
		p.connected(t, peers)
	}
}

// isConnected reports whether a member is connected to another.
func (p *peer) isConnected(id uint64) bool {
	l := p.link(id)
	return l != nil && l.session.Load() != nil
}

// connected waits until a member is connected to the others.
func (p *peer) connected(t *testing.T, peers []*peer) {
	t.Helper()
	for _, to := range peers {
		for to != p && !p.isConnected(to.credentials.ID) {
			select {
			case <-p.ups:
			case <-time.After(patience):
				t.Fatal("not connected")
			}
		}
	}
}

// ups is a log that records only new connections.
type ups chan struct{}

func (u ups) Enabled(context.Context, slog.Level) bool { return true }
func (u ups) WithAttrs([]slog.Attr) slog.Handler       { return u }
func (u ups) WithGroup(string) slog.Handler            { return u }

func (u ups) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "connected to a member for clients" {
		u <- struct{}{}
	}
	return nil
}

func message(kind raftpb.MessageType, from, to uint64, data []byte) *raftpb.Message {
	m := &raftpb.Message{Type: kind.Enum(), From: &from, To: &to}
	if data != nil {
		m.Entries = []*raftpb.Entry{{Data: data}}
	}
	return m
}

// arrives waits for a message of a given kind.
func (p *peer) arrives(t *testing.T, kind raftpb.MessageType) *raftpb.Message {
	t.Helper()
	for {
		select {
		case m := <-p.steps:
			if m.GetType() == kind {
				return m
			}
		case <-time.After(patience):
			t.Fatalf("no message of kind %v arrives", kind)
		}
	}
}

func TestMessages(t *testing.T) {
	peers := run(t, 3)
	large := bytes.Repeat([]byte("x"), 200_017)
	for _, from := range peers {
		for _, to := range peers {
			if from == to {
				continue
			}
			a, b := from.credentials.ID, to.credentials.ID
			from.Send([]*raftpb.Message{message(raftpb.MsgHeartbeat, a, b, nil), message(raftpb.MsgApp, a, b, large)})
			m := to.arrives(t, raftpb.MsgApp)
			if m.GetFrom() != a || len(m.GetEntries()) != 1 || !bytes.Equal(m.GetEntries()[0].GetData(), large) {
				t.Errorf("from %d to %d another message arrives", a, b)
			}
			if h := to.handshakes[a]; h.Starts != a || h.Version != "test" {
				t.Errorf("%d reports %+v", a, h)
			}
		}
	}
}

// A member receives heartbeats even while it is busy with entries.
func TestHeartbeatsDoNotWait(t *testing.T) {
	peers := newPeers(t, 2)
	busy, heard := make(chan struct{}), make(chan struct{}, 1)
	peers[1].step = func(m *raftpb.Message) {
		if m.GetType() == raftpb.MsgApp {
			<-busy
			return
		}
		heard <- struct{}{}
	}
	for _, p := range peers {
		p.start(t)
	}
	t.Cleanup(func() { close(busy) }) // before Close
	peers[0].SetMembers(members(peers))
	peers[0].connected(t, peers)
	for range 3 { // far more than sockets buffer
		peers[0].Send([]*raftpb.Message{message(raftpb.MsgApp, 1, 2, make([]byte, 20<<20))})
	}
	peers[0].Send([]*raftpb.Message{message(raftpb.MsgHeartbeat, 1, 2, nil)})
	select {
	case <-heard:
	case <-time.After(patience):
		t.Fatal("the heartbeat waits for the entries")
	}
}

// A member that stops and restarts is connected again, and the others detect that its
// process has ended.
func TestReconnect(t *testing.T) {
	port, err := freeport.Reserve() // while the member is not listening
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(port.Release)
	peers := newPeers(t, 2)
	peers[1].address = "127.0.0.1:" + port.String()
	connect(t, peers)
	peers[1].Close()
	select {
	case id := <-peers[0].refused:
		if id != 2 {
			t.Errorf("member %d has ended", id)
		}
	case <-time.After(patience):
		t.Fatal("no member notices that the process has ended")
	}
	peers[1].start(t)
	peers[0].connected(t, peers)
	peers[0].Send([]*raftpb.Message{message(raftpb.MsgVote, 1, 2, nil)})
	peers[1].arrives(t, raftpb.MsgVote)
}

func TestSetMembers(t *testing.T) {
	peers := run(t, 3)
	peers[0].SetMembers(members(peers[:2]))
	if peers[0].isConnected(3) {
		t.Error("a member that was removed is reachable")
	}
	if _, err := peers[0].Client(3); err == nil {
		t.Error("clients are passed on to a member that was removed")
	}
	peers[0].SetMembers(members(peers))
	peers[0].connected(t, peers)
}

// A refused member sends and receives no messages.
func TestHandshakeRefuses(t *testing.T) {
	peers := newPeers(t, 2)
	peers[1].refuses = errors.New("its disk was rolled back")
	for _, p := range peers {
		p.start(t)
	}
	conn, err := dial(t.Context(), peers[0].credentials, peers[1].address, 2, forMessages)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := writeHandshake(conn, handshake{Handshake: &cluster.Handshake{}}); err != nil {
		t.Fatal(err)
	}
	if _, err := readHandshake(conn); err == nil || err.Error() != "its disk was rolled back" {
		t.Errorf("the member gets %v", err)
	}
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("the connection stays open")
	}
}

func TestClients(t *testing.T) {
	peers := run(t, 2)
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			conn, err := peers[0].Client(2)
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			sent := bytes.Repeat([]byte("0123456789"), 50_000)
			go func() {
				conn.Write(sent)
				conn.CloseWrite()
			}()
			got, err := io.ReadAll(conn)
			if err != nil || !bytes.Equal(got, sent) {
				t.Errorf("%d bytes come back, of %d: %v", len(got), len(sent), err)
			}
		})
	}
	wg.Wait()
}

// If a connection for clients fails, it is opened again, and no heartbeat is lost.
func TestClientsFailAlone(t *testing.T) {
	peers := run(t, 2)
	before := peers[0].unreachable.Load()
	for range 3 {
		session := peers[0].link(2).session.Load()
		session.Close()
		for peers[0].link(2).session.Load() == session || !peers[0].isConnected(2) {
			select {
			case <-peers[0].ups:
			case <-time.After(patience):
				t.Fatal("no other connection for clients exists")
			}
		}
		peers[0].Send([]*raftpb.Message{message(raftpb.MsgHeartbeat, 1, 2, nil)})
		peers[1].arrives(t, raftpb.MsgHeartbeat)
	}
	if n := peers[0].unreachable.Load(); n != before {
		t.Errorf("the other member was unreachable %d times", n-before)
	}
}

// A client does not wait for a member that drops packets.
func TestClientOfSilentMember(t *testing.T) {
	peers := newPeers(t, 2)
	silent, err := net.Listen("tcp", "127.0.0.1:0") // there is no accept, so there is no answer
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	peers[1].address = silent.Addr().String()
	peers[0].start(t)
	peers[0].SetMembers(members(peers))
	if _, err := peers[0].Client(2); err == nil {
		t.Error("there is a stream to a silent member")
	}
}

func TestRequests(t *testing.T) {
	peers := run(t, 2)
	ctx := t.Context()
	if reply, err := peers[0].Request(ctx, 2, []byte("hello")); err != nil || string(reply) != "1hello" {
		t.Errorf("%q, %v", reply, err)
	}
	if _, err := peers[0].Request(ctx, 2, []byte("fail")); err == nil || err.Error() != "as you wish" {
		t.Error(err)
	}
	if reply, err := Request(ctx, peers[0].credentials, peers[0].address, 0, []byte("a command")); err != nil || string(reply) != "1a command" {
		t.Errorf("%q, %v", reply, err)
	}
	if _, err := Request(ctx, peers[0].credentials, peers[1].address, 1, nil); err == nil {
		t.Error("member 2 answers in place of member 1")
	}
	conn, err := peers[0].Snapshot(ctx, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var got [3]byte
	if _, err := conn.Write([]byte("abc")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, got[:]); err != nil || string(got[:]) != "abc" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestJoin(t *testing.T) {
	peers := newPeers(t, 1)
	peers[0].start(t)
	fingerprint := directory.Fingerprint(peers[0].credentials.CA)
	longest := bytes.Repeat([]byte("x"), maxJoin)
	if reply, err := Join(t.Context(), peers[0].address, fingerprint, longest); err != nil || string(reply) != "join "+string(longest) {
		t.Errorf("the longest request: %d bytes, %v", len(reply), err)
	}
	if reply, err := Join(t.Context(), peers[0].address, fingerprint, append(longest, 'x')); err == nil {
		t.Errorf("a longer request: %d bytes", len(reply))
	}
	other := newPeers(t, 1)[0].credentials.CA
	if _, err := Join(t.Context(), peers[0].address, directory.Fingerprint(other), nil); err == nil || !strings.Contains(err.Error(), "does not belong to the token") {
		t.Errorf("another cluster: %v", err)
	}
}

// The connections of a removed member are closed. When it connects again, it receives the
// reason.
func TestRemoved(t *testing.T) {
	peers := run(t, 2)
	other := peers[1]
	other.mu.Lock()
	other.refuses = fmt.Errorf("wrapped: %w", cluster.ErrRemoved)
	other.mu.Unlock()
	other.SetMembers([]raftlog.MemberInfo{{ID: 2, Address: other.address}})
	select {
	case err := <-peers[0].rejected:
		if !errors.Is(err, cluster.ErrRemoved) || err.Error() != other.refuses.Error() {
			t.Errorf("it gets %v", err)
		}
	case <-time.After(patience):
		t.Fatal("it does not learn that it was removed")
	}
}

// With its certificate, a removed member can send requests, but nothing else is served.
// The connections that it has when it is removed are closed.
func TestCertificateOfRemovedMember(t *testing.T) {
	peers := newPeers(t, 2)
	p, other := peers[0], peers[1]
	p.start(t)
	membership := members(peers)
	open := func(protocol string) net.Conn {
		t.Helper()
		conn, err := dial(t.Context(), other.credentials, p.address, 1, protocol)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		conn.SetDeadline(time.Now().Add(patience))
		return conn
	}
	isClosed := func(conn net.Conn) bool {
		_, err := io.Copy(io.Discard, conn)
		return err == nil || closedByPeer(err)
	}
	for _, protocol := range []string{forClients, forSnapshot, forAdmin} {
		t.Run(protocol, func(t *testing.T) {
			p.SetMembers(membership)
			conn := open(protocol)
			if protocol == forClients {
				session := mux.New(conn, nil)
				defer session.Close()
				stream, err := session.Open()
				if err != nil {
					t.Fatal(err)
				}
				echoes(t, stream)
				p.SetMembers(membership[:1])
				<-session.Over()
			} else {
				echoes(t, conn)
				p.SetMembers(membership[:1])
				if !isClosed(conn) {
					t.Error("a connection of a removed member stays open")
				}
			}
			if !isClosed(open(protocol)) {
				t.Error("a removed member is served")
			}
		})
	}
	if reply, err := Request(t.Context(), other.credentials, p.address, 1, []byte("rejoin")); err != nil || string(reply) != "2rejoin" {
		t.Errorf("a request is answered with %q, %v", reply, err)
	}
}

// echoes writes to a connection whose other end echoes the data, and reads the echo.
func echoes(t *testing.T, conn io.ReadWriter) {
	t.Helper()
	b := []byte("hello")
	if _, err := conn.Write(b); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, b); err != nil || string(b) != "hello" {
		t.Fatalf("%q returns, %v", b, err)
	}
}
