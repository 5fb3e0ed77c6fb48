package console

import (
	"embed"
	"errors"
	"html/template"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/beanpole-mq/beanpole/internal/access"
)

// Prefix is what all paths begin with.
const Prefix = "/console/"

// Options of the console.
type Options struct {
	// Identify says who sends a request; false if nobody knows, and somebody must. Nil:
	// everybody may come in.
	Identify func(*http.Request) (*access.Identity, bool)

	// Sessions are those that the console opens. Nil: there are none, nobody can log in.
	Sessions *Sessions

	// ReadOnly refuses everything that changes the queue.
	ReadOnly bool

	// Host is the name of the machine, to be shown; Version is beanpole's.
	Host, Version string

	// Logger hears of pages that cannot be made. Nil: nobody does.
	Logger *slog.Logger
}

// A Console answers the requests.
type Console struct {
	opt    Options
	api    client
	mux    *http.ServeMux
	notes  notes
	live   *publisher
	assets *assets
}

//go:embed templates
var templateFiles embed.FS

// templates has a set for each page: its own definitions and those of the layout.
var templates = sync.OnceValue(func() map[string]*template.Template {
	sets := make(map[string]*template.Template)
	for _, name := range pageNames {
		t := template.New("layout.html").Funcs(functions)
		sets[name] = template.Must(t.ParseFS(templateFiles, "templates/layout.html", "templates/parts.html", "templates/"+name+".html"))
	}
	return sets
})

var pageNames = []string{"overview", "tubes", "tube", "put", "import", "search", "job", "connections", "connection", "activity", "server", "confirm", "login", "problem"}

// New returns the handler of all paths that begin with Prefix. api is that of the JSON API.
func New(api http.Handler, opt Options) *Console {
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	if opt.Identify == nil {
		p, _ := access.New(access.Config{}) // without rules there is nothing to be wrong
		opt.Identify = func(*http.Request) (*access.Identity, bool) { return p.Nobody(), true }
	}
	c := &Console{opt: opt, api: client{api}, mux: http.NewServeMux(), assets: newAssets()}
	c.live = newPublisher(c)
	for pattern, page := range map[string]pageFunc{
		"{$}": overviewPage, "tubes": tubesPage, "tube/{tube}": tubePage, "tube/{tube}/put": putPage, "tube/{tube}/import": importPage, "search": searchPage, "job/{job}": jobPage,
		"connections": connectionsPage, "connection/{connection}": connectionPage, "activity": activityPage, "server": serverPage,
		"confirm": confirmPage,
	} {
		c.mux.HandleFunc("GET "+Prefix+pattern, c.show(page))
	}
	c.mux.HandleFunc("GET "+Prefix+"job", jumpToJob)
	c.mux.HandleFunc("GET "+Prefix+"job/{job}/body", c.body)
	c.mux.HandleFunc("GET "+Prefix+"tube/{tube}/export", c.export)
	c.mux.HandleFunc("POST "+Prefix+"tube/{tube}/import", c.takeFile)
	c.mux.HandleFunc("GET "+Prefix+"events", c.events)
	c.mux.HandleFunc("POST "+Prefix+"do", c.do)
	c.mux.HandleFunc("GET "+Prefix+"login", c.loginPage)
	c.mux.HandleFunc("POST "+Prefix+"login", c.login)
	c.mux.HandleFunc("POST "+Prefix+"logout", c.logout)
	c.mux.HandleFunc("POST "+Prefix+"theme", setTheme)
	c.mux.HandleFunc("GET "+Prefix+"static/{hash}/{name}", c.assets.serve)
	c.mux.HandleFunc(Prefix, c.show(func(*request) (*page, error) {
		return nil, &problem{Status: http.StatusNotFound, Detail: "There is no such page."}
	}))
	return c
}

// contentSecurityPolicy permits files of the console only, and nothing that stands in a page.
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
	if err := crossOrigin.Check(r); err != nil {
		http.Error(w, "a web page of another origin cannot change anything here", http.StatusForbidden)
		return
	}
	if r.Method == http.MethodPost && !bringsFile(r.URL.Path) {
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	}
	c.mux.ServeHTTP(w, r)
}

// maxForm is how many bytes a form has at most, but for one with a file: one with the body of a job, each
// byte of which may be three.
const maxForm = 8 << 20

// bringsFile reports whether a form that is sent to a path has a file, of any size.
func bringsFile(path string) bool {
	return strings.HasPrefix(path, Prefix+"tube/") && strings.HasSuffix(path, "/import")
}

// Close ends the streams of those who look. Later ones end at once.
func (c *Console) Close() { c.live.close() }

// A request is one for a page.
type request struct {
	*http.Request
	console *Console
	who     *access.Identity
}

// get asks the API for something.
func (r *request) get(path string, into any) error {
	return r.console.api.call(r.Request, "GET", path, nil, into)
}

// A pageFunc makes a page.
type pageFunc func(r *request) (*page, error)

// show serves a page to those who are known, and lets others log in.
func (c *Console) show(make pageFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, h *http.Request) {
		r := &request{Request: h, console: c}
		p, err := r.page(make)
		if errors.Is(err, errUnknown) {
			http.Redirect(w, h, Prefix+"login?next="+queryEscape(h.URL.RequestURI()), http.StatusSeeOther) // #nosec G710 -- to our own page
			return
		}
		if err != nil {
			p = r.problemPage(err)
		}
		c.write(w, r, p)
	}
}

// page makes a page for somebody who is known.
func (r *request) page(make pageFunc) (*page, error) {
	var known bool
	if r.who, known = r.console.opt.Identify(r.Request); !known {
		return nil, errUnknown
	}
	return make(r)
}

// write renders a page with its layout.
func (c *Console) write(w http.ResponseWriter, r *request, p *page) {
	text, err := c.render(r, p)
	if err != nil {
		c.opt.Logger.Error("a page of the console cannot be made", "page", p.template, "err", err)
		http.Error(w, "the page cannot be made: the log of the server says why", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Vary", "Cookie, Accept-Encoding")
	writeCompressed(w, r.Request, p.status, text)
}

// render returns the HTML of a page. It notes the live values of the page.
func (c *Console) render(r *request, p *page) ([]byte, error) {
	p.fill(r)
	var text strings.Builder
	err := templates()[p.template].Execute(&text, p)
	return []byte(text.String()), err
}

// setTheme keeps the choice of the colours in a cookie, so that the first page has them.
func setTheme(w http.ResponseWriter, r *http.Request) {
	theme := r.PostFormValue("theme")
	if theme != "light" && theme != "dark" {
		theme = "auto"
	}
	http.SetCookie(w, &http.Cookie{Name: themeCookie, // #nosec G124 -- Secure wherever there is TLS
		Value: theme, Path: Prefix, MaxAge: int((365 * 24 * time.Hour).Seconds()),
		HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: r.TLS != nil})
	http.Redirect(w, r, backFrom(r), http.StatusSeeOther)
}

const themeCookie = "beanpole-theme"

// themeOf returns the choice, or nothing.
func themeOf(r *http.Request) string {
	if c, err := r.Cookie(themeCookie); err == nil && (c.Value == "light" || c.Value == "dark") {
		return c.Value
	}
	return ""
}

// backFrom returns the page that a form came from; it is one of ours, whatever the form says.
func backFrom(r *http.Request) string { return ownPath(r.PostFormValue("back")) }

// ownPath returns a path of the console, or that of the first page.
func ownPath(path string) string {
	if !strings.HasPrefix(path, Prefix) || strings.ContainsAny(path, "\\\r\n") {
		return Prefix
	}
	return path
}
