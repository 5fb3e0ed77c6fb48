package api

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"

	_ "embed"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/api/audit"
	"github.com/beanpole-mq/beanpole/internal/api/task"
	"github.com/beanpole-mq/beanpole/internal/api/tubes"
	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/server"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

// Prefix is what all paths begin with.
const Prefix = admin.Prefix

// Options of the API.
type Options struct {
	// Server has the connections. It must be given.
	Server *server.Server

	// Identify says who sends a request; false if nobody knows, and somebody must.
	// Nil: everybody may do everything.
	Identify func(*http.Request) (*access.Identity, bool)

	// Version is beanpole's.
	Version string

	// Journal returns how the journal is. It is called within turns. Nil: there is
	// none.
	Journal func() server.JournalStats

	// RewriteJournal begins to rewrite the whole journal. It is called within turns.
	// Nil: there is none.
	RewriteJournal func()

	// Facts returns what the server is and how it was started. Nil: nobody knows.
	Facts func() admin.Server

	// CertificateWarnings says which certificates have ended or end soon. Nil: nobody knows.
	CertificateWarnings func() []string

	// LimitOf returns where the limits of a tube come from; empty: it has none. Nil: nobody knows.
	LimitOf func(tube string) string

	// Backup opens a copy of the journal. It is called outside of turns, and not again
	// before the copy is closed. Its error is for the client. It is nil if there is nothing to
	// copy yet. Nil: there is no journal.
	Backup func() (Backup, error)

	// Leader returns what brings a request to the leader of the cluster, whose FromMembers answers it; nil if that is
	// this server. The error says why nobody leads at the moment. Nil: there is no cluster.
	Leader func() (http.RoundTripper, error)

	// Installing reports whether this member is receiving the queue, and has nothing of it. Then not even what only reads
	// is answered here. Nil: it never is.
	Installing func() bool

	// IdentifyByName says who sends a request that another member has passed on, by the name that it has found out,
	// which may be empty, and the client's address. It must be given if FromMembers is used.
	IdentifyByName func(name string, client netip.Addr) (*access.Identity, bool)

	// Cluster returns what this member of a cluster knows of that. Nil: there is no cluster.
	Cluster func() (admin.Cluster, error)

	// Transfer lets the member of the cluster lead that has an id; 0: whoever is best. Nil: there is no cluster.
	Transfer func(ctx context.Context, to uint64) error

	// TasksAfter is the number after which the ids of tasks begin; see task.Runner.
	TasksAfter uint64

	// Logger gets a line for each change, and for each backup. Nil: nobody does.
	Logger *slog.Logger
}

// An API answers the requests.
type API struct {
	broker  *broker.Broker
	opt     Options
	mux     *http.ServeMux
	history *history
	changes *audit.Log
	surveys tubes.Shared[tubes.Tube]
	holders tubes.Shared[holder]

	tasks    task.Runner
	guesses  access.Guesses
	throttle *throttle

	backingUp atomic.Bool

	upstreams map[string]*upstream
}

// New returns the handler of all paths that begin with Prefix.
func New(b *broker.Broker, opt Options) *API {
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	if opt.Identify == nil {
		opt.Identify = Identify(new(access.Control))
	}
	a := &API{broker: b, opt: opt, mux: http.NewServeMux(), history: newHistory(), throttle: newThrottle(), changes: &audit.Log{Logger: opt.Logger}, upstreams: make(map[string]*upstream)}
	a.tasks.After = opt.TasksAfter
	if opt.Server != nil {
		opt.Server.OnChange(a.recordCommand)
	}
	methods := make(map[string][]string) // by path
	for _, o := range operations() {
		a.mux.Handle(o.pattern(), a.handler(o, nil))
		methods[o.path] = append(methods[o.path], o.method)
	}
	a.mux.HandleFunc("GET "+Prefix+"/openapi.yaml", describe)
	methods["/openapi.yaml"] = []string{"GET"}
	for path, allowed := range methods {
		a.mux.Handle(Prefix+path, notAllowed(allowed))
	}
	a.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		writeProblem(w, problemf(http.StatusNotFound, "there is nothing at %s: %s/openapi.yaml says what there is", r.URL.Path, Prefix))
	})
	return a
}

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	if err := crossOrigin.Check(r); err != nil {
		writeProblem(w, problemf(http.StatusForbidden, "a web page of another origin cannot change anything here"))
		return
	}
	a.mux.ServeHTTP(w, r)
}

// crossOrigin refuses what a browser sends for pages of others, unless it only reads.
var crossOrigin = http.NewCrossOriginProtection()

// notAllowed answers requests with a method that a path does not have.
func notAllowed(methods []string) http.Handler {
	if slices.Contains(methods, "GET") {
		methods = append(methods, "HEAD")
	}
	slices.Sort(methods)
	allow := strings.Join(methods, ", ")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Allow", allow)
		writeProblem(w, problemf(http.StatusMethodNotAllowed, "%s is not for this path: want %s", r.Method, allow))
	})
}

//go:embed openapi.yaml
var description []byte

func describe(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/yaml")
	w.Write(description)
}

// Close ends the tasks, and closes other servers. It is to be called before the queue ends.
func (a *API) Close() {
	a.tasks.Close()
	for _, u := range a.upstreams {
		u.Close()
	}
}

// recordCommand remembers what a command of the protocol has changed; the server has logged it.
func (a *API) recordCommand(c *server.Change) {
	about := audit.About(c.About)
	about["via"] = "protocol"
	a.changes.Add(&admin.Change{Operation: c.Command, Identity: c.Identity, Client: c.Client, About: about, Result: "ok"})
}

func (r *request) listChanges(in *admin.ListChanges) (admin.Changes, error) {
	return r.api.changes.Newest(in.Limit), nil
}

func checkTube(name string) error {
	if !wire.ValidTube([]byte(name)) {
		return badRequest("%.220q cannot be the name of a tube: want 1 to %d letters, digits and characters of -+/;.$_(), "+
			"no hyphen first", name, wire.MaxTube)
	}
	return nil
}
