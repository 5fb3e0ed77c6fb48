package access

import (
	"errors"
	"net/netip"
	"slices"
	"sync/atomic"
)

// A ListenerPolicy contains the requirements of a listener for its clients. The zero
// value admits every client.
type ListenerPolicy struct {
	// Networks contains the networks from which clients can connect. If it is empty, any
	// address can connect. It does not apply to Unix sockets.
	Networks []netip.Prefix

	// Proxies contains the networks whose connections start with a PROXY protocol header.
	// For these, Networks applies to the client's address in the header.
	Proxies []netip.Prefix

	// Required makes clients authenticate before any other command.
	Required bool

	// TokenInPut accepts the token as the body of a put, for clients that cannot send
	// auth.
	TokenInPut bool
}

// Admits reports whether a client with this address can connect. The zero Addr means a
// Unix socket.
func (t *ListenerPolicy) Admits(addr netip.Addr) bool {
	return !addr.IsValid() || len(t.Networks) == 0 || within(t.Networks, addr)
}

// IsProxy reports whether connections from addr start with a PROXY protocol header.
func (t *ListenerPolicy) IsProxy(addr netip.Addr) bool { return within(t.Proxies, addr) }

func within(networks []netip.Prefix, addr netip.Addr) bool {
	addr = plain(addr)
	return slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Contains(addr) })
}

// Open reports whether any client on the network can use a listener at addr. The zero
// Addr means a Unix socket. proof is true if the listener authenticates clients by other
// means, such as certificates.
func (t *ListenerPolicy) Open(addr netip.Addr, proof bool) bool {
	return addr.IsValid() && !plain(addr).IsLoopback() && len(t.Networks) == 0 && !t.Required && !proof
}

// A Control admits the clients of all listeners of a server. It contains the policy and
// the limits in force. The zero value gives every client all rights.
type Control struct {
	policy atomic.Pointer[Policy] // nil if authentication is off
	limits
}

// NewControl returns a Control for listeners with these terms. Authentication is off if
// the policy is empty and no listener requires it.
func NewControl(p *Policy, listeners []ListenerPolicy) (*Control, error) {
	c := &Control{}
	required := slices.ContainsFunc(listeners, func(t ListenerPolicy) bool { return t.Required })
	switch {
	case required && p.identities == 0:
		return nil, errors.New("require-auth needs an [[identity]]; add one to the configuration file")
	case p.identities+p.rules > 0:
		c.policy.Store(p)
	}
	return c, nil
}

// Enabled reports whether authentication is on, so that auth is a command.
func (c *Control) Enabled() bool { return c.policy.Load() != nil }

// Replace applies another policy. It returns an error for a policy that turns
// authentication off, because the file can be empty while an editor writes it. If
// authentication is off, Replace changes nothing; turning it on requires a restart.
func (c *Control) Replace(p *Policy) error {
	old := c.policy.Load()
	switch {
	case old == nil:
		return nil
	case old.identities > 0 && p.identities == 0:
		return errors.New("the configuration file no longer has an [[identity]]: to serve clients without authentication, restart the server")
	case old.rules > 0 && p.rules == 0:
		return errors.New("the configuration file no longer has a [[rule]]: to give all clients all rights, restart the server")
	}
	c.policy.Store(p)
	return nil
}

// open is the policy that applies if authentication is off.
var open, _ = New(Config{})

// Identify calls [Policy.Identify] of the policy in force.
func (c *Control) Identify(e Credentials) (id *Identity, known bool) {
	if p := c.policy.Load(); p != nil {
		return p.Identify(e)
	}
	return open.nobody, false
}

// ByName returns the identity with the given name, which another member of the cluster
// has already authenticated. ok is false if there is no such identity. If authentication
// is off, every name is accepted.
func (c *Control) ByName(name string) (id *Identity, ok bool) {
	p := c.policy.Load()
	if p == nil {
		return open.nobody, true
	}
	if id := p.byName[name]; id != nil {
		return id, true
	}
	return p.nobody, false
}

// RequireIdentity is Identify for a listener that requires authentication if identities
// are defined, such as the admin listener. ok is false if the client must be refused.
func (c *Control) RequireIdentity(e Credentials) (id *Identity, ok bool) {
	p := c.policy.Load()
	if p == nil {
		return open.nobody, true
	}
	id, known := p.Identify(e)
	return id, known || e.Token == nil && p.identities == 0
}

// RequireIdentityByName is RequireIdentity for a client whose name another member of the
// cluster has authenticated. A client without a name is admitted only if anonymous
// clients are.
func (c *Control) RequireIdentityByName(name string, addr netip.Addr) (id *Identity, ok bool) {
	if name == "" {
		return c.RequireIdentity(Credentials{Address: addr})
	}
	return c.ByName(name)
}

// HasIdentities reports whether the policy defines identities.
func (c *Control) HasIdentities() bool {
	p := c.policy.Load()
	return p != nil && p.identities > 0
}
