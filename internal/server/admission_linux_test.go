package server

import (
	"bytes"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/certs"
	"github.com/beanpole-mq/beanpole/internal/certs/localca"
	"github.com/beanpole-mq/beanpole/internal/rights"
)

const testToken = "a-token-0123456789-0123456789"

// testAccess grants rights to four identities: one with a token, one with a certificate,
// the user of the test, and a network. Each can use only the tube with its name.
func testAccess(t *testing.T) *access.Control {
	t.Helper()
	h, err := access.HashOf(testToken)
	if err != nil {
		t.Fatal(err)
	}
	c := access.Config{Identities: []access.IdentityConfig{
		{Name: "token", Tokens: []access.Hash{h}},
		{Name: "certificate", Certificates: []string{"worker"}},
		{Name: "user", UnixUsers: []uint32{uint32(os.Getuid())}},
		{Name: "network", Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")}},
	}}
	for _, id := range c.Identities {
		c.Rules = append(c.Rules, access.RuleConfig{Identities: []string{id.Name}, Tubes: []string{id.Name}, Rights: rights.All})
	}
	return controlOf(t, c)
}

// Each way of authentication grants rights on the tube with its name and on no other. The
// list of connections shows the identity.
func TestIdentities(t *testing.T) {
	ca := localca.New(t)
	cert, key := ca.Issue("server", time.Now().Add(time.Hour))
	source, err := certs.Load(certs.Files{Cert: cert, Key: key, ClientCA: ca.File}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := start(t, Options{Access: testAccess(t)})
	terms := ListenOptions{ListenerPolicy: access.ListenerPolicy{Required: true}}
	plain := r.serveWith(listenOn(t, "tcp"), terms)
	unixSocket := listenOn(t, "unix")
	r.serveWith(unixSocket, terms)
	secure := terms
	secure.TLS = source.Config()
	encrypted := r.serveWith(listenOn(t, "tcp"), secure)
	tlsConfig := &tls.Config{RootCAs: ca.Pool(), ServerName: "localhost", Certificates: []tls.Certificate{ca.Pair("worker")}}
	stranger := tlsConfig.Clone()
	stranger.Certificates = []tls.Certificate{ca.Pair("stranger")}

	for who, dial := range map[string]func() (net.Conn, error){
		"token":       func() (net.Conn, error) { return net.Dial("tcp", plain.Addr().String()) },
		"user":        func() (net.Conn, error) { return net.Dial("unix", unixSocket.Addr().String()) },
		"certificate": func() (net.Conn, error) { return tls.Dial("tcp", encrypted.Addr().String(), tlsConfig) },
		"network": func() (net.Conn, error) {
			d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
			return d.Dial("tcp", plain.Addr().String())
		},
		"nobody": func() (net.Conn, error) { return tls.Dial("tcp", encrypted.Addr().String(), stranger) },
	} {
		nc, err := dial()
		if err != nil {
			t.Fatalf("%s: %v", who, err)
		}
		c := newClient(t, nc)
		if who == "nobody" {
			c.do("list-tubes\n", "UNAUTHORIZED\n")
			c.wantEnd()
			continue
		}
		if who == "token" {
			c.do("auth "+testToken+"\n", "AUTHENTICATED\n")
		}
		c.do("use "+who+"\nput 0 0 9 1\nx\nuse other\nput 0 0 9 1\ny\n", "USING "+who+"\nINSERTED "+"")
		c.line("")
		c.want("UNAUTHORIZED\nINSERTED ")
		c.line("")
		if all := r.connections(false); len(all) != 1 || all[0].Identity != who {
			t.Errorf("%+v, want a connection of %s", all, who)
		}
		c.do("quit\n", "")
		c.wantEnd()
	}
	if n := r.refusedCommands.Load(); n != 5 { // four use commands and one list-tubes
		t.Errorf("%d commands count as refused", n)
	}
}

// The server closes a connection from another network before it reads from it. Unix
// sockets have no network.
func TestNetworks(t *testing.T) {
	log := &logged{}
	r := start(t, Options{Logger: slog.New(log)})
	terms := ListenOptions{ListenerPolicy: access.ListenerPolicy{Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")}}}
	l := r.serveWith(listenOn(t, "tcp"), terms)
	dialTo(t, l).wantEnd()
	dialFrom(t, "127.0.0.2", l).do("auth x\nlist-tube-used\n", "UNKNOWN_COMMAND\nUSING default\n") // the server has no access control
	if n := r.refusedConnections.Load(); n != 1 {
		t.Errorf("%d connections count as refused", n)
	}
	if n := log.count("a connection was refused"); n != 1 {
		t.Errorf("%d refusals are in the log", n)
	}
}

// Many clients that do not complete their handshake do not delay other clients, and they
// are disconnected when the server stops.
func TestSlowHandshakes(t *testing.T) {
	ca := localca.New(t)
	cert, key := ca.Issue("server", time.Now().Add(time.Hour))
	source, err := certs.Load(certs.Files{Cert: cert, Key: key}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := start(t, Options{})
	l := r.serveWith(listenOn(t, "tcp"), ListenOptions{TLS: source.Config()})
	const many = 300
	began := time.Now()
	for range many {
		nc, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		if _, err := nc.Write([]byte{0x16, 0x03, 0x01}); err != nil { // the start of a handshake
			t.Fatal(err)
		}
	}
	config := &tls.Config{RootCAs: ca.Pool(), ServerName: "localhost"}
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			nc, err := tls.Dial("tcp", l.Addr().String(), config)
			if err != nil {
				t.Error(err)
				return
			}
			defer nc.Close()
			io.WriteString(nc, "list-tube-used\r\nquit\r\n")
			if got, _ := io.ReadAll(nc); string(got) != "USING default\r\n" {
				t.Errorf("beside slow handshakes: %q", got)
			}
		})
	}
	all.Wait()
	plain, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(plain, "list-tube-used\r\n")
	if got, _ := io.ReadAll(plain); bytes.Contains(got, []byte("USING")) {
		t.Errorf("without TLS: %q", got)
	}
	n, late := r.refusedConnections.Load(), time.Since(began) >= handshakeTimeout // slow handshakes end as well
	if n != 1 && !(late && n > 1) {
		t.Errorf("%d handshakes count as refused, want that without TLS", n)
	}
}

// A connection with TLS can be half-closed, wait, and hang up like any other.
func TestTLSWaits(t *testing.T) {
	ca := localca.New(t)
	cert, key := ca.Issue("server", time.Now().Add(time.Hour))
	source, err := certs.Load(certs.Files{Cert: cert, Key: key}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		r := start(t, Options{IdleTimeout: time.Hour})
		l := r.serveWith(listenOn(t, "tcp"), ListenOptions{TLS: source.Config()})
		dial := func() *client {
			nc, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{RootCAs: ca.Pool(), ServerName: "localhost", MaxVersion: version})
			if err != nil {
				t.Fatal(err)
			}
			return newClient(t, nc)
		}
		worker, other, producer := dial(), dial(), dial()
		worker.send("reserve\nlist-tube-used\n")
		other.send("reserve\n")
		r.eventually("both wait", func() bool { return r.stats().Waiting == 2 })
		other.nc.Close()
		r.eventually("one has gone", func() bool { return r.stats().Waiting == 1 })
		producer.do("put 0 0 9 5\nhello\n", "INSERTED 1\n")
		worker.want("RESERVED 1 5\nhello\nUSING default\n")
		big := strings.Repeat("x", 60_000)
		producer.do("put 0 0 9 60000\n"+big+"\npeek 2\n", "INSERTED 2\nFOUND 2 60000\n"+big+"\n")
		if err := worker.nc.(*tls.Conn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		worker.wantEnd()
	}
}
