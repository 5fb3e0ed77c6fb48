package access

import (
	"math"
	"net/netip"
	"testing"
	"time"
)

// A limiter has as many tokens as there may be commands in a second, and more when their
// time has come. What is given back others may have. A new rate is true for what was
// taken before, too.
func TestLimiter(t *testing.T) {
	const second = int64(time.Second)
	l := (&limits{}).newLimiter(10)
	wantTokens := func(now int64, want int) {
		t.Helper()
		if got := l.Tokens(now); got != want {
			t.Errorf("%d tokens after %v, want %d", got, time.Duration(now), want)
		}
	}
	wantTakes := func(now int64, n int, want int64) {
		t.Helper()
		if at := l.Take(now, n); at != want {
			t.Errorf("%d tokens taken after %v: may come after %v, want %v", n, time.Duration(now), time.Duration(at), time.Duration(want))
		}
	}
	wantTokens(5*second, 10)
	wantTakes(5*second, 9, 5*second)
	wantTakes(5*second, 1, 5*second)
	wantTokens(5*second, 0)
	wantTakes(5*second, 1, 5*second+second/10)
	wantTakes(5*second, 2, 5*second+3*second/10)
	wantTokens(6*second, 7)
	l.GiveBack(3)
	wantTokens(6*second, 10)
	wantTokens(60*second, 10)

	// The clocks of two loops differ a little: nobody gets tokens for that.
	for range 100 {
		l.Take(60*second, 1)
		l.Take(60*second-second/10, 1)
	}
	wantTokens(60*second+second/2, 0)
	l.GiveBack(200)

	wantTakes(60*second, 10+100, 70*second)
	l.set(60*second, 100)
	wantTakes(60*second, 1, 60*second+11*second/100)
	l.set(60*second, 0)
	wantTokens(60*second, math.MaxInt32)
	l.set(61*second, 1)
	wantTakes(61*second, 1, 61*second)
	wantTakes(61*second, 1, 62*second)
}

// A client that connects again and again is not free of what it has taken before. An
// address is forgotten when that no longer matters.
func TestReconnectingIsNoWayOut(t *testing.T) {
	l := &limits{}
	l.SetLimits(0, Limits{CommandsPerSecond: 10})
	client := netip.MustParseAddr("192.0.2.1")
	const visits, commands = 20, 5
	now, done := int64(0), 0
	for range visits {
		now += int64(time.Millisecond)
		if err := l.Enter(now, client, false); err != nil {
			t.Fatal(err)
		}
		k := l.LimiterOf(nil, client)
		n := min(commands, k.Tokens(now))
		k.Take(now, n)
		done += n
		l.Leave(client, false)
	}
	if done != 10 {
		t.Errorf("%d commands in %v, want 10", done, time.Duration(now))
	}
	now += int64(2 * time.Second)
	others(t, l, now, client)
}

// others lets clients of other addresses come and go, and wants that an address is forgotten by then, and most of theirs.
func others(t *testing.T, l *limits, now int64, client netip.Addr) {
	t.Helper()
	for i := range 100 {
		other := netip.AddrFrom4([4]byte{198, 51, 100, byte(i)})
		if err := l.Enter(now, other, false); err != nil {
			t.Fatal(err)
		}
		l.Leave(other, false)
	}
	if l.addresses[client] != nil || len(l.addresses) > 3 {
		t.Errorf("%d addresses are kept", len(l.addresses))
	}
}

// A client of another member counts for no limit of connections here. As long as it is there its address is not forgotten, and
// then it is.
func TestProxied(t *testing.T) {
	l := &limits{}
	l.SetLimits(0, Limits{CommandsPerSecond: 10, ConnectionsPerAddress: 1})
	client, second := netip.MustParseAddr("192.0.2.1"), int64(time.Second)
	l.Enter(0, client, true)
	l.Enter(0, client, true)
	k := l.LimiterOf(nil, client)
	if err := l.Enter(0, client, false); err != nil {
		t.Errorf("beside proxied: %v", err)
	}
	l.Leave(client, false)
	l.Leave(client, true)
	l.Request(2*second, nil, client)
	l.Request(4*second, nil, client)
	if l.LimiterOf(nil, client) != k {
		t.Error("the limiter of a guest is another one now")
	}
	l.Leave(client, true)
	others(t, l, 6*second, client)
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
			t.Errorf("%s and %s are one: %v", c.a, c.b, got)
		}
	}
}

// Requests take from what the connections of an identity or an address have, and are told when
// to come again. Nothing is kept of an address for long.
func TestRequest(t *testing.T) {
	l := &limits{}
	l.SetLimits(0, Limits{CommandsPerSecond: 10, OfIdentity: map[string]int{"a": 1}})
	a, addr := &Identity{name: "a"}, netip.MustParseAddr("192.0.2.1")
	const second = int64(time.Second)
	if wait := l.Request(0, a, addr); wait != 0 {
		t.Errorf("the first: wait %d", wait)
	}
	for range 3 { // who is refused takes nothing
		if wait := l.Request(second/4, a, addr); wait != 3*second/4 {
			t.Errorf("wait %d", wait)
		}
	}
	if n := l.LimiterOf(a, addr).Tokens(second); n != 1 {
		t.Errorf("%d tokens later", n)
	}
	if err := l.Enter(0, addr, false); err != nil {
		t.Fatal(err)
	}
	l.LimiterOf(nil, addr).Take(0, 9)
	if first, next := l.Request(0, nil, addr), l.Request(0, nil, addr); first != 0 || next != second/10 {
		t.Errorf("beside a connection: %d, %d", first, next)
	}
	l.Leave(addr, false)
	if wait := l.Request(second/2, nil, addr); wait != 0 {
		t.Errorf("after the connection: wait %d", wait)
	}
	others(t, l, 10*second, addr)
}
