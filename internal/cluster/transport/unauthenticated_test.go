package transport

import (
	"crypto/tls"
	"errors"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/internal/cluster/directory"
	"github.com/beanpole-mq/beanpole/internal/memnet"
)

// A hosts is a network in memory whose next connection comes from the host next.
type hosts struct {
	*memnet.Listener
	from net.TCPAddr
}

type hostConn struct {
	net.Conn
	from net.TCPAddr
}

func (c *hostConn) RemoteAddr() net.Addr { return &c.from }

func (h *hosts) Accept() (net.Conn, error) {
	nc, err := h.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &hostConn{nc, h.from}, nil
}

// begin starts a member on its own network, within a bubble.
func (h *hosts) begin(t *testing.T) *peer {
	p := newPeers(t, 1)[0]
	p.listen(h)
	t.Cleanup(p.Close)
	return p
}

// dial connects from a host.
func (h *hosts) dial(t *testing.T, from string) net.Conn {
	t.Helper()
	h.from = net.TCPAddr{IP: net.ParseIP(from), Port: 1}
	nc, err := h.Dial()
	if err != nil {
		t.Fatal(err)
	}
	synctest.Wait() // until it is accepted
	return nc
}

// isOpen reports whether the other side has not closed a connection.
func isOpen(nc net.Conn) bool {
	nc.SetReadDeadline(time.Now().Add(time.Millisecond))
	_, err := nc.Read(make([]byte, 1))
	return errors.Is(err, os.ErrDeadlineExceeded)
}

// Of many connections that send nothing, only a few stay open: the oldest connections of
// the host with the most are closed. Connections of members are never closed, even if
// they connect at that time.
func TestManyStrangers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hosts{Listener: memnet.Listen()}
		p := h.begin(t)
		slow := h.dial(t, "10.0.0.2") // a member that has not sent anything
		client := func() *tls.Conn {
			return tls.Client(h.dial(t, "10.0.0.1"), &tls.Config{
				Certificates: []tls.Certificate{p.credentials.Certificate}, RootCAs: pool(p.credentials.CA),
				ServerName: directory.AnyMember(p.credentials.Cluster), NextProtos: []string{forMessages},
			})
		}
		member := client()
		if err := member.Handshake(); err != nil {
			t.Fatal(err)
		}
		const more = 50
		var strangers []net.Conn
		for range maxUnauthenticated - 1 + more {
			strangers = append(strangers, h.dial(t, "10.9.9.9"))
		}
		for i, nc := range strangers {
			if isOpen(nc) != (i >= more) {
				t.Fatalf("connection %d of %d is open: %v", i+1, len(strangers), i < more)
			}
		}
		if !isOpen(slow) || !isOpen(member) {
			t.Error("a member's connection is closed")
		}
		if n := p.Evicted(); n != more {
			t.Errorf("%d connections are counted", n)
		}
		if err := client().Handshake(); err != nil {
			t.Error(err)
		}
		time.Sleep(2 * handshakeTimeout)
		if synctest.Wait(); len(p.pending.waiting) > 0 {
			t.Errorf("%d silent connections stay open", len(p.pending.waiting))
		}
	})
}

// A client that connects in order to join and then sends nothing is disconnected as soon
// as a client that sends nothing at all.
func TestSilentJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hosts{Listener: memnet.Listen()}
		h.begin(t)
		nc := tls.Client(h.dial(t, "10.9.9.9"), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{forJoin}})
		if err := nc.Handshake(); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := nc.Read(make([]byte, 1)); err == nil || time.Since(began) > handshakeTimeout {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}
