package server

import (
	"errors"
	"net"
	"net/netip"
	"sync"
)

// Limits of clients, which can be changed while the server runs. The zero value has
// none.
type Limits struct {
	// ConnectionsPerAddress is how many connections of one address may be open. A
	// further one is closed as soon as it is accepted. 0: any number. A network of
	// IPv6 with 64 bits counts as one address, for that is what a machine is given.
	// Unix sockets are not limited.
	ConnectionsPerAddress int
}

// SetLimits replaces the limits. Connections that exceed them by now stay.
func (s *Server) SetLimits(l Limits) { s.limits.set(l) }

// limits are the Limits in force and what they need to know.
type limits struct {
	mu        sync.Mutex
	Limits                       // guarded by mu
	addresses map[netip.Addr]int // connections; guarded by mu
}

var errAddressFull = errors.New("too many connections from its address")

func (l *limits) set(to Limits) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.Limits = to
}

// enter counts a connection, unless its address has enough.
func (l *limits) enter(client net.Addr) error {
	addr, ok := address(client)
	if !ok {
		return nil
	}
	addr = machine(addr)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ConnectionsPerAddress > 0 && l.addresses[addr] >= l.ConnectionsPerAddress {
		return errAddressFull
	}
	if l.addresses == nil {
		l.addresses = make(map[netip.Addr]int)
	}
	l.addresses[addr]++
	return nil
}

// leave is called when a connection that has entered has ended.
func (l *limits) leave(client net.Addr) {
	addr, ok := address(client)
	if !ok {
		return
	}
	addr = machine(addr)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.addresses[addr]--; l.addresses[addr] == 0 {
		delete(l.addresses, addr)
	}
}

// machine returns what stands for all addresses of a machine.
func machine(addr netip.Addr) netip.Addr {
	if !addr.Is6() {
		return addr
	}
	network, _ := addr.Prefix(64) // fails only for a longer one
	return network.Addr()
}
