package load

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http/httptest"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

// startEncrypted returns an address that speaks TLS and passes what it gets on to another,
// with a configuration that trusts it.
func startEncrypted(t *testing.T, to string) (addr string, config *tls.Config) {
	t.Helper()
	web := httptest.NewUnstartedServer(nil)
	web.StartTLS()
	t.Cleanup(web.Close)
	roots := x509.NewCertPool()
	roots.AddCert(web.Certificate())
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: web.TLS.Certificates})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", to)
			if err != nil {
				client.Close()
				continue
			}
			join(client, server)
		}
	}()
	return l.Addr().String(), &tls.Config{RootCAs: roots, ServerName: "example.com"}
}

// A load runs through TLS, after a first command.
func TestEncrypted(t *testing.T) {
	addr, config := startEncrypted(t, startResponder(t))
	r, err := Run(t.Context(), Options{Addr: addr, TLS: config, Hello: wire.AppendPut(nil, 0, 0, 1, []byte("token")), Connections: 3, Ops: 300, Idle: 2})
	if err != nil {
		t.Fatal(err)
	}
	if r.Commands != 900 {
		t.Errorf("%d commands, want 900", r.Commands)
	}
	if _, err := Run(t.Context(), Options{Addr: addr, TLS: &tls.Config{ServerName: "example.com"}, Ops: 1}); err == nil {
		t.Error("a certificate that nobody trusts was taken")
	}
}
