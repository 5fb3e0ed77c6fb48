package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"go.etcd.io/raft/v3/raftpb"
	"golang.org/x/time/rate"

	"github.com/beanpole-mq/beanpole/internal/cluster"
	"github.com/beanpole-mq/beanpole/internal/cluster/directory"
	"github.com/beanpole-mq/beanpole/internal/cluster/mux"
	"github.com/beanpole-mq/beanpole/internal/cluster/raftlog"
)

// Raft is the member that exchanges the messages. Its methods must be safe for concurrent
// use.
type Raft interface {
	Handshake() cluster.Handshake
	// AcceptHandshake checks the handshake of another member. An error refuses that
	// member.
	AcceptHandshake(from uint64, h cluster.Handshake) error
	// Step receives a message.
	Step(m *raftpb.Message)
	// Unreachable is called when messages to a member were lost.
	Unreachable(id uint64)
	// Rejected is called when another member has refused this member, with the reason.
	Rejected(by uint64, err error)
	// Refused is called when the port of a member that was connected is closed, so that
	// its process has ended. term is the term of Lead before the attempt to connect.
	Refused(id, term uint64)
	Lead() cluster.Leadership
}

// Options configures a Transport. All fields except Logger are required.
type Options struct {
	Listener    net.Listener // listener for other members; the transport closes it
	Credentials *directory.Credentials

	// Client serves a client of another member.
	Client func(from uint64, stream *mux.Stream)

	// Snapshot sends a snapshot to a member that needs entries that are no longer in the
	// log.
	Snapshot func(from uint64, conn net.Conn)

	// Admin serves the JSON API to another member until the connection ends.
	Admin func(from uint64, conn net.Conn)

	// Request answers a request of another member, or of a command on the same machine.
	Request func(ctx context.Context, from uint64, body []byte) ([]byte, error)

	// Join answers a server that has no certificate. The server also receives an error.
	Join func(ctx context.Context, client net.Addr, body []byte) ([]byte, error)

	Logger *slog.Logger // nil disables logging
}

// A Transport connects a member with the other members. See the package comment.
type Transport struct {
	opt    Options
	log    *slog.Logger
	self   uint64
	raft   Raft // nil before Start, constant afterwards
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	warn   rate.Sometimes // limits warnings about closed connections

	mu      sync.Mutex
	links   map[uint64]*link
	conns   map[net.Conn]uint64 // accepted connections and the member to which each is bound, or 0
	pending unauthenticated
}

// New returns a transport. The transport is idle until Start.
func New(opt Options) *Transport {
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	t := &Transport{
		opt: opt, log: opt.Logger, self: opt.Credentials.ID,
		warn: rate.Sometimes{Interval: time.Second}, links: make(map[uint64]*link), conns: make(map[net.Conn]uint64),
	}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	return t
}

// Start starts to accept and open connections for a member.
func (t *Transport) Start(raft Raft) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ctx.Err() != nil {
		return
	}
	t.raft = raft
	t.wg.Go(t.accept)
	for _, l := range t.links {
		t.wg.Go(l.run)
	}
}

// Close ends all connections. It returns when no function of the Options and no method of
// Raft is running.
func (t *Transport) Close() {
	t.mu.Lock()
	t.cancel()
	t.opt.Listener.Close()
	for c := range t.conns {
		c.Close()
	}
	for _, l := range t.links {
		l.close()
	}
	t.mu.Unlock()
	t.wg.Wait()
}

// SetMembers replaces the list of members. The transport connects to new members and ends
// the connections of removed members. A removed member receives the reason when it
// connects again.
func (t *Transport) SetMembers(members []raftlog.MemberInfo) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ctx.Err() != nil {
		return
	}
	now := make(map[uint64]bool)
	for _, m := range members {
		if m.ID == t.self {
			continue
		}
		now[m.ID] = true
		if old := t.links[m.ID]; old != nil {
			if old.address == m.Address {
				continue
			}
			old.close()
		}
		l := newLink(t, m)
		t.links[m.ID] = l
		if t.raft != nil {
			t.wg.Go(l.run)
		}
	}
	for id, l := range t.links {
		if !now[id] {
			l.close()
			delete(t.links, id)
		}
	}
	for c, from := range t.conns {
		if from != 0 && !now[from] {
			c.Close()
		}
	}
}

// Send sends messages to other members. It never blocks and can lose messages.
func (t *Transport) Send(messages []*raftpb.Message) {
	for _, m := range messages {
		if l := t.link(m.GetTo()); l != nil {
			l.send(m)
		}
	}
}

func (t *Transport) link(id uint64) *link {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.links[id]
}

// Client opens a mux.Stream to another member, for a client that this member forwards. It
// does not block.
func (t *Transport) Client(id uint64) (*mux.Stream, error) {
	l := t.link(id)
	if l == nil {
		return nil, errNoMember(id)
	}
	session := l.session.Load()
	if session == nil {
		return nil, fmt.Errorf("member %d is not connected", id)
	}
	return session.Open()
}

func errNoMember(id uint64) error { return fmt.Errorf("no other member has the id %d", id) }

// Snapshot connects to another member's Options.Snapshot.
func (t *Transport) Snapshot(ctx context.Context, id uint64) (net.Conn, error) {
	return t.dial(ctx, id, forSnapshot)
}

// Admin connects to another member's Options.Admin.
func (t *Transport) Admin(ctx context.Context, id uint64) (net.Conn, error) {
	return t.dial(ctx, id, forAdmin)
}

// Request sends a request to another member.
func (t *Transport) Request(ctx context.Context, id uint64, body []byte) ([]byte, error) {
	conn, err := t.dial(ctx, id, forRequest)
	if err != nil {
		return nil, err
	}
	return ask(ctx, conn, body)
}

// dial connects to another member.
func (t *Transport) dial(ctx context.Context, id uint64, protocol string) (*tls.Conn, error) {
	l := t.link(id)
	if l == nil {
		return nil, errNoMember(id)
	}
	return dial(ctx, t.opt.Credentials, l.address, id, protocol)
}

// NoPeers is the transport of a cluster with one member.
type NoPeers struct{}

// Send implements cluster.Transport.
func (NoPeers) Send([]*raftpb.Message) {}

// SetMembers implements cluster.Transport.
func (NoPeers) SetMembers([]raftlog.MemberInfo) {}

// errClosed means that this side has closed a connection.
var errClosed = errors.New("closed")
