package server

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestParseAddress(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want Address
	}{
		{"127.0.0.1", Address{Host: "127.0.0.1", Port: "11300"}},
		{"127.0.0.1:11301", Address{Host: "127.0.0.1", Port: "11301"}},
		{"0.0.0.0:0", Address{Host: "0.0.0.0", Port: "0"}},
		{"localhost", Address{Host: "localhost", Port: "11300"}},
		{"localhost:53", Address{Host: "localhost", Port: "53"}},
		{":11301", Address{Port: "11301"}},
		{"::", Address{Host: "::", Port: "11300"}},
		{"::1", Address{Host: "::1", Port: "11300"}},
		{"::1:1130", Address{Host: "::1:1130", Port: "11300"}},
		{"[::1]", Address{Host: "::1", Port: "11300"}},
		{"[::1]:11302", Address{Host: "::1", Port: "11302"}},
		{"fe80::1%lo", Address{Host: "fe80::1%lo", Port: "11300"}},
		{"[fe80::1%lo]:1", Address{Host: "fe80::1%lo", Port: "1"}},
		{"unix:/run/beanpole.sock", Address{Path: "/run/beanpole.sock"}},
		{"unix:relative:path", Address{Path: "relative:path"}},
		{"unix:./@name", Address{Path: "./@name"}},
		{"unix:" + strings.Repeat("x", maxUnixPath), Address{Path: strings.Repeat("x", maxUnixPath)}},
	} {
		got, err := ParseAddress(tt.in, "11300")
		if err != nil || got != tt.want {
			t.Errorf("ParseAddress(%q) = %+v, %v; want %+v", tt.in, got, err, tt.want)
			continue
		}
		if again, err := ParseAddress(got.String(), "1"); err != nil || again != got {
			t.Errorf("ParseAddress(%q) of the result = %+v, %v; want %+v", got.String(), again, err, got)
		}
	}
}

func TestParseAddressErrors(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"", "want IP"},
		{"0", "want IP"},
		{"127.1", "want IP"},
		{"0x7f.1:11300", "want IP"},
		{"127.0.0.1:", "0 to 65535"},
		{"127.0.0.1:65536", "0 to 65535"},
		{"127.0.0.1:-1", "0 to 65535"},
		{"localhost:domain", "0 to 65535"},
		{"::1:11300", "[IPv6]:PORT"},
		{"a:b:c", "[IPv6]:PORT"},
		{"[::1", "[IPv6]:PORT"},
		{"[127.0.0.1]:1", "[IPv6]:PORT"},
		{"[127.0.0.1]", "[IPv6]:PORT"},
		{"[::1]x", "[IPv6]:PORT"},
		{"[::1]:", "0 to 65535"},
		{"unix:", "needs a path"},
		{"unix:@beanpole", "abstract"},
		{"unix:" + strings.Repeat("x", maxUnixPath+1), "at most"},
	} {
		if got, err := ParseAddress(tt.in, "11300"); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("ParseAddress(%q) = %+v, %v; want an error with %q", tt.in, got, err, tt.want)
		}
	}
}

// listen opens a listener, and closes it when the test ends.
func listen(t *testing.T, mode fs.FileMode, a Address) (net.Listener, error) {
	t.Helper()
	l, err := Listen(t.Context(), a, mode)
	if err == nil {
		t.Cleanup(func() { l.Close() })
	}
	return l, err
}

// mustListen is like listen, but fails the test on an error.
func mustListen(t *testing.T, a Address) net.Listener {
	t.Helper()
	l, err := listen(t, DefaultUnixMode, a)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func checkAccepts(t *testing.T, l net.Listener, network, addr string) {
	t.Helper()
	out, err := net.Dial(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	in, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	in.Close()
}

func TestListenTCP(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "localhost"} {
		l := mustListen(t, Address{Host: host, Port: "0"})
		checkAccepts(t, l, "tcp", l.Addr().String())
	}
}

// As with beanstalkd, the host 0.0.0.0 selects only IPv4, although it selects both
// families for package net. An empty host selects both.
func TestListenFamilies(t *testing.T) {
	l6, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		t.Skip("no IPv6 here: ", err)
	}
	l6.Close()

	l := mustListen(t, Address{Host: "0.0.0.0", Port: "0"})
	if addr := l.Addr().String(); !strings.HasPrefix(addr, "0.0.0.0:") {
		t.Errorf("listening on %s, want 0.0.0.0", addr)
	}
	for _, host := range []string{"", "::"} {
		l = mustListen(t, Address{Host: host, Port: "0"})
		_, port, err := net.SplitHostPort(l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		checkAccepts(t, l, "tcp4", "127.0.0.1:"+port)
		checkAccepts(t, l, "tcp6", "[::1]:"+port)
	}
}

func TestListenErrors(t *testing.T) {
	taken := mustListen(t, Address{Host: "127.0.0.1", Port: "0"})
	_, port, _ := net.SplitHostPort(taken.Addr().String())
	for _, tt := range []struct {
		addr  Address
		want  string
		cause error
	}{
		{Address{Host: "127.0.0.1", Port: port}, "listen on 127.0.0.1:" + port + ": address already in use", syscall.EADDRINUSE},
		{Address{Host: "192.0.2.1", Port: "0"}, "listen on 192.0.2.1:0: cannot assign requested address", syscall.EADDRNOTAVAIL},
		{Address{Path: "/dev/null/x"}, "listen on unix:/dev/null/x: not a directory", syscall.ENOTDIR},
	} {
		_, err := listen(t, 0, tt.addr)
		if err == nil || err.Error() != tt.want {
			t.Errorf("Listen(%v) = %v, want %s", tt.addr, err, tt.want)
		}
		if !errors.Is(err, tt.cause) {
			t.Errorf("Listen(%v) = %v, which does not wrap %v", tt.addr, err, tt.cause)
		}
	}
}

func TestListenUnix(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	for _, mode := range []fs.FileMode{0o660, 0o600, 0o777, 0o606} {
		l, err := listen(t, mode, Address{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		fi, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		if fi.Mode() != fs.ModeSocket|mode {
			t.Errorf("mode %v, want a socket with %v", fi.Mode(), mode)
		}
		checkAccepts(t, l, "unix", path)
		l.Close()
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("after Close: %v, want the file removed", err)
		}
	}
}

func TestListenUnixFileExists(t *testing.T) {
	dir := t.TempDir()

	live := filepath.Join(dir, "live")
	l := mustListen(t, Address{Path: live})
	if _, err := listen(t, 0, Address{Path: live}); !errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), "a server answers there") {
		t.Errorf("over a live server: %v", err)
	}
	l.Accept() // the connection that checked for a running server
	checkAccepts(t, l, "unix", live)

	stale := filepath.Join(dir, "stale")
	dead := listenOn(t, "unix")
	dead.(*net.UnixListener).SetUnlinkOnClose(false)
	dead.Close()
	checkAccepts(t, mustListen(t, Address{Path: stale}), "unix", stale)

	for name, create := range map[string]func(string) error{
		"file":      func(p string) error { return os.WriteFile(p, []byte("kept"), 0o600) },
		"directory": func(p string) error { return os.Mkdir(p, 0o700) },
		"symlink":   func(p string) error { return os.Symlink(stale, p) },
	} {
		path := filepath.Join(dir, name)
		if err := create(path); err != nil {
			t.Fatal(err)
		}
		if _, err := listen(t, 0, Address{Path: path}); err == nil || !strings.Contains(err.Error(), "not a socket") {
			t.Errorf("over a %s: %v", name, err)
		}
		if _, err := os.Lstat(path); err != nil {
			t.Errorf("the %s: %v", name, err)
		}
	}
}
