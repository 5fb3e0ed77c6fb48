package api

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/server"
)

// An epochLog is the Log of a server that leads until the epoch ends.
type epochLog struct{ over atomic.Bool }

func (l *epochLog) Append([]engine.Change) error { return l.err() }

func (l *epochLog) Flush() (bool, error) { return true, l.err() }

func (l *epochLog) Sync() error { return l.err() }

func (l *epochLog) Housekeep(int64) int64 { return engine.Never }

func (l *epochLog) Close() error { return nil }

func (l *epochLog) err() error {
	if l.over.Load() {
		return broker.ErrDeposed
	}
	return nil
}

// startActive starts a rig with some jobs. Its server leads until the log's epoch ends.
func startActive(t *testing.T) (*rig, *epochLog) {
	t.Helper()
	log := new(epochLog)
	r := startWith(t, Options{}, server.Options{}, engine.Options{Logged: true}, broker.Options{Log: log})
	r.putAll("mail", make([]string, 2000)...)
	return r, log
}

// A deposed server without a new engine does not answer from its old engine, and reports
// no change as done.
func TestDeposedAnswersNoRequest(t *testing.T) {
	r, log := startActive(t)
	r.sampleTubes(t.Context(), 1)
	log.over.Store(true)
	r.want(503, "GET", "/jobs/1", "", nil) // the server notices the end of the epoch here
	var p problem
	for _, ask := range []struct{ method, path, body string }{
		{"GET", "/stats", ""}, {"GET", "/attention", ""}, {"GET", "/search", ""}, {"GET", "/export", ""}, {"GET", "/tubes", ""}, {"GET", "/tubes?sort=ready", ""},
		{"GET", "/tubes/mail", ""}, {"GET", "/tubes/mail/jobs?state=ready", ""}, {"GET", "/jobs/1", ""}, {"GET", "/jobs/1/body", ""},
		{"GET", "/connections", ""}, {"GET", "/connections?sort=id", ""}, {"GET", "/connections/1", ""},
		{"POST", "/tubes/mail/jobs", `{"body":""}`}, {"POST", "/tubes/mail/pause", `{"seconds":9}`}, {"DELETE", "/jobs/1", ""},
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
	if r.sampleTubes(t.Context(), 1+tubeStep); r.history.recent("mail") == nil {
		t.Error("the samples of a tube that was not looked at are forgotten")
	}
}

// A change at the end of an epoch is either lost or done, and the error states that both
// are possible.
func TestChangeWhileDeposed(t *testing.T) {
	r, log := startActive(t)
	log.over.Store(true)
	var p problem
	if r.want(503, "DELETE", "/jobs/1", "", &p); !strings.Contains(p.Detail, "might have been made") {
		t.Error(p.Detail)
	}
}

// A slowClient calls a function when the first part of a response arrives.
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

// aborted returns the response to a request, and reports whether it was aborted.
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

// If the epoch ends during an export, the export is aborted and contains no job twice.
func TestExportWhileDeposed(t *testing.T) {
	r, log := startActive(t)
	text, aborted := r.aborted("/export", func() { log.over.Store(true) })
	if !aborted {
		t.Error("the export looks complete")
	}
	seen := make(map[string]bool)
	for line := range strings.Lines(text) {
		if seen[line] {
			t.Fatalf("the export has %s twice", line)
		}
		seen[line] = true
	}
}

// A request that takes several turns fails if the engine is replaced between them,
// because positions in the old engine have no meaning in the new one.
func TestEngineIsReplaced(t *testing.T) {
	for _, ask := range []struct{ method, path, body string }{
		{"GET", "/search?q=x", ""}, {"GET", "/tubes/mail/search?q=x", ""}, {"GET", "/tubes/mail/jobs?state=ready&limit=2000", ""},
		{"GET", "/tubes?limit=3000", ""}, {"GET", "/tubes?sort=ready", ""}, {"GET", "/attention", ""},
		{"GET", "/connections?limit=500", ""}, {"GET", "/connections?sort=id", ""}, {"GET", "/connections/5000", ""},
	} {
		t.Run(ask.method+" "+ask.path, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, log := startActive(t)
				r.in(func(e *engine.Engine, now int64) {
					for i := range 5000 {
						e.Open(nil)
						e.PutInto(now, []byte("later"), engine.Spec{Delay: 9, TTR: 9}, nil)
						e.PutInto(now, fmt.Appendf(nil, "t-%d", i), engine.Spec{TTR: 9}, nil)
					}
				})
				answered := make(chan struct{})
				go func() {
					defer close(answered)
					var p problem
					if r.want(503, ask.method, ask.path, ask.body, &p); p.Detail != errNotLeading.Error() {
						t.Error(p.Detail)
					}
				}()
				synctest.Wait() // waits for the pause after the first turn
				r.replaceEngine(log)
				<-answered
			})
		})
	}
}

// If the engine is replaced during an export, the export is aborted.
func TestExportMeetsAnotherEngine(t *testing.T) {
	r, log := startActive(t)
	if _, aborted := r.aborted("/export", func() { r.replaceEngine(log) }); !aborted {
		t.Error("the export looks complete")
	}
}

// If the engine is replaced during a task, the task fails.
func TestTaskMeetsAnotherEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, log := startActive(t)
		r.want(202, "POST", "/tubes/mail/tasks", `{"do":"delete","state":"ready"}`, nil)
		synctest.Wait() // waits for the pause after the first turn
		r.replaceEngine(log)
		var task admin.Task
		r.want(200, "GET", "/tasks/1?wait=60", "", &task)
		if task.Status != "failed" || task.Problem != errNotLeading.Error() {
			t.Errorf("%+v", task)
		}
	})
}

// replaceEngine deposes the broker and gives it another engine with tubes of the same
// names.
func (r *rig) replaceEngine(log *epochLog) {
	log.over.Store(true)
	r.broker.Replace(func(*engine.Engine) *engine.Engine {
		log.over.Store(false)
		e := engine.New(engine.Options{Logged: true})
		for _, tube := range []string{"mail", "later"} {
			e.PutInto(0, []byte(tube), engine.Spec{TTR: 9, Delay: 1}, nil)
		}
		return e
	})
}
