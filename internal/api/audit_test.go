package api

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/history"
	"github.com/beanpole-mq/beanpole/internal/server"
)

// lastLine returns the last line of the log, and clears the log.
func (r *rig) lastLine() string {
	lines := strings.Split(strings.TrimSuffix(r.log.String(), "\n"), "\n")
	r.log.Reset()
	return lines[len(lines)-1]
}

// The log has one line for each change, with the identity and the operation. Read-only
// and invalid requests are not logged. No line contains a body or a token.
func TestAudit(t *testing.T) {
	who := rightsPolicy(t)["manage"]
	put := rightsPolicy(t)["put"]
	r := start(t, Options{Identify: func(h *http.Request) (*access.Identity, bool) {
		if strings.HasSuffix(h.URL.Path, "/jobs") {
			return put, true
		}
		return who, true
	}})
	r.talk("use mail")
	const by = ` identity=manage client=192.0.2.1:1234`
	for _, test := range []struct{ method, path, body, want string }{
		{"POST", "/tubes/mail/jobs", `{"body":"secret"}`, `operation=putJob identity=put client=192.0.2.1:1234 tube=mail job=1 result=ok`},
		{"POST", "/tubes/mail/jobs", `{"body":"secret","secret":1}`, ``},
		{"POST", "/tubes/mail/jobs", `secret`, ``},
		{"POST", "/jobs/1/bury", ``, `operation=buryJob` + by + ` job=1 tube=mail result=ok`},
		{"POST", "/jobs/1/release", ``, `operation=releaseJob` + by + ` job=1 tube=mail result="job 1 is buried and cannot be released: no worker holds it"`},
		{"POST", "/jobs/1/kick", ``, `operation=kickJob` + by + ` job=1 tube=mail result=ok`},
		{"POST", "/jobs/9/kick", ``, `operation=kickJob` + by + ` job=9 result="there is no job 9"`},
		{"POST", "/tubes/mail/pause", `{"seconds":7}`, `operation=pauseTube` + by + ` tube=mail seconds=7 result=ok`},
		{"POST", "/tubes/mail/resume", ``, `operation=resumeTube` + by + ` tube=mail result=ok`},
		{"PATCH", "/policies/mail-*", `{"set":{"rate":"5/s","max-attempts":"5"}}`, `operation=setPolicy` + by + ` pattern=mail-* before="" after="max-attempts=5 rate=5/s" result=ok`},
		{"PATCH", "/policies/mail-*", `{"set":{"rate":"many"}}`, ``},
		{"PATCH", "/policies/mail-*", `{"unset":["rate"]}`, `operation=setPolicy` + by + ` pattern=mail-* before="max-attempts=5 rate=5/s" after="max-attempts=5" result=ok`},
		{"DELETE", "/policies/mail-*", ``, `operation=deletePolicy` + by + ` pattern=mail-* before="max-attempts=5" after="" result=ok`},
		{"DELETE", "/policies/mail-*", ``, `operation=deletePolicy` + by + ` pattern=mail-* result="mail-* has no run-time settings; change other settings in the configuration file"`},
		{"DELETE", "/jobs/9", ``, `operation=deleteJob` + by + ` job=9 result="there is no job 9"`},
		{"POST", "/drain", ``, `operation=drain` + by + ` result=ok`},
		{"POST", "/undrain", ``, `operation=undrain` + by + ` result=ok`},
		{"POST", "/journal/rewrite", ``, `operation=rewriteJournal` + by + ` result="there is no journal`},
		{"DELETE", "/connections/1", ``, `operation=closeConnection` + by + ` connection=1 closed=mem holding=0 result=ok`},
		{"GET", "/stats", ``, ``}, // forbidden; the server logs it
	} {
		r.do(test.method, test.path, test.body)
		all := r.log.String()
		if got := r.lastLine(); test.want == "" && got != "" || test.want != "" && !strings.HasPrefix(got, `msg="a change through the API" `+test.want) {
			t.Errorf("%s %s:\n%s\nwant\n%s", test.method, test.path, got, test.want)
		}
		if strings.Contains(all, "secret") || strings.Contains(all, "token-of") || strings.Count(all, "\n") > 1 {
			t.Errorf("%s %s: %s", test.method, test.path, all)
		}
	}
}

// The list of changes includes changes through the protocol.
func TestAuditOfProtocol(t *testing.T) {
	r := start(t, Options{})
	r.talk("use mail", "put 0 0 9 1\r\nx", "put 0 0 9 1\r\nx", "pause-tube mail 7", "move-jobs mail news ready", "flush-tube news")
	var got admin.Changes
	r.want(200, "GET", "/changes", "", &got)
	want := []admin.Change{
		{Operation: "flush-tube", About: map[string]any{"tube": "news", "count": 2.0, "via": "protocol"}},
		{Operation: "move-jobs", About: map[string]any{"tube": "mail", "to": "news", "state": "ready", "count": 2.0, "via": "protocol"}},
		{Operation: "pause-tube", About: map[string]any{"tube": "mail", "seconds": 7.0, "via": "protocol"}},
	}
	for i := range got.Changes {
		c := &got.Changes[i]
		if c.Time == "" || c.Client == "" || c.Result != "ok" {
			t.Errorf("%+v", c)
		}
		c.Time, c.Client, c.Result = "", "", ""
	}
	if diff := cmp.Diff(want, got.Changes); diff != "" {
		t.Error(diff)
	}
}

// Changes can be found by identity, operation, tube and day, even after a restart.
func TestListChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := history.New(history.Options{Limit: history.DefaultLimit})
		who := rightsPolicy(t)["manage"]
		r := start(t, Options{History: store, Identify: func(*http.Request) (*access.Identity, bool) { return who, true }})
		r.talk("use mail")
		r.want(204, "POST", "/tubes/mail/pause", `{"seconds":7}`, nil)
		time.Sleep(24 * time.Hour)
		who = rightsPolicy(t)["both"]
		for range 61 {
			r.want(404, "POST", "/jobs/9/kick", "", nil)
		}
		r = start(t, Options{History: store}) // another process
		for query, want := range map[string]int{
			"": 62, "&identity=manage": 1, "&identity=": 0, "&identity=both": 61, "&operation=pauseTube": 1, "&operation=kick": 0, "&tube=mail": 1, "&tube=news": 0,
			"&day=2000-01-01": 1, "&day=2000-01-02": 61, "&day=2000-01-03": 0, "&day=2000-01-02&identity=manage": 0,
		} {
			var page admin.Changes
			if r.want(200, "GET", "/changes?limit=1000"+query, "", &page); len(page.Changes) != want {
				t.Errorf("%s: %d changes, want %d", query, len(page.Changes), want)
			}
		}
	})
}

// The list has a limited number of changes of a client and day. The log has all, and as
// many failures as the list.
func TestChangesOfOneClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		who := rightsPolicy(t)["manage"]
		r := start(t, Options{History: history.New(history.Options{Limit: history.DefaultLimit}), Identify: func(*http.Request) (*access.Identity, bool) { return who, true }})
		for range 1100 {
			r.want(204, "POST", "/tubes/default/resume", "", nil)
			r.want(404, "POST", "/jobs/9/kick", "", nil)
		}
		count := func(query string, want int) (page admin.Changes) {
			if r.want(200, "GET", "/changes?limit=10000"+query, "", &page); len(page.Changes) != want {
				t.Errorf("%s: %d changes, want %d", query, len(page.Changes), want)
			}
			return page
		}
		for query, want := range map[string]int{"&operation=resumeTube": 1000, "&operation=kickJob": 100} {
			if page := count(query, want); page.Changes[0].About["omitted"] == nil || page.Changes[1].About["omitted"] != nil {
				t.Errorf("%+v", page.Changes[:2])
			}
		}
		if n := strings.Count(r.log.String(), "\n"); n != 1200 {
			t.Errorf("%d lines in the log", n)
		}
		who = rightsPolicy(t)["both"]
		r.want(404, "POST", "/jobs/9/kick", "", nil)
		who = rightsPolicy(t)["manage"]
		count("&identity=both", 1)
		time.Sleep(24 * time.Hour)
		r.want(404, "POST", "/jobs/9/kick", "", nil)
		count("&operation=kickJob&identity=manage", 101)
	})
}

// A failedLog is a journal whose disk fails.
type failedLog struct{ broker.Log }

func (failedLog) Append([]engine.Change) error { return errors.New("input/output error") }
func (failedLog) Housekeep(int64) int64        { return engine.Never }
func (failedLog) Flush() (bool, error)         { return true, nil }
func (failedLog) Close() error                 { return nil }

// A change that is not durable is reported as a failure. A change that the journal
// refuses has no effect.
func TestJournalFails(t *testing.T) {
	refuse := engine.OK
	r := startWith(t, Options{}, server.Options{}, engine.Options{
		Logged: true,
		Admit:  func(engine.ChangeKind, string, int) engine.Outcome { return refuse },
	}, broker.Options{Log: failedLog{}})
	var p problem
	r.want(500, "POST", "/tubes/mail/jobs", `{"body":""}`, &p)
	if !strings.Contains(p.Detail, "a restart can undo it") {
		t.Error(p.Detail)
	}
	r.want(200, "GET", "/tubes/mail", "", nil)
	for _, test := range []struct {
		o      engine.Outcome
		status int
		detail string
	}{{engine.Failed, 503, "the journal cannot be written"}, {engine.OutOfMemory, 507, "no space"}} {
		refuse = test.o
		for _, do := range []struct{ path, body string }{
			{"/tubes/mail/jobs", `{"body":""}`},
			{"/tubes/mail/pause", `{"seconds":1}`},
			{"/jobs/1/bury", ``},
		} {
			r.want(test.status, "POST", do.path, do.body, &p)
			if !strings.Contains(p.Detail, test.detail) {
				t.Errorf("%s: %s", do.path, p.Detail)
			}
		}
	}
	if st, o := func() (st engine.JobStats, o engine.Outcome) {
		r.broker.Call(func(e *engine.Engine, now int64) { st, o = e.JobStats(now, 1) })
		return
	}(); o != engine.OK || st.State != engine.Ready || st.Buries != 0 {
		t.Errorf("job 1: %+v", st)
	}
}
