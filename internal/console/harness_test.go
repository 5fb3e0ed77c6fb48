package console

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/api"
	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/memnet"
	queuepolicy "github.com/beanpole-mq/beanpole/internal/policy"
	"github.com/beanpole-mq/beanpole/internal/rights"
	"github.com/beanpole-mq/beanpole/internal/schedule"
	"github.com/beanpole-mq/beanpole/internal/server"
)

type rig struct {
	*Console
	t        testing.TB
	broker   *broker.Broker
	control  *access.Control
	sessions *Sessions
	api      *api.API
	log      *bytes.Buffer
	net      *memnet.Listener
	server   *server.Server
}

// start returns a rig. The policy authenticates clients; if it is nil, all clients have
// all rights.
func start(t testing.TB, policy *access.Policy, opt Options) *rig {
	t.Helper()
	return startWith(t, policy, opt, func(*api.API) []Server { return nil })
}

// startWith returns a rig whose console also shows other servers.
func startWith(t testing.TB, policy *access.Policy, opt Options, others func(a *api.API) []Server, tune ...func(*api.Options)) *rig {
	t.Helper()
	policies, err := queuepolicy.New([]queuepolicy.Config{{Tubes: []string{"*"}, Settings: map[string]any{"max-releases": "9"}}})
	if err != nil {
		t.Fatal(err)
	}
	eng := engine.New(engine.Options{Policies: policies, CompileSchedule: schedule.CompileText})
	r := &rig{t: t, broker: broker.New(eng, broker.Options{}), sessions: NewSessions(), log: new(bytes.Buffer), net: memnet.Listen()}
	srv := server.New(r.broker, server.Options{})
	control := new(access.Control)
	if policy != nil {
		var err error
		if control, err = access.NewControl(policy, nil); err != nil {
			t.Fatal(err)
		}
	}
	r.control = control
	log := slog.New(slog.NewTextHandler(r.log, nil))
	identify := r.sessions.Identify(api.Identify(control))
	forAPI := api.Options{Server: srv, Identify: identify, Logger: log}
	for _, f := range tune {
		f(&forAPI)
	}
	r.api = api.New(r.broker, forAPI)
	opt.Identify, opt.Sessions, opt.Host, opt.Version, opt.Logger = identify, r.sessions, "queue-1", "1.2.3", log
	opt.Servers, r.server = others(r.api), srv
	if special := opt.Open; special != nil {
		opt.Open = func(who access.Caller, server string) *admin.Client {
			return cmp.Or(special(who, server), r.api.Open(who, server))
		}
	} else {
		opt.Open = r.api.Open
	}
	r.Console = New(opt)
	served := make(chan error, 1)
	go func() { served <- srv.Serve(r.net, server.ListenOptions{}) }()
	t.Cleanup(func() {
		r.Close()
		r.api.Close()
		srv.Shutdown(t.Context())
		if err := <-served; err != nil {
			t.Error(err)
		}
		r.broker.Close()
		if err := eng.Check(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// A transport is the connection to another server that does not reply.
type transport func()

func (f transport) Do(context.Context, string, any, any) error {
	f()
	return nil
}

// at returns the option Open for a server of that name.
func (f transport) at(name string) func(access.Caller, string) *admin.Client {
	return func(_ access.Caller, server string) *admin.Client {
		if server == name {
			return admin.On(f)
		}
		return nil
	}
}

// policyOf returns a policy with three identities: root has all rights, mailer sees the
// tube mail, and putter puts into it.
func policyOf(t *testing.T) *access.Policy {
	t.Helper()
	hash := func(token string) access.Hash {
		h, err := access.HashOf(token)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	p, err := access.New(access.Config{
		Identities: []access.IdentityConfig{{Name: "root", Tokens: []access.Hash{hash(rootToken)}}, {Name: "mailer", Tokens: []access.Hash{hash(mailerToken)}}, {Name: "putter", Tokens: []access.Hash{hash(putterToken)}}},
		Rules: []access.RuleConfig{
			{Identities: []string{"root"}, Tubes: []string{"*"}, Rights: rights.All},
			{Identities: []string{"mailer"}, Tubes: []string{"mail"}, Rights: rights.Stats},
			{Identities: []string{"putter"}, Tubes: []string{"mail"}, Rights: rights.Put},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

const (
	rootToken   = "token-of-root-0123456789"
	mailerToken = "token-of-mailer-0123456789"
	putterToken = "token-of-putter-0123456789"
)

func (r *rig) in(f func(e *engine.Engine, now int64)) {
	r.t.Helper()
	if err := r.broker.Call(f); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) put(tube, body string) (id uint64) {
	r.t.Helper()
	r.in(func(e *engine.Engine, now int64) {
		id, _ = e.PutInto(now, []byte(tube), engine.Spec{Pri: 1024, TTR: 60}, []byte(body))
	})
	return id
}

// talk sends lines on a new connection, and reads the same number of lines.
func (r *rig) talk(lines ...string) {
	r.t.Helper()
	nc, err := r.net.Dial()
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { nc.Close() })
	for _, line := range lines {
		if _, err := io.WriteString(nc, line+"\r\n"); err != nil {
			r.t.Fatal(err)
		}
		for reply := make([]byte, 1); reply[0] != '\n'; {
			if _, err := nc.Read(reply); err != nil {
				r.t.Fatal(err)
			}
		}
	}
}

func (r *rig) send(method, path string, form url.Values, cookies ...*http.Cookie) *httptest.ResponseRecorder {
	r.t.Helper()
	h := httptest.NewRequest(method, path, strings.NewReader(form.Encode()))
	if form != nil {
		h.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, c := range cookies {
		h.AddCookie(c)
	}
	w := httptest.NewRecorder()
	r.ServeHTTP(w, h)
	return w
}

func (r *rig) page(status int, path string, cookies ...*http.Cookie) string {
	r.t.Helper()
	w := r.send("GET", path, nil, cookies...)
	if w.Code != status {
		r.t.Fatalf("%s: %d, want %d: %s\n%s", path, w.Code, status, w.Body, r.log)
	}
	return w.Body.String()
}

func (r *rig) follow(form url.Values, cookies ...*http.Cookie) string {
	r.t.Helper()
	w := r.send("POST", "/console/do", form, cookies...)
	if w.Code == http.StatusUnprocessableEntity {
		return w.Body.String()
	}
	if w.Code != http.StatusSeeOther {
		r.t.Fatalf("%v: %d %s", form, w.Code, w.Body)
	}
	return r.send("GET", w.Header().Get("Location"), nil, cookies...).Body.String()
}

func (r *rig) login(token string) *http.Cookie {
	r.t.Helper()
	w := r.send("POST", "/console/login", url.Values{"token": {token}, "next": {"/console/tubes"}})
	if w.Code != http.StatusSeeOther || len(w.Result().Cookies()) != 1 {
		r.t.Fatalf("login: %d %s", w.Code, w.Body)
	}
	return w.Result().Cookies()[0]
}

func until(t testing.TB, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("timeout while waiting for a condition")
		}
	}
}

func (r *rig) apiGet(path string, into any) int {
	r.t.Helper()
	w := httptest.NewRecorder()
	r.api.ServeHTTP(w, httptest.NewRequest("GET", api.Prefix+path, nil))
	if err := json.Unmarshal(w.Body.Bytes(), into); err != nil {
		r.t.Fatal(err)
	}
	return w.Code
}

// viewOf returns the request and the function of a live page.
func (r *rig) viewOf(path string) (*request, pageFunc) {
	h := httptest.NewRequest("GET", path, nil)
	found, pattern := r.mux.Handler(h)
	mux := http.NewServeMux()
	mux.HandleFunc(pattern, func(_ http.ResponseWriter, matched *http.Request) { h = matched })
	mux.ServeHTTP(nil, h)
	asked := r.newRequest(h)
	asked.live = true
	return asked, found.(livePage).make
}
