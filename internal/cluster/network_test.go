package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/beanpole-mq/beanpole/internal/cluster/raftlog"
)

// A link connects a node to another in one direction. It consists of two connections,
// each of which delivers in order.
type link struct {
	lives             [2]int     // numbers of starts of both ends, at the handshake
	messages, entries connection // for messages without entries, and with entries

	acknowledged raftlog.Position // the highest acknowledged entry, in the latest term with an acknowledgment
}

// A connection is one connection of a link. If the link is cut, it resends data after
// pauses that double, as TCP does, or it breaks and loses all data in transit.
type connection struct {
	underWay []packet // packets in transit, in order
	pause    time.Duration
}

type packet struct {
	msg  *raftpb.Message
	b    []byte        // the encoded message when it was sent; empty for a ping
	life int           // life of the node that has sent it
	at   time.Duration // time of its arrival
}

const (
	firstPause = 200 * time.Millisecond
	lastPause  = 8 * firstPause // after that, the connection has been silent for too long
)

// ping repeatedly sends pings to all nodes to which this node is connected, as
// connections do. So the node hears from nodes to which it sends no messages of Raft. The
// caller holds simulation.mu.
func (m *node) ping(life int) {
	for _, id := range m.peers {
		if to := int(id) - 1; id != m.id && to < len(m.sim.nodes) {
			m.post(m.sim.nodes[to], &m.link(id).messages, nil, life)
		}
	}
	time.AfterFunc(500*time.Millisecond, func() {
		m.sim.mu.Lock()
		defer m.sim.mu.Unlock()
		if m.life == life && m.member != nil {
			m.ping(life)
		}
	})
}

// fetch connects to another node, for a snapshot.
func (m *node) fetch(ctx context.Context, from uint64) (net.Conn, error) {
	sim := m.sim
	sim.mu.Lock()
	member := sim.nodes[from-1].member
	cut := sim.cut[[2]uint64{from, m.id}]
	sim.mu.Unlock()
	if member == nil || cut {
		return nil, errors.New("no route to host")
	}
	r, to := net.Pipe()
	if sim.silent.Swap(false) {
		return r, nil
	}
	go func() {
		defer to.Close()
		sim.sendSnapshot(member, m.id, to)
	}()
	return slow{r}, nil
}

// sendSnapshot makes a member send a snapshot to another member.
func (sim *simulation) sendSnapshot(member *Member, to uint64, conn io.Writer) error {
	defer func() {
		if sim.sent != nil {
			sim.sent()
		}
	}()
	switch sim.fault {
	case ofEngine:
		return member.sendEngine(conn, 0)
	case claimsMore:
		return member.sendEngine(conn, 1)
	}
	if sim.laterRoles.Load() {
		b, g, err := member.openSnapshot()
		if err != nil {
			return err
		}
		defer b.Close()
		g.RolesIndex += 1000
		return errors.Join(writeMembership(conn, g), b.Write(conn))
	}
	return member.SendSnapshot(to, conn)
}

// A slow is a slow connection.
type slow struct{ net.Conn }

func (s slow) Read(b []byte) (int, error) {
	time.Sleep(3 * time.Millisecond)
	return s.Conn.Read(b[:min(len(b), 32<<10)])
}

// Send implements Transport.
func (m *node) Send(messages []*raftpb.Message) {
	m.sim.mu.Lock()
	defer m.sim.mu.Unlock()
	life := m.life
	for _, msg := range messages {
		m.send(msg, life)
	}
}

func (m *node) send(msg *raftpb.Message, life int) {
	sim := m.sim
	to := int(msg.GetTo()) - 1
	if to >= len(sim.nodes) || sim.lose != nil && sim.lose(msg) {
		return
	}
	link := m.link(msg.GetTo())
	l := &link.messages
	if len(msg.GetEntries()) > 0 {
		l = &link.entries
	}
	m.post(sim.nodes[to], l, msg, life)
}

// encode returns the bytes of a message. Equal messages have equal bytes; nil has none.
func encode(msg *raftpb.Message) []byte {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(msg)
	if err != nil {
		panic(err)
	}
	return b
}

// post sends a packet. The caller holds simulation.mu.
func (m *node) post(to *node, l *connection, msg *raftpb.Message, life int) {
	sim := m.sim
	if !sim.patient && sim.cut[[2]uint64{m.id, to.id}] {
		return
	}
	at := time.Since(sim.start) + 100*time.Microsecond + time.Duration(sim.rng.IntN(400))*time.Microsecond
	l.underWay = append(l.underWay, packet{msg, encode(msg), life, at})
	if len(l.underWay) == 1 {
		m.expect(to, l)
	}
}

// expect delivers the first packet of a connection at its time of arrival. A timer of a
// bubble that is due at once has crashed the race detector of Go 1.26.
func (m *node) expect(to *node, l *connection) {
	time.AfterFunc(max(1, l.underWay[0].at-time.Since(m.sim.start)), func() { m.arrive(to, l) })
}

// arrive delivers the first packet of a connection, unless the link is cut.
func (m *node) arrive(to *node, l *connection) {
	sim := m.sim
	sim.mu.Lock()
	defer sim.mu.Unlock()
	first := l.underWay[0]
	if !bytes.Equal(encode(first.msg), first.b) {
		sim.wrong = fmt.Errorf("member %d has changed a message after it was sent: %v", m.id, first.msg)
	}
	switch {
	case !sim.cut[[2]uint64{m.id, to.id}]:
		sim.mu.Unlock()
		m.deliver(to, first.b, first.life)
		sim.mu.Lock()
		l.pause, l.underWay = 0, l.underWay[1:]
	case sim.patient && l.pause < lastPause:
		l.pause = max(2*l.pause, firstPause)
		l.underWay[0].at += l.pause
	default:
		l.pause, l.underWay = 0, nil
	}
	if len(l.underWay) > 0 {
		m.expect(to, l)
	}
}

func (m *node) link(to uint64) *link {
	if m.links[to] == nil {
		m.links[to] = new(link)
	}
	return m.links[to]
}

// SetMembers implements Transport. Former members must connect again.
func (m *node) SetMembers(members []raftlog.MemberInfo) {
	m.sim.mu.Lock()
	defer m.sim.mu.Unlock()
	m.peers = m.peers[:0]
	for _, k := range members {
		m.peers = append(m.peers, k.ID)
	}
	for _, o := range m.sim.nodes {
		if !contains(members, o.id) {
			delete(o.links, m.id)
		}
	}
}

// deliver delivers a message to another node after both have exchanged handshakes.
func (m *node) deliver(to *node, b []byte, life int) {
	sim := m.sim
	sim.mu.Lock()
	link := m.link(to.id)
	from, member := m.member, to.member
	lives := [2]int{m.life, to.life}
	known := link.lives == lives
	sim.mu.Unlock()
	if from == nil || member == nil || lives[0] != life {
		return
	}
	if !known {
		if sim.fault == forgottenPeer || sim.fault == namelessStart {
			member.forget(m.id, sim.fault == forgottenPeer)
			from.forget(to.id, sim.fault == forgottenPeer)
		}
		if err := member.AcceptHandshake(m.id, from.Handshake()); err != nil {
			from.Rejected(to.id, err)
			return
		}
		if from.AcceptHandshake(to.id, member.Handshake()) != nil {
			return
		}
		sim.mu.Lock()
		link.lives = lives
		sim.mu.Unlock()
	}
	if len(b) == 0 {
		return
	}
	msg := new(raftpb.Message)
	if err := proto.Unmarshal(b, msg); err != nil {
		panic(err)
	}
	sim.hear(link, msg)
	member.Step(msg)
}

// hear records a member's acknowledgment to a leader. If the member rejects the entry
// later in the same term, it has lost it, and the leader would resend it forever.
func (sim *simulation) hear(link *link, msg *raftpb.Message) {
	if msg.GetType() != raftpb.MsgAppResp {
		return
	}
	sim.mu.Lock()
	defer sim.mu.Unlock()
	at := raftlog.Position{Index: msg.GetIndex(), Term: msg.GetTerm()}
	switch {
	case !msg.GetReject():
		if at.After(link.acknowledged) {
			link.acknowledged = at
		}
	case at.Term == link.acknowledged.Term && !at.After(link.acknowledged):
		sim.wrong = fmt.Errorf("member %d has lost entry %v, which it has acknowledged to member %d", msg.GetFrom(), at, msg.GetTo())
	}
}

// disconnect makes the other nodes detect that their connections to a node have ended.
func (sim *simulation) disconnect(m *node) {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	for _, o := range sim.nodes {
		if o.member != nil {
			o.member.Unreachable(m.id)
		}
	}
}

// refuse makes the other nodes detect that a machine refuses connections, unless the
// whole machine is down.
func (sim *simulation) refuse(m *node, term uint64) {
	if !sim.refusals {
		return
	}
	sim.mu.Lock()
	defer sim.mu.Unlock()
	for _, o := range sim.nodes {
		if o.member != nil {
			o.member.Refused(m.id, term)
		}
	}
}

// part cuts both links between a node and all others.
func (sim *simulation) part(m *node) {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	for _, o := range sim.nodes {
		if o != m {
			sim.cut[[2]uint64{m.id, o.id}], sim.cut[[2]uint64{o.id, m.id}] = true, true
		}
	}
}

func (sim *simulation) heal() {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	clear(sim.cut)
}
