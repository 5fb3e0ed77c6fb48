package server

import (
	"crypto/tls"
	"net"
	"net/netip"
	"time"

	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/conversation"
)

// handshakeTimeout is the maximum time of a TLS handshake. Each handshake has its own
// goroutine, so it delays no other client.
const handshakeTimeout = 10 * time.Second

// ListenOptions contains the requirements for the clients of a listener. The zero value
// admits all clients.
type ListenOptions struct {
	access.ListenerPolicy

	// TLS encrypts the connections. It is nil for plain connections.
	TLS *tls.Config
}

// A rejection is the reason for refusing a connection.
type rejection struct{ reason string }

func (r *rejection) Error() string { return r.reason }

// admit counts a new client and returns its credentials, or an error with the reason for
// refusing it. user returns the user of the process at the other end of a Unix socket.
func (a *acceptor) admit(client net.Addr, user func() access.UnixUser) (access.Credentials, error) {
	e := access.Credentials{Address: AddressOf(client)}
	if !a.terms.Admits(e.Address) {
		return e, &rejection{"its network is not permitted"}
	}
	if !e.Address.IsValid() {
		e.User = user()
	}
	return e, a.srv.access.Enter(e.Address)
}

// AddressOf returns the address of a client. It returns the zero Addr if there is none,
// as for a Unix socket.
func AddressOf(client net.Addr) (addr netip.Addr) {
	if tcp, ok := client.(*net.TCPAddr); ok {
		addr = tcp.AddrPort().Addr()
	}
	return addr
}

// identify creates the conversation of an admitted client, with the identity of its
// credentials.
func (a *acceptor) identify(c *socket, e access.Credentials) {
	a.srv.prepare(c)
	id, known := a.srv.access.Identify(e)
	a.srv.admit(&c.Conversation, &a.terms.ListenerPolicy, id, known)
	if c.proxy != nil {
		c.proxy.header = a.describe(c, id, known)
	}
}

// admit sets the client's identity in a new conversation, if authentication is enabled.
func (s *Server) admit(c *conversation.Conversation, t *access.ListenerPolicy, id *access.Identity, known bool) {
	if !s.access.Enabled() {
		return
	}
	if !known {
		id = nil
	}
	c.Admit(t, id)
}
