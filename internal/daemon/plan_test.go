package daemon

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/beanpole-mq/beanpole/internal/certs/localca"
	"github.com/beanpole-mq/beanpole/internal/config"
	"github.com/beanpole-mq/beanpole/internal/server"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

// check returns the output of the check of a configuration file and options.
func check(t *testing.T, text string, args ...string) (string, error) {
	t.Helper()
	path, write := configFile(t)
	write(text)
	s, err := commandLine(t, append(args, "--config", path)...).Read()
	if err != nil {
		return "", err
	}
	var said strings.Builder
	err = Check(s, &said)
	return said.String(), err
}

// The check includes the other servers of the console.
func TestCheckServers(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("token-of-the-console-0123456789"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := func(settings ...string) string {
		return "[[console-server]]\n" + strings.Join(settings, "\n") + "\n"
	}
	good := server(`name = "near"`, `address = "http://10.0.0.5:11380"`, fmt.Sprintf("token-file = %q", token)) + server(`name = "far"`, `address = "https://10.0.0.9"`)
	const open = `warning: the token of console-server "near" is sent unencrypted`
	if said, err := check(t, good); err != nil || !strings.Contains(said, open) || !strings.HasSuffix(said, "the configuration is good\n") {
		t.Errorf("%s, %v", said, err)
	}
	if said, err := check(t, good, "--admin", "127.0.0.1:0"); err != nil || !strings.Contains(said, open) {
		t.Errorf("%s, %v", said, err)
	}
	a := func(settings ...string) string { return server(append(settings, `name = "a"`)...) }
	for text, want := range map[string]string{
		server(`name = "a/b"`, `address = "http://host"`):                `console-server 1: name "a/b": want 1 to 63 letters, digits`,
		a(`address = "http://host"`) + a(`address = "http://other"`):     `console-server 2: duplicate name "a"`,
		a(`address = "http://user@host/path"`):                           `console-server 1: address "http://user@host/path": want http://HOST:PORT or https://HOST:PORT`,
		a(`address = "ftp://host"`):                                      `address "ftp://host": want http://`,
		a(`address = "http://host"`, `token-file = "nowhere"`):           `console-server "a": token-file: open nowhere: no such file or directory`,
		a(`address = "https://host"`, fmt.Sprintf("tls-ca = %q", token)): `console-server "a": tls-ca: no certificate in `,
		a(`adress = "host"`):                                             `unknown setting "adress" in [[console-server]]`,
	} {
		if said, err := check(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n%s, %v, want %s", text, said, err, want)
		}
	}
}

// The default configuration is valid on a machine without IPv6.
func TestCheckOptional(t *testing.T) {
	elsewhere := config.Endpoint{Address: server.Address{Host: "192.0.2.1"}}
	for _, elsewhere.Optional = range []bool{true, false} {
		p := &plan{opt: &config.Options{}, endpoints: []config.Endpoint{elsewhere}}
		if err := p.checkAddresses(); (err == nil) != elsewhere.Optional {
			t.Errorf("optional: %v: %v", elsewhere.Optional, err)
		}
	}
}

// The check refuses an address or a directory that the start refuses.
func TestCheckAsStart(t *testing.T) {
	for args, want := range map[string]string{
		"-l 192.0.2.1":                       "listen on 192.0.2.1:0: ",
		"-l unix:nowhere/s":                  "listen on unix:nowhere/s: no such file",
		"--admin unix:plan.go":               "--admin: listen on unix:plan.go: the file exists and is not a socket",
		"--admin-socket nowhere/s":           "--admin-socket: listen on unix:nowhere/s: no such file",
		"--admin-socket none -b nowhere":     "directory nowhere: ",
		"--admin-socket none --cluster":      "--cluster wants the directory of a member",
		"--admin-socket none --cluster -b .": "directory . does not belong to a cluster member",
	} {
		args := append(strings.Fields(args), "-p", "0")
		if said, err := check(t, "", args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("check %q: %s, %v, want %s", args, said, err, want)
		}
		p := start(t, args...)
		if <-p.ended; p.err == nil || !strings.Contains(p.err.Error(), want) {
			t.Errorf("start %q: %v, want %s", args, p.err, want)
		}
	}
}

// A certificate that expires soon still works. The configuration check and the server
// report it. SIGHUP reports an invalid new certificate once, even without a connection.
func TestCertificateEndsSoon(t *testing.T) {
	cert, key := localca.New(t).Issue("soon", time.Now().Add(10*time.Minute))
	text := fmt.Sprintf("[[listener]]\naddress = '127.0.0.1:0'\ntls-cert = %q\ntls-key = %q\n", cert, key)
	const warning = "soon.crt expires soon, on "
	if said, err := check(t, text); err != nil || !strings.Contains(said, "warning: the certificate ") || !strings.Contains(said, warning) {
		t.Errorf("%s, %v", said, err)
	}
	path, write := configFile(t)
	write(text)
	p := start(t, "--config", path, "--admin", "127.0.0.1:0")
	p.await("level=WARN msg=\"the certificate .*" + warning)
	p.await("msg=ready ")
	if got := get(t, p.await(adminLine), "/readyz"); !strings.HasPrefix(got, "200 ok\nwarning: the certificate ") || !strings.Contains(got, warning) {
		t.Error(got)
	}
	if err := os.WriteFile(cert, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.signals <- syscall.SIGHUP
	p.signals <- syscall.SIGHUP
	p.await("(?s)the configuration was read again.*the configuration was read again")
	const failed = "level=ERROR msg=\"cannot use the new TLS certificate; keeping the previous one\""
	if text, _ := p.logged(); !strings.Contains(text, failed) || strings.Count(text, "keeping the previous one") != 1 {
		t.Error(text)
	}
}

// Each option reaches the server, and zero has the meaning that the help describes.
func TestServerOptions(t *testing.T) {
	for _, c := range []struct {
		args string
		want server.Options
	}{
		{"", server.Options{MaxJobSize: 65535, MaxConns: server.DefaultMaxConns, MaxBuffers: server.DefaultMaxBuffers, StallTimeout: time.Minute, SegmentSize: 10485760}},
		{"-z 0 --max-buffers 0 --stall-timeout 0", server.Options{MaxJobSize: -1, MaxConns: server.DefaultMaxConns, MaxBuffers: -1, StallTimeout: -1, SegmentSize: 10485760}},
		{"-z 5000000000 --max-connections 1 --max-buffers 7 --idle-timeout 50ms --stall-timeout 60ms --compat 1.12 -VV -s 4096 --max-connections-per-address 9", server.Options{
			MaxJobSize: 1 << 30, MaxConns: 1, MaxBuffers: 7, IdleTimeout: 50 * time.Millisecond, StallTimeout: 60 * time.Millisecond,
			Compat: wire.Compat112, Trace: true, SegmentSize: 4096, ConnectionsPerAddress: 9,
		}},
	} {
		s, err := commandLine(t, strings.Fields(c.args)...).Read()
		if err != nil {
			t.Fatal(err)
		}
		p, err := newPlan("1.2.3", s, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		c.want.Version = "1.2.3"
		got := serverOptions(p, &queue{})
		c.want.MaxConns = min(got.MaxConns, c.want.MaxConns) // this machine can have a lower limit of open files
		if diff := cmp.Diff(c.want, got, cmpopts.IgnoreFields(server.Options{}, "Access", "Logger", "Journal", "Cluster"), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.args, diff)
		}
	}
}
