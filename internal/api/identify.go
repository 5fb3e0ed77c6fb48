package api

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/server"
)

// Identify returns a function for Options.Identify that asks a Control. It is for requests
// of an http.Server whose ConnContext is WithPeer.
func Identify(c *access.Control) func(*http.Request) (*access.Identity, bool) {
	return func(r *http.Request) (*access.Identity, bool) { return c.Demand(evidence(r)) }
}

// Unknown is the answer to a request of somebody whom nobody knows.
func Unknown(r *http.Request, guesses *access.Guesses) *admin.Problem {
	if r.Header.Get("Authorization") != "" && guesses.Wrong(time.Now(), addressOf(r)) {
		return problemf(http.StatusTooManyRequests, "too many tokens that the server does not know: wait a minute").After(time.Minute)
	}
	return problemf(http.StatusUnauthorized, "authentication required: send a token that the server knows, Authorization: Bearer TOKEN")
}

// evidence returns what a request shows of who sends it.
func evidence(r *http.Request) (e access.Evidence) {
	if scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " "); strings.EqualFold(scheme, "Bearer") {
		e.Token = []byte(token)
	}
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		e.Certificate = r.TLS.PeerCertificates[0]
	}
	e.User, _ = r.Context().Value(peerKey{}).(access.UnixUser)
	e.Address = addressOf(r)
	return e
}

// addressOf returns the address of a client; the zero Addr if it came through a unix socket.
func addressOf(r *http.Request) netip.Addr {
	addr, _ := netip.ParseAddrPort(r.RemoteAddr)
	return addr.Addr()
}

// peerKey is where the context of a request has the user at the other end of a unix
// socket.
type peerKey struct{}

// WithPeer is for http.Server.ConnContext. It wants the connection as it was accepted.
func WithPeer(ctx context.Context, nc net.Conn) context.Context {
	return context.WithValue(ctx, peerKey{}, server.PeerUser(nc))
}
