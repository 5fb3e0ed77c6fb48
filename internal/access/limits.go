package access

import (
	"errors"
	"net/netip"
	"sync"
)

// Limits contains limits for the clients of a server. The zero value has no limits.
type Limits struct {
	// ConnectionsPerAddress is the maximum number of open connections from one address.
	// The server closes a further connection if no other one ends within a second. Zero
	// means no limit. A 64-bit IPv6 network counts as one address, because a machine
	// usually has a whole network. Unix sockets are not limited.
	ConnectionsPerAddress int
}

// limits contains the Limits in force and counts connections.
type limits struct {
	mu sync.Mutex

	// Guarded by mu.
	inForce     Limits
	connections map[netip.Addr]int // by machine
}

// ErrAddressFull means that an address has reached its limit of connections.
var ErrAddressFull = errors.New("too many connections from its address")

// SetLimits replaces the limits. Connections that exceed the new limits stay open.
func (l *limits) SetLimits(to Limits) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inForce = to
}

// Enter counts a connection. It returns ErrAddressFull if the address has reached its
// limit.
func (l *limits) Enter(addr netip.Addr) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	addr = Machine(addr)
	if most := l.inForce.ConnectionsPerAddress; most > 0 && l.connections[addr] >= most && addr.IsValid() {
		return ErrAddressFull
	}
	if l.connections == nil {
		l.connections = make(map[netip.Addr]int)
	}
	l.connections[addr]++
	return nil
}

// Leave undoes an Enter when the connection is closed.
func (l *limits) Leave(addr netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	addr = Machine(addr)
	if l.connections[addr] > 1 {
		l.connections[addr]--
	} else {
		delete(l.connections, addr)
	}
}

// plain returns addr without its zone, and as IPv4 if possible, for comparison with
// networks.
func plain(addr netip.Addr) netip.Addr { return addr.Unmap().WithZone("") }

// Machine returns the address that represents all addresses of a client's machine, or the
// zero Addr if the client has no address.
func Machine(addr netip.Addr) netip.Addr {
	if addr = plain(addr); !addr.Is6() {
		return addr
	}
	network, _ := addr.Prefix(64) // fails only if the prefix is too long
	return network.Addr()
}
