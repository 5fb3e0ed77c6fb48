package admin

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/pprof"
	"strings"
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

// DefaultTubes is how many tubes have metrics of their own.
const DefaultTubes = 100

// Options of the pages. The zero value works.
type Options struct {
	// Version is beanpole's.
	Version string

	// Tubes is how many tubes have metrics of their own: the fullest and the busiest.
	// 0: DefaultTubes; negative: none.
	Tubes int

	// Server returns what the server counts besides the engine. It is called
	// within turns. Nil: nothing.
	Server func() server.Counts

	// Journal returns how the journal is. It is called within turns. Nil: there
	// is none.
	Journal func() server.JournalStats

	// SyncLasts returns how long a sync of the journal has been under way; 0: none is.
	// Any goroutine may call it. Nil: there is no journal.
	SyncLasts func() time.Duration

	// NotReady says why clients cannot use the queue, besides what its journal says; empty:
	// they can. It is called within turns. Nil: they always can.
	NotReady func() string

	// Cluster returns what this member knows of its cluster; ok is false if that is nothing at the moment. It is not
	// called within turns. Nil: there is no cluster.
	Cluster func() (s ClusterStats, ok bool)

	// Certificates returns when the certificates of the listeners end. Nil: there are none.
	Certificates func() []certs.Expiry

	// Warnings returns what somebody should see to, though clients can use the queue. Nil:
	// nothing.
	Warnings func() []string

	// Identify says who sends a request; false if nobody knows, and somebody must.
	// Nil: everybody may see everything.
	Identify func(*http.Request) (*access.Identity, bool)

	// Refused hears of a client that may not see a page. Nil: nobody does.
	Refused func(client, identity, what string, tubes ...string)

	// Hosts are the host names, besides those of loopback, that a request on loopback can
	// have: those of a proxy on this machine.
	Hosts []string

	// Profiles adds /debug/pprof/.
	Profiles bool

	// API serves what is under /api/v1/. Nil: nothing.
	API http.Handler

	// Console serves what is under /console/, to which a browser is led. Nil: nothing.
	Console http.Handler

	// Logger hears of pages that cannot be written. Nil: nobody does.
	Logger *slog.Logger
}

// ClusterStats are what a member knows of its cluster.
type ClusterStats struct {
	admin.Cluster
	Leads   bool
	Evicted uint64 // connections closed because too many had shown no certificate
}

// New returns the pages.
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
	common := []prometheus.Collector{asked.total, asked.seconds, asked.refused, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Vary", "Accept")
		if opt.Console != nil && strings.Contains(r.Header.Get("Accept"), "text/html") {
			http.Redirect(w, r, consolePath, http.StatusSeeOther)
			return
		}
		io.WriteString(w, index(&opt))
	})
	guesses := new(access.Guesses)
	mux.Handle("GET /metrics", permitted(&opt, guesses, func(id *access.Identity) http.Handler {
		registry := prometheus.NewRegistry() // that of one request: what it shows depends on the identity
		registry.MustRegister(common...)
		registry.MustRegister(&collector{w, id})
		return promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, ErrorLog: slog.NewLogLogger(opt.Logger.Handler(), slog.LevelError)})
	}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok\n") })
	mux.HandleFunc("GET /readyz", w.serveReady)
	if opt.Profiles {
		for path, h := range map[string]http.HandlerFunc{
			profilesPath: pprof.Index, "/debug/pprof/cmdline": pprof.Cmdline, "/debug/pprof/profile": pprof.Profile,
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
	}
	return asked.count(onLoopback(mux, opt.Hosts))
}

// IsProbe reports whether a request asks how the server is, as a load balancer or an
// orchestrator does.
func IsProbe(r *http.Request) bool { return r.URL.Path == "/healthz" || r.URL.Path == "/readyz" }

// index names the pages, to a person who opens the address.
func index(opt *Options) string {
	pages := `beanpole

/metrics               figures for Prometheus
/healthz               the process answers
/readyz                clients can use the queue
`
	if opt.API != nil {
		pages += api.Prefix + `/openapi.yaml   describes the JSON API under ` + api.Prefix + "/\n"
	}
	if opt.Console != nil {
		pages += consolePath + "              the queue in a browser\n"
	}
	if opt.Profiles {
		pages += "/debug/pprof/          profiles of the process\n"
	}
	return pages
}

// permitted refuses a page to those who may not see figures of any tube.
func permitted(opt *Options, guesses *access.Guesses, page func(*access.Identity) http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, known := opt.Identify(r)
		switch {
		case !known:
			opt.Refused(r.RemoteAddr, "", r.URL.Path+" without a token that is known")
			p := api.Unknown(r, guesses)
			if p.RetryAfter > 0 {
				w.Header().Set("Retry-After", "60")
			} else {
				w.Header().Set("WWW-Authenticate", `Bearer realm="beanpole"`)
			}
			http.Error(w, p.Detail, p.Status)
		case !id.Meets(rights.Stats.On(rights.SomeTube)):
			opt.Refused(r.RemoteAddr, id.Name(), r.URL.Path)
			http.Error(w, "this page needs the right stats on some tube", http.StatusForbidden)
		default:
			page(id).ServeHTTP(w, r)
		}
	})
}
