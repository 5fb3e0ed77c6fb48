package daemon

import (
	"log/slog"

	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/certs"
	"github.com/beanpole-mq/beanpole/internal/config"
	"github.com/beanpole-mq/beanpole/internal/exit"
	"github.com/beanpole-mq/beanpole/internal/server"
)

// security contains the access control and the certificates that all listeners share.
type security struct {
	*access.Control
	certs map[certs.Files]*certs.Source
}

// newSecurity reads the certificates and applies an access policy.
func newSecurity(opt *config.Options, p *access.Policy, endpoints []config.Endpoint, log *slog.Logger) (s *security, err error) {
	s = &security{certs: make(map[certs.Files]*certs.Source)}
	listeners := []config.ListenerOptions{opt.Terms} // for inherited sockets
	for _, e := range endpoints {
		listeners = append(listeners, e.Terms)
	}
	var terms []access.ListenerPolicy
	for _, l := range listeners {
		terms = append(terms, l.ListenerPolicy)
		if _, ok := s.certs[l.TLS]; ok || l.TLS == (certs.Files{}) {
			continue
		}
		if s.certs[l.TLS], err = certs.Load(l.TLS, log); err != nil {
			return nil, exit.UsageError("%w", err)
		}
	}
	if s.Control, err = access.NewControl(p, terms); err != nil {
		return nil, exit.UsageError("%w", err)
	}
	return s, nil
}

// serve accepts and serves the clients of a listener.
func (s *security) serve(srv *server.Server, l listening) error {
	terms := server.ListenOptions{ListenerPolicy: l.terms.ListenerPolicy}
	if source := s.certs[l.terms.TLS]; source != nil {
		terms.TLS = source.Config()
	}
	return srv.Serve(l.Listener, terms)
}

// warn logs a warning if any client on the network can use the listener.
func (s *security) warn(log *slog.Logger, l listening) {
	if l.terms.Open(server.AddressOf(l.Addr()), l.terms.TLS.ClientCA != "") {
		log.Warn("every client that can reach this address can use the queue; restrict it with --networks, --require-auth or "+
			"--tls-client-ca, or by a firewall (doc/security.md)", "address", describe(l.Addr()))
	}
}
