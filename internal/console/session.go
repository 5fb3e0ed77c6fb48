package console

import (
	"crypto/rand"
	"crypto/sha256"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/beanpole-mq/beanpole/internal/access"
)

const (
	sessionIdle    = 8 * time.Hour
	sessionLongest = 24 * time.Hour
	maxSessions    = 100 // per token

	cookiePlain  = "beanpole-session"
	cookieSecure = "__Host-beanpole-session" // only with TLS: browsers enforce Secure
)

// Sessions contains the tokens of users that have logged in. A browser stores only a
// random number, in a cookie, and never the token. Each request looks up the identity of
// the token, so that a session ends with its token. Methods are safe for concurrent use.
type Sessions struct {
	mu      sync.Mutex
	open    map[[sha256.Size]byte]*session
	guesses access.Guesses
	now     func() time.Time
}

type session struct {
	token        string
	opened, used time.Time
}

// NewSessions returns an empty set of sessions.
func NewSessions() *Sessions {
	return &Sessions{open: make(map[[sha256.Size]byte]*session), now: time.Now}
}

// Identify returns a function that identifies clients as identify does, and also
// identifies sessions by their tokens.
func (s *Sessions) Identify(identify func(*http.Request) (*access.Identity, bool)) func(*http.Request) (*access.Identity, bool) {
	return func(r *http.Request) (*access.Identity, bool) {
		if token, ok := s.tokenOf(r); ok && r.Header.Get("Authorization") == "" {
			return identify(withToken(r, token))
		}
		return identify(r)
	}
}

// withToken returns a copy of a request with a token.
func withToken(r *http.Request, token string) *http.Request {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+token)
	return r
}

// tokenOf returns the token of the session of a request.
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

// has reports whether a request has a session.
func (s *Sessions) has(r *http.Request) bool {
	_, ok := s.tokenOf(r)
	return ok
}

// begin opens a session and returns the secret of its cookie. If the token has too many
// sessions, it closes the least recently used one.
func (s *Sessions) begin(token string) (secret string) {
	secret = rand.Text() + rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	var oldest [sha256.Size]byte
	since, sessions := now, 0
	for key, one := range s.open {
		switch {
		case one.isOver(now):
			delete(s.open, key)
		case one.token == token:
			sessions++
			if !one.used.After(since) {
				oldest, since = key, one.used
			}
		}
	}
	if sessions >= maxSessions {
		delete(s.open, oldest)
	}
	s.open[sha256.Sum256([]byte(secret))] = &session{token: token, opened: now, used: now}
	return secret
}

// end ends the session of a request.
func (s *Sessions) end(r *http.Request) {
	if c, err := r.Cookie(cookieName(r)); err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.open, sha256.Sum256([]byte(c.Value)))
	}
}

// cookieName returns the name of the cookie, which contains the port of the request.
// Cookies do not depend on the port, so without it, servers on the same host would end
// each other's sessions.
func cookieName(r *http.Request) string {
	name := cookiePlain
	if r.TLS != nil {
		name = cookieSecure
	}
	if _, port, err := net.SplitHostPort(r.Host); err == nil && isNumber(port) {
		name += "-" + port
	}
	return name
}

func setSession(w http.ResponseWriter, r *http.Request, secret string) {
	c := &http.Cookie{Name: cookieName(r), Value: secret, // Secure if there is TLS
		Path: "/", HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode}
	if secret == "" {
		c.MaxAge = -1
	}
	http.SetCookie(w, c)
}

// A loginForm is the data of the login page.
type loginForm struct{ Next, Problem string }

func (c *Console) askForToken(w http.ResponseWriter, h *http.Request, status int, form loginForm) {
	p := newPage("login", "Log in", "", form)
	p.status = status
	c.write(w, c.newRequest(h), p)
}

func (c *Console) login(w http.ResponseWriter, h *http.Request) {
	form := loginForm{Next: ownPath(h.PostFormValue("next"))}
	s := c.opt.Sessions
	token := strings.TrimSpace(h.PostFormValue("token"))
	if id, ok := c.opt.Identify(withToken(h, token)); token == "" || !ok || id.Name() == "" {
		status := http.StatusForbidden
		form.Problem = "Unknown token."
		client, _ := netip.ParseAddrPort(h.RemoteAddr)
		if s.guesses.Wrong(s.now(), client.Addr()) {
			w.Header().Set("Retry-After", "60")
			status, form.Problem = http.StatusTooManyRequests, "Too many unknown tokens. Wait a minute."
		} else {
			c.opt.Logger.Warn("a login to the console was refused", "client", h.RemoteAddr)
		}
		c.askForToken(w, h, status, form)
		return
	}
	s.end(h)
	setSession(w, h, s.begin(token))
	http.Redirect(w, h, form.Next, http.StatusSeeOther)
}

func (c *Console) logout(w http.ResponseWriter, h *http.Request) {
	c.opt.Sessions.end(h)
	setSession(w, h, "")
	http.Redirect(w, h, Prefix+"login", http.StatusSeeOther)
}
