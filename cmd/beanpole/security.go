package main

import (
	"log/slog"
	"net"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/certs"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/server"
)

// A security is what listeners share: the policy in force and the certificates.
type security struct {
	policy atomic.Pointer[access.Policy]
	on     bool // there are identities or rules, or a listener wants to know who clients are
	certs  map[certs.Files]*certs.Source
}

// newSecurity reads the certificates and makes the policy.
func newSecurity(opt *serveOptions, endpoints []endpoint, log *slog.Logger) (*security, error) {
	s := &security{certs: make(map[certs.Files]*certs.Source)}
	p, err := opt.tables.policy()
	if err != nil {
		return nil, usageError("%s: %w", opt.config, err)
	}
	s.policy.Store(p)
	s.on = len(opt.tables.Identities)+len(opt.tables.Rules) > 0
	guards := []guardOptions{opt.guard} // for sockets that are passed to us
	for _, e := range endpoints {
		guards = append(guards, e.guard)
	}
	for _, g := range guards {
		s.on = s.on || g.auth
		if g.auth && p.Known() == 0 {
			return nil, usageError("require-auth: nobody could get in, for there is no [[identity]] in a configuration file")
		}
		if _, ok := s.certs[g.tls]; ok || g.tls == (certs.Files{}) {
			continue
		}
		if s.certs[g.tls], err = certs.Load(g.tls, log); err != nil {
			return nil, usageError("%w", err)
		}
	}
	return s, nil
}

// serve serves the clients of a listener.
func (s *security) serve(srv *server.Server, l listening) error {
	a := server.Access{Networks: l.guard.networks, Required: l.guard.auth, TokenInPut: l.guard.tokenInPut}
	if source := s.certs[l.guard.tls]; source != nil {
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
	if ok && !tcp.IP.IsLoopback() && l.guard.open() {
		log.Warn("anybody who can reach this address can use the queue: restrict it with --networks, --require-auth or "+
			"--tls-client-ca, or by a firewall (doc/security.md)", "address", describe(l.Addr()))
	}
}

// reload reads the configuration again and puts into force what can be changed without
// a restart; nothing, if it is wrong. The server was started with the settings started.
func reload(log *slog.Logger, line commandLine, started *settings, sec *security, q *queue, srv *server.Server, level *slog.LevelVar) {
	s, err := line.settings()
	var policy *access.Policy
	if err == nil {
		policy, err = s.opt.tables.policy()
	}
	var limits engine.Limits
	if err == nil {
		limits, err = s.opt.limits()
	}
	if err != nil {
		log.Error("the configuration is wrong; the old one stays in force", "err", err)
		return
	}
	for _, source := range sec.certs {
		if err := source.Reload(); err != nil {
			log.Error("a certificate cannot be used; the old one stays in force", "err", err)
		}
	}
	sec.policy.Store(policy)
	q.broker.Call(func(e *engine.Engine, _ int64) { e.SetLimits(limits) })
	srv.SetLimits(s.opt.clientLimits())
	level.Set(s.opt.level())
	log.Info("the configuration was read again")
	if names := needRestart(started, s, sec); len(names) > 0 {
		log.Warn("some settings have changed that take effect with the next restart", "settings", strings.Join(names, ", "))
	}
}

// reloadable are the settings that take effect without a restart.
var reloadable = []string{"verbose", "max-memory", "max-tubes", "max-watched", "max-connections-per-address", "max-commands-per-second"}

// needRestart returns the names of settings that differ and cannot be changed while the
// server runs.
func needRestart(started, now *settings, sec *security) (names []string) {
	for _, name := range settingNames(now.flags) {
		if !slices.Contains(reloadable, name) && started.flags.Lookup(name).Value.String() != now.flags.Lookup(name).Value.String() {
			names = append(names, name)
		}
	}
	if !reflect.DeepEqual(started.opt.tables.Listeners, now.opt.tables.Listeners) {
		names = append(names, "[[listener]]")
	}
	if !sec.on && len(now.opt.tables.Identities)+len(now.opt.tables.Rules) > 0 {
		names = append(names, "the first [[identity]] or [[rule]]")
	}
	return names
}
