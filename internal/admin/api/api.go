package api

import (
	"errors"
	"log/slog"
	"math"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	_ "embed"

	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/server"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

// Prefix is what all paths begin with.
const Prefix = "/api/v1"

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
	Journal func() Journal

	// RewriteJournal begins to rewrite the whole journal. It is called within turns.
	// Nil: there is none.
	RewriteJournal func()

	// Facts returns what the server is and how it was started. Nil: nobody knows.
	Facts func() ServerFacts

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

	// Partial reports whether this member is receiving the queue, and has only a part of it. Then not even what only reads
	// is answered here. Nil: it never is.
	Partial func() bool

	// IdentifyByName says who sends a request that another member has passed on, by the name that it has found out,
	// which may be empty, and the client's address. It must be given if FromMembers is used.
	IdentifyByName func(name string, client netip.Addr) (*access.Identity, bool)

	// Cluster returns what this member of a cluster knows of that. Nil: there is no cluster.
	Cluster func() (Cluster, error)

	// Logger gets a line for each change, and for each backup. Nil: nobody does.
	Logger *slog.Logger
}

// An API answers the requests.
type API struct {
	broker  *broker.Broker
	opt     Options
	mux     *http.ServeMux
	history *history
	changes recentChanges
	surveys surveys

	tasks    tasks
	guesses  access.Guesses
	throttle *throttle

	backingUp atomic.Bool

	others []*otherServer
}

// New returns the handler of all paths that begin with Prefix.
func New(b *broker.Broker, opt Options) *API {
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	if opt.Identify == nil {
		opt.Identify = Identify(new(access.Control))
	}
	a := &API{broker: b, opt: opt, mux: http.NewServeMux(), history: newHistory(), throttle: newThrottle()}
	if opt.Server != nil {
		opt.Server.OnChange(a.recordCommand)
	}
	methods := make(map[string][]string) // by path
	for i := range operations {
		op := &operations[i]
		a.mux.Handle(op.pattern(), a.handler(op, nil))
		methods[op.path] = append(methods[op.path], op.method)
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

// handler returns what serves an operation, at another server if there is one.
func (a *API) handler(op *operation, other *otherServer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, h *http.Request) {
		h.Body = http.MaxBytesReader(w, h.Body, a.maxBody(op))
		r := &request{api: a, op: op, http: h, other: other, work: &a.tasks, control: http.NewResponseController(w)}
		rep, err := r.serve()
		if err != nil {
			if p, ok := errors.AsType[*problem](err); ok && p.Status == http.StatusUnauthorized {
				w.Header().Set("WWW-Authenticate", `Bearer realm="beanpole"`)
			}
			writeProblem(w, err)
			return
		}
		rep.write(w, h)
	})
}

const (
	// smallBody is how many bytes a request has at most that brings no job.
	smallBody = 64 << 10

	// A job in base64 is a third larger; one with many escapes may be more, but then
	// base64 is for it.
	jsonPerByte = 2
)

func (a *API) maxBody(op *operation) int64 {
	switch op.brings {
	case aList:
		return maxTaskBytes
	case aJob:
		return a.maxJSON()
	case aLotOfJobs:
		return math.MaxInt64
	}
	return smallBody
}

// maxJSON is how long a job may be in JSON, in bytes.
func (a *API) maxJSON() int64 { return smallBody + jsonPerByte*int64(a.opt.Server.MaxJobSize()) }

// serve does what a request asks for.
func (r *request) serve() (rep reply, err error) {
	var ok bool
	if r.who, ok = r.identify(); !ok {
		r.api.opt.Server.Refused(r.http.RemoteAddr, "", r.op.id+" without a token that is known")
		if r.http.Header.Get("Authorization") != "" && r.api.guesses.Wrong(time.Now(), addressOf(r.http)) {
			return rep, problemf(http.StatusTooManyRequests, "too many tokens that the server does not know: wait a minute").after(time.Minute)
		}
		return rep, problemf(http.StatusUnauthorized, "authentication required: send a token that the server knows, Authorization: Bearer TOKEN")
	}
	if rep, ok, err := r.elsewhere(); ok {
		return rep, err
	}
	if wait := r.api.opt.Server.TakeToken(r.who, addressOf(r.http)); wait > 0 {
		return rep, tooMany(wait)
	}
	if err := r.parsePath(); err != nil {
		return rep, err
	}
	if err = r.permitted(); err == nil {
		err = r.parseQuery()
	}
	if match := r.http.Header.Get("If-Match"); err == nil && r.op.changes() && match != "" && match != "*" {
		err = problemf(http.StatusPreconditionFailed, "If-Match: nothing is changed under a condition, for what has a tag changes by itself: its age, for one")
	}
	if err == nil {
		if r.other != nil {
			rep, err = r.other.do(r)
		} else {
			rep, err = r.op.do(r)
		}
	}
	if p, ok := errors.AsType[*problem](err); ok && p.Status == http.StatusForbidden {
		r.api.opt.Server.Refused(r.http.RemoteAddr, r.who.Name(), r.op.id, r.refused...)
	} else if r.op.changes() {
		r.audit(err)
		r.api.surveys.forget()
	}
	if r.after != nil {
		r.after()
	}
	return rep, err
}

// TubeSegment returns the segment of a path that names a tube. What browsers and servers take for a
// part of the path itself, however it is escaped, is written with ~, which no name has.
func TubeSegment(name string) string {
	switch name {
	case ".", "..", "/":
		return tildes.Replace(name)
	}
	return url.PathEscape(name)
}

// TubeOfSegment returns the tube that a segment names, whose escapes were undone.
func TubeOfSegment(segment string) string { return noTildes.Replace(segment) }

var tildes, noTildes = strings.NewReplacer(".", "~2E", "/", "~2F"), strings.NewReplacer("~2E", ".", "~2F", "/")

// parsePath reads what the path names.
func (r *request) parsePath() (err error) {
	if r.other != nil {
		r.note("server", r.other.name)
	}
	if r.tube = TubeOfSegment(r.http.PathValue("tube")); r.tube != "" {
		if err := checkTube(r.tube); err != nil {
			return err
		}
		r.note("tube", r.tube)
	}
	if text := r.http.PathValue("job"); text != "" {
		if r.job, err = parseID(text, "job"); err != nil {
			return err
		}
		r.note("job", r.job)
	}
	if text := r.http.PathValue("task"); text != "" {
		if r.task, err = parseID(text, "task"); err != nil {
			return err
		}
		r.note("task", r.task)
	}
	if text := r.http.PathValue("connection"); text != "" {
		if r.connection, err = parseID(text, "connection"); err != nil {
			return err
		}
		r.note("connection", r.connection)
	}
	return nil
}

func checkTube(name string) error {
	if !wire.ValidTube([]byte(name)) {
		return problemf(http.StatusBadRequest, "%.220q cannot be the name of a tube: want 1 to %d letters, digits and characters of -+/;.$_(), "+
			"no hyphen first", name, wire.MaxTube)
	}
	return nil
}

func formatID(id uint64) string { return strconv.FormatUint(id, 10) }

func parseID(text, what string) (uint64, error) {
	id, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, problemf(http.StatusBadRequest, "%.40q is not the id of a %s: want a number", text, what)
	}
	return id, nil
}
