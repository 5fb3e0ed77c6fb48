package config

import (
	"errors"

	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/certs"
	"github.com/beanpole-mq/beanpole/internal/exit"
	"github.com/beanpole-mq/beanpole/internal/server"
)

// ListenerOptions contains a listener's configured requirements for its clients.
type ListenerOptions struct {
	access.ListenerPolicy
	TLS certs.Files // empty if TLS is off
}

// check returns an error if options are contradictory.
func (t *ListenerOptions) check() error {
	if (t.TLS != certs.Files{}) && (t.TLS.Cert == "" || t.TLS.Key == "") {
		return errors.New("TLS needs both tls-cert and tls-key")
	}
	return nil
}

// An Endpoint is an address to listen on, with the requirements for its clients.
type Endpoint struct {
	server.Address
	Terms    ListenerOptions
	Optional bool // the server starts even if it cannot listen here
}

// Endpoints returns the addresses of the option listen and the listeners of the
// configuration file. All options must be set.
func (opt *Options) Endpoints() ([]Endpoint, error) {
	if err := opt.Terms.check(); err != nil {
		return nil, exit.UsageError("%w", err)
	}
	listen, byDefault := opt.Listen, len(opt.Listen) == 0 && len(opt.Tables.Listeners) == 0
	if byDefault {
		listen = []string{server.DefaultHost}
	}
	var endpoints []Endpoint
	for _, s := range listen {
		a, err := server.ParseAddress(s, opt.Port)
		if err != nil {
			return nil, exit.UsageError("%w", err)
		}
		endpoints = append(endpoints, Endpoint{Address: a, Terms: opt.Terms})
	}
	for i, t := range opt.Tables.Listeners {
		e, err := t.endpoint(opt.Port)
		if err != nil {
			return nil, exit.UsageError("%s: listener %d: %w", opt.File, i+1, err)
		}
		endpoints = append(endpoints, e)
	}
	if byDefault && opt.Port != "0" { // localhost has two addresses; the system would choose two ports
		endpoints = append(endpoints, Endpoint{Address: server.Address{Host: "::1", Port: opt.Port}, Terms: opt.Terms, Optional: true})
	}
	return endpoints, nil
}

// endpoint returns the Endpoint of the listener.
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
