package client

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"time"
)

// DefaultPort is the port of an address without one.
const DefaultPort = "11300"

// Defaults of [Options].
const (
	DefaultDialTimeout = 10 * time.Second
	DefaultTimeout     = 30 * time.Second
	DefaultReconnect   = 30 * time.Second
	DefaultMaxConns    = 64
	DefaultMaxIdle     = 8
)

// Never means no limit in those durations of [Options] for which 0 means a default, and
// in the wait of [Conn.ReserveMany].
const Never time.Duration = -1

// Options configures connections. The zero value and a nil *Options connect without
// encryption and without a token. Options are copied and never changed.
type Options struct {
	// TLS, if set, encrypts the connection. An empty ServerName means the host of the
	// address. Add a client certificate here if the server requires one.
	TLS *tls.Config

	// Token, if set, is sent with the command auth before anything else. It has 1 to 217
	// bytes of printable ASCII without spaces. If the server rejects the token, the error
	// is [ErrUnauthorized]; if it lacks auth, like beanstalkd, the error is
	// [ErrUnknownCommand].
	Token string

	// Facts requests [Job].Facts for each reserved job. Servers without this feature,
	// such as beanstalkd, ignore it at the cost of one request per connection.
	Facts bool

	// DialTimeout limits the time of an attempt to connect, including encryption and
	// token. The addresses of a list share it. 0 means [DefaultDialTimeout]; [Never]
	// means no limit.
	DialTimeout time.Duration

	// Timeout limits the time until the reply to a command, in addition to the time that
	// the command makes the server wait. If the server exceeds it, the client closes the
	// connection, at most a quarter of the timeout late. 0 means [DefaultTimeout];
	// [Never] means no limit. A Reserve has no limit either; TCP keep-alive detects a
	// server whose machine has disappeared.
	Timeout time.Duration

	// Reconnect limits the time in which a command without a connection tries to open
	// one, with growing pauses. The last attempt can exceed it by DialTimeout. 0 means
	// [DefaultReconnect]; with [Never], the client does not reconnect.
	Reconnect time.Duration

	// MaxConns is the maximum number of connections on which a [Pool] sends commands at
	// the same time. A call that needs another connection waits until one is free or its
	// context ends. Connections that wait for a job or hold reserved jobs do not count,
	// so that a worker that holds jobs can always put others. 0 means [DefaultMaxConns];
	// a negative number means no limit. Only a Pool uses it.
	MaxConns int

	// MaxIdle is the maximum number of idle connections that a [Pool] keeps. 0 means
	// [DefaultMaxIdle]; a negative number keeps none. Only a Pool uses it.
	MaxIdle int

	// ConnState, if set, is called after a connection was opened, with a nil error, and
	// after it was lost or could not be opened, with the reason. A connection closed by
	// the end of a context or by Close does not count as lost. ConnState must be safe for
	// concurrent use, and must not use the connection.
	ConnState func(addr string, err error)

	// Dial, if set, opens connections in place of a net.Dialer, for example through a
	// proxy. network is "tcp" or "unix". If TLS is set, the client encrypts the
	// connection that Dial returns.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// filled returns the options with defaults in place of zeros. A duration without a limit
// becomes 0, and so does Reconnect for a client that does not reconnect.
func (opt *Options) filled() Options {
	var o Options
	if opt != nil {
		o = *opt
	}
	o.DialTimeout = max(cmp.Or(o.DialTimeout, DefaultDialTimeout), 0)
	o.Timeout = max(cmp.Or(o.Timeout, DefaultTimeout), 0)
	o.Reconnect = max(cmp.Or(o.Reconnect, DefaultReconnect), 0)
	o.MaxConns = cmp.Or(o.MaxConns, DefaultMaxConns)
	o.MaxIdle = cmp.Or(o.MaxIdle, DefaultMaxIdle)
	if o.Dial == nil {
		o.Dial = new(net.Dialer).DialContext
	}
	return o
}

// maxToken is the maximum length of a token: with "auth " and CR LF, it fills a line of
// 224 bytes.
const maxToken = 224 - len("auth ") - len("\r\n")

func (opt *Options) check() error {
	if opt.Token == "" {
		return nil
	}
	if len(opt.Token) > maxToken {
		return fmt.Errorf("%w: a token of %d bytes; at most %d", ErrInvalid, len(opt.Token), maxToken)
	}
	if strings.ContainsFunc(opt.Token, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return fmt.Errorf("%w: a token with a blank or a byte that is not printable ASCII", ErrInvalid)
	}
	return nil
}

// An address is a listening address of a server, for net.Dial.
type address struct {
	network, addr string
	host          string // for the verification of certificates; empty for Unix sockets
}

// parseAddresses parses unix:PATH, or a list of other addresses with commas between them.
func parseAddresses(s string) (addrs []address, err error) {
	list := []string{s}
	if strings.Contains(s, ",") && !strings.HasPrefix(s, "unix:") {
		list = strings.Split(s, ",")
	}
	for _, one := range list {
		switch {
		case strings.Contains(one, "://"): // might contain a token
			return nil, fmt.Errorf("%w: a URL in a list of addresses; as a URL, write the list as %s[TOKEN@]HOST:PORT,HOST:PORT", ErrInvalid, scheme)
		case one == "" && len(list) > 1:
			return nil, fmt.Errorf("%w: address %q has an empty entry", ErrInvalid, s)
		}
		a, err := parseAddress(one)
		if err != nil {
			return nil, err
		}
		addrs = append(addrs, a)
	}
	return addrs, nil
}

// parseAddress parses HOST:PORT, HOST, [IPv6]:PORT or unix:PATH. The default host is
// 127.0.0.1, the default port DefaultPort.
func parseAddress(s string) (address, error) {
	if path, ok := strings.CutPrefix(s, "unix:"); ok {
		if path == "" {
			return address{}, fmt.Errorf("%w: address %q has no path", ErrInvalid, s)
		}
		return address{network: "unix", addr: path}, nil
	}
	host, port, err := net.SplitHostPort(s)
	if err != nil { // the address might lack a port
		host, port, err = net.SplitHostPort(strings.TrimSuffix(s, ":") + ":" + DefaultPort)
	}
	if err != nil || strings.Contains(host, "/") {
		if ip := net.ParseIP(s); ip == nil {
			return address{}, fmt.Errorf("%w: address %q: want HOST:PORT or unix:PATH", ErrInvalid, s)
		}
		host, port = s, DefaultPort // a bare IPv6 address
	}
	host, port = cmp.Or(host, "127.0.0.1"), cmp.Or(port, DefaultPort)
	return address{network: "tcp", addr: net.JoinHostPort(host, port), host: host}, nil
}
