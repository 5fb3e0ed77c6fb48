package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/beanpole-mq/beanpole/internal/admin"
	"github.com/beanpole-mq/beanpole/internal/advice"
	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/cluster"
	"github.com/beanpole-mq/beanpole/internal/cluster/control"
	"github.com/beanpole-mq/beanpole/internal/cluster/directory"
	"github.com/beanpole-mq/beanpole/internal/cluster/mux"
	"github.com/beanpole-mq/beanpole/internal/cluster/raftlog"
	"github.com/beanpole-mq/beanpole/internal/cluster/transport"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/exit"
	"github.com/beanpole-mq/beanpole/internal/journal"
	"github.com/beanpole-mq/beanpole/internal/server"
	"github.com/beanpole-mq/beanpole/internal/vfs"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

// A member connects this process to its cluster.
type member struct {
	*cluster.Member
	dir       *directory.Directory
	transport *transport.Transport
	control   control.Control
	api       *apiRelay
	log       *slog.Logger
	opened    chan struct{} // closed when Member is set
	done      sync.WaitGroup

	contacts atomic.Pointer[[]string] // addresses of the other members
	writing  sync.Mutex               // held during the write of contacts

	mu     sync.Mutex
	server *server.Server // nil until clients are served
	leads  bool           // whether the server serves clients on this member
}

// openMember opens the queue of a member and joins the cluster.
func (q *queue) openMember(p *plan, j journal.Options, e engine.Options, b broker.Options) error {
	dir, log := p.opt.Journal.Dir, p.log
	d, err := directory.Open(vfs.OS, dir)
	if err != nil {
		return exit.WithCode(exit.Journal, err)
	}
	listener, err := listenForMembers(d.Listen)
	if err != nil {
		return exit.WithCode(exit.Socket, fmt.Errorf("the address for the other members: %w", err))
	}
	m := &member{dir: d, log: log, opened: make(chan struct{})}
	m.control.Member, m.control.Directory = m, d
	m.api = newAPIRelay(m, log)
	m.transport = transport.New(transport.Options{
		Listener: listener, Credentials: d.Credentials,
		Client: m.serveClient, Snapshot: m.serveSnapshot, Admin: m.api.take, Request: m.control.Request, Join: m.admit,
		Logger: log,
	})
	m.control.Transport = m.transport
	e.Claims = true
	j.Sync = 0 // clients wait for the Raft log instead
	m.Member, err = cluster.Open(cluster.Options{
		FS: vfs.Observed(vfs.OS, q.syncs), Dir: dir, Self: raftlog.MemberInfo{ID: d.ID, Address: d.Listen},
		Transport: membersOf{m.transport, m}, Deposed: m.deposed, Fetch: m.transport.Snapshot, FastFailover: p.opt.Journal.FastFailover,
		Journal: j, Engine: e, Broker: b, Version: p.version, Host: hostname(), Console: consoleOf(p.opt, d.Listen), Logger: log,
	})
	if err != nil {
		m.api.close()
		m.transport.Close()
		return exit.WithCode(exit.Journal, m.explain(dir, err))
	}
	close(m.opened)
	m.transport.Start(m)
	log.Info("this server is a member of a cluster", "member", d.ID, "cluster", d.Cluster, "address", d.Listen)
	q.member, q.broker, q.journal, q.where = m, m.Broker(), m.Journal, dir
	return nil
}

// explain adds advice to an error that stopped a member.
func (m *member) explain(dir string, err error) error {
	switch {
	case errors.Is(err, cluster.ErrRemoved):
		return fmt.Errorf("%w ('beanpole cluster rejoin %s' makes it a new member, with the jobs of the others)", err, dir)
	case errors.Is(err, cluster.ErrDamaged), errors.Is(err, cluster.ErrCopy):
		return fmt.Errorf("%s (nothing was changed; %s)", advice.Plain(err), advice.Member(dir, err))
	}
	return advice.Explain(dir, err)
}

// listenForMembers listens on the address to which the other members connect. If it is a
// name, or an address that this machine does not have, for example behind NAT,
// listenForMembers listens on its port on all addresses.
func listenForMembers(addr string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	everywhere := net.JoinHostPort("", port)
	if net.ParseIP(host) == nil {
		return net.Listen("tcp", everywhere)
	}
	l, err := net.Listen("tcp", addr)
	if errors.Is(err, syscall.EADDRNOTAVAIL) {
		l, err = net.Listen("tcp", everywhere)
	}
	return l, err
}

// membersOf adapts a transport.Transport to cluster.Transport.
type membersOf struct {
	*transport.Transport
	m *member
}

// SetMembers implements cluster.Transport. It also stores the addresses of the members,
// for the operator's commands.
func (t membersOf) SetMembers(members []raftlog.MemberInfo) {
	t.Transport.SetMembers(members)
	var contacts []string
	for _, k := range members {
		if k.ID != t.m.dir.ID {
			contacts = append(contacts, k.Address)
		}
	}
	t.m.contacts.Store(&contacts)
	t.m.done.Go(func() {
		t.m.writing.Lock()
		defer t.m.writing.Unlock()
		if err := t.m.dir.SetContacts(*t.m.contacts.Load()); err != nil {
			t.m.log.Warn("cannot store the addresses of the other members", "err", err)
		}
	})
}

func (m *member) admit(ctx context.Context, client net.Addr, body []byte) ([]byte, error) {
	m.log.Info("a machine asks to join the cluster", "client", client)
	return m.control.Join(ctx, body)
}

// dial opens a stream to the leader for a client.
func (m *member) dial(leader uint64) (server.MemberStream, error) { return m.transport.Client(leader) }

func (m *member) serveClient(from uint64, stream *mux.Stream) {
	m.mu.Lock()
	srv := m.server
	m.mu.Unlock()
	if srv == nil {
		stream.Close()
		return
	}
	srv.ServeProxied(from, stream)
}

// serveSnapshot sends a snapshot to another member.
func (m *member) serveSnapshot(to uint64, conn net.Conn) {
	defer conn.Close()
	if err := m.SendSnapshot(to, conn); err != nil {
		m.log.Warn("could not send the queue to a member", "member", to, "err", err)
	}
}

// serve passes clients to srv. The channel receives an error if the queue stops.
func (q *queue) serve(srv *server.Server) <-chan error {
	stopped := make(chan error, 1)
	m := q.member
	if m == nil {
		return stopped
	}
	m.mu.Lock()
	m.server = srv
	m.mu.Unlock()
	m.done.Go(func() {
		for {
			changed := m.Watch()
			m.follow(false)
			select {
			case <-changed:
			case <-m.Failed():
				m.follow(true)
				if err := m.Err(); err != nil {
					stopped <- m.explain(q.where, err)
				}
				return
			}
		}
	})
	return stopped
}

// reportToLeader makes a member send its settings and its health to the leader.
func (q *queue) reportToLeader(about *serverInfo) {
	if m := q.member; m != nil {
		m.done.Go(func() { m.control.Report(about.shared, m.Failed()) })
	}
}

// follow passes the current leader to the server. If this member is not the leader, none
// of its clients can reach the engine when follow returns. settled reports whether all
// turns of an earlier epoch are settled. Clients get their replies before the server
// leaves that epoch.
func (m *member) follow(settled bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.server == nil {
		return
	}
	lead := m.Lead()
	if m.leads && lead.Epoch == 0 && !settled {
		return // deposed will call follow
	}
	m.leads = lead.Epoch != 0
	m.server.Follow(server.Leadership(lead))
}

// deposed is called when a leadership epoch has ended.
func (m *member) deposed() {
	<-m.opened
	m.follow(true)
}

// forServer returns the server's view of the cluster, or nil if there is no cluster.
func (q *queue) forServer() *server.Cluster {
	m := q.member
	if m == nil {
		return nil
	}
	return &server.Cluster{ID: m.dir.ID, Dial: m.dial, Heard: m.Heard, Stats: m.stats}
}

// stats returns the lines about the cluster in the reply to a client's stats command.
func (m *member) stats(asked uint64) []wire.Stat {
	s, err := m.control.Status()
	if err != nil {
		return nil
	}
	number := func(key string, n uint64) wire.Stat { return wire.Stat{Key: key, Value: strconv.FormatUint(n, 10)} }
	stats := []wire.Stat{
		number("cluster-members", uint64(len(s.Members))),
		number("cluster-leader", s.Leader),
		number("cluster-member", asked),
		number("cluster-term", s.Term),
	}
	for _, k := range s.Members {
		if k.ID == asked && k.Progress != nil {
			stats = append(stats, number("cluster-lag", k.Lag))
		}
	}
	quorum := "no"
	if s.Quorum {
		quorum = "yes"
	}
	return append(stats, wire.Stat{Key: "cluster-quorum", Value: quorum, Quoted: true})
}

// metrics returns the values of the cluster metrics.
func (m *member) metrics() (s admin.ClusterStats, ok bool) {
	known, err := m.control.Status()
	return admin.ClusterStats{Cluster: known, Leads: m.Lead().Epoch != 0, Evicted: m.transport.Evicted()}, err == nil
}

// handOverTime is the maximum time for which a stopping leader tries to transfer the
// leadership.
const handOverTime = 2 * time.Second

// handOver transfers the leadership to another member, if any, before this member stops.
func (q *queue) handOver(log *slog.Logger) {
	m := q.member
	if m == nil || m.Lead().Epoch == 0 || len(m.Membership().Members) == 1 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), handOverTime)
	defer cancel()
	if err := m.Transfer(ctx, 0); err != nil {
		log.Warn("no other member took over the leadership before the stop", "err", err)
	}
}

// close disconnects the member from the other members and stops it.
func (m *member) close() error {
	err := m.Close()
	m.api.close()
	m.transport.Close()
	m.done.Wait()
	return err
}
