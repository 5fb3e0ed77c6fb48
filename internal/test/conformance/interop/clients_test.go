package interop

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A side is the TLS configuration of a client.
type side struct {
	ca        string // file of the certificate authority that the client trusts
	cert, key string // files of the client's certificate; empty if it has none
	version   string // TLS version: 1.1, 1.2 or 1.3
}

// A client sends text over TLS. It returns all data that arrives before the server closes
// the connection, or the error of the connection. The error can be nil although the
// server has refused the client: with TLS 1.3, a client notices that only when it reads.
type client func(t *testing.T, addr, text string, s side) (string, error)

// clients contains real clients. Each uses a common TLS library.
var clients = map[string]struct {
	program string // program that must be installed
	talk    client
}{
	"Go":      {"go", goTLS},
	"PHP":     {"php", script("php", "tls/pipe.php")},
	"Python":  {"python3", script("python3", "tls/pipe.py")},
	"Node":    {"node", script("node", "tls/pipe.js")},
	"openssl": {"openssl", openssl},
	"stunnel": {"stunnel", throughStunnel},
}

func goTLS(_ *testing.T, addr, text string, s side) (string, error) {
	pem, err := os.ReadFile(s.ca)
	if err != nil {
		return "", err
	}
	c := &tls.Config{ServerName: "localhost", RootCAs: x509.NewCertPool()}
	c.RootCAs.AppendCertsFromPEM(pem)
	c.MinVersion = map[string]uint16{"1.1": tls.VersionTLS11, "1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13}[s.version]
	c.MaxVersion = c.MinVersion
	if s.cert != "" {
		pair, err := tls.LoadX509KeyPair(s.cert, s.key)
		if err != nil {
			return "", err
		}
		c.Certificates = []tls.Certificate{pair}
	}
	nc, err := tls.Dial("tcp", addr, c)
	if err != nil {
		return "", err
	}
	defer nc.Close()
	return say(nc, text)
}

// script returns a client in another language.
func script(interpreter, file string) client {
	return func(t *testing.T, addr, text string, s side) (string, error) {
		env := []string{"ADDR=" + addr, "CA=" + s.ca, "CERT=" + s.cert, "KEY=" + s.key, "VERSION=" + s.version}
		return output(t, text, env, interpreter, file)
	}
}

func openssl(t *testing.T, addr, text string, s side) (string, error) {
	return output(t, text, nil, "openssl", sClient(addr, s, "-quiet")...)
}

// sClient returns the arguments of openssl s_client.
func sClient(addr string, s side, more ...string) []string {
	args := []string{"s_client", "-connect", addr, "-servername", "localhost", "-CAfile", s.ca, "-verify_return_error", "-tls" + strings.ReplaceAll(s.version, ".", "_")}
	if s.version == "1.1" {
		args = append(args, "-cipher", "DEFAULT@SECLEVEL=0") // otherwise the client refuses
	}
	if s.cert != "" {
		args = append(args, "-cert", s.cert, "-key", s.key)
	}
	return append(args, more...)
}

// throughStunnel is a plain client that connects through a local stunnel.
func throughStunnel(t *testing.T, addr, text string, s side) (string, error) {
	nc, err := net.Dial("tcp", stunnel(t, addr, s))
	if err != nil {
		return "", err
	}
	defer nc.Close()
	return say(nc, text)
}

// stunnel starts a stunnel in front of addr and returns its address for plain clients.
func stunnel(t *testing.T, addr string, s side) string {
	t.Helper()
	config := fmt.Sprintf("foreground = yes\ndebug = info\npid =\nclient = yes\nverifyChain = yes\nCAfile = %s\nsslVersion = TLSv%s\n", s.ca, s.version)
	if s.version == "1.1" {
		config += "securityLevel = 0\n" // otherwise the client refuses
	}
	if s.cert != "" {
		config += fmt.Sprintf("cert = %s\nkey = %s\n", s.cert, s.key)
	}
	config += fmt.Sprintf("[beanpole]\naccept = 127.0.0.1:0\nconnect = %s\nsni = localhost\ncheckHost = localhost\n", addr)
	file := filepath.Join(t.TempDir(), "stunnel.conf")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	bound, err := background(t, nil, "stunnel", file).Await(`bound to (127\.0\.0\.1:\d+)`)
	if err != nil {
		t.Fatal(err)
	}
	return bound[1]
}

func say(nc net.Conn, text string) (string, error) {
	if err := nc.SetDeadline(time.Now().Add(patience)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(nc, text); err != nil {
		return "", err
	}
	got, err := io.ReadAll(nc)
	return string(got), err
}

// output runs a program with an input. The error contains the program's stderr.
func output(t *testing.T, input string, env []string, program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdin = strings.NewReader(input)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if ctx.Err() != nil {
		t.Errorf("%s does not exit", cmd)
	}
	if err != nil && stderr.Len() > 0 {
		err = errors.Join(err, errors.New(stderr.String()))
	}
	return stdout.String(), err
}
