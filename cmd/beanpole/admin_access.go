package main

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"strings"

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
	if uid, ok := server.PeerUser(nc); ok {
		return context.WithValue(ctx, peerKey{}, uid)
	}
	return ctx
}
