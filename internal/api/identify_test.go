package api

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"reflect"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/access"
)

// TestCredentials checks which credentials a request contains. An empty token also
// counts.
func TestCredentials(t *testing.T) {
	certificate := &x509.Certificate{}
	user, nobody := access.UnixUser{ID: 1234, Known: true}, access.UnixUser{}
	local := netip.MustParseAddr("10.1.1.1")
	for _, c := range []struct {
		what          string
		authorization string
		cert          *x509.Certificate
		user          access.UnixUser
		addr          string
		want          access.Credentials
	}{
		{"nothing", "", nil, nobody, "@", access.Credentials{}},
		{"a token", "Bearer x", nil, nobody, "10.1.1.1:1", access.Credentials{Token: []byte("x"), Address: local}},
		{"lowercase bearer", "bearer x", nil, nobody, "@", access.Credentials{Token: []byte("x")}},
		{"an empty token", "Bearer", nil, nobody, "@", access.Credentials{Token: []byte{}}},
		{"another scheme", "Basic eDp5", nil, nobody, "10.1.1.1:1", access.Credentials{Address: local}},
		{"a certificate", "", certificate, nobody, "10.1.1.1:1", access.Credentials{Certificate: certificate, Address: local}},
		{"a user", "", nil, user, "@", access.Credentials{User: user}},
		{"a link-local address", "", nil, nobody, "[fe80::1%eth0]:1", access.Credentials{Address: netip.MustParseAddr("fe80::1%eth0")}},
	} {
		r := httptest.NewRequest("GET", "/api/v1/stats", nil)
		r.RemoteAddr = c.addr
		if c.authorization != "" {
			r.Header.Set("Authorization", c.authorization)
		}
		if c.cert != nil {
			r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{c.cert}}
		}
		r = r.WithContext(context.WithValue(r.Context(), peerKey{}, c.user))
		if got := credentials(r); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.what, got, c.want)
		}
	}
}

// The response to an unauthenticated request names the authentication scheme.
func TestUnknown(t *testing.T) {
	r := start(t, Options{Identify: func(*http.Request) (*access.Identity, bool) { return nil, false }})
	w := httptest.NewRecorder()
	if r.ServeHTTP(w, newRequest("GET", "/stats", "")); w.Code != 401 || w.Header().Get("WWW-Authenticate") != `Bearer realm="beanpole"` {
		t.Errorf("%d %v", w.Code, w.Header())
	}
}
