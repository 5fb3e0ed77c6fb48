package main

import (
	"log/slog"
	"net"
	"sync/atomic"

	"github.com/beanpole-mq/beanpole/cmd/beanpole/internal/command"
	"github.com/beanpole-mq/beanpole/cmd/beanpole/internal/config"
	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/certs"
	"github.com/beanpole-mq/beanpole/internal/server"
)

// security has the policy in force and the certificates. All listeners share it.
type security struct {
	policy atomic.Pointer[access.Policy]
	on     bool // there are identities or rules, or a listener wants to know who clients are
	certs  map[certs.Files]*certs.Source
}

// newSecurity reads the certificates and makes the policy.
func newSecurity(opt *config.Options, endpoints []config.Endpoint, log *slog.Logger) (*security, error) {
	s := &security{certs: make(map[certs.Files]*certs.Source)}
	p, err := opt.Policy()
	if err != nil {
		return nil, err
	}
	s.policy.Store(p)
	s.on = opt.Tables.Secure()
	guards := []config.Guard{opt.Guard} // for sockets that are passed to us
	for _, e := range endpoints {
		guards = append(guards, e.Guard)
	}
	for _, g := range guards {
		s.on = s.on || g.Auth
		if g.Auth && p.Known() == 0 {
			return nil, command.UsageError("require-auth: nobody could get in, for there is no [[identity]] in a configuration file")
		}
		if _, ok := s.certs[g.TLS]; ok || g.TLS == (certs.Files{}) {
			continue
		}
		if s.certs[g.TLS], err = certs.Load(g.TLS, log); err != nil {
			return nil, command.UsageError("%w", err)
		}
	}
	return s, nil
}

// serve serves the clients of a listener.
func (s *security) serve(srv *server.Server, l listening) error {
	a := server.Access{Networks: l.guard.Networks, Required: l.guard.Auth, TokenInPut: l.guard.TokenInPut}
	if source := s.certs[l.guard.TLS]; source != nil {
		a.TLS = source.Config()
	}
	if s.on {
		a.Policy = s.policy.Load
	}
	if a.TLS == nil && a.Policy == nil && len(a.Networks) == 0 {
		return srv.Serve(l.Listener)
	}
	return srv.ServeWith(l.Listener, a)
}

// warn tells of a listener that anybody on the network can use.
func (s *security) warn(log *slog.Logger, l listening) {
	tcp, ok := l.Addr().(*net.TCPAddr)
	if ok && !tcp.IP.IsLoopback() && l.guard.Open() {
		log.Warn("anybody who can reach this address can use the queue: restrict it with --networks, --require-auth or "+
			"--tls-client-ca, or by a firewall (doc/security.md)", "address", describe(l.Addr()))
	}
}
