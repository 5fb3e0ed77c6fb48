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

// ParseURL takes a URL apart that has all that it takes to connect. Its characters are
// escaped as in any URL:
//
//	beanpole://HOST:PORT                   HOST:PORT
//	beanpole:///run/beanpole.sock          unix:/run/beanpole.sock
//	beanpole://TOKEN@HOST:PORT?tls=true    Options.Token, Options.TLS
//	   ?ca=FILE&cert=FILE&key=FILE         TLS with certificates in PEM files
//	   ?server-name=NAME                   TLS with this name in the server's certificate
//
// It returns an address as [Dial] takes it, without the token, and options. Any other
// address than a URL is returned as it is. Errors do not tell the token.
func ParseURL(s string) (addr string, opt *Options, err error) {
	opt = new(Options)
	if !strings.HasPrefix(s, scheme) {
		return s, opt, nil
	}
	u, err := url.Parse(s)
	if err != nil { // the text of err has the token
		return scheme + "...", opt, fmt.Errorf("%w: not a URL; want %s[TOKEN@]HOST:PORT[?tls=true]", ErrInvalid, scheme)
	}
	addr = u.Host
	switch path := strings.TrimSuffix(u.Path, "/"); {
	case path != "" && addr != "":
		return addr, opt, fmt.Errorf("%w: a path behind the host; a unix socket is %s/PATH", ErrInvalid, scheme)
	case path != "":
		addr = "unix:" + path
	}
	if u.User != nil {
		opt.Token = u.User.Username()
		if _, more := u.User.Password(); more {
			return addr, opt, fmt.Errorf("%w: a colon before the host; a token is alone there", ErrInvalid)
		}
	}
	opt.TLS, err = tlsOf(u.Query())
	return addr, opt, err
}

// tlsOf returns what the query of a URL says of TLS, or nil.
func tlsOf(query url.Values) (*tls.Config, error) {
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if !slices.Contains([]string{"tls", "ca", "cert", "key", "server-name"}, name) {
			return nil, fmt.Errorf("%w: %s in a URL; known are tls, ca, cert, key and server-name", ErrInvalid, name)
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

// parseServer returns the address of a server and the options for it. What a URL says goes
// before what opt says.
func parseServer(s string, opt *Options) (address, Options, error) {
	o := opt.filled()
	addr, of, err := ParseURL(s)
	if err != nil {
		return address{}, o, err
	}
	o.Token = cmp.Or(of.Token, o.Token)
	o.TLS = cmp.Or(of.TLS, o.TLS)
	a, err := parseAddress(addr)
	return a, o, err
}

// withoutToken returns an address as it may be logged.
func withoutToken(s string) string {
	addr, _, _ := ParseURL(s)
	return addr
}
