package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/conversation"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

// handshakeTimeout is how long a TLS handshake may take. Each has a goroutine, so it
// holds up nobody else.
const handshakeTimeout = 10 * time.Second

// ListenOptions are what ServeWith asks of the clients of a listener. The zero value lets
// in everybody.
type ListenOptions struct {
	access.Terms

	// TLS encrypts the connections. Nil: they are not.
	TLS *tls.Config
}

// A rejection is why a connection is refused.
type rejection struct{ reason string }

func (r *rejection) Error() string { return r.reason }

// letIn counts a new client and returns what it shows of who it is, or says why it may not
// come in. user returns the user of the process at the other end of a unix socket.
func (s *Server) letIn(client net.Addr, t *ListenOptions, user func() access.UnixUser) (access.Evidence, error) {
	e := access.Evidence{Address: AddressOf(client)}
	if !t.LetIn(e.Address) {
		return e, &rejection{"it comes from a network that is not allowed"}
	}
	if !e.Address.IsValid() {
		e.User = user()
	}
	return e, s.access.Enter(s.now(), e.Address, false)
}

// AddressOf returns the address of a client; the zero Addr if it has none, as with a unix
// socket.
func AddressOf(client net.Addr) (addr netip.Addr) {
	if tcp, ok := client.(*net.TCPAddr); ok {
		addr = tcp.AddrPort().Addr()
	}
	return addr
}

// handshake encrypts a connection and adds the client's certificate, if it has one, to
// what it shows.
func (s *Server) handshake(nc *tls.Conn, e *access.Evidence) error {
	ctx, cancel := context.WithTimeout(s.running, handshakeTimeout)
	defer cancel()
	if err := nc.HandshakeContext(ctx); err != nil {
		return &rejection{fmt.Sprintf("TLS: %v", err)}
	}
	if certs := nc.ConnectionState().PeerCertificates; len(certs) > 0 {
		e.Certificate = certs[0]
	}
	return nil
}

// admit lets a new conversation begin, as that of whom the evidence belongs to.
func (s *Server) admit(c *conversation.Conversation, t *ListenOptions, e access.Evidence) {
	id, known := s.access.Identify(e)
	s.admitAs(c, t, id, known, e.Address)
}

// admitAs is admit for a client of an address that is somebody, if known.
func (s *Server) admitAs(c *conversation.Conversation, t *ListenOptions, id *access.Identity, known bool, addr netip.Addr) {
	if t.Required && !known {
		c.Limit(s.access.OfStrangers(addr))
	} else {
		c.Limit(s.access.LimiterOf(id, addr))
	}
	if !s.access.Asks() {
		return
	}
	if !known {
		id = nil
	}
	c.Admit(&t.Terms, id)
}

// refusalLines is how many refusals are logged in a second, on average.
const refusalLines = 5

// refusals are counts of what was refused because of who the client is.
type refusals struct{ connections, commands atomic.Uint64 }

// reject counts a new connection that was refused, and tells the log. Other errors are
// those of connections that have ended by themselves.
func (s *Server) reject(client net.Addr, err error) {
	if _, ok := errors.AsType[*rejection](err); ok {
		s.refused.connections.Add(1)
	} else if err == access.ErrAddressFull {
		s.crowded.Add(1)
	} else {
		return
	}
	s.refusals.Warn("a connection was refused", "client", client.String(), "reason", err)
}

// commandRefused counts a command that was refused, and tells the log.
func (s *Server) commandRefused(c *conversation.Conversation, what string, tubes []string) {
	s.refused.commands.Add(1)
	s.Refused(c.Owner().(*socket).address(), c.Identity(), what, tubes...)
}

// putRefused tells the log of a put that is too big or has the wrong form.
func (s *Server) putRefused(c *conversation.Conversation, reply wire.Word, bytes uint32) {
	args := []any{"reply", reply.String(), "client", c.Owner().(*socket).address(), "identity", c.Identity(), "tube", c.Using()}
	if bytes > 0 {
		args = append(args, "bytes", bytes)
	}
	s.puts.Warn("a put was refused", args...)
}

// Refused tells the log that a client of the server or of the admin pages was refused
// something, and on which tubes it lacks rights.
func (s *Server) Refused(client, identity, what string, tubes ...string) {
	args := []any{"client", client, "identity", identity, "refused", what}
	if len(tubes) > 0 {
		args = append(args, "tube", strings.Join(tubes, ", "))
	}
	s.refusals.Warn("a client was refused", args...)
}

// changeLines is how many changes through the protocol are logged in a second, on
// average.
const changeLines = 20

// A Change is what a command has done to a tube or to many jobs.
type Change struct {
	Command, Identity, Client string
	About                     []any // names and values, as for the log
}

// OnChange makes f hear of changes through the protocol, of no more than are logged. It
// is called within turns, and must not block.
func (s *Server) OnChange(f func(*Change)) { s.onChange.Store(&f) }

// changed tells the log what a command has done to a tube or to many jobs.
func (s *Server) changed(c *conversation.Conversation, command wire.Op, what ...any) {
	one := &Change{command.String(), c.Identity(), c.Owner().(*socket).address(), what}
	args := []any{"command", one.Command, "identity", one.Identity, "client", one.Client}
	logged := s.changes.Info("a change through the protocol", append(args, what...)...)
	if f := s.onChange.Load(); logged && f != nil {
		(*f)(one)
	}
}
