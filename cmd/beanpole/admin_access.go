package main

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/server"
)

// identify returns who sends a request. It is false where there are identities and the
// client is none of them, or has a token that is not known.
func (s *security) identify(r *http.Request) (id *access.Identity, ok bool) {
	p := s.policy.Load()
	if !s.on {
		return p.Nobody(), true
	}
	if scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " "); strings.EqualFold(scheme, "Bearer") {
		return p.ByToken(token)
	}
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		if id, ok := p.ByCertificate(r.TLS.PeerCertificates[0]); ok {
			return id, true
		}
	}
	if uid, ok := r.Context().Value(peerKey{}).(uint32); ok {
		if id, ok := p.ByUnixUser(uid); ok {
			return id, true
		}
	}
	if addr, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		if id, ok := p.ByNetwork(addr.Addr()); ok {
			return id, true
		}
	}
	return p.Nobody(), p.Known() == 0
}

// peerKey is where the context of a request has the user at the other end of a unix
// socket.
type peerKey struct{}

func withPeer(ctx context.Context, nc net.Conn) context.Context {
	if t, ok := nc.(*tls.Conn); ok {
		nc = t.NetConn()
	}
	if uid, ok := server.PeerUser(nc); ok {
		return context.WithValue(ctx, peerKey{}, uid)
	}
	return ctx
}

// A door is a listener that lets in clients of some networks, and only so many at a
// time. A client that asks nothing makes room for the next: it cannot keep others away.
type door struct {
	net.Listener
	networks []netip.Prefix // none: all may come
	inside   chan struct{}  // has one for each connection
	close    sync.Once
	closed   chan struct{} // when Close was called

	mu      sync.Mutex
	idle    []net.Conn // those that ask nothing, the longest first
	crowded bool       // a client waits until another has ended
}

func newDoor(l net.Listener, networks []netip.Prefix, limit int) *door {
	return &door{Listener: l, networks: networks, inside: make(chan struct{}, limit), closed: make(chan struct{})}
}

// Close implements net.Listener. http.Server ends connections only when Accept has
// returned, so that must not wait for one of them to end.
func (d *door) Close() error {
	d.close.Do(func() { close(d.closed) })
	return d.Listener.Close()
}

// Accept implements net.Listener. Those who may not come are closed at once.
func (d *door) Accept() (net.Conn, error) {
	for {
		nc, err := d.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if !server.Allows(d.networks, nc.RemoteAddr()) {
			nc.Close()
			continue
		}
		if !d.enter() {
			nc.Close()
			return nil, net.ErrClosed
		}
		return nc, nil
	}
}

// enter waits for room. It is false when the door was closed.
func (d *door) enter() bool {
	select {
	case d.inside <- struct{}{}:
		return true
	default:
	}
	d.crowd(true)
	defer d.crowd(false)
	select {
	case d.inside <- struct{}{}:
		return true
	case <-d.closed:
		return false
	}
}

// crowd notes whether a client waits.
func (d *door) crowd(on bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.crowded = on
	d.makeRoom()
}

// makeRoom ends a connection that asks nothing, if a client waits. It does not wait for
// the end: to close one with TLS may take seconds.
func (d *door) makeRoom() {
	if d.crowded && len(d.idle) > 0 {
		go d.idle[0].Close()
		d.idle = d.idle[1:]
		d.crowded = false // one is enough
	}
}

// changed is for http.Server.ConnState.
func (d *door) changed(nc net.Conn, state http.ConnState) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.idle = slices.DeleteFunc(d.idle, func(c net.Conn) bool { return c == nc })
	switch state {
	case http.StateNew, http.StateIdle:
		d.idle = append(d.idle, nc)
		d.makeRoom()
	case http.StateClosed, http.StateHijacked:
		<-d.inside
	}
}
