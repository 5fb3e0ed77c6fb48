package access

import (
	"errors"
	"net/netip"
	"slices"
	"sync/atomic"
)

// Terms are what a listener asks of its clients. The zero value lets in everybody.
type Terms struct {
	// Networks are those that clients must come from; none: any. They do not
	// concern unix sockets.
	Networks []netip.Prefix

	// Proxies are the networks whose connections begin with the header of the PROXY protocol,
	// which says who the client is. Networks concern the client then.
	Proxies []netip.Prefix

	// Required makes a client prove who it is before anything else.
	Required bool

	// TokenInPut lets the body of a put be the token, for clients that cannot send
	// auth.
	TokenInPut bool
}

// LetIn reports whether a client may come from an address; the zero Addr is that of a unix
// socket.
func (t *Terms) LetIn(addr netip.Addr) bool {
	return !addr.IsValid() || len(t.Networks) == 0 || within(t.Networks, addr)
}

// IsProxy reports whether a connection that comes from an address begins with the header of a
// proxy.
func (t *Terms) IsProxy(addr netip.Addr) bool { return within(t.Proxies, addr) }

func within(networks []netip.Prefix, addr netip.Addr) bool {
	addr = plain(addr)
	return slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Contains(addr) })
}

// Open reports whether a stranger on the network can come in at a listener, which is at addr; the
// zero Addr is that of a unix socket. proof: a client must prove there who it is, even if the
// terms do not require it, as with a certificate.
func (t *Terms) Open(addr netip.Addr, proof bool) bool {
	return addr.IsValid() && !plain(addr).IsLoopback() && len(t.Networks) == 0 && !t.Required && !proof
}

// A Control admits the clients of a server, on whatever listener: it has the policy and the
// limits in force. The zero value lets every client do everything.
type Control struct {
	policy atomic.Pointer[Policy] // nil: clients are not asked who they are
	limits
}

// NewControl returns the Control of listeners with these terms. It does not ask clients who
// they are if the policy is empty and no listener requires it.
func NewControl(p *Policy, listeners []Terms) (*Control, error) {
	c := &Control{}
	required := slices.ContainsFunc(listeners, func(t Terms) bool { return t.Required })
	switch {
	case required && p.identities == 0:
		return nil, errors.New("require-auth needs an [[identity]] in the configuration file: without one no client could log in")
	case p.identities+p.rules > 0:
		c.policy.Store(p)
	}
	return c, nil
}

// Asks reports whether clients are asked who they are, so that auth is a command.
func (c *Control) Asks() bool { return c.policy.Load() != nil }

// Replace puts another policy into force. It refuses one that switches security off, for the
// file may just be written, and be empty at this moment. If clients are not asked who they
// are, it changes nothing: that begins with a restart.
func (c *Control) Replace(p *Policy) error {
	old := c.policy.Load()
	switch {
	case old == nil:
		return nil
	case old.identities > 0 && p.identities == 0:
		return errors.New("the configuration file has no [[identity]] any more: to serve clients without authentication, restart the server")
	case old.rules > 0 && p.rules == 0:
		return errors.New("the configuration file has no [[rule]] any more: to give all clients all rights, restart the server")
	}
	c.policy.Store(p)
	return nil
}

// open is the policy where clients are not asked who they are.
var open, _ = New(Config{})

// Identify is [Policy.Identify] by the policy in force.
func (c *Control) Identify(e Evidence) (id *Identity, known bool) {
	if p := c.policy.Load(); p != nil {
		return p.Identify(e)
	}
	return open.nobody, false
}

// ByName returns the identity of a name, as another server of the same queue has found it out; ok
// is false if there is none. If authentication is off, every name is accepted.
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

// Demand is Identify for a listener that demands to know who everybody is as soon as there
// are identities, as the admin pages do. It is false if the client may not come in.
func (c *Control) Demand(e Evidence) (id *Identity, ok bool) {
	p := c.policy.Load()
	if p == nil {
		return open.nobody, true
	}
	id, known := p.Identify(e)
	return id, known || e.Token == nil && p.identities == 0
}

// DemandByName is Demand for a client that another server of the same queue passes on, by the name
// that it has found out. Without a name only those may come in who may without any.
func (c *Control) DemandByName(name string, addr netip.Addr) (id *Identity, ok bool) {
	if name == "" {
		return c.Demand(Evidence{Address: addr})
	}
	return c.ByName(name)
}

// HasIdentities reports whether there are any.
func (c *Control) HasIdentities() bool {
	p := c.policy.Load()
	return p != nil && p.identities > 0
}
