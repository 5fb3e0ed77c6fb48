package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/rights"
)

// An other simulates an upstream server.
type other struct {
	asked []string // routes of the requests
	err   error
}

func (o *other) Do(_ context.Context, route string, _, out any) error {
	o.asked = append(o.asked, route)
	if to, ok := out.(**admin.Stream); ok {
		*to = &admin.Stream{Write: func(io.Writer) error { return nil }, Close: func() {}}
	}
	return o.err
}

// elsewhere returns the operations of an upstream server as a handler.
func (r *rig) elsewhere(name string, readOnly bool, server admin.Transport) http.Handler {
	r.AddServer(name, readOnly, server)
	mux := http.NewServeMux()
	for _, o := range operations() {
		mux.Handle(o.pattern(), r.handler(o, r.upstreams[name]))
	}
	return mux
}

func ask(h http.Handler, method, path, body string) (int, string) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, newRequest(method, path, body))
	return w.Code, strings.TrimSpace(w.Body.String())
}

// Operations of an upstream server require rights on all local tubes: stats for reading,
// and all rights for changes. A read-only upstream refuses changes.
func TestElsewhereRights(t *testing.T) {
	known := rightsPolicy(t)
	all, err := access.New(access.Config{})
	if err != nil {
		t.Fatal(err)
	}
	known["all"] = all.Nobody()
	who := ""
	r := start(t, Options{Identify: func(*http.Request) (*access.Identity, bool) { return known[who], known[who] != nil }})
	for _, readOnly := range []bool{false, true} {
		o := new(other)
		h := r.elsewhere("far", readOnly, o)
		for name := range known {
			who = name
			for _, op := range operations() {
				o.asked = nil
				path := strings.NewReplacer("{tube}", "mail", "{job}", "1", "{task}", "1", "{connection}", "1").Replace(op.path)
				code, text := ask(h, op.method, path, "")
				may := name == "all" && !(readOnly && op.changes()) || name == "both" && !op.changes() && op.Needs.Rights&^(rights.Stats|rights.Peek) == 0
				wrong := code == http.StatusBadRequest || code == http.StatusUnsupportedMediaType // but permitted
				if (may && !wrong) != (len(o.asked) == 1) || may == (code == http.StatusForbidden) {
					t.Errorf("%s as %s, read-only %v: asked %v, %d %s", op.ID, name, readOnly, o.asked, code, text)
				}
			}
		}
		who = "nobody that there is"
		if code, _ := ask(h, "GET", "/stats", ""); code != http.StatusUnauthorized {
			t.Errorf("an unauthenticated client: %d", code)
		}
	}
	if log := r.log.String(); !strings.Contains(log, "operation=deleteJob") || !strings.Contains(log, "server=far") {
		t.Error(log)
	}
	who = "all"
	var changes admin.Changes
	r.want(200, "GET", "/changes?limit=1000", "", &changes)
	if c := changes.Changes[0]; c.About["server"] != "far" {
		t.Errorf("%+v", c)
	}
}

// After a server did not answer, the next request to it fails at once.
func TestElsewhereUnreachable(t *testing.T) {
	r := start(t, Options{})
	o := &other{err: errors.New("no route to host")}
	h := r.elsewhere("far", false, o)
	for range 3 {
		if code, text := ask(h, "GET", "/stats", ""); code != http.StatusBadGateway || !strings.Contains(text, "far does not answer: no route to host") {
			t.Errorf("%d %s", code, text)
		}
	}
	if len(o.asked) != 1 {
		t.Errorf("it was asked for %v", o.asked)
	}
}

// far starts another beanpole server that requires a token, and returns it with a handler
// that reaches it through here.
func far(t *testing.T, here *rig) (there *rig, h http.Handler) {
	t.Helper()
	const token = "token-of-the-other-server-01234"
	hash, err := access.HashOf(token)
	if err != nil {
		t.Fatal(err)
	}
	policy, err := access.New(access.Config{
		Identities: []access.IdentityConfig{{Name: "console", Tokens: []access.Hash{hash}}},
		Rules:      []access.RuleConfig{{Identities: []string{"console"}, Tubes: []string{"*"}, Rights: rights.All}},
	})
	if err != nil {
		t.Fatal(err)
	}
	control, err := access.NewControl(policy, []access.ListenerPolicy{{Required: true}})
	if err != nil {
		t.Fatal(err)
	}
	there = start(t, Options{Identify: Identify(control)})
	s := httptest.NewServer(there)
	t.Cleanup(s.Close)
	return there, here.elsewhere("far", false, NewRemote(s.URL, func() (string, error) { return token, nil }, nil))
}

// step is a request to another server, and a part of the expected response.
type step struct {
	method, path, body string
	status             int
	want               string
}

func steps(t *testing.T, h http.Handler, all ...step) {
	t.Helper()
	for _, s := range all {
		if code, text := ask(h, s.method, s.path, s.body); code != s.status || !strings.Contains(text, s.want) {
			t.Errorf("%s %s %s: %d %s, want %d %q", s.method, s.path, s.body, code, text, s.status, s.want)
		}
	}
}

// Another beanpole server executes operations with the configured token.
func TestRemote(t *testing.T) {
	here := start(t, Options{})
	there, h := far(t, here)
	steps(t, h,
		step{"POST", "/tubes/mail/jobs", `{"body":"one","priority":7}`, 201, `{"id":1}`},
		step{"POST", "/tubes/a%2Fb/jobs", `{"body":"two"}`, 201, `{"id":2}`},
		step{"GET", "/tubes?sort=-ready&q=mail", "", 200, `"name":"mail"`},
		step{"GET", "/tubes/a%2Fb/jobs?state=ready&bodies=true", "", 200, `"body":"two"`},
		step{"GET", "/jobs/1", "", 200, `"priority":7`},
		step{"GET", "/jobs/1/body", "", 200, "one"},
		step{"GET", "/jobs/9", "", 404, "there is no job 9"},
		step{"GET", "/tubes?wrong=1", "", 400, "unknown parameter"},
		step{"GET", "/me?tube=mail", "", 200, `{"identity":"","anywhere":["put","reserve","peek","manage","stats"]`},
		step{"POST", "/tubes/mail/jobs", `{"body":1}`, 400, "body: want a string"},
		step{"GET", "/tubes/mail/export", "", 200, `"body":"one"`},
		step{"POST", "/jobs/1/bury", "", 204, ""},
		step{"POST", "/tubes/mail/tasks", `{"do":"kick","state":"buried"}`, 202, `"do":"kick"`},
		step{"GET", "/tasks/1?wait=5", "", 200, `"done":1`},
		step{"DELETE", "/jobs/1", "", 204, ""},
	)
	w := httptest.NewRecorder()
	bring := httptest.NewRequest("POST", Prefix+"/tubes/mail/import", strings.NewReader(`{"body":"three"}`+"\n"))
	bring.ContentLength = 0 // as in the console's requests
	bring.Header.Set("Content-Type", ndjson)
	if h.ServeHTTP(w, bring); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"imported":1`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	var st admin.Stats
	here.want(200, "GET", "/stats", "", &st)
	if st.TotalJobs != 0 {
		t.Error("it was done here")
	}
	if !strings.Contains(there.log.String(), "operation=deleteJob identity=console") || !strings.Contains(here.log.String(), "operation=deleteJob") {
		t.Errorf("there: %s\nhere: %s", there.log, here.log)
	}
}

// Credentials of the client are not forwarded. A response that is not from a beanpole API
// is an error, and redirects are not followed.
func TestRemoteStrangers(t *testing.T) {
	here := start(t, Options{})
	followed := false
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { followed = true }))
	t.Cleanup(elsewhere.Close)
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"redirect": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL, http.StatusFound) }, "not the admin API of a beanpole server: 302 Found"},
		"html":     {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }, "it answers with"},
		"no JSON": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, "{")
		}, "it answers with"},
		"unknown": {func(w http.ResponseWriter, _ *http.Request) { writeProblem(w, problemf(401, "who?")) }, "it refuses the token of token-file"},
		"endless": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Write(make([]byte, 64<<20+1))
		}, "has more than"},
		"no answer": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "EOF"},
		"secrets": {func(w http.ResponseWriter, r *http.Request) {
			writeProblem(w, problemf(409, "got %q %q", r.Header.Get("Authorization"), r.Header.Get("Cookie")))
		}, `got \"\" \"\"`},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(c.answer)
			t.Cleanup(s.Close)
			r := newRequest("GET", "/stats", "")
			r.Header.Set("Authorization", "Bearer mine")
			r.Header.Set("Cookie", "session=mine")
			w := httptest.NewRecorder()
			there := NewRemote(s.URL, nil, nil)
			here.elsewhere(name, false, there).ServeHTTP(w, r)
			if !strings.Contains(w.Body.String(), c.want) || w.Code == http.StatusUnauthorized {
				t.Errorf("%d %s, want %s", w.Code, w.Body, c.want)
			}
		})
	}
	if followed {
		t.Error("a redirect was followed")
	}
}
