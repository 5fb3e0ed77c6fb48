package client

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/beanpole-mq/beanpole/internal/certs"
)

const scheme = "beanpole://"

// ParseURL parses a URL that contains everything necessary to connect. Its characters are
// escaped as in any URL:
//
//	beanpole://HOST:PORT                   HOST:PORT
//	beanpole://HOST:PORT,HOST:PORT         HOST:PORT,HOST:PORT, the members of a cluster
//	beanpole:///run/beanpole.sock          unix:/run/beanpole.sock
//	beanpole://TOKEN@HOST:PORT?tls=true    Options.Token, Options.TLS
//	   ?ca=FILE&cert=FILE&key=FILE         TLS with certificates in PEM files
//	   ?server-name=NAME                   TLS with this name in the server's certificate
//
// It returns an address for [Dial], without the token, and options. It returns an address
// that is not a URL unchanged. Errors omit the token.
func ParseURL(s string) (addr string, opt *Options, err error) {
	opt = new(Options)
	if !strings.HasPrefix(s, scheme) {
		return s, opt, nil
	}
	first, others := firstHost(s)
	u, err := url.Parse(first)
	if err != nil { // the text of err contains the token
		return scheme + "...", opt, fmt.Errorf("%w: not a URL; want %s[TOKEN@]HOST:PORT[?tls=true]", ErrInvalid, scheme)
	}
	addr = u.Host + others
	switch path := strings.TrimSuffix(u.Path, "/"); {
	case path != "" && addr != "":
		return addr, opt, fmt.Errorf("%w: a path after the host; for a Unix socket, use %s/PATH", ErrInvalid, scheme)
	case path != "":
		addr = "unix:" + path
	}
	if u.User != nil {
		opt.Token = u.User.Username()
		if _, more := u.User.Password(); more {
			return addr, opt, fmt.Errorf("%w: a colon in the part before the host, which can only be a token", ErrInvalid)
		}
	}
	opt.TLS, err = tlsOf(u.Query())
	return addr, opt, err
}

// firstHost splits a URL with a list of hosts into a URL with only the first host, and
// the other hosts, each after its comma.
func firstHost(s string) (first, others string) {
	start := len(scheme)
	end := start + strings.IndexAny(s[start:]+"/", "/?#")
	start += strings.LastIndexByte(s[start:end], '@') + 1
	if i := strings.IndexByte(s[start:end], ','); i >= 0 {
		return s[:start+i] + s[end:], s[start+i : end]
	}
	return s, ""
}

// tlsOf returns the TLS configuration in the query of a URL, or nil.
func tlsOf(query url.Values) (*tls.Config, error) {
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if !slices.Contains([]string{"tls", "ca", "cert", "key", "server-name"}, name) {
			return nil, fmt.Errorf("%w: unknown parameter %s in a URL; use tls, ca, cert, key or server-name", ErrInvalid, name)
		}
	}
	if on, err := strconv.ParseBool(cmp.Or(query.Get("tls"), "true")); err != nil {
		return nil, fmt.Errorf("%w: tls=%s in a URL; want true or false", ErrInvalid, query.Get("tls"))
	} else if !on || len(query) == 0 {
		return nil, nil
	}
	of := certs.Client{CA: query.Get("ca"), Cert: query.Get("cert"), Key: query.Get("key"), ServerName: query.Get("server-name")}
	config, err := of.Config()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return config, nil
}

// parseServer parses an address. It returns the address without its token, the addresses
// in the list, and the options. The token and the TLS settings of a URL replace those of
// opt.
func parseServer(s string, opt *Options) (text string, addrs []address, o Options, err error) {
	o = opt.filled()
	text, of, err := ParseURL(s)
	if err != nil {
		return text, nil, o, err
	}
	o.Token = cmp.Or(of.Token, o.Token)
	o.TLS = cmp.Or(of.TLS, o.TLS)
	addrs, err = parseAddresses(text)
	return text, addrs, o, err
}

// withoutToken returns an address without its token, for errors and logs.
func withoutToken(s string) string {
	addr, _, _ := ParseURL(s)
	if strings.Contains(addr, "://") { // a list with a URL in it
		return scheme + "..."
	}
	return addr
}
