package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/conversation"
	"github.com/beanpole-mq/beanpole/internal/ratelog"
)

// handshakeTimeout is how long a TLS handshake may take. Each has a goroutine, so it
// holds up nobody else.
const handshakeTimeout = 10 * time.Second

// Access is what a listener asks of its clients. The zero value lets in everybody.
type Access struct {
	// Networks are those that clients must come from; none: any. They do not
	// concern unix sockets.
	Networks []netip.Prefix

	// TLS encrypts the connections. Nil: they are not.
	TLS *tls.Config

	// Policy returns who there is and what they may do; it may be another each
	// time. Nil: everybody may do everything, and auth is no command.
	Policy func() *access.Policy

	// Required closes the connections of clients that do not prove who they are.
	Required bool

	// TokenInPut lets the body of the first put be the token, for clients that
	// cannot send auth.
	TokenInPut bool
}

// A guard stands at a listener.
type guard struct {
	Access
	gate *conversation.Gate // nil without a policy
}

// ServeWith is Serve for a listener that asks something of its clients.
func (s *Server) ServeWith(l net.Listener, a Access) error {
	s.guarded.Store(true)
	g := &guard{Access: a}
	if a.Policy != nil {
		g.gate = &conversation.Gate{Policy: a.Policy, Required: a.Required, TokenInPut: a.TokenInPut, Limiter: s.limits.ofIdentity, Refused: s.refusals.command}
	}
	return s.serve(l, g)
}

// A refusal is why a connection is refused.
type refusal struct{ reason string }

func (r *refusal) Error() string { return r.reason }

// check looks at where a client comes from, and returns who it is, if that is known by
// now. user returns the user of the process at the other end, if that is a unix socket.
func (g *guard) check(client net.Addr, user func() (uid uint32, ok bool)) (*access.Identity, error) {
	if g == nil {
		return nil, nil
	}
	if !Allows(g.Networks, client) {
		return nil, &refusal{"it comes from a network that is not allowed"}
	}
	if g.gate == nil {
		return nil, nil
	}
	p := g.Policy()
	if addr, ok := address(client); ok {
		id, _ := p.ByNetwork(addr)
		return id, nil
	}
	if uid, ok := user(); ok {
		id, _ := p.ByUnixUser(uid)
		return id, nil
	}
	return nil, nil
}

// Allows reports whether a client comes from one of the networks. If there are none, or it
// has no address, it does.
func Allows(networks []netip.Prefix, client net.Addr) bool {
	addr, ok := address(client)
	return !ok || len(networks) == 0 || slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Contains(addr) })
}

// address returns the address of a client, which can be compared with networks; ok is
// false if it has none, as with a unix socket.
func address(client net.Addr) (addr netip.Addr, ok bool) {
	tcp, ok := client.(*net.TCPAddr)
	if !ok {
		return addr, false
	}
	return tcp.AddrPort().Addr().Unmap().WithZone(""), true // a Prefix contains no address with a zone
}

// handshake encrypts a connection and returns who the client's certificate says that
// it is, or id.
func (g *guard) handshake(nc *tls.Conn, id *access.Identity) (*access.Identity, error) {
	ctx, cancel := context.WithTimeout(context.Background(), handshakeTimeout)
	defer cancel()
	if err := nc.HandshakeContext(ctx); err != nil {
		return nil, &refusal{fmt.Sprintf("TLS: %v", err)}
	}
	if certs := nc.ConnectionState().PeerCertificates; len(certs) > 0 && g.gate != nil {
		if known, ok := g.Policy().ByCertificate(certs[0]); ok {
			return known, nil
		}
	}
	return id, nil
}

// restrict limits a conversation that is new, and puts the gate before it, if there is one.
func (s *Server) restrict(g *guard, c *conversation.Conversation, client net.Addr, id *access.Identity) {
	c.Limit(s.limits.limiterOf(id, client))
	if g != nil && g.gate != nil {
		c.Guard(g.gate, client.String(), id)
	}
}

// refusals counts what was refused, and tells the log about some of them.
type refusals struct {
	log         *ratelog.Logger
	connections atomic.Uint64
	commands    atomic.Uint64
}

// connection notes that a connection was refused, if err says that.
func (r *refusals) connection(client net.Addr, err error) {
	why, ok := errors.AsType[*refusal](err)
	if !ok {
		return
	}
	r.connections.Add(1)
	r.log.Warn("a connection was refused", "client", client.String(), "reason", why.reason)
}

// command notes that a command was refused.
func (r *refusals) command(client, identity, what string) {
	r.commands.Add(1)
	r.client(client, identity, what)
}

func (r *refusals) client(client, identity, what string) {
	r.log.Warn("a client was refused", "client", client, "identity", identity, "refused", what)
}

// Refused tells the log that somebody was refused at another door of the server.
func (s *Server) Refused(client, identity, what string) { s.refusals.client(client, identity, what) }

// refusalLines is how many refusals are logged in a second, on average.
const refusalLines = 5

func newRefusals(log *slog.Logger) *refusals {
	return &refusals{log: ratelog.New(log, refusalLines, 4*refusalLines)}
}
