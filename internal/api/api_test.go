package api

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/history"
	"github.com/beanpole-mq/beanpole/internal/op"
	"github.com/beanpole-mq/beanpole/internal/server"
)

// TestStory uses each operation at least once.
func TestStory(t *testing.T) {
	rewrites, transfers := 0, 0
	r := start(t, Options{Version: "1.2.3", RewriteJournal: func() { rewrites++ }, Cluster: oneMember, Transfer: func(_ context.Context, to uint64) (err error) {
		if transfers++; transfers > 1 {
			err = errors.New("the leadership was not transferred")
		}
		return err
	}, Backup: emptyBackup, Facts: func() admin.Server { return admin.Server{Version: "1.2.3", PID: 9} }, Journal: func() server.JournalStats {
		return server.JournalStats{Health: "ok", Segments: 2, Bytes: 300, LiveBytes: 100}
	}})

	// Jobs.
	if got := r.want(201, "POST", "/tubes/mail/jobs", `{"body":"hello"}`, nil); got != `{"id":1}` {
		t.Error(got)
	}
	r.want(201, "POST", "/tubes/mail/jobs", `{"body_base64":"//79","priority":7,"delay":100,"ttr":9}`, nil)
	r.want(201, "POST", "/tubes/a%2Fb/jobs", `{"body":""}`, nil)
	var j admin.Job
	r.want(200, "GET", "/jobs/1", "", &j)
	if *j.Body != "hello" || j.State != "ready" || j.Priority != 1024 || j.TTR != 60 || j.Tube != "mail" || j.Size != 5 {
		t.Errorf("%+v", j)
	}
	j = admin.Job{}
	r.want(200, "GET", "/jobs/2", "", &j)
	if j.Body != nil || string(j.Bytes()) != "\xff\xfe\xfd" || j.State != "delayed" || j.Priority != 7 || j.Delay != 100 || j.TTR != 9 || j.TimeLeft < 50 {
		t.Errorf("%+v", j)
	}
	r.want(200, "GET", "/jobs/3", "", &j)
	if j.Tube != "a/b" || *j.Body != "" {
		t.Errorf("%+v", j)
	}
	w := httptest.NewRecorder()
	r.ServeHTTP(w, newRequest("GET", "/jobs/2/body", ""))
	if w.Body.String() != "\xff\xfe\xfd" || w.Header().Get("Content-Type") != "application/octet-stream" || w.Header().Get("Content-Disposition") != "attachment" {
		t.Errorf("%v %q", w.Header(), w.Body)
	}
	r.seen["getBody"] = true
	r.want(204, "POST", "/jobs/2/kick", "", nil)
	r.want(204, "POST", "/jobs/2/bury", `{"priority":3}`, nil)
	r.want(204, "DELETE", "/jobs/3", "", nil)
	r.want(404, "GET", "/jobs/3", "", nil)

	r.policies()

	// Reserved jobs and connections.
	worker := r.talk("watch mail", "reserve-job 1")
	var cs admin.Connections
	r.want(200, "GET", "/connections", "", &cs)
	if len(cs.Connections) != 1 {
		t.Fatalf("%+v", cs)
	}
	c := cs.Connections[0]
	if c.Using != "default" || !slices.Equal(c.Watching, []string{"default", "mail"}) || !slices.Equal(c.Holding, []uint64{1}) || c.HoldingCount != 1 || c.Waiting || !c.Worker {
		t.Errorf("%+v", c)
	}
	if one := r.want(200, "GET", fmt.Sprintf("/connections/%d", c.ID), "", nil); !strings.Contains(one, `"holding":[1]`) {
		t.Error(one)
	}
	r.want(200, "GET", "/jobs/1", "", &j)
	if j.ReservedBy != c.ID || j.State != "reserved" {
		t.Errorf("%+v", j)
	}
	var held admin.Reserved
	if r.want(200, "GET", "/reserved?tube=m*", "", &held); len(held.Jobs) != 1 || held.Jobs[0].ID != 1 || held.Jobs[0].Arguments != "hello" || held.Jobs[0].Address != c.Address || held.Total != nil {
		t.Errorf("%+v", held)
	}
	r.want(409, "DELETE", "/jobs/1", "", nil)
	r.want(204, "POST", "/jobs/1/release", `{"delay":50}`, nil)
	r.want(200, "GET", "/jobs/1", "", &j)
	if j.State != "delayed" || j.Priority != 1024 || j.Releases != 1 {
		t.Errorf("%+v", j)
	}
	r.want(202, "DELETE", fmt.Sprintf("/connections/%d", c.ID), "", nil)
	io.Copy(io.Discard, worker) // until the connection is closed

	// Tubes.
	r.want(204, "POST", "/tubes/mail/pause", `{"seconds":60}`, nil)
	var tube admin.Tube
	r.want(200, "GET", "/tubes/mail", "", &tube)
	if tube.Pause != 60 || tube.Jobs != (admin.JobCounts{Delayed: 1, Buried: 1}) || tube.BodyBytes != 8 {
		t.Errorf("%+v", tube)
	}
	r.want(204, "POST", "/tubes/mail/resume", "", nil)
	var tubes admin.Tubes
	r.want(200, "GET", "/tubes", "", &tubes)
	if len(tubes.Tubes) != 2 || tubes.Tubes[0].Name != "default" || tubes.Tubes[1].Pause != 0 || tubes.Next != "" {
		t.Errorf("%+v", tubes)
	}
	for body, want := range map[string]uint64{`{"do":"kick","state":"buried"}`: 1, `{"do":"kick","state":"delayed","count":5}`: 1} {
		if got := r.sweep("mail", body); got.Done != want {
			t.Errorf("%+v", got)
		}
	}
	if got := r.sweep("mail", `{"do":"move","state":"ready","to":"news"}`); got.Done != 2 {
		t.Errorf("%+v", got)
	}
	var jobs admin.Jobs
	r.want(200, "GET", "/tubes/news/jobs?state=ready", "", &jobs)
	if len(jobs.Jobs) != 2 || jobs.Jobs[0].ID != 2 || jobs.Jobs[1].ID != 1 || jobs.Jobs[0].Body != nil {
		t.Errorf("%+v", jobs)
	}
	if got := r.sweep("news", `{"do":"delete","state":"ready"}`); got.Done != 2 {
		t.Errorf("%+v", got)
	}
	r.want(404, "GET", "/tubes/news", "", nil)

	// History.
	r.sampleServer(100)
	r.sampleTubes(t.Context(), 100)
	var past admin.History
	r.want(200, "GET", "/history?points=3", "", &past)
	if past.Step != 1 || past.End != 100 || len(past.Series) != int(history.NumSeries)-1 || len(past.Series["ready"]) != 3 || past.Series["ready"][1] != nil || *past.Series["ready"][2] != 0 {
		t.Errorf("%+v", past)
	}
	r.sampleTubes(t.Context(), 110)
	past = admin.History{}
	r.want(200, "GET", "/tubes/default/history?points=3", "", &past)
	if put := past.Series["put"]; past.Step != 10 || past.End != 110 || len(past.Series) != int(history.Memory) || len(put) != 3 || put[0] != nil || *put[2] != 0 {
		t.Errorf("%+v", past)
	}
	var changes admin.Changes
	r.want(200, "GET", "/changes?limit=2", "", &changes)
	if len(changes.Changes) != 2 || changes.Changes[0].Operation != "endTask" || changes.Changes[0].About["count"] != 2.0 {
		t.Errorf("%+v", changes)
	}
	var cluster admin.Cluster
	r.want(200, "GET", "/cluster", "", &cluster)
	if len(cluster.Members) != 1 || cluster.Members[0].ID != cluster.Leader || cluster.Leader == 0 {
		t.Errorf("%+v", cluster)
	}
	r.want(204, "POST", "/cluster/transfer", `{"member":41}`, nil)
	r.want(404, "POST", "/cluster/transfer", `{"member":42}`, nil)
	if got := r.want(503, "POST", "/cluster/transfer", "", nil); transfers != 2 || !strings.Contains(got, "not transferred") {
		t.Errorf("%d transfers: %s", transfers, got)
	}
	var me admin.Me
	r.want(200, "GET", "/me?tube=news", "", &me)
	if me.Identity != "" || len(me.Everywhere) != 5 || len(me.Anywhere) != 5 || len(me.Tube) != 5 {
		t.Errorf("%+v", me)
	}

	// Changes, copies, searches, tasks and streams.
	r.want(201, "POST", "/tubes/mail/jobs", `{"body":"{\"user\":{\"id\":17}}","delay":100}`, nil)
	r.want(204, "PATCH", "/jobs/4", `{"priority":5,"delay":0,"ttr":7}`, nil)
	if got := r.want(201, "POST", "/jobs/4/copy", `{"to":"news"}`, nil); got != `{"id":5}` {
		t.Error(got)
	}
	r.want(204, "POST", "/jobs/5/move", `{"to":"olds"}`, nil)
	r.want(409, "POST", "/jobs/5/move", `{"to":"olds"}`, nil)
	r.want(204, "POST", "/jobs/5/move", `{"to":"news"}`, nil)
	r.want(200, "GET", "/jobs/5", "", &j)
	if j.Tube != "news" || j.Priority != 5 || j.TTR != 7 || j.State != "ready" || *j.Body != `{"user":{"id":17}}` {
		t.Errorf("%+v", j)
	}
	var hits admin.Found
	r.want(200, "GET", "/search?q=/user/id:17", "", &hits)
	if len(hits.Jobs) != 2 || hits.Jobs[0].ID != 4 || hits.Next != "" || hits.Looked != 2 || *hits.Total != 2 {
		t.Errorf("%+v", hits)
	}
	r.want(200, "GET", "/tubes/mail/search?q=user", "", &hits)
	if len(hits.Jobs) != 1 || hits.Jobs[0].ID != 4 {
		t.Errorf("%+v", hits)
	}
	var classes admin.Classes
	if r.want(200, "GET", "/tubes/mail/classes?state=ready&limit=5", "", &classes); classes.Sampled != 1 || classes.Total != 1 || len(classes.Classes) != 1 || classes.Classes[0].Class != "" {
		t.Errorf("%+v", classes)
	}
	lines := r.want(200, "GET", "/tubes/mail/export", "", nil)
	if !strings.Contains(lines, `"id":4`) || strings.Contains(lines, `"id":5`) {
		t.Error(lines)
	}
	everything := r.want(200, "GET", "/export", "", nil)
	if strings.Count(everything, "\n") != 1 {
		t.Error(everything)
	}
	if got := r.stream("/import", everything); got != `{"imported":2}` {
		t.Error(got)
	}
	if got := r.stream("/tubes/other/import", lines); got != `{"imported":1}` {
		t.Error(got)
	}
	var task admin.Task
	r.want(202, "POST", "/tubes/mail/tasks", `{"do":"delete","state":"ready"}`, &task)
	r.want(200, "GET", fmt.Sprintf("/tasks/%d?wait=60", task.ID), "", &task)
	if task.Status != "done" || task.Done != 2 || task.Ended == "" {
		t.Errorf("%+v", task)
	}
	r.want(409, "DELETE", fmt.Sprintf("/tasks/%d", task.ID), "", nil)
	r.throttle.inTurns <- struct{}{} // so that the next export does not end
	r.want(202, "POST", "/tubes/mail/tasks", `{"do":"delete","state":"ready"}`, &task)
	r.want(204, "DELETE", fmt.Sprintf("/tasks/%d", task.ID), "", nil)
	<-r.throttle.inTurns
	var all admin.Tasks
	r.want(200, "GET", "/tasks", "", &all)
	if len(all.Tasks) != 6 || all.Tasks[0].ID != task.ID {
		t.Errorf("%+v", all)
	}
	r.sweep("news", `{"do":"delete","state":"ready"}`)
	r.sweep("other", `{"do":"delete","state":"ready"}`)
	var facts admin.Server
	r.want(200, "GET", "/server", "", &facts)
	if facts.Version != "1.2.3" || facts.PID != 9 {
		t.Errorf("%+v", facts)
	}

	// A job that a policy has moved to a tube of dead jobs returns to its origin, even
	// after a kick.
	dead := r.dead("origin", "dead")
	path := fmt.Sprint("/jobs/", dead)
	var failures admin.Failures
	if r.want(200, "GET", "/failures", "", &failures); len(failures.Groups) != 1 || failures.Groups[0].Tube != "dead" || failures.Groups[0].Origin != "origin" || failures.Groups[0].Reason != "released" {
		t.Errorf("%+v", failures)
	}
	r.want(204, "POST", path+"/kick", "", nil)
	r.want(204, "POST", path+"/redrive", "", nil)
	if r.want(200, "GET", path, "", &j); j.Tube != "origin" || j.State != "ready" || j.Origin != "" || j.Kicks != 1 {
		t.Errorf("%+v", j)
	}
	if got := r.want(409, "POST", path+"/redrive", "", nil); !strings.Contains(got, "have an origin") {
		t.Error(got)
	}
	r.want(204, "DELETE", path, "", nil)
	r.want(204, "DELETE", "/policies/origin", "", nil)

	// The server.
	r.want(204, "POST", "/drain", "", nil)
	var found admin.Attention
	r.want(200, "GET", "/attention", "", &found)
	if len(found.Findings) != 1 || found.Findings[0].Kind != "draining" || found.Total != 1 {
		t.Errorf("%+v", found)
	}
	var why admin.Explanation
	if r.want(200, "GET", "/tubes/default/explain", "", &why); why.Text != "no jobs; the server refuses puts: it is draining" || why.Policy != "max-releases=9" {
		t.Errorf("%+v", why)
	}
	if got := r.want(503, "POST", "/tubes/mail/jobs", `{"body":""}`, nil); !strings.Contains(got, "is draining") {
		t.Error(got)
	}
	var st admin.Stats
	r.want(200, "GET", "/stats", "", &st)
	if !st.Draining || st.Version != "1.2.3" || st.TotalJobs != 9 || st.Journal.Segments != 2 || st.Connections.Total != 2 || st.Connections.Limit == 0 || st.MaxJobSize != 65535 || st.Commands["watch"] != 1 {
		t.Errorf("%+v", st)
	}
	r.want(204, "POST", "/undrain", "", nil)
	if r.want(202, "POST", "/journal/rewrite", "", nil); rewrites != 1 {
		t.Errorf("the journal was rewritten %d times", rewrites)
	}
	r.want(200, "GET", "/journal", "", nil)
	r.want(201, "POST", "/tubes/mail/jobs", `{"body":""}`, nil)

	r.schedules()
	for _, o := range operations() {
		if id := o.ID; !r.seen[id] {
			t.Errorf("TestStory does not use %s", id)
		}
	}
}

// TestRefused checks the errors of invalid requests.
func TestRefused(t *testing.T) {
	r := startWith(t, Options{}, server.Options{MaxJobSize: 10}, engine.Options{}, broker.Options{})
	r.in(func(e *engine.Engine, now int64) {
		e.PutInto(now, []byte("mail"), engine.Spec{TTR: 9}, nil)             // job 1 is ready
		e.PutInto(now, []byte("mail"), engine.Spec{TTR: 9, Delay: 900}, nil) // job 2 is delayed
		e.PutInto(now, []byte("mail"), engine.Spec{TTR: 9}, nil)
		e.BuryJob(3, 0) // job 3 is buried
	})
	for _, test := range []struct {
		method, path, body string
		status             int
		detail             string
	}{
		{"GET", "/tubes/none", "", 404, "there is no tube none: a tube exists while"},
		{"GET", "/tubes/-x", "", 400, `"-x" cannot be the name of a tube: want 1 to 200`},
		{"GET", "/tubes/" + strings.Repeat("x", 201), "", 400, "cannot be the name"},
		{"GET", "/tubes/a%00b", "", 400, `"a\x00b" cannot be the name`},
		{"GET", "/tubes?limit=0", "", 400, "limit: want a number from 1 to 10000"},
		{"GET", "/tubes?limit=10001", "", 400, "limit: want"},
		{"GET", "/tubes?limit=2&limit=3", "", 400, "the parameter limit is given more than once"},
		{"GET", "/tubes?offset=2", "", 400, `unknown parameter "offset"; listTubes accepts ["sort" "q" "has" "recent" "cursor" "limit"]`},
		{"GET", "/tubes?sort=size", "", 400, "sort: want one of [attention body_bytes buried"},
		{"GET", "/tubes?has=jobs", "", 400, "has: want some of [buried"},
		{"GET", "/tubes?sort=ready&cursor=bWFpbA", "", 400, "cursor: want"},
		{"GET", "/tubes?recent=1", "", 400, "recent: want true or false"},
		{"GET", "/history?step=2", "", 400, "step: want 1, 60 or 3600"},
		{"GET", "/history?step=60&points=1441", "", 400, "points: want a number from 1 to 1440"},
		{"GET", "/history?points=601", "", 400, "points: want a number from 1 to 600 with step 1"},
		{"GET", "/tubes/mail/history?step=3600&points=745", "", 400, "points: want a number from 1 to 744 with step 3600"},
		{"GET", "/tubes/mail/history?step=1", "", 400, "step: want 10, 60 or 3600"},
		{"GET", "/changes?day=yesterday", "", 400, "day: want a date such as 2026-11-28"},
		{"GET", "/history?points=0", "", 400, "points: want a number from 1 to 1440"},
		{"GET", "/tubes/none/history", "", 404, "there is no tube none"},
		{"GET", "/me?tube=-", "", 400, "cannot be the name of a tube"},
		{"GET", "/changes?limit=10001", "", 400, "limit: want a number from 1 to 10000"},
		{"GET", "/attention?limit=0", "", 400, "limit: want"},
		{"GET", "/connections?waiting=yes", "", 400, "waiting: want true or false"},
		{"GET", "/tubes?%zz", "", 400, "the query is not well-formed"},
		{"GET", "/stats?x", "", 400, "unknown parameter"},
		{"GET", "/jobs/1?x", "", 400, "unknown parameter"},
		{"GET", "/jobs/1/body?x", "", 400, "unknown parameter"},
		{"GET", "/tubes/mail?x", "", 400, "unknown parameter"},
		{"GET", "/connections/1?x", "", 400, "unknown parameter"},
		{"GET", "/tubes/mail/jobs", "", 400, "state: want one of [ready reserved delayed buried]"},
		{"GET", "/tubes/mail/jobs?state=ready&cursor=x", "", 400, "cursor: want the value of next from a page"},
		{"GET", "/tubes/mail/jobs?state=ready&bodies=1", "", 400, "bodies: want true or false"},
		{"GET", "/tubes?cursor=a%2Bb", "", 400, "cursor: want the value of next from a page"},
		{"GET", "/tubes?cursor=bWFpbA%0A", "", 400, "cursor: want"},
		{"GET", "/tubes/none/jobs?state=reserved", "", 404, "there is no tube none"},
		{"GET", "/connections?limit=1001", "", 400, "limit: want a number from 1 to 1000"},
		{"GET", "/connections?cursor=x", "", 400, "cursor: want"},
		{"GET", "/connections?cursor=-1", "", 400, "cursor: want"},
		{"GET", "/connections/7", "", 404, "no connection 7"},
		{"DELETE", "/connections/7", "", 404, "no connection 7"},
		{"GET", "/connections/x", "", 400, `"x" is not the id of a connection`},
		{"GET", "/jobs/x", "", 400, `"x" is not the id of a job: want a number`},
		{"GET", "/jobs/18446744073709551616", "", 400, "is not the id of a job"},
		{"GET", "/jobs/9", "", 404, "there is no job 9"},
		{"DELETE", "/jobs/9", "", 404, "there is no job 9"},
		{"POST", "/jobs/1/kick", "", 409, "job 1 is ready and cannot be kicked: it must be buried or delayed"},
		{"POST", "/jobs/3/bury", "", 409, "job 3 is buried and cannot be buried again"},
		{"POST", "/jobs/2/release", "", 409, "job 2 is delayed and cannot be released: no worker holds it"},
		{"POST", "/jobs/1/bury", `{"priority":-1}`, 400, "priority: want a number from 0 to 4294967295"},
		{"POST", "/jobs/1/bury", `{"priority":4294967296}`, 400, "priority: want a number"},
		{"POST", "/jobs/1/bury", `[]`, 400, "the body is not a JSON object of the form"},
		{"POST", "/jobs/1/kick", `{"x":1}`, 400, `unknown member "x"`},
		{"POST", "/tubes/mail/pause", `{"seConds":1}`, 400, `unknown member "seConds"`},
		{"POST", "/jobs/1/kick", `null`, 400, "the body is not a JSON object"},
		{"POST", "/tubes/mail/jobs", "", 415, "want a JSON object: Content-Type: application/json"},
		{"POST", "/tubes/mail/jobs", "{", 400, "the body is empty or incomplete"},
		{"POST", "/tubes/mail/jobs", `{"body":"a}`, 400, "the body is empty or incomplete"},
		{"POST", "/tubes/mail/jobs", `{"body":"a"}x`, 400, "data follows the JSON object in the body"},
		{"POST", "/tubes/mail/jobs", `{"body" "a"}`, 400, "the body is not valid JSON, from byte 9 on"},
		{"POST", "/tubes/mail/jobs", `{}`, 400, "want one of body and body_base64"},
		{"POST", "/tubes/mail/jobs", `{"body":"a","body_base64":""}`, 400, "want one of body and body_base64"},
		{"POST", "/tubes/mail/jobs", `{"body":1}`, 400, "body: want a string"},
		{"POST", "/tubes/mail/jobs", "{\"body\":\"caf\xe9\"}", 400, "body: want Unicode text"},
		{"POST", "/tubes/mail/jobs", `{"body":"\ud800"}`, 400, "body: want Unicode text"},
		{"POST", "/tubes/mail/jobs", `{"body":"\ufffd\\ufffd\udc00"}`, 400, "body: want Unicode text"},
		{"POST", "/tubes/mail/jobs", `{"body_base64":"%"}`, 400, "body_base64: want base64"},
		{"POST", "/tubes/mail/jobs", `{"body":"12345678901"}`, 413, "the body is too large: the maximum is 10 bytes"},
		{"POST", "/tubes/mail/jobs", `{"body":"` + strings.Repeat("x", 70000) + `"}`, 413, "the body is too large: the maximum is"},
		{"POST", "/tubes/mail/pause", `{}`, 400, "seconds: want how long to pause, 1 or more; resume ends"},
		{"POST", "/tubes/mail/pause", `{"seconds":0}`, 400, "seconds: want"},
		{"POST", "/tubes/none/pause", `{"seconds":1}`, 404, "there is no tube none"},
		{"POST", "/tubes/none/resume", "", 404, "there is no tube none"},
		{"POST", "/drain", `{"x":1}`, 400, `unknown member "x"`},
	} {
		code, body := r.do(test.method, test.path, test.body)
		var p problem
		if err := json.Unmarshal([]byte(body), &p); err != nil {
			t.Fatal(err)
		}
		if code != test.status || p.Status != code || !strings.Contains(p.Detail, test.detail) {
			t.Errorf("%s %.40s %.60s: %d %q, want %d %q", test.method, test.path, test.body, code, p.Detail, test.status, test.detail)
		}
	}
	h := newRequest("POST", "/drain", "")
	h.Header.Set("Content-Type", "application/x-www-form-urlencoded") // as a browser sends a form
	if code, body := r.send(h, ""); code != 415 {
		t.Errorf("a form: %d %s", code, body)
	}
}

// Each tube has a path, even if its name is a path element.
func TestTubeSegment(t *testing.T) {
	r := start(t, Options{})
	for _, name := range []string{".", "..", "/", "//", "a/../b", "a;b", "+", "mail"} {
		path := "/tubes/" + op.Segment(name)
		r.want(201, "POST", path+"/jobs", `{"body":"x"}`, nil)
		var tube admin.Tube
		if r.want(200, "GET", path, "", &tube); tube.Name != name || tube.Jobs.Ready != 1 {
			t.Errorf("%s is %+v", path, tube)
		}
	}
}

// After several wrong tokens, the API refuses further guesses for a while, but still
// accepts requests with a valid token.
func TestGuesses(t *testing.T) {
	known := rightsPolicy(t)
	r := start(t, Options{Identify: func(h *http.Request) (*access.Identity, bool) {
		return known["stats mail"], h.Header.Get("Authorization") == "Bearer right"
	}})
	ask := func(token string) int {
		h := newRequest("GET", "/me", "")
		if token != "" {
			h.Header.Set("Authorization", "Bearer "+token)
		}
		code, _ := r.send(h, "")
		return code
	}
	for range 20 {
		if code := ask(""); code != 401 {
			t.Fatalf("without a token: %d", code)
		}
	}
	for i := range 12 {
		if code, want := ask("wrong"), map[bool]int{true: 401, false: 429}[i < 10]; code != want {
			t.Errorf("guess %d: %d, want %d", i, code, want)
		}
	}
	if code := ask("right"); code != 200 {
		t.Errorf("the right token: %d", code)
	}
}

// A long response is compressed if the client accepts compression.
func TestCompressed(t *testing.T) {
	r := start(t, Options{})
	for i := range 100 {
		r.putAll(fmt.Sprint("tube-with-a-long-name-", i), "x")
	}
	h := newRequest("GET", "/tubes", "")
	h.Header.Set("Accept-Encoding", "gzip")
	w := httptest.NewRecorder()
	r.ServeHTTP(w, h)
	z, err := gzip.NewReader(w.Body)
	if err != nil || w.Header().Get("Content-Encoding") != "gzip" || w.Header().Get("Vary") != "Accept-Encoding" {
		t.Fatal(err, w.Header())
	}
	if text, err := io.ReadAll(z); err != nil || strings.TrimSpace(string(text)) != r.want(200, "GET", "/tubes", "", nil) {
		t.Error(err)
	}
}
