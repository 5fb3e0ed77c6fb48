package console

import (
	"crypto/rand"
	"crypto/sha256"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/beanpole-mq/beanpole/internal/access"
)

const (
	sessionIdle     = 8 * time.Hour
	sessionLongest  = 24 * time.Hour
	maxSessions     = 1000
	loginsPerMinute = 10 // of an address

	cookiePlain  = "beanpole-session"
	cookieSecure = "__Host-beanpole-session" // with TLS: the browser then insists on Secure
)

// Sessions stand for tokens that somebody has logged in with. A browser has a random number
// in a cookie, and never the token. Who the user is, is asked again at each request: so a session ends
// when the token does. All methods may be called by any goroutine.
type Sessions struct {
	mu       sync.Mutex
	open     map[[sha256.Size]byte]*session
	attempts map[string]int // since minute, by address
	minute   time.Time
	now      func() time.Time
}

type session struct {
	token        string
	opened, used time.Time
}

// NewSessions returns the sessions of a server: none yet.
func NewSessions() *Sessions {
	return &Sessions{open: make(map[[sha256.Size]byte]*session), attempts: make(map[string]int), now: time.Now}
}

// Identify returns what identifies clients as identify does, and those of sessions by the
// token that they have logged in with.
func (s *Sessions) Identify(identify func(*http.Request) (*access.Identity, bool)) func(*http.Request) (*access.Identity, bool) {
	return func(r *http.Request) (*access.Identity, bool) {
		if token, ok := s.tokenOf(r); ok && r.Header.Get("Authorization") == "" {
			return identify(withToken(r, token))
		}
		return identify(r)
	}
}

// withToken returns a request as if it had brought a token.
func withToken(r *http.Request, token string) *http.Request {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+token)
	return r
}

// tokenOf returns the token of the session that a request belongs to.
func (s *Sessions) tokenOf(r *http.Request) (token string, ok bool) {
	c, err := r.Cookie(cookieName(r))
	if err != nil {
		return "", false
	}
	key := sha256.Sum256([]byte(c.Value))
	s.mu.Lock()
	defer s.mu.Unlock()
	one, now := s.open[key], s.now()
	switch {
	case one == nil:
		return "", false
	case one.isOver(now):
		delete(s.open, key)
		return "", false
	}
	one.used = now
	return one.token, true
}

func (s *session) isOver(now time.Time) bool {
	return now.Sub(s.used) > sessionIdle || now.Sub(s.opened) > sessionLongest
}

// has reports whether a request belongs to a session.
func (s *Sessions) has(r *http.Request) bool {
	if s == nil {
		return false
	}
	_, ok := s.tokenOf(r)
	return ok
}

// begin opens a session and returns the secret of its cookie. The one that was used the
// longest ago makes room, if there are too many.
func (s *Sessions) begin(token string) (secret string) {
	secret = rand.Text() + rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	var oldest [sha256.Size]byte
	var since time.Time
	for key, one := range s.open {
		if one.isOver(now) {
			delete(s.open, key)
		} else if since.IsZero() || one.used.Before(since) {
			oldest, since = key, one.used
		}
	}
	if len(s.open) >= maxSessions {
		delete(s.open, oldest)
	}
	s.open[sha256.Sum256([]byte(secret))] = &session{token: token, opened: now, used: now}
	return secret
}

// end ends the session that a request belongs to.
func (s *Sessions) end(r *http.Request) {
	if c, err := r.Cookie(cookieName(r)); err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.open, sha256.Sum256([]byte(c.Value)))
	}
}

// mayTry reports whether an address may try a token: it may ten times a minute.
func (s *Sessions) mayTry(remote string) bool {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		host = remote
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.now(); now.Sub(s.minute) >= time.Minute {
		s.minute = now
		clear(s.attempts)
	}
	s.attempts[host]++
	return s.attempts[host] <= loginsPerMinute
}

func cookieName(r *http.Request) string {
	if r.TLS != nil {
		return cookieSecure
	}
	return cookiePlain
}

func setSession(w http.ResponseWriter, r *http.Request, secret string) {
	c := &http.Cookie{Name: cookieName(r), Value: secret, // #nosec G124 -- Secure wherever there is TLS
		Path: "/", HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode}
	if secret == "" {
		c.MaxAge = -1
	}
	http.SetCookie(w, c)
}

// A loginForm is what the page of the login shows.
type loginForm struct{ Next, Problem string }

func (c *Console) loginPage(w http.ResponseWriter, h *http.Request) {
	c.askForToken(w, h, http.StatusOK, loginForm{Next: ownPath(h.URL.Query().Get("next"))})
}

func (c *Console) askForToken(w http.ResponseWriter, h *http.Request, status int, form loginForm) {
	p := newPage("login", "Log in", "", form)
	p.status, p.NoLive = status, true
	c.write(w, c.newRequest(h), p)
}

func (c *Console) login(w http.ResponseWriter, h *http.Request) {
	form := loginForm{Next: ownPath(h.PostFormValue("next"))}
	s := c.opt.Sessions
	if s == nil {
		form.Problem = "Nobody can log in here: there are no identities with tokens."
		c.askForToken(w, h, http.StatusForbidden, form)
		return
	}
	if !s.mayTry(h.RemoteAddr) {
		w.Header().Set("Retry-After", "60")
		form.Problem = "That were too many attempts: wait a minute."
		c.askForToken(w, h, http.StatusTooManyRequests, form)
		return
	}
	token := strings.TrimSpace(h.PostFormValue("token"))
	if id, ok := c.opt.Identify(withToken(h, token)); token == "" || !ok || id.Name() == "" {
		c.opt.Logger.Warn("a login to the console was refused", "client", h.RemoteAddr)
		form.Problem = "The server does not know this token."
		c.askForToken(w, h, http.StatusForbidden, form)
		return
	}
	s.end(h)
	setSession(w, h, s.begin(token))
	http.Redirect(w, h, form.Next, http.StatusSeeOther)
}

func (c *Console) logout(w http.ResponseWriter, h *http.Request) {
	if s := c.opt.Sessions; s != nil {
		s.end(h)
	}
	setSession(w, h, "")
	http.Redirect(w, h, Prefix+"login", http.StatusSeeOther)
}
