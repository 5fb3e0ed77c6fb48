package access

import (
	"net/netip"
	"time"
)

// A Caller is who asks for an operation of the JSON API, however the request came.
type Caller struct {
	Identity *Identity
	Address  string            // IP and port; anything else: it came through a unix socket
	Via      string            // what asks in the name of the identity, such as the console; empty: nothing
	MaxAge   time.Duration     // how old lists of tubes may be; 0: of now
	Idle     func(wait func()) // is given what waits for another server, and calls it; nil: nothing is held meanwhile
}

// IP returns the address of the caller; the zero Addr if it came through a unix socket.
func (c *Caller) IP() netip.Addr {
	addr, _ := netip.ParseAddrPort(c.Address)
	return addr.Addr()
}

// Wait calls what waits for another server.
func (c *Caller) Wait(wait func()) {
	if c.Idle != nil {
		c.Idle(wait)
		return
	}
	wait()
}
