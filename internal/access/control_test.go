package access

import (
	"net/netip"
	"testing"
)

// A listener is open unless at least one setting excludes strangers.
func TestOpen(t *testing.T) {
	for _, c := range []struct {
		what  string
		addr  string // empty for a Unix socket
		terms ListenerPolicy
		proof bool
		want  bool
	}{
		{"every address", "::", ListenerPolicy{}, false, true},
		{"every IPv4 address", "0.0.0.0", ListenerPolicy{TokenInPut: true}, false, true},
		{"an address", "192.0.2.1", ListenerPolicy{}, false, true},
		{"loopback", "127.0.0.2", ListenerPolicy{}, false, false},
		{"loopback in IPv6", "::ffff:127.0.0.1", ListenerPolicy{}, false, false},
		{"a unix socket", "", ListenerPolicy{}, false, false},
		{"networks", "::", ListenerPolicy{Networks: prefixes("10.0.0.0/8")}, false, false},
		{"authentication", "::", ListenerPolicy{Required: true}, false, false},
		{"certificates", "::", ListenerPolicy{}, true, false},
	} {
		addr, _ := netip.ParseAddr(c.addr)
		if got := c.terms.Open(addr, c.proof); got != c.want {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
}

// A proxied client without a name is accepted where a client without credentials is
// accepted.
func TestDemandByName(t *testing.T) {
	asks, err := NewControl(testPolicy(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		control    *Control
		name, addr string
		want       string // "-" if the client is refused
	}{
		{asks, "mailer", "192.0.2.1", "mailer"},
		{asks, "other", "10.2.3.4", "-"},
		{asks, "", "10.2.3.4", "lan"},
		{asks, "", "192.0.2.1", "-"},
		{new(Control), "", "192.0.2.1", ""},
		{new(Control), "mailer", "192.0.2.1", ""},
	} {
		got := "-"
		if id, ok := c.control.RequireIdentityByName(c.name, netip.MustParseAddr(c.addr)); ok {
			got = id.Name()
		}
		if got != c.want {
			t.Errorf("%q from %s: %q, want %q", c.name, c.addr, got, c.want)
		}
		if id, ok := c.control.ByName(c.name); c.name != "" && ok != (c.want != "-") || !ok && id.Name() != "" {
			t.Errorf("%q by its name alone: %q, %v", c.name, id.Name(), ok)
		}
	}
}
