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

// Identify returns a function for Options.Identify that uses a Control. The http.Server
// must have WithPeer as its ConnContext.
func Identify(c *access.Control) func(*http.Request) (*access.Identity, bool) {
	return func(r *http.Request) (*access.Identity, bool) { return c.RequireIdentity(credentials(r)) }
}

// Unknown returns the problem for a request without a known identity.
func Unknown(r *http.Request, guesses *access.Guesses) *admin.Problem {
	if r.Header.Get("Authorization") != "" && guesses.Wrong(time.Now(), addressOf(r)) {
		return problemf(http.StatusTooManyRequests, "too many unknown tokens: wait a minute").After(time.Minute)
	}
	return problemf(http.StatusUnauthorized, "authentication required: send a valid token, Authorization: Bearer TOKEN")
}

// credentials returns all parts of a request that can identify the client.
func credentials(r *http.Request) (e access.Credentials) {
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

// addressOf returns the address of a client. It is the zero Addr for a Unix socket.
func addressOf(r *http.Request) netip.Addr {
	addr, _ := netip.ParseAddrPort(r.RemoteAddr)
	return addr.Addr()
}

// peerKey is the key, in a request's context, for the user at the other end of a Unix
// socket.
type peerKey struct{}

// WithPeer is a ConnContext of http.Server. nc must be the accepted connection.
func WithPeer(ctx context.Context, nc net.Conn) context.Context {
	return context.WithValue(ctx, peerKey{}, server.PeerUser(nc))
}
