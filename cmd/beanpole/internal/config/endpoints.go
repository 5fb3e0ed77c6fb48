package config

import (
	"errors"
	"net/netip"

	"github.com/beanpole-mq/beanpole/cmd/beanpole/internal/command"
	"github.com/beanpole-mq/beanpole/internal/certs"
	"github.com/beanpole-mq/beanpole/internal/server"
)

// A Guard is what a listener asks of its clients.
type Guard struct {
	Networks   []netip.Prefix // that clients must come from; none: any
	TLS        certs.Files    // empty: no TLS
	Auth       bool           // a client must prove who it is
	TokenInPut bool           // the body of the first put may be the token
}

// Open reports whether nothing keeps strangers out.
func (g *Guard) Open() bool {
	return len(g.Networks) == 0 && !g.Auth && g.TLS.ClientCA == ""
}

// check finds what contradicts itself.
func (g *Guard) check() error {
	if (g.TLS != certs.Files{}) && (g.TLS.Cert == "" || g.TLS.Key == "") {
		return errors.New("TLS needs both tls-cert and tls-key")
	}
	return nil
}

// An Endpoint is where to listen, and what is asked of clients there.
type Endpoint struct {
	server.Address
	Guard Guard
}

// Endpoints are where to listen, now that all options are known: the addresses of
// listen, and the listeners of the configuration file.
func (opt *Options) Endpoints() ([]Endpoint, error) {
	if err := opt.Guard.check(); err != nil {
		return nil, command.UsageError("%w", err)
	}
	listen := opt.Listen
	if len(listen) == 0 && len(opt.Tables.Listeners) == 0 {
		listen = []string{server.DefaultHost}
	}
	var endpoints []Endpoint
	for _, s := range listen {
		a, err := server.ParseAddress(s, opt.Port)
		if err != nil {
			return nil, command.UsageError("%w", err)
		}
		endpoints = append(endpoints, Endpoint{a, opt.Guard})
	}
	for i, t := range opt.Tables.Listeners {
		e, err := t.endpoint(opt.Port)
		if err != nil {
			return nil, command.UsageError("%s: listener %d: %w", opt.File, i+1, err)
		}
		endpoints = append(endpoints, e)
	}
	return endpoints, nil
}

// endpoint returns where the listener is and what it asks.
func (t *listenerTable) endpoint(port string) (e Endpoint, err error) {
	if e.Address, err = server.ParseAddress(t.Address, port); err != nil {
		return e, err
	}
	if e.Guard.Networks, err = parseNetworks(t.Networks); err != nil {
		return e, err
	}
	e.Guard.TLS = certs.Files{Cert: t.TLSCert, Key: t.TLSKey, ClientCA: t.ClientCA}
	e.Guard.Auth, e.Guard.TokenInPut = t.Auth, t.TokenInPut
	return e, e.Guard.check()
}
