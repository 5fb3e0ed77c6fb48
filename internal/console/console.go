package console

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"html/template"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/gzipped"
	"github.com/beanpole-mq/beanpole/internal/op"
)

// Prefix is the start of all paths.
const Prefix = "/console/"

// Options configures a Console. Open, Identify, Sessions and Logger are required.
type Options struct {
	// Open returns a client of this server, or of another server by its name, on behalf
	// of a caller.
	Open func(caller access.Caller, server string) *admin.Client

	// Identify returns the identity of a request. It returns false if authentication is
	// required and missing.
	Identify func(*http.Request) (*access.Identity, bool)

	// Sessions contains the sessions that the console opens.
	Sessions *Sessions

	// ReadOnly disables all actions that change the queue.
	ReadOnly bool

	// Servers contains the other servers that the console shows.
	Servers []Server

	// Host is the name of the machine. Version is the version of beanpole.
	Host, Version string

	// Logger logs pages that cannot be rendered.
	Logger *slog.Logger
}

// A Console serves the pages.
type Console struct {
	opt       Options
	sites     []*site // the first is this server
	mux       *http.ServeMux
	notes     notes
	summaries ttlCache[string, serverRow]
	live      *publisher
	assets    *assets
}

//go:embed templates
var templateFiles embed.FS

// templates contains a function for each page that returns its definitions and the
// layout. It parses them on first use: to parse all would take tens of milliseconds.
var templates = func() map[string]func() *template.Template {
	sets := make(map[string]func() *template.Template)
	for _, name := range append(livePages, "policy", "policies", "schedules", "schedule", "failures", "put", "search", "edit", "confirm", "login", "problem", "find", "names", "keys") {
		sets[name] = sync.OnceValue(func() *template.Template {
			return template.Must(template.New("layout.html").Funcs(functions).ParseFS(templateFiles, "templates/layout.html", "templates/parts.html", "templates/"+name+".html"))
		})
	}
	return sets
}()

// livePages contains the pages that update live.
var livePages = []string{"overview", "tubes", "tube", "working", "job", "connections", "connection", "activity", "server"}

// New returns the handler of all paths under Prefix.
func New(opt Options) *Console {
	c := &Console{opt: opt, sites: sitesOf(&opt), mux: http.NewServeMux(), summaries: ttlCache[string, serverRow]{made: make(map[string]dated[serverRow])}, assets: newAssets()}
	c.live = newPublisher(c)
	for pattern, page := range map[string]pageFunc{
		"{$}": overviewPage, "tubes": tubesPage, "tube/{tube}": tubePage, "job/{job}": jobPage,
		"working": workingPage, "connections": connectionsPage, "connection/{connection}": connectionPage, "activity": activityPage, "server": serverPage,
	} {
		c.ofEachServer("GET", pattern, livePage{c, page})
	}
	for pattern, page := range map[string]pageFunc{
		"policies": policiesPage, "schedules": schedulesPage, "schedule": schedulePage, "schedule/next": nextPage, "failures": failuresPage, "tube/{tube}/policy": policyPage, "tube/{tube}/put": putPage, "put": putPage, "search": searchPage, "search/names": namesPage, "job/{job}/edit": editPage, "job/{job}/body": bodyFile, "tube/{tube}/export": exportFile, "find": findPage,
		"confirm": confirmPage, "keys": func(*request) (*page, error) { return newPage("keys", "Keys", "", nil), nil },
	} {
		c.ofEachServer("GET", pattern, c.show(page))
	}
	for pattern, form := range map[string]pageFunc{
		"tube/{tube}/policy": setPolicy, "schedule": setSchedule, "job/{job}/edit": edit, "do": do,
	} {
		c.ofEachServer("POST", pattern, c.show(func(r *request) (*page, error) { return r.change(form) }))
	}
	c.mux.HandleFunc("GET "+Prefix+"login", func(w http.ResponseWriter, h *http.Request) {
		c.askForToken(w, h, http.StatusOK, loginForm{Next: ownPath(h.FormValue("next"))})
	})
	c.mux.HandleFunc("POST "+Prefix+"login", c.login)
	c.mux.HandleFunc("POST "+Prefix+"logout", c.logout)
	c.mux.HandleFunc("POST "+Prefix+"theme", setTheme)
	c.mux.HandleFunc("GET "+Prefix+"static/{hash}/{name}", c.assets.serve)
	c.mux.HandleFunc(Prefix, c.show(func(*request) (*page, error) {
		return nil, problemf(http.StatusNotFound, "Page not found.")
	}))
	return c
}

// ofEachServer registers a handler for a path of this server and of each other server.
func (c *Console) ofEachServer(method, pattern string, handler http.Handler) {
	c.mux.Handle(method+" "+Prefix+pattern, handler)
	c.mux.Handle(method+" "+Prefix+"s/{server}/"+pattern, handler)
}

// contentSecurityPolicy permits only files of the console, and no inline code.
const contentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

var crossOrigin = http.NewCrossOriginProtection()

// ServeHTTP implements http.Handler.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", contentSecurityPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if r.TLS != nil {
		h.Set("Strict-Transport-Security", "max-age=2592000")
	}
	if err := crossOrigin.Check(r); err != nil {
		http.Error(w, "changes from web pages of other origins are refused", http.StatusForbidden)
		return
	}
	if r.Method == http.MethodPost {
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	}
	c.mux.ServeHTTP(w, r)
}

// maxForm is the maximum size of a form without a file. A form can contain the body of a
// job, each byte of which takes up to three bytes.
const maxForm = 8 << 20

// Close ends the live streams. Later streams end at once.
func (c *Console) Close() { c.live.close() }

// A request is a request for a page.
type request struct {
	*http.Request
	console *Console
	site    *site // the server that the page is about
	who     *access.Identity
	live    bool // whether only live values of the page are used
}

func (c *Console) newRequest(h *http.Request) *request {
	if segment := h.PathValue("tube"); segment != "" {
		h.SetPathValue("tube", op.TubeOf(segment))
	}
	return &request{Request: h, console: c, site: c.siteOf(h.PathValue("server"))}
}

// detached returns a request that continues after the client disconnects.
func (r *request) detached() *request {
	own := *r
	own.Request = r.WithContext(context.WithoutCancel(r.Context()))
	return &own
}

// A pageFunc creates a page.
type pageFunc func(r *request) (*page, error)

// show serves a page to authenticated users, and redirects other users to the login page.
func (c *Console) show(make pageFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, h *http.Request) {
		r := c.newRequest(h)
		p, err := r.page(make)
		if isStatus(err, http.StatusForbidden) && r.URL.Path == r.site.Base && slices.Contains(r.meOn("").Anywhere, "put") {
			err = redirect(r.site.Base + "put")
		}
		if to, ok := errors.AsType[redirect](err); ok {
			http.Redirect(w, h, string(to), http.StatusSeeOther) // #nosec G710 -- to our own page
			return
		}
		if errors.Is(err, errUnknown) {
			http.Redirect(w, h, Prefix+"login?next="+url.QueryEscape(h.URL.RequestURI()), http.StatusSeeOther) // #nosec G710 -- to our own page
			return
		}
		if err != nil {
			p = r.problemPage(err)
		}
		if p.file != nil {
			p.file(w)
			return
		}
		c.write(w, r, p)
	}
}

// change runs the handler of a form.
func (r *request) change(form pageFunc) (*page, error) {
	if r.isReadOnly() {
		return nil, errReadOnly
	}
	if r.ParseForm() != nil {
		return nil, problemf(http.StatusBadRequest, "This form cannot be read, or is too large. The API accepts larger jobs.")
	}
	return form(r)
}

// page creates a page for an authenticated user.
func (r *request) page(make pageFunc) (*page, error) {
	var known bool
	if r.who, known = r.console.opt.Identify(r.Request); !known {
		return nil, errUnknown
	}
	return make(r)
}

// recoverToError recovers from a panic of f, which creates part of a page in a goroutine
// of the console. Without it, the panic would end the server: net/http recovers only from
// panics in handlers.
func (c *Console) recoverToError(f func() error) (err error) {
	defer func() {
		if why := recover(); why != nil {
			c.opt.Logger.Error("rendering console page", "panic", why, "stack", string(debug.Stack()))
			err = errPanic
		}
	}()
	return f()
}

var errPanic = errors.New("this page could not be displayed; the reason is in the log of the server")

// write renders a page with its layout.
func (c *Console) write(w http.ResponseWriter, r *request, p *page) {
	text := pageTexts.Get().(*bytes.Buffer)
	defer pageTexts.Put(text)
	text.Reset()
	p.fill(r)
	if err := templates[p.template]().Execute(text, p); err != nil {
		c.opt.Logger.Error("rendering console page", "page", p.template, "err", err)
		http.Error(w, "this page could not be displayed; the reason is in the log of the server", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Vary", "Cookie")
	gzipped.Write(w, r.Request, p.status, text.Bytes())
}

// pageTexts reuses buffers for the HTML of pages.
var pageTexts = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// setTheme stores the theme in a cookie, so that every page starts with it.
func setTheme(w http.ResponseWriter, r *http.Request) {
	theme := r.PostFormValue("theme")
	if theme != "light" && theme != "dark" {
		theme = "auto"
	}
	http.SetCookie(w, &http.Cookie{Name: themeCookie, // Secure if there is TLS
		Value: theme, Path: Prefix, MaxAge: int((365 * 24 * time.Hour).Seconds()),
		HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: r.TLS != nil})
	http.Redirect(w, r, backFrom(r), http.StatusSeeOther)
}

const themeCookie = "beanpole-theme"

// themeOf returns the chosen theme. It is empty for the default.
func themeOf(r *http.Request) string {
	if c, err := r.Cookie(themeCookie); err == nil && (c.Value == "light" || c.Value == "dark") {
		return c.Value
	}
	return ""
}

// backFrom returns the page from which a form was sent. It is always a page of the
// console.
func backFrom(r *http.Request) string { return ownPath(r.PostFormValue("back")) }

// ownPath returns path if it is a path of the console, and otherwise the path of the
// first page.
func ownPath(path string) string {
	if !strings.HasPrefix(path, Prefix) || strings.ContainsAny(path, "\\\r\n") {
		return Prefix
	}
	return path
}
