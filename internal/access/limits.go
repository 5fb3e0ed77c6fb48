package access

import (
	"errors"
	"net/netip"
	"sync"
)

// limits counts the connections of each address.
type limits struct {
	mu sync.Mutex

	// Guarded by mu.
	most        int                // connections of an address; 0 means no limit
	connections map[netip.Addr]int // by machine
}

// ErrAddressFull means that an address has reached its limit of connections.
var ErrAddressFull = errors.New("too many connections from its address")

// SetConnectionsPerAddress sets the maximum number of open connections from one address.
// Zero means no limit. A 64-bit IPv6 network counts as one address, because a machine
// usually has a whole network. Unix sockets are not limited. Connections that exceed the
// limit stay open.
func (l *limits) SetConnectionsPerAddress(most int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.most = most
}

// Enter counts a connection. It returns ErrAddressFull if the address has reached its
// limit.
func (l *limits) Enter(addr netip.Addr) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	addr = Machine(addr)
	if l.most > 0 && l.connections[addr] >= l.most && addr.IsValid() {
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
