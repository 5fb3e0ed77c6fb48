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
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/beanpole-mq/beanpole/internal/admin"
	"github.com/beanpole-mq/beanpole/internal/admin/connlimit"
	"github.com/beanpole-mq/beanpole/internal/adminsocket"
	"github.com/beanpole-mq/beanpole/internal/api"
	"github.com/beanpole-mq/beanpole/internal/config"
	"github.com/beanpole-mq/beanpole/internal/console"
	"github.com/beanpole-mq/beanpole/internal/exit"
	"github.com/beanpole-mq/beanpole/internal/server"
)

const (
	adminRequests     = 64  // maximum number of concurrent requests, excluding health probes
	adminConnections  = 128 // maximum number of connections to the address of --admin
	socketConnections = 32  // maximum number of connections to the local socket
)

// An adminServer serves the admin API, the console, metrics and health checks. Until the
// queue is loaded, it only reports that the server is starting.
type adminServer struct {
	http.Server
	listeners []listening
	pages     atomic.Pointer[http.Handler]

	console *console.Console // nil if it is disabled
}

// listenAdmin starts to serve on the address of --admin and on the local socket. It
// returns nil if there is neither. The name of the local socket contains the first TCP
// port in queue.
func listenAdmin(ctx context.Context, p *plan, queue []listening) (*adminServer, error) {
	opt, log := p.opt, p.log
	a := new(adminServer)
	a.pages.Store(new(starting()))
	a.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*a.pages.Load()).ServeHTTP(w, r) })
	a.ErrorLog = slog.NewLogLogger(log.Handler(), slog.LevelDebug)
	a.ConnContext = func(ctx context.Context, nc net.Conn) context.Context {
		return api.WithPeer(ctx, connlimit.Accepted(nc))
	}
	connlimit.Guard(&a.Server, adminRequests, admin.IsProbe)
	if opt.Admin.Addr != "" {
		if err := a.listenAddress(ctx, p); err != nil {
			return nil, err
		}
	}
	if err := a.listenSocket(ctx, p, queue); err != nil {
		return nil, err
	}
	for _, warning := range otherWarnings(p.others) {
		log.Warn(warning)
	}
	if a.listeners == nil {
		return nil, nil
	}
	return a, nil
}

// listenAddress serves on the address of --admin.
func (a *adminServer) listenAddress(ctx context.Context, p *plan) error {
	opt, log := p.opt, p.log
	addr, err := opt.Admin.Address()
	if err != nil {
		return exit.UsageError("--admin: %w", err)
	}
	l, err := p.listen(ctx, config.Endpoint{Address: addr, Terms: opt.Terms})
	if err != nil {
		return fmt.Errorf("--admin: %w", err)
	}
	allows := func(client net.Addr) bool { return opt.Terms.Admits(server.AddressOf(client)) }
	served := connlimit.Listen(l, adminConnections, allows)
	if source := p.security.certs[opt.Terms.TLS]; source != nil {
		served = tls.NewListener(served, source.Config())
	}
	a.serve(l, served, log)
	log.Info("serving the admin API", "address", describe(l.Addr()))
	if opt.Terms.Open(server.AddressOf(l.Addr()), opt.Terms.TLS.ClientCA != "" || p.security.HasIdentities()) {
		log.Warn("every client that can reach this address can manage the queue; restrict it with --networks or --tls-client-ca, "+
			"by identities or by a firewall (doc/security.md)", "address", describe(l.Addr()))
	}
	return nil
}

// listenSocket serves on the local socket, without TLS. If no path is configured, it uses
// the first usable one. If no path is usable, the server starts without the socket.
func (a *adminServer) listenSocket(ctx context.Context, p *plan, queue []listening) error {
	opt := p.opt
	if opt.Admin.Socket == config.NoSocket {
		return nil
	}
	paths := []string{opt.Admin.Socket}
	if opt.Admin.Socket == "" {
		port := ""
		for _, l := range queue {
			if tcp, ok := l.Addr().(*net.TCPAddr); ok && port == "" {
				port = strconv.Itoa(tcp.Port)
			}
		}
		paths = adminsocket.Paths(port, opt.Journal.Dir)
		if os.Geteuid() == 0 && os.Mkdir(adminsocket.System, 0o755) == nil {
			if err := p.account.own(adminsocket.System); err != nil {
				return err
			}
		}
	}
	var failed error
	for _, path := range paths {
		addr, err := server.ParseAddress("unix:"+path, "")
		if err == nil {
			var l listening
			if l, err = p.listen(ctx, config.Endpoint{Address: addr}); err == nil {
				a.serve(l, connlimit.Listen(l, socketConnections, func(net.Addr) bool { return true }), p.log)
				return nil
			}
		}
		failed = cmp.Or(failed, err)
	}
	if opt.Admin.Socket != "" {
		return exit.WithCode(exit.Socket, fmt.Errorf("--admin-socket: %w", failed))
	}
	p.log.Info("no local admin socket: set --admin-socket to a path", "tried", paths, "err", failed)
	return nil
}

// serve starts to accept connections from served, a wrapper of l, and adds l to the
// listeners.
func (a *adminServer) serve(l listening, served net.Listener, log *slog.Logger) {
	a.listeners = append(a.listeners, l)
	go func() {
		if err := a.Serve(served); !errors.Is(err, http.ErrServerClosed) {
			log.Error("stopped serving the admin API", "address", describe(l.Addr()), "err", err)
		}
	}()
}

// starting returns the handler that is used until the queue is loaded.
func starting() http.Handler {
	const why = "the server is starting: reading the journal"
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, why, http.StatusServiceUnavailable) })
	mux.Handle(api.Prefix+"/", api.Problem(http.StatusServiceUnavailable, why))
	return mux
}

// ready replaces the startup handler with one that serves q.
func (a *adminServer) ready(p *plan, q *queue, srv *server.Server, operations *operations) {
	if a == nil {
		return
	}
	opt := p.opt
	o := admin.Options{
		Version: p.version, Tubes: cmp.Or(opt.Admin.Tubes, -1), Profiles: opt.Admin.Profiles, Logger: p.log,
		API: operations, Server: srv.Counts, Journal: q.journalStats(), Identify: operations.identify, Refused: srv.Refused,
		Certificates: p.security.expiries, Warnings: p.security.certificateWarnings,
		Hosts: adminHosts(opt),
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
	if socket := a.listeners[len(a.listeners)-1]; opt.Admin.Socket != config.NoSocket && socket.Addr().Network() == "unix" {
		p.log.Info("serving the admin API to this machine", "socket", socket.Addr())
	}
}

// hostname returns the name of this machine, which the console and the API show.
func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return "this machine"
	}
	return name
}

// adminHosts returns the host names that requests to the admin listener on loopback can
// contain: those in the configuration, and the machine's own, which many systems resolve
// to loopback.
func adminHosts(opt *config.Options) []string {
	name := hostname()
	short, _, _ := strings.Cut(name, ".")
	return slices.Concat(opt.Admin.Hosts, []string{name, short})
}

// adminGrace is the maximum time for running requests to finish when the server stops.
const adminGrace = time.Second

// stop closes the listeners. It waits up to adminGrace for running requests, which need
// the queue, and then closes their connections.
func (a *adminServer) stop() {
	if a == nil {
		return
	}
	if a.console != nil {
		a.console.Close() // otherwise, streams do not end
	}
	ctx, cancel := context.WithTimeout(context.Background(), adminGrace)
	defer cancel()
	if err := a.Shutdown(ctx); err != nil {
		a.Close()
	}
	for _, l := range a.listeners {
		l.Close() // Serve might not have started, for example if the journal cannot be opened
	}
}
