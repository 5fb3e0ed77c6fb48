package api

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"sync/atomic"

	_ "embed"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/api/audit"
	"github.com/beanpole-mq/beanpole/internal/api/task"
	"github.com/beanpole-mq/beanpole/internal/api/tubes"
	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/history"
	"github.com/beanpole-mq/beanpole/internal/server"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

// Prefix is the start of all paths.
const Prefix = admin.Prefix

// Options configures an API.
type Options struct {
	// Server provides the connections. It is required.
	Server *server.Server

	// Identify returns the identity of a request, or false if the client must identify
	// itself. If Identify is nil, every client has all rights.
	Identify func(*http.Request) (*access.Identity, bool)

	// Version is the version of beanpole.
	Version string

	// Journal returns the state of the journal. It is called within turns. It is nil if
	// there is no journal.
	Journal func() server.JournalStats

	// RewriteJournal starts a rewrite of the journal. It is called within turns. It is
	// nil if there is no journal.
	RewriteJournal func()

	// Facts returns a description of the server and its start. It can be nil.
	Facts func() admin.Server

	// CertificateWarnings returns warnings about certificates that have expired or expire
	// soon. It can be nil.
	CertificateWarnings func() []string

	// LimitOf returns the source of the limits of a tube, or "" if the tube has no
	// limits. It can be nil.
	LimitOf func(tube string) string

	// Backup opens a copy of the journal. It is called outside turns, and not again
	// before the copy is closed. The client receives its error. The copy is nil if the
	// journal is empty. Backup is nil if there is no journal.
	Backup func() (Backup, error)

	// Leader returns a transport to FromMembers of the cluster's leader. The transport is
	// nil if this server is the leader. The error is the reason why there is no leader.
	// Leader is nil outside a cluster.
	Leader func() (http.RoundTripper, error)

	// Installing reports whether this member is receiving the queue and has no usable
	// copy. It then refuses even reads. Installing is nil outside a cluster.
	Installing func() bool

	// IdentifyByName returns the identity of a request that another member has forwarded.
	// The other member sends the name, which can be empty, and the address of the client.
	// IdentifyByName is required if FromMembers is used.
	IdentifyByName func(name string, client netip.Addr) (*access.Identity, bool)

	// Cluster returns this member's view of the cluster. It is nil outside a cluster.
	Cluster func() (admin.Cluster, error)

	// Transfer transfers the leadership to a member. The id 0 selects the member with the
	// most complete log. Transfer is nil outside a cluster.
	Transfer func(ctx context.Context, to uint64) error

	// TasksAfter is the number after which the ids of tasks start; see task.Runner.
	TasksAfter uint64

	// History stores time series and changes. If it is nil, they are in memory only.
	// Record runs it.
	History *history.Store

	// Logger logs each change and each backup. It can be nil.
	Logger *slog.Logger
}

// An API serves the requests.
type API struct {
	broker  *broker.Broker
	opt     Options
	mux     *http.ServeMux
	history *recorder
	changes *audit.Log
	surveys tubes.Cache[tubes.Tube]
	holders tubes.Cache[holder]

	tasks    task.Runner
	guesses  access.Guesses
	throttle *throttle

	backingUp atomic.Bool

	upstreams map[string]*upstream
}

// New returns the handler of all paths that start with Prefix.
func New(b *broker.Broker, opt Options) *API {
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	if opt.Identify == nil {
		opt.Identify = Identify(new(access.Control))
	}
	if opt.History == nil {
		opt.History = history.New(history.Options{Limit: history.DefaultLimit})
	}
	a := &API{
		broker:    b,
		opt:       opt,
		mux:       http.NewServeMux(),
		history:   &recorder{store: opt.History, tubes: make(map[string]*samples)},
		throttle:  newThrottle(),
		changes:   &audit.Log{Logger: opt.Logger, Store: opt.History},
		upstreams: make(map[string]*upstream),
	}
	a.tasks.After = opt.TasksAfter
	if opt.Server != nil {
		opt.Server.OnChange(a.recordCommand)
	}
	for _, o := range operations() {
		a.mux.Handle(o.pattern(), a.handler(o, nil))
	}
	a.mux.HandleFunc("GET "+Prefix+"/openapi.yaml", describe)
	a.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		writeProblem(w, problemf(http.StatusNotFound, "no operation %s %s; %s/openapi.yaml lists all", r.Method, r.URL.Path, Prefix))
	})
	return a
}

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	if err := crossOrigin.Check(r); err != nil {
		writeProblem(w, problemf(http.StatusForbidden, "changes from web pages of other origins are refused"))
		return
	}
	a.mux.ServeHTTP(w, r)
}

// crossOrigin refuses requests from web pages of other origins, except reads.
var crossOrigin = http.NewCrossOriginProtection()

//go:embed openapi.yaml
var description []byte

func describe(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/yaml")
	w.Write(description)
}

// Close stops the tasks. It must be called before the queue is closed.
func (a *API) Close() { a.tasks.Close() }

// recordCommand records a change by a command of the protocol. The server has logged it.
func (a *API) recordCommand(c *server.Change) {
	about := audit.About(c.About)
	about["via"] = "protocol"
	a.changes.Add(&admin.Change{Operation: c.Command, Identity: c.Identity, Client: c.Client, About: about, Result: "ok"})
}

func (r *request) listChanges(in *admin.ListChanges) (admin.Changes, error) {
	if in.Tube != "" {
		if err := checkTube(in.Tube); err != nil {
			return admin.Changes{}, err
		}
	}
	page, err := r.api.changes.List(in)
	if err != nil {
		return page, badRequest("day: want a date such as 2026-11-28")
	}
	return page, nil
}

func checkTube(name string) error {
	if !wire.ValidTube([]byte(name)) {
		return badRequest("%.220q cannot be the name of a tube: want 1 to %d letters, digits and characters of -+/;.$_(), "+
			"no hyphen first", name, wire.MaxTube)
	}
	return nil
}
