package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// The default listening address.
const (
	DefaultHost = "127.0.0.1"
	DefaultPort = "11300"
)

// DefaultUnixMode contains the default permissions of a Unix socket: owner and group can
// connect.
const DefaultUnixMode fs.FileMode = 0o660

// maxUnixPath is the maximum length of a Unix socket's path: 107 bytes on Linux.
const maxUnixPath = len(syscall.RawSockaddrUnix{}.Path) - 1

// keepAlive detects clients whose machine has disappeared. After a minute of silence, the
// kernel sends four probes, 15 seconds apart.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: time.Minute, Interval: 15 * time.Second, Count: 4}

// deadAfter is the maximum time for which a client's kernel can leave bytes
// unacknowledged, or accept none. Without it, Linux would retransmit for a quarter of an
// hour and send no keep-alive probe. It equals the time of keepAlive.
var deadAfter = 2 * time.Minute

// deadAfter returns the time after which the connection of an unresponsive client is
// closed. It is at least the read time that clients are promised. Zero means the system's
// default.
func (o *Options) deadAfter() time.Duration {
	if o.StallTimeout < 0 {
		return 0
	}
	return max(deadAfter, o.StallTimeout)
}

// An Address is a listening address: a TCP host and port, or the path of a Unix socket.
type Address struct {
	Host string // IP address, with a zone if necessary, or host name; empty means all interfaces
	Port string // number; 0 lets the kernel choose
	Path string // path of a Unix socket; if set, Host and Port are empty
}

// ParseAddress parses an address as accepted by -l: IP, NAME, IP:PORT, NAME:PORT, [IPv6],
// [IPv6]:PORT, :PORT for all interfaces, or unix:PATH. An address without a port gets the
// given port. An IPv6 address without brackets has no port: ::1:1130 is an address.
// Errors do not contain s.
func ParseAddress(s, port string) (Address, error) {
	if path, ok := strings.CutPrefix(s, "unix:"); ok {
		return parsePath(path)
	}
	a := Address{Host: s, Port: port}
	inner, ipv6 := strings.CutPrefix(s, "[")
	_, err := netip.ParseAddr(s)
	switch {
	case err == nil:
	case ipv6 && strings.HasSuffix(s, "]"):
		a.Host = strings.TrimSuffix(inner, "]")
	case s == "" || strings.Contains(s, ":"):
		if a.Host, a.Port, err = net.SplitHostPort(s); err != nil {
			return Address{}, errAddress
		}
	}
	ip, err := netip.ParseAddr(a.Host)
	label := a.Host[strings.LastIndex(a.Host, ".")+1:]
	isNumber := label != "" && strings.Trim(label, "0123456789") == "" // as in 127.1 and 0, which are not names
	if ipv6 && !ip.Is6() || err != nil && isNumber {
		return Address{}, errAddress
	}
	return a, CheckPort(a.Port)
}

var errAddress = errors.New("want IP, NAME, IP:PORT, NAME:PORT, [IPv6]:PORT, :PORT or unix:PATH")

func parsePath(path string) (Address, error) {
	switch {
	case path == "":
		return Address{}, errors.New("a unix socket needs a path")
	case len(path) > maxUnixPath:
		return Address{}, fmt.Errorf("the path of a Unix socket is too long: %[2]d bytes, at most %[1]d", maxUnixPath, len(path))
	case path[0] == '@':
		// Package net would open an abstract socket, which has no file permissions.
		return Address{}, errors.New("abstract sockets are not supported (./@NAME is a file)")
	}
	return Address{Path: path}, nil
}

// CheckPort returns an error if s is not a decimal number from 0 to 65535.
func CheckPort(s string) error {
	if _, err := strconv.ParseUint(s, 10, 16); err != nil {
		return errors.New("want a port, a number from 0 to 65535")
	}
	return nil
}

// String returns the address in the form that ParseAddress accepts.
func (a Address) String() string {
	if a.Path != "" {
		return "unix:" + a.Path
	}
	return net.JoinHostPort(a.Host, a.Port)
}

// Listen opens a listener. Its error contains the address and wraps the system's error
// number, if any. A Unix socket gets the permission bits ([fs.ModePerm]) of unixMode.
//
// For a host name, Listen uses one of its IP addresses, which the listener's Addr
// returns. The unspecified IPv6 address :: also accepts IPv4 connections; 0.0.0.0 accepts
// only IPv4.
//
// Closing the listener removes the file of a Unix socket. Listen replaces a file that a
// dead server has left behind. It fails if a server still answers there, or if the file
// is not a socket.
//
// Listen changes the umask of the process temporarily, so other goroutines must not
// create files at the same time.
func Listen(ctx context.Context, a Address, unixMode fs.FileMode) (net.Listener, error) {
	l, err := a.listen(ctx, unixMode)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", a, err)
	}
	return l, nil
}

// Check returns an error if no server can listen on the address on this machine. It does
// not check whether another server listens there.
func (a Address) Check(ctx context.Context) error {
	var err error
	if a.Path != "" {
		_, err = socketExists(a.Path)
	} else {
		var l net.Listener
		if l, err = (Address{Host: a.Host, Port: "0"}).listen(ctx, 0); err == nil {
			return l.Close()
		}
	}
	if err != nil {
		return fmt.Errorf("listen on %s: %w", a, err)
	}
	return nil
}

func (a Address) listen(ctx context.Context, unixMode fs.FileMode) (net.Listener, error) {
	if a.Path != "" {
		return listenUnix(ctx, a.Path, unixMode)
	}
	network := "tcp"
	if ip, err := netip.ParseAddr(a.Host); err == nil && ip.Is4() {
		network = "tcp4"
	}
	lc := net.ListenConfig{KeepAliveConfig: keepAlive}
	l, err := lc.Listen(ctx, network, net.JoinHostPort(a.Host, a.Port))
	return l, bare(err)
}

func listenUnix(ctx context.Context, path string, mode fs.FileMode) (net.Listener, error) {
	if err := removeStale(ctx, path); err != nil {
		return nil, err
	}
	// Unlike a chmod after the bind, a umask leaves no time in which other users can
	// connect.
	old := syscall.Umask(int(fs.ModePerm &^ mode))
	defer syscall.Umask(old)
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "unix", path)
	return l, bare(err)
}

// removeStale removes the socket file of a dead server.
func removeStale(ctx context.Context, path string) error {
	if exists, err := socketExists(path); err != nil || !exists {
		return err
	}
	var d net.Dialer
	nc, err := d.DialContext(ctx, "unix", path)
	switch {
	case err == nil:
		nc.Close()
		return fmt.Errorf("%w: a server answers there", syscall.EADDRINUSE)
	case errors.Is(err, syscall.ECONNREFUSED): // the file exists, but no server listens
		return bare(os.Remove(path))
	default:
		return fmt.Errorf("the socket exists, and might be in use: %w", bare(err))
	}
}

// socketExists reports whether a path is a socket. It returns an error if no server can
// create a socket there.
func socketExists(path string) (bool, error) {
	fi, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		_, err = os.Stat(filepath.Dir(path))
		return false, bare(err)
	case err != nil:
		return false, bare(err)
	case fi.Mode().Type() != fs.ModeSocket:
		return false, errors.New("the file exists and is not a socket")
	}
	return true, nil
}

// bare returns the cause of an error of package net or os, without the address, which the
// caller adds.
func bare(err error) error {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return errors.New(dns.Err)
	}
	return err
}
