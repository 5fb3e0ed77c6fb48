package access

import (
	"net/netip"
	"testing"
)

// An address can repeatedly have as many connections as its limit permits. Unix sockets
// have no limit. No data is kept for an address without connections.
func TestConnectionsPerAddress(t *testing.T) {
	l := &limits{}
	l.SetConnectionsPerAddress(2)
	client := netip.MustParseAddr("192.0.2.1")
	for range 3 {
		for i := range 4 {
			if err := l.Enter(client); (err != nil) != (i >= 2) {
				t.Errorf("connection %d: %v", i+1, err)
			}
			if err := l.Enter(netip.Addr{}); err != nil {
				t.Errorf("of a unix socket: %v", err)
			}
		}
		for range 2 {
			l.Leave(client)
		}
	}
	if _, kept := l.connections[client]; kept {
		t.Error("the address is kept")
	}
}

func TestMachine(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"192.0.2.1", "192.0.2.1", true},
		{"192.0.2.1", "192.0.2.2", false},
		{"2001:db8::1", "2001:db8::2:0:0:1", true},
		{"2001:db8::1", "2001:db8:0:1::1", false},
		{"::1", "127.0.0.1", false},
	} {
		if got := Machine(netip.MustParseAddr(c.a)) == Machine(netip.MustParseAddr(c.b)); got != c.same {
			t.Errorf("%s and %s count as one address: %v", c.a, c.b, got)
		}
	}
}
