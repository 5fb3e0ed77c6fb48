package daemon

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync/atomic"
	"time"

	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/admin"
	"github.com/beanpole-mq/beanpole/internal/admin/connlimit"
	"github.com/beanpole-mq/beanpole/internal/api"
	"github.com/beanpole-mq/beanpole/internal/cli/kit"
	"github.com/beanpole-mq/beanpole/internal/config"
	"github.com/beanpole-mq/beanpole/internal/console"
	"github.com/beanpole-mq/beanpole/internal/server"
)

// adminRequests is how many requests to the admin pages are served at once.
const adminRequests = 64

// An adminServer serves the admin pages: before the queue is there, that it is not.
type adminServer struct {
	http.Server
	listener net.Listener
	pages    atomic.Pointer[http.Handler]

	console *console.Console // nil: there is none
}

// listenAdmin opens the socket of the admin pages and serves them. Nil if there are
// none.
func listenAdmin(ctx context.Context, p *plan) (*adminServer, error) {
	opt, log := p.opt, p.log
	if opt.Admin.Addr == "" {
		return nil, nil
	}
	addr, err := opt.Admin.Address()
	if err != nil {
		return nil, kit.UsageError("--admin: %w", err)
	}
	listeners, err := server.Listen(ctx, []server.Address{addr}, opt.UnixMode)
	if err != nil {
		return nil, kit.WithCode(kit.ExitSocket, fmt.Errorf("--admin: %w%s", err, hint(err)))
	}
	if err := p.account.own([]server.Address{addr}); err != nil {
		closeAll(listeners)
		return nil, err
	}
	a := &adminServer{listener: listeners[0]}
	a.pages.Store(new(starting()))
	a.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*a.pages.Load()).ServeHTTP(w, r) })
	d := connlimit.New(a.listener, adminLimits(opt))
	a.ConnContext = api.WithPeer
	d.Guard(&a.Server)
	a.ErrorLog = slog.NewLogLogger(log.Handler(), slog.LevelDebug)
	var l net.Listener = d
	if source := p.security.certs[opt.Terms.TLS]; source != nil {
		l = tls.NewListener(l, source.Config())
	}
	go func() {
		if err := a.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Error("the admin pages are not served any more", "err", err)
		}
	}()
	log.Info("serving the admin pages", "address", describe(a.listener.Addr()))
	for _, warning := range otherWarnings(opt, p.others) {
		log.Warn(warning)
	}
	if opt.Terms.Open(server.AddressOf(a.listener.Addr()), opt.Terms.TLS.ClientCA != "" || p.security.HasIdentities()) {
		log.Warn("anybody who can reach this address can manage the queue: restrict it with --networks or --tls-client-ca, "+
			"by identities or by a firewall (doc/security.md)", "address", describe(a.listener.Addr()))
	}
	return a, nil
}

// adminLimits says who may come in, and how many.
func adminLimits(opt *config.Options) connlimit.Options {
	return connlimit.Options{
		Requests: adminRequests,
		Probe:    admin.IsProbe,
		Allows:   func(client net.Addr) bool { return opt.Terms.LetIn(server.AddressOf(client)) },
		Machine:  func(client net.Addr) netip.Addr { return access.Machine(server.AddressOf(client)) },
	}
}

// starting returns the pages before the queue is there.
func starting() http.Handler {
	const why = "the server starts: the journal is being read"
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, why, http.StatusServiceUnavailable) })
	mux.Handle(api.Prefix+"/", api.Problem(http.StatusServiceUnavailable, why))
	return mux
}

// ready puts the pages of a queue in the place of those of the start.
func (a *adminServer) ready(p *plan, q *queue, srv *server.Server, operations *operations) {
	if a == nil {
		return
	}
	opt := p.opt
	o := admin.Options{
		Version: p.version, Tubes: cmp.Or(opt.Admin.Tubes, -1), Profiles: opt.Admin.Profiles, Logger: p.log,
		API: operations, Server: srv.Counts, Journal: q.journalStats(), Identify: operations.identify, Refused: srv.Refused,
		Certificates: p.security.expiries, Warnings: p.security.certificateWarnings,
	}
	if o.Journal != nil {
		o.SyncLasts = q.syncs.lasted
	}
	if m := q.member; m != nil {
		o.NotReady = func() string { return plain(m.Ready()) }
		o.Cluster = m.metrics
	}
	if opt.Admin.Console {
		a.console = console.New(console.Options{
			Open: operations.Open, Identify: operations.identify, Sessions: operations.sessions, ReadOnly: opt.Admin.ConsoleReadOnly, Host: hostname(), Version: p.version, Logger: p.log,
			Servers: consoleServers(operations.API, p.others),
		})
		o.Console = a.console
	}
	pages := admin.New(q.broker, o)
	a.pages.Store(&pages)
}

// hostname returns the name of this machine, for people who have several.
func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return "this machine"
	}
	return name
}

// adminGrace is how long a request may take that is under way when the server stops.
const adminGrace = time.Second

// stop ends the pages. It waits for requests that are under way, which need the queue, but
// not for long; the others are cut off.
func (a *adminServer) stop() {
	if a == nil {
		return
	}
	if a.console != nil {
		a.console.Close() // a stream would not end by itself
	}
	ctx, cancel := context.WithTimeout(context.Background(), adminGrace)
	defer cancel()
	if err := a.Shutdown(ctx); err != nil {
		a.Close()
	}
}
