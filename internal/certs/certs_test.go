package certs

import (
	"bytes"
	"crypto/tls"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/internal/certs/localca"
)

// handshake returns the certificate that the server sends, and the errors of the
// handshake on both sides.
func handshake(t *testing.T, server, client *tls.Config) (name string, serverErr, clientErr error) {
	t.Helper()
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	done := make(chan error, 1)
	go func() {
		s := tls.Server(a, server)
		err := s.Handshake()
		if err != nil {
			a.Close()
		}
		done <- err
	}()
	c := tls.Client(b, client)
	clientErr = c.Handshake()
	if clientErr == nil {
		name = c.ConnectionState().PeerCertificates[0].Subject.CommonName
		go c.Read(make([]byte, 1)) // reads the session tickets of TLS 1.3, and a late refusal
	} else {
		b.Close()
	}
	return name, <-done, clientErr
}

// TestReload loads a renewed certificate, then an invalid one.
func TestReload(t *testing.T) {
	ca := localca.New(t)
	hour := time.Now().Add(time.Hour)
	cert, key := ca.Issue("server", hour)
	var log bytes.Buffer
	s, err := Load(Files{Cert: cert, Key: key}, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	client := &tls.Config{RootCAs: ca.Pool(), ServerName: "localhost"}
	serial := func() string {
		t.Helper()
		c := s.current()
		name, serverErr, clientErr := handshake(t, c, client)
		if serverErr != nil || clientErr != nil {
			t.Fatal(serverErr, clientErr)
		}
		return name + c.Certificates[0].Leaf.SerialNumber.String()
	}
	if got := serial(); got != "server2" {
		t.Fatalf("the first certificate is %s", got)
	}
	ca.Issue("server", hour)
	os.Chtimes(cert, hour, hour) // the clock of the file system is coarse
	if got := serial(); got != "server3" {
		t.Errorf("the renewed certificate is %s", got)
	}
	if err := os.WriteFile(key, []byte("rubbish"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got := serial(); got != "server3" {
			t.Errorf("with a broken key the certificate is %s", got)
		}
	}
	if n := strings.Count(log.String(), "cannot use"); n != 1 {
		t.Errorf("the broken key is in the log %d times:\n%s", n, &log)
	}
	if s.Failed() == nil {
		t.Error("no error for the broken key")
	}
	ca.Issue("server", hour)
	if got := serial(); got != "server4" || s.Failed() != nil {
		t.Errorf("then the certificate is %s, %v", got, s.Failed())
	}
}

func TestVersionsAndClients(t *testing.T) {
	ca, other := localca.New(t), localca.New(t)
	cert, key := ca.Issue("server", time.Now().Add(time.Hour))
	open, err := Load(Files{Cert: cert, Key: key}, nil)
	if err != nil {
		t.Fatal(err)
	}
	mutual, err := Load(Files{Cert: cert, Key: key, ClientCA: ca.File}, nil)
	if err != nil {
		t.Fatal(err)
	}
	expired, err := tls.LoadX509KeyPair(ca.Issue("late", time.Now().Add(-time.Minute)))
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		server *Source
		client *tls.Config
		good   bool
	}{
		"TLS 1.3":                            {open, &tls.Config{}, true},
		"TLS 1.2":                            {open, &tls.Config{MaxVersion: tls.VersionTLS12}, true},
		"TLS 1.1":                            {open, &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}, false},
		"no client certificate":              {mutual, &tls.Config{}, false},
		"a client certificate":               {mutual, &tls.Config{Certificates: []tls.Certificate{ca.Pair("client")}}, true},
		"a certificate of another authority": {mutual, &tls.Config{Certificates: []tls.Certificate{other.Pair("client")}}, false},
		"an expired certificate":             {mutual, &tls.Config{Certificates: []tls.Certificate{expired}}, false},
		"an unrequested certificate":         {open, &tls.Config{Certificates: []tls.Certificate{other.Pair("client")}}, true},
	} {
		c.client.RootCAs, c.client.ServerName = ca.Pool(), "localhost"
		if _, serverErr, _ := handshake(t, c.server.Config(), c.client); (serverErr == nil) != c.good {
			t.Errorf("%s: %v", what, serverErr)
		}
	}
}

func TestBadFiles(t *testing.T) {
	ca := localca.New(t)
	cert, key := ca.Issue("server", time.Now().Add(time.Hour))
	_, otherKey := ca.Issue("other", time.Now().Add(time.Hour))
	for want, f := range map[string]Files{
		"needs both":              {Cert: cert},
		"no such file":            {Cert: cert, Key: "nowhere"},
		"does not match":          {Cert: cert, Key: otherKey},
		"authorities of clients:": {Cert: cert, Key: key, ClientCA: "nowhere"},
		"no certificate in":       {Cert: cert, Key: key, ClientCA: key},
	} {
		if _, err := Load(f, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

func TestExpiry(t *testing.T) {
	ca := localca.New(t)
	now := time.Now()
	hour := now.Add(time.Hour)
	cert, key := ca.Issue("server", hour)
	s, err := Load(Files{Cert: cert, Key: key}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if e := s.Expiry(); e.File != cert || e.End.Unix() != hour.Unix() || !e.Begin.Before(now) {
		t.Errorf("%+v, want an end at %v", e, hour)
	}
}

func TestSoon(t *testing.T) {
	begin, day := time.Unix(1e9, 0), 24*time.Hour
	for _, c := range []struct {
		lifetime, after time.Duration
		want            bool
	}{
		{90 * day, 75 * day, false}, {90 * day, 77 * day, true}, {90 * day, 91 * day, true},
		{10 * day, 7 * day, false}, {10 * day, 9 * day, true},
	} {
		if got := (Expiry{Begin: begin, End: begin.Add(c.lifetime)}).Soon(begin.Add(c.after)); got != c.want {
			t.Errorf("of %v after %v: %v", c.lifetime, c.after, got)
		}
	}
}
