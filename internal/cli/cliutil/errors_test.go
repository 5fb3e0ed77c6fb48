package cliutil

import (
	"crypto/tls"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/client/beanpoletest"
	"github.com/beanpole-mq/beanpole/internal/certs"
	"github.com/beanpole-mq/beanpole/internal/certs/localca"
	"github.com/beanpole-mq/beanpole/internal/exit"
)

func serveTLS(t *testing.T, config *tls.Config) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	srv := beanpoletest.Serve(tls.NewListener(l, config))
	t.Cleanup(srv.Close)
	return addr
}

// listen starts a server that sends the same text to every client.
func listen(t *testing.T, text string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { c.Close() })
			c.Write([]byte(text))
		}
	}()
	return l.Addr().String()
}

// TLS errors name the option to change.
func TestWordsOfTLS(t *testing.T) {
	ca, other := localca.New(t), localca.New(t)
	pair := ca.Pair("server")
	secured := serveTLS(t, &tls.Config{Certificates: []tls.Certificate{pair}})
	mutual := serveTLS(t, &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: ca.Pool(), ClientAuth: tls.RequireAndVerifyClientCert})
	silent := listen(t, "")
	plain := listen(t, "UNKNOWN_COMMAND\r\n")
	cert, key := other.Issue("me", time.Now().Add(time.Hour))
	for _, tt := range []struct {
		name, want string
		opt        Connection
	}{
		{"without TLS", "check the --tls options", Connection{Addr: secured}},
		{"TLS to a server without", "does not speak TLS; leave out the --tls options", Connection{Addr: plain, TLS: true}},
		{"TLS to a server that does not reply", "does not answer with TLS", Connection{Addr: silent, TLS: true, Timeout: 50 * time.Millisecond}},
		{"an unknown authority", "trust one with --tls-ca", Connection{Addr: secured, Certs: certs.Client{CA: other.File}}},
		{"another name", "is for another name (x509: certificate is valid for localhost, not example.com); set --tls-server-name", Connection{Addr: secured, Certs: certs.Client{CA: ca.File, ServerName: "example.com"}}},
		{"without a certificate", "it might require another certificate (--tls-cert and --tls-key)", Connection{Addr: mutual, Certs: certs.Client{CA: ca.File}}},
		{"a certificate of another", "it might require another certificate", Connection{Addr: mutual, Certs: certs.Client{CA: ca.File, Cert: cert, Key: key}}},
		{"no error", "", Connection{Addr: secured, Certs: certs.Client{CA: ca.File}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.opt.Timeout == 0 {
				tt.opt.Timeout = 30 * time.Second
			}
			c, err := tt.opt.Dial(t.Context())
			if err == nil {
				defer c.Close()
				err = c.Ping(t.Context())
			}
			if err = tt.opt.Explain(t.Context(), err); err == nil {
				if tt.want != "" {
					t.Errorf("no error, want %q", tt.want)
				}
				return
			}
			if tt.want == "" || !strings.Contains(err.Error(), tt.want) || exit.Code(err) != exit.Disconnected {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

// A connection can be closed for many reasons, so the message refers to the server's log
// and names no limit.
func TestWordsOfClosed(t *testing.T) {
	o := Connection{}
	for _, err := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE} {
		if text := o.disconnected(&client.Error{Addr: "queue:11300", Verb: "stats", Err: err}); !strings.Contains(text, "its log has the reason") || strings.Contains(text, "max-connections") {
			t.Errorf("%v: %s", err, text)
		}
	}
}
