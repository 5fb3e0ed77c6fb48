package access

import (
	"cmp"
	"net/netip"
	"time"
)

// A Caller is the client that requests an operation of the JSON API, over any transport.
type Caller struct {
	Identity *Identity
	Address  string        // IP and port, or a description of a Unix socket
	Via      string        // program that acts for the identity, such as the console; empty for a direct request
	MaxAge   time.Duration // maximum age of cached lists of tubes
}

// IP returns the address of the caller. It is the zero Addr on a Unix socket.
func (c *Caller) IP() netip.Addr {
	addr, _ := netip.ParseAddrPort(c.Address)
	return addr.Addr()
}

// Share returns the owner of the caller's share of a common limit: its identity, or its
// IP address if it has no identity.
func (c *Caller) Share() string { return cmp.Or(c.Identity.Name(), c.IP().String()) }
