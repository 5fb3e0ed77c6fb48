package admin

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/api"
	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/certs"
	"github.com/beanpole-mq/beanpole/internal/rights"
	"github.com/beanpole-mq/beanpole/internal/server"
)

// DefaultTubes is the default number of tubes with metrics.
const DefaultTubes = 100

// Options configures New. The zero value is valid.
type Options struct {
	// Version is the version of beanpole.
	Version string

	// Tubes is the number of tubes with metrics: the fullest and the busiest. Zero means
	// DefaultTubes, a negative number none.
	Tubes int

	// Server returns the counters of the server. It is called within turns. It can be
	// nil.
	Server func() server.Counts

	// Journal returns the statistics of the journal. It is called within turns. It is nil
	// if there is no journal.
	Journal func() server.JournalStats

	// SyncLasts returns the time since the running sync of the journal started, or zero
	// if none is running. It is safe for concurrent use. It is nil if there is no
	// journal.
	SyncLasts func() time.Duration

	// NotReady returns the reason why clients cannot use the queue, apart from its
	// journal, or "" if they can. It is called within turns. It can be nil.
	NotReady func() string

	// Cluster returns this member's view of its cluster; ok is false if the member
	// currently has no view. It is not called within turns. It is nil if there is no
	// cluster.
	Cluster func() (s ClusterStats, ok bool)

	// Certificates returns the expiries of the listeners' certificates. It is nil if
	// there are no certificates.
	Certificates func() []certs.Expiry

	// Warnings returns problems that do not keep clients from using the queue. It can be
	// nil.
	Warnings func() []string

	// Identify authenticates a request. ok is false if the request must be refused. If
	// Identify is nil, every client has all rights.
	Identify func(*http.Request) (*access.Identity, bool)

	// Refused is called when a client lacks the right to a page. It can be nil.
	Refused func(client, identity, what string, tubes ...string)

	// Hosts contains the host names that requests on loopback can have in addition to
	// loopback's own names: the names under which a proxy on this machine serves the
	// pages.
	Hosts []string

	// Profiles enables /debug/pprof/.
	Profiles bool

	// API serves /api/v1/. It can be nil.
	API http.Handler

	// Console serves /console/, to which / redirects. It can be nil.
	Console http.Handler

	// Logger logs pages that cannot be written. It can be nil.
	Logger *slog.Logger
}

// ClusterStats is a member's view of its cluster.
type ClusterStats struct {
	admin.Cluster
	Leads   bool
	Evicted uint64 // connections closed because too many had not presented a certificate
}

// New returns a handler for the pages.
func New(b *broker.Broker, opt Options) http.Handler {
	if opt.Tubes == 0 {
		opt.Tubes = DefaultTubes
	}
	if opt.Identify == nil {
		opt.Identify = api.Identify(new(access.Control))
	}
	if opt.SyncLasts == nil {
		opt.SyncLasts = func() time.Duration { return 0 }
	}
	if opt.Refused == nil {
		opt.Refused = func(string, string, string, ...string) {}
	}
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	w := &watcher{b, &opt, make(chan struct{}, maxLooks)}
	asked := newRequests()
	common := []prometheus.Collector{asked.total, asked.seconds, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})}
	mux := http.NewServeMux()
	guesses := new(access.Guesses)
	mux.Handle("GET /metrics", permitted(&opt, guesses, func(id *access.Identity) http.Handler {
		registry := prometheus.NewRegistry() // one per request, because the result depends on the identity
		registry.MustRegister(common...)
		registry.MustRegister(&collector{w, id})
		return promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, ErrorLog: slog.NewLogLogger(opt.Logger.Handler(), slog.LevelError)})
	}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok\n") })
	mux.HandleFunc("GET /readyz", w.serveReady)
	if opt.Profiles {
		for path, h := range map[string]http.HandlerFunc{
			"/debug/pprof/": pprof.Index, "/debug/pprof/cmdline": pprof.Cmdline, "/debug/pprof/profile": pprof.Profile,
			"/debug/pprof/symbol": pprof.Symbol, "/debug/pprof/trace": pprof.Trace,
		} {
			mux.Handle("GET "+path, permitted(&opt, guesses, func(*access.Identity) http.Handler { return h }))
		}
	}
	if opt.API != nil {
		mux.Handle(api.Prefix+"/", opt.API)
	}
	if opt.Console != nil {
		mux.Handle(consolePath, opt.Console)
		mux.Handle("GET /{$}", http.RedirectHandler(consolePath, http.StatusSeeOther))
	}
	return asked.count(onLoopback(mux, opt.Hosts))
}

const consolePath = "/console/"

// IsProbe reports whether a request is a health check, as sent by load balancers and
// orchestrators.
func IsProbe(r *http.Request) bool { return r.URL.Path == "/healthz" || r.URL.Path == "/readyz" }

// permitted returns a handler that refuses a page to clients without a right to the
// statistics of any tube.
func permitted(opt *Options, guesses *access.Guesses, page func(*access.Identity) http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, known := opt.Identify(r)
		switch {
		case !known:
			opt.Refused(r.RemoteAddr, "", r.URL.Path+" without a valid token")
			p := api.Unknown(r, guesses)
			if p.RetryAfter > 0 {
				w.Header().Set("Retry-After", "60")
			} else {
				w.Header().Set("WWW-Authenticate", `Bearer realm="beanpole"`)
			}
			http.Error(w, p.Detail, p.Status)
		case !id.Meets(rights.Stats.On(rights.SomeTube)):
			opt.Refused(r.RemoteAddr, id.Name(), r.URL.Path)
			http.Error(w, "this page requires the stats right on at least one tube", http.StatusForbidden)
		default:
			page(id).ServeHTTP(w, r)
		}
	})
}
