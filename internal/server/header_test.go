package server

import (
	"net"
	"net/netip"
	"runtime"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/access"
)

// A client behind a proxy has the address from the PROXY header, for limits, networks and
// the list of connections. Clients from other addresses are served without a header.
func TestHeaderOfProxy(t *testing.T) {
	loopback := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	clients := []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("127.0.0.1/32")}
	r := start(t, Options{})
	proxied := r.serveWith(listenOn(r.tb, "tcp"), ListenOptions{ListenerPolicy: access.ListenerPolicy{Networks: clients, Proxies: loopback}})
	direct := r.serveWith(listenOn(r.tb, "tcp"), ListenOptions{ListenerPolicy: access.ListenerPolicy{Proxies: clients[:1]}})

	c := dialTo(t, proxied)
	c.send("PROXY TCP4 192.0.2.7 10.0.0.1 40000 11300\nput 0 0 60 1\n")
	c.want("")
	c.do("a\nreserve\n", "INSERTED 1\nRESERVED 1 1\na\n")
	if all := r.connections(false); len(all) != 1 || all[0].Address != "192.0.2.7:40000" {
		t.Errorf("%+v", all)
	}
	for _, header := range []string{
		"PROXY TCP4 198.51.100.7 10.0.0.1 40000 11300\n", // from another network
		"PROXY nonsense\n",
		"stats\nstats\nstats\n",
	} {
		c := dialTo(t, proxied)
		c.send(header)
		c.wantEnd()
	}
	own := dialTo(t, proxied)
	own.do("PROXY UNKNOWN\nuse a\n", "USING a\n")
	if n := len(r.connections(false)); n != 2 {
		t.Errorf("%d connections", n)
	}
	own.do("quit\n", "")
	own.wantEnd()

	d := dialTo(t, direct)
	d.do("use a\n", "USING a\n")
	d.do("PROXY UNKNOWN\n", "UNKNOWN_COMMAND\n") // the line is too long for a header
}

// A proxy that sends no header delays neither clients nor the server's shutdown.
func TestSilentProxy(t *testing.T) {
	r := start(t, Options{})
	l := r.serveWith(listenOn(r.tb, "tcp"), ListenOptions{ListenerPolicy: access.ListenerPolicy{Proxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}})
	silent := dialTo(t, l)
	silent.send("PROX")
	probe, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	probe.Close()
	c := dialTo(t, l)
	c.do("PROXY UNKNOWN\nuse a\n", "USING a\n")
	if err := r.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	silent.wantEnd()
	if n := r.refusedConnections.Load(); n != 0 {
		t.Errorf("%d refusals", n)
	}
}

// A connection occupies a slot while the server waits for its header.
func TestSilentProxyHasSlot(t *testing.T) {
	r := start(t, Options{MaxConns: 1})
	l := r.serveWith(listenOn(r.tb, "tcp"), ListenOptions{ListenerPolicy: access.ListenerPolicy{Proxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}})
	silent := dialTo(t, l)
	for !r.slots.full() { // until the silent connection takes the last slot
		runtime.Gosched()
	}
	waits := dialTo(t, l)
	silent.do("PROXY UNKNOWN\nuse a\nquit\n", "USING a\n")
	silent.nc.Close()
	waits.do("PROXY UNKNOWN\nuse a\n", "USING a\n")
}
