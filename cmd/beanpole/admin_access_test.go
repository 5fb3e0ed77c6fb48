package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/access"
)

// TestIdentify is who sends a request to the admin pages, by what it brings. What
// comes first in the table of doc/security.md counts.
func TestIdentify(t *testing.T) {
	const token = "token-0123456789-abcdef"
	h, err := access.HashOf(token)
	if err != nil {
		t.Fatal(err)
	}
	all, err := access.New(access.Config{Identities: []access.IdentityConfig{
		{Name: "token", Tokens: []access.Hash{h}},
		{Name: "certificate", Certificates: []string{"queue.example.com"}},
		{Name: "user", UnixUsers: []uint32{1234}},
		{Name: "network", Networks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fe80::/64")}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	none, err := access.New(access.Config{})
	if err != nil {
		t.Fatal(err)
	}
	certificate := &x509.Certificate{Subject: pkix.Name{CommonName: "queue.example.com"}}
	stranger := &x509.Certificate{Subject: pkix.Name{CommonName: "other.example.com"}}
	for _, test := range []struct {
		name   string
		policy *access.Policy
		token  string
		cert   *x509.Certificate
		uid    uint32
		addr   string
		want   string // - is nobody, who may not come in
	}{
		{"nothing is configured", none, "", nil, 0, "192.0.2.1:1", ""},
		{"a token, but nothing is configured", none, "Bearer " + token, nil, 0, "192.0.2.1:1", "-"},
		{"nothing", all, "", nil, 0, "192.0.2.1:1", "-"},
		{"a token", all, "Bearer " + token, nil, 0, "192.0.2.1:1", "token"},
		{"a wrong token, from a network that is known", all, "Bearer " + token + "x", nil, 0, "10.1.1.1:1", "-"},
		{"a token, in the way of other clients", all, "bearer " + token, nil, 0, "192.0.2.1:1", "token"},
		{"no token, from a network that is known", all, "Bearer", nil, 0, "10.1.1.1:1", "-"},
		{"another scheme, from a network that is known", all, "Basic eDp5", nil, 0, "10.1.1.1:1", "network"},
		{"a certificate", all, "", certificate, 0, "192.0.2.1:1", "certificate"},
		{"another certificate", all, "", stranger, 0, "192.0.2.1:1", "-"},
		{"a user", all, "", nil, 1234, "@", "user"},
		{"another user", all, "", nil, 1, "@", "-"},
		{"a network", all, "", nil, 0, "10.1.1.1:1", "network"},
		{"a link-local address", all, "", nil, 0, "[fe80::1%eth0]:1", "network"},
		{"all", all, "Bearer " + token, certificate, 1234, "10.1.1.1:1", "token"},
		{"all but the token", all, "", certificate, 1234, "10.1.1.1:1", "certificate"},
	} {
		s := &security{on: true}
		s.policy.Store(test.policy)
		r := httptest.NewRequest("GET", "/api/v1/stats", nil)
		r.RemoteAddr = test.addr
		if test.token != "" {
			r.Header.Set("Authorization", test.token)
		}
		if test.cert != nil {
			r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{test.cert}}
		}
		if test.uid != 0 {
			r = r.WithContext(context.WithValue(r.Context(), peerKey{}, test.uid))
		}
		id, ok := s.identify(r)
		got := "-"
		if ok {
			got = id.Name()
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

// A request that is under way when the server stops is answered.
func TestAdminStops(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a := &adminServer{listener: l}
	begun, release := make(chan struct{}), make(chan struct{})
	a.RegisterOnShutdown(func() { close(release) })
	a.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(begun)
		select {
		case <-release:
			io.WriteString(w, "done")
		case <-r.Context().Done():
		}
	})
	go a.Serve(l)
	stopped := make(chan struct{})
	go func() {
		<-begun
		a.stop()
		close(stopped)
	}()
	res, err := http.Get("http://" + l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, err := io.ReadAll(res.Body); string(body) != "done" {
		t.Errorf("%q, %v", body, err)
	}
	<-stopped
}
