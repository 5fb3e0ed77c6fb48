package api

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/server"
)

// An officeLog is the Log of a server that decides until its office is over.
type officeLog struct{ over atomic.Bool }

func (l *officeLog) Append([]engine.Change) error { return l.err() }

func (l *officeLog) Flush() (bool, error) { return true, l.err() }

func (l *officeLog) Sync() error { return l.err() }

func (l *officeLog) Housekeep(int64) int64 { return engine.Never }

func (l *officeLog) Close() error { return nil }

func (l *officeLog) err() error {
	if l.over.Load() {
		return broker.ErrDeposed
	}
	return nil
}

// startInOffice starts a rig with some jobs, whose server decides until the log says otherwise.
func startInOffice(t *testing.T) (*rig, *officeLog) {
	t.Helper()
	log := new(officeLog)
	r := startWith(t, Options{}, server.Options{}, engine.Options{Logged: true}, broker.Options{Log: log})
	r.putAll("mail", make([]string, 2000)...)
	return r, log
}

// While a server that was deposed has no other engine nothing is answered as if it had looked into its own, or done something there.
func TestNothingIsKnownWhileDeposed(t *testing.T) {
	r, log := startInOffice(t)
	r.sampleTubes(t.Context(), 1)
	log.over.Store(true)
	r.want(503, "GET", "/jobs/1", "", nil) // finds out
	var p problem
	for _, ask := range []struct{ method, path, body string }{
		{"GET", "/stats", ""}, {"GET", "/attention", ""}, {"GET", "/search", ""}, {"GET", "/export", ""}, {"GET", "/tubes", ""}, {"GET", "/tubes?sort=ready", ""},
		{"GET", "/tubes/mail", ""}, {"GET", "/tubes/mail/jobs?state=ready", ""}, {"GET", "/jobs/1", ""}, {"GET", "/jobs/1/body", ""},
		{"GET", "/connections", ""}, {"GET", "/connections?sort=id", ""}, {"GET", "/connections/1", ""},
		{"POST", "/tubes/mail/jobs", `{"body":""}`}, {"POST", "/tubes/mail/pause", `{"seconds":9}`}, {"POST", "/tubes/mail/clear", `{"state":"ready"}`}, {"DELETE", "/jobs/1", ""},
	} {
		r.want(503, ask.method, ask.path, ask.body, &p)
		if p.Detail != errNotLeading.Error() {
			t.Errorf("%s %s: %s", ask.method, ask.path, p.Detail)
		}
	}
	w := httptest.NewRecorder()
	if r.ServeHTTP(w, newRequest("GET", "/stats", "")); w.Header().Get("Retry-After") != "1" {
		t.Errorf("Retry-After: %q", w.Header().Get("Retry-After"))
	}
	if r.sampleTubes(t.Context(), 1+tubeStep); r.history.recentOf("mail") == nil {
		t.Error("the samples of a tube that was not looked at are forgotten")
	}
}

// A change that was made in an office that is over by then may last, or not.
func TestChangeWhileDeposed(t *testing.T) {
	r, log := startInOffice(t)
	log.over.Store(true)
	var p problem
	if r.want(503, "DELETE", "/jobs/1", "", &p); !strings.Contains(p.Detail, "may have happened") {
		t.Error(p.Detail)
	}
}

// A slowClient does something when the first part of an answer comes.
type slowClient struct {
	httptest.ResponseRecorder
	first func()
}

func (c *slowClient) Write(p []byte) (int, error) {
	if c.first != nil {
		c.first()
		c.first = nil
	} else if c.Body.Len() > 10<<20 {
		return 0, http.ErrHandlerTimeout
	}
	return c.ResponseRecorder.Write(p)
}

// aborted reports whether the answer to a request is broken off, and returns what has come of it.
func (r *rig) aborted(path string, first func()) (text string, aborted bool) {
	w := &slowClient{*httptest.NewRecorder(), first}
	defer func() {
		text = w.Body.String()
		if why := recover(); why != nil {
			aborted = why == http.ErrAbortHandler
		}
	}()
	r.ServeHTTP(w, newRequest("GET", path, ""))
	return
}

// An export that meets the end of the office has no job twice, and is broken off.
func TestExportWhileDeposed(t *testing.T) {
	r, log := startInOffice(t)
	text, aborted := r.aborted("/export", func() { log.over.Store(true) })
	if !aborted {
		t.Error("it looks whole")
	}
	seen := make(map[string]bool)
	for line := range strings.Lines(text) {
		if seen[line] {
			t.Fatalf("it has %s twice", line)
		}
		seen[line] = true
	}
}
