package config

import (
	"errors"

	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/certs"
	"github.com/beanpole-mq/beanpole/internal/cli/kit"
	"github.com/beanpole-mq/beanpole/internal/server"
)

// ListenerOptions are what a listener asks of its clients, as the configuration says it.
type ListenerOptions struct {
	access.Terms
	TLS certs.Files // empty: no TLS
}

// check finds what contradicts itself.
func (t *ListenerOptions) check() error {
	if (t.TLS != certs.Files{}) && (t.TLS.Cert == "" || t.TLS.Key == "") {
		return errors.New("TLS needs both tls-cert and tls-key")
	}
	return nil
}

// An Endpoint is where to listen, and what is asked of clients there.
type Endpoint struct {
	server.Address
	Terms ListenerOptions
}

// Endpoints are where to listen, now that all options are known: the addresses of
// listen, and the listeners of the configuration file.
func (opt *Options) Endpoints() ([]Endpoint, error) {
	if err := opt.Terms.check(); err != nil {
		return nil, kit.UsageError("%w", err)
	}
	listen := opt.Listen
	if opt.byDefault() {
		listen = []string{server.DefaultHost}
	}
	var endpoints []Endpoint
	for _, s := range listen {
		a, err := server.ParseAddress(s, opt.Port)
		if err != nil {
			return nil, kit.UsageError("%w", err)
		}
		endpoints = append(endpoints, Endpoint{a, opt.Terms})
	}
	for i, t := range opt.Tables.Listeners {
		e, err := t.endpoint(opt.Port)
		if err != nil {
			return nil, kit.UsageError("%s: listener %d: %w", opt.File, i+1, err)
		}
		endpoints = append(endpoints, e)
	}
	return endpoints, nil
}

// byDefault reports whether nobody says where to listen.
func (opt *Options) byDefault() bool { return len(opt.Listen) == 0 && len(opt.Tables.Listeners) == 0 }

// AlsoByDefault returns where else to listen if that is possible, for localhost has two
// addresses. A port that the system chooses would not be the same there.
func (opt *Options) AlsoByDefault() (a server.Address, ok bool) {
	return server.Address{Host: "::1", Port: opt.Port}, opt.byDefault() && opt.Port != "0"
}

// endpoint returns where the listener is and what it asks.
func (t *listenerTable) endpoint(port string) (e Endpoint, err error) {
	if e.Address, err = server.ParseAddress(t.Address, port); err != nil {
		return e, err
	}
	if e.Terms.Networks, err = parseAll(t.Networks, parseNetwork); err != nil {
		return e, err
	}
	if e.Terms.Proxies, err = parseAll(t.Proxies, parseNetwork); err != nil {
		return e, err
	}
	e.Terms.TLS = certs.Files{Cert: t.TLSCert, Key: t.TLSKey, ClientCA: t.ClientCA}
	e.Terms.Required, e.Terms.TokenInPut = t.Auth, t.TokenInPut
	return e, e.Terms.check()
}
