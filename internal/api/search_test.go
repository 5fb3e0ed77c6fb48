package api

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/api/tubes"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/health"
	"github.com/beanpole-mq/beanpole/internal/history"
	"github.com/beanpole-mq/beanpole/internal/server"
)

// someTubes creates n tubes with increasing numbers of jobs, and a buried job in every
// tenth.
func (r *rig) someTubes(n int) {
	r.in(func(e *engine.Engine, now int64) {
		for i := range n {
			tube := fmt.Appendf(nil, "t-%d", i)
			for range i + 1 {
				e.PutInto(now, tube, engine.Spec{TTR: 9}, nil)
			}
			if i%10 == 0 {
				id, _ := e.PutInto(now, tube, engine.Spec{TTR: 9}, nil)
				e.BuryJob(id, 0)
			}
		}
	})
}

func names(tubes []admin.Tube) string {
	var all []string
	for i := range tubes {
		all = append(all, tubes[i].Name)
	}
	return strings.Join(all, " ")
}

// For each order and filter, the pages list each tube once, and the number of matches is
// right.
func TestSearchTubes(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	r := start(t, Options{})
	r.someTubes(40)
	for _, test := range []struct{ query, want string }{
		{"sort=-ready", "t-39 t-38 t-37"},
		{"sort=ready", "default t-0 t-1"},
		{"sort=-buried", "t-0 t-10 t-20"},
		{"sort=name", "default t-0 t-1"},
		{"sort=-name", "t-9 t-8 t-7"},
		{"q=fau", "default"},
		{"q=t-*5", "t-15 t-25 t-35"},
		{"q=t-1%3F&sort=-total_jobs", "t-19 t-18 t-17"},
		{"has=buried", "t-0 t-10 t-20"},
		{"has=buried,paused", ""},
		{"has=unwatched&sort=-ready", "t-39 t-38 t-37"},
		{"q=[", ""},
	} {
		var page admin.Tubes
		r.want(200, "GET", "/tubes?limit=3&"+test.query, "", &page)
		if got := names(page.Tubes); got != test.want {
			t.Errorf("%s: %s, want %s", test.query, got, test.want)
		}
	}
	for column := range tubes.Columns.By {
		for _, sort := range []string{column, "-" + column} {
			var all []string
			for cursor, more := "", true; more; {
				var page admin.Tubes
				r.want(200, "GET", "/tubes?limit=20&sort="+sort+"&cursor="+url.QueryEscape(cursor), "", &page)
				for i := range page.Tubes {
					all = append(all, page.Tubes[i].Name)
				}
				if page.Matching != 41 || page.Jobs.Ready != 40*41/2 || page.Jobs.Buried != 4 {
					t.Fatalf("%s: %d tubes match, with %+v", sort, page.Matching, page.Jobs)
				}
				cursor, more = page.Next, page.Next != ""
			}
			if slices.Sort(all); len(all) != 41 || len(slices.Compact(all)) != 41 {
				t.Errorf("%s: the pages have %d tubes", sort, len(all))
			}
		}
	}
}

// A search neither shows nor counts tubes on which the caller has no right.
func TestSearchRights(t *testing.T) {
	known := rightsPolicy(t)
	r := start(t, Options{Identify: func(*http.Request) (*access.Identity, bool) { return known["stats mail"], true }})
	r.someTubes(3)
	r.in(func(e *engine.Engine, now int64) { e.PutInto(now, []byte("mail"), engine.Spec{TTR: 9}, nil) })
	var page admin.Tubes
	r.want(200, "GET", "/tubes?sort=-ready", "", &page)
	if names(page.Tubes) != "mail" || page.Matching != 1 || page.Jobs.Ready != 1 {
		t.Errorf("%+v", page)
	}
	var found admin.Attention
	r.want(200, "GET", "/attention", "", &found)
	if found.Total != 1 || found.Findings[0].Tube != "mail" {
		t.Errorf("%+v", found)
	}
}

// The worst findings come first.
func TestAttention(t *testing.T) {
	r := start(t, Options{Journal: func() server.JournalStats { return server.JournalStats{Health: "no space left on device"} }})
	r.someTubes(1)
	r.talk("watch watched", "watch t-0")
	r.in(func(e *engine.Engine, now int64) {
		e.Pause(now, []byte("t-0"), 30)
		e.PutInto(now-int64(health.SlowAfter), []byte("watched"), engine.Spec{TTR: 9}, nil)
		e.PutInto(now-int64(health.SlowAfter), []byte("lonely"), engine.Spec{TTR: 9}, nil)
	})
	var found admin.Attention
	r.want(200, "GET", "/attention", "", &found)
	var got []string
	for _, f := range found.Findings {
		got = append(got, f.Severity+" "+f.Kind+" "+f.Tube)
	}
	want := []string{"bad journal ", "bad unwatched lonely", "warning buried t-0", "warning slow watched", "warning paused t-0"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	r.want(200, "GET", "/attention?limit=1", "", &found)
	if len(found.Findings) != 1 || found.Total != 5 {
		t.Errorf("%+v", found)
	}
}

// A search accepts a typed query, and searches in the decoded bodies that the console
// shows.
func TestSearchByQuery(t *testing.T) {
	r := start(t, Options{})
	gz := func(text string) string {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		z.Write([]byte(text))
		z.Close()
		return b.String()
	}
	bodies := []string{
		1:  `{"user":{"id":17},"tags":["new","urgent"]}`,
		2:  `{"data":{"user":{"id":"18"}},"amount":120.5}`,
		3:  gz(`{"user":{"id":17}}`),
		4:  base64.StdEncoding.EncodeToString([]byte("needle in plain text")),
		5:  `{"data":{"command":"O:4:\"Mail\":1:{s:2:\"to\";s:7:\"a@b.org\";}"}}`,
		6:  "\x81\xa2id\x11", // MessagePack: {"id": 17}
		7:  "a plain needle",
		8:  `{"user":{"id":170}}`,
		9:  `{"inner":"{\"user\":{\"id\":17}}"}`,
		10: `[[[[{"user":{"id":17}}]]]]`,
		11: `{"displayName":"App\\Jobs\\SendMail","data":{}}`,
		12: gz(`{"class":"SendMail"}`),
	}
	r.in(func(e *engine.Engine, now int64) {
		for id, body := range bodies[1:] {
			tube := "mail-a"
			if id >= 6 {
				tube = "other"
			}
			e.PutInto(now, []byte(tube), engine.Spec{TTR: 9, Pri: uint32(id)}, []byte(body))
		}
		e.BuryJob(8, 5)
	})
	for q, want := range map[string]string{
		"user.id:17": "1 3 9 10", "user.id:18": "2", "/user/id:17": "1 3", "/user/id = 17": "1 3", "user.id:*": "1 2 3 8 9 10", "id:7": "7",
		"tags:urgent": "1", "amount>100": "2", "amount>121": "", `to:"a@b.org"`: "5", "a@b.org": "5", "needle": "4 7", "/need+le$/": "7", "/need+le/ tube:mail-*": "4",
		"class:SendMail": "12", "class:*SendMail": "11 12", `class:App\Jobs\SendMail or class:x`: "11", "needle not class:x not tube:other": "4", "not needle pri<9 not user.id:*": "5 6",
		"amount>100 or tags:urgent": "1 2", "state:buried or priority>8 not class:*": "8 10", "held>1h or pri:3": "4", "not held>1h pri<3": "1 2 3",
		"tube:other state:buried": "8", "state:ready pri<2": "1 2", "id:*": "1 2 3 6 8 9 10", "tries>0": "", "size>60 tube:mail-a": "5", "tube:none": "", "plain needle": "4 7",
	} {
		if q == "id:*" { // here, id is the job's id
			r.want(400, "GET", "/search?q=id:*", "", nil)
			continue
		}
		var ids []string
		for cursor, more := "", true; more; more = cursor != "" { // a page can end early
			var found admin.Found
			r.want(200, "GET", "/search?q="+url.QueryEscape(q)+"&cursor="+cursor, "", &found)
			for _, j := range found.Jobs {
				ids = append(ids, fmt.Sprint(j.ID))
			}
			cursor = found.Next
		}
		slices.SortFunc(ids, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
		if got := strings.Join(ids, " "); got != want {
			t.Errorf("%s: %s, want %s", q, got, want)
		}
	}
	if lines := r.want(200, "GET", "/tubes/other/export?q=user.id:17", "", nil); strings.Count(lines, `"tube"`) != 2 {
		t.Error(lines)
	}
	if got := r.sweep("other", `{"do":"kick","state":"buried","q":"user.id:17"}`); got.Done != 0 || got.Looked != 1 {
		t.Errorf("%+v", got)
	}
	if got := r.sweep("other", `{"do":"kick","state":"buried","q":"user.id:170 pri:5"}`); got.Done != 1 {
		t.Errorf("%+v", got)
	}
	r.want(400, "GET", "/search?q=age>soon", "", nil)
	r.want(400, "GET", "/search?q=/(/", "", nil)
	r.want(400, "GET", "/tubes/other/search?q=state:busy", "", nil)
}

// Findings of tubes whose names differ only in a number are grouped, and each tube is
// counted.
func TestGroupedFindings(t *testing.T) {
	r := start(t, Options{})
	r.in(func(e *engine.Engine, now int64) {
		for _, name := range []string{"mail", "lonely", "t-1", "t-2", "t-3", "t-4"} {
			e.PutInto(now, []byte(name), engine.Spec{TTR: 9}, nil)
		}
	})
	var found admin.Attention
	r.want(200, "GET", "/attention", "", &found)
	var got []string
	for _, f := range found.Findings {
		got = append(got, f.Tube+f.Like)
	}
	if s := strings.Join(got, " "); s != "t-* lonely mail" || found.Total != 6 {
		t.Errorf("%q, %d", s, found.Total)
	}
}

type onePolicy struct{ *engine.Policy }

func (p onePolicy) Of(string) *engine.Policy            { return p.Policy }
func (p onePolicy) With(string, string) engine.Policies { return p }

// The explanation of a stuck tube names the jobs that its workers hold, or its pause.
func TestExplainTube(t *testing.T) {
	r := start(t, Options{})
	explain := func() string {
		t.Helper()
		var found admin.Explanation
		r.want(200, "GET", "/tubes/mail/explain", "", &found)
		return found.Severity + ": " + found.Text
	}
	put := func(e *engine.Engine, now int64) { e.PutInto(now, []byte("mail"), engine.Spec{TTR: 900}, nil) }
	r.want(404, "GET", "/tubes/mail/explain", "", nil)
	r.in(put)
	if got := explain(); got != "warning: no workers: 1 job is ready" {
		t.Error(got)
	}
	r.talk("watch mail", "reserve-with-timeout 9") // connection 1
	r.in(put)
	if got := explain(); !strings.HasPrefix(got, ": 1 worker: 1 holds a job") || !strings.HasSuffix(got, "; 1 job is ready") {
		t.Error(got)
	}
	r.want(204, "POST", "/tubes/mail/pause", `{"seconds":900}`, nil)
	if got := explain(); !strings.HasPrefix(got, "warning: paused until ") {
		t.Error(got)
	}
	r.want(204, "POST", "/tubes/mail/resume", "", nil)
	r.want(204, "POST", "/drain", "", nil)
	if got := explain(); !strings.HasSuffix(got, "; the server refuses puts: it is draining") || !strings.HasPrefix(got, "bad") {
		t.Error(got)
	}
	r.in(func(e *engine.Engine, now int64) {
		e.SetPolicies(onePolicy{&engine.Policy{MaxReserved: 1}})
		e.Undrain()
	})
	r.in(func(e *engine.Engine, now int64) {})
	if got := explain(); !strings.HasPrefix(got, ": at the max-reserved of its policy: 1 job is reserved; 1 job is ready") {
		t.Error(got)
	}
}

// The findings include nearly full limits, recent refusals and expiring certificates.
func TestAttentionToLimits(t *testing.T) {
	r := start(t, Options{CertificateWarnings: func() []string { return []string{"the certificate a.crt ends soon"} }})
	limit := func(memory int64) {
		r.in(func(e *engine.Engine, now int64) {
			e.SetLimits(engine.Limits{Memory: memory, Tube: func(name string) engine.TubeLimits {
				return map[string]engine.TubeLimits{"jobs": {Jobs: 10}, "bytes": {Bytes: 100}, "roomy": {Jobs: 100, Bytes: 1000}}[name]
			}})
		})
	}
	limit(1 << 30)
	r.in(func(e *engine.Engine, now int64) {
		for _, tube := range []string{"jobs", "bytes", "roomy", "free"} {
			for range 9 {
				e.PutInto(now, []byte(tube), engine.Spec{TTR: 9, Delay: 900}, make([]byte, 10))
			}
		}
	})
	finds := func(want ...string) {
		t.Helper()
		var found admin.Attention
		r.want(200, "GET", "/attention", "", &found)
		var got []string
		for _, f := range found.Findings {
			got = append(got, fmt.Sprint(f.Severity, " ", f.Kind, " ", f.Tube, " ", f.Count))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	finds("bad certificate  0", "warning limited bytes 9", "warning limited jobs 9")
	var page admin.Tubes
	if r.want(200, "GET", "/tubes?has=limited", "", &page); len(page.Tubes) != 2 || page.Tubes[0].Name != "bytes" || page.Tubes[1].Name != "jobs" {
		t.Errorf("%+v", page.Tubes)
	}

	limit(1000)
	r.sampleServer(600)
	r.sampleServer(601)
	r.sampleServer(602)
	s := &r.history.server
	s.kept[1][history.Refused], s.kept[2][history.Refused], s.sum[history.Refused] = 2, 1, 3
	finds("bad memory  0", "bad certificate  0", "warning refused  3", "warning limited bytes 9", "warning limited jobs 9")
	for i := range secondsKept - 2 {
		r.sampleServer(603 + int64(i))
	}
	finds("bad memory  0", "bad certificate  0", "warning refused  1", "warning limited bytes 9", "warning limited jobs 9")

	limit(1 << 30)
	r.in(func(e *engine.Engine, now int64) {
		e.PutInto(now, []byte("jobs"), engine.Spec{TTR: 9, Delay: 900}, nil)
		e.PutInto(now, []byte("bytes"), engine.Spec{TTR: 9, Delay: 900}, make([]byte, 10))
	})
	finds("bad certificate  0", "warning refused  1", "bad limited bytes 10", "bad limited jobs 10")
	r.in(func(e *engine.Engine, now int64) {
		e.PutInto(now, []byte("jobs"), engine.Spec{TTR: 9, Delay: 900}, nil)
	})
	finds("bad certificate  0", "warning refused  1", "warning limit  0", "bad limited bytes 10", "bad limited jobs 10")
}

// Connections can be found by their used, watched and awaited tubes, their held jobs, and
// their address.
func TestSearchConnections(t *testing.T) {
	r := start(t, Options{})
	r.in(func(e *engine.Engine, now int64) { e.PutInto(now, []byte("held"), engine.Spec{TTR: 90}, nil) })
	r.talk("watch mail", "reserve-job 1")
	r.talk("use mail")
	r.talk("watch other")
	for query, want := range map[string]int{"": 3, "?tube=mail": 2, "?tube=other": 1, "?holding=true": 1, "?tube=mail&holding=true": 1, "?waiting=true": 0, "?q=nowhere": 0, "?tube=ma*": 2, "?tube=ma*,ot?er": 3, "?tube=m": 0} {
		var page admin.Connections
		if r.want(200, "GET", "/connections"+query, "", &page); len(page.Connections) != want {
			t.Errorf("%s: %d connections, want %d", query, len(page.Connections), want)
		}
	}
}

// Pages of tubes are sorted by the rates in the last minute. Tubes without samples follow
// idle tubes. Samples of this server are not used for other servers.
func TestSearchRates(t *testing.T) {
	r := start(t, Options{})
	r.someTubes(5)
	for name, s := range map[string][2]history.Values{
		"t-1": {{history.Put: 10, history.Done: 5}, {history.Put: 40, history.Done: 5}},
		"t-2": {{history.Put: 0, history.Done: 0}, {history.Put: 31, history.Done: 900}},
		"t-3": {{history.Put: 7, history.Done: 7}, {history.Put: 7, history.Done: 8}},
		"t-4": {},
	} {
		th := new(samples)
		th.add(0, &s[0], tubeSamples)
		th.add(tubeStep, &s[1], tubeSamples)
		r.history.tubes[name] = th
	}
	for _, test := range []struct{ query, want string }{
		{"sort=-put_per_second", "t-2 t-1 t-3 t-4 default t-0"},
		{"sort=put_per_second", "default t-0 t-3 t-4 t-1 t-2"},
		{"sort=-deleted_per_second", "t-2 t-3 t-1 t-4 default t-0"},
		{"sort=deleted_per_second&q=t-*", "t-0 t-1 t-4 t-3 t-2"},
	} {
		var got []string
		for cursor, more := "", true; more; more = cursor != "" {
			var page admin.Tubes
			r.want(200, "GET", "/tubes?limit=2&"+test.query+"&cursor="+cursor, "", &page)
			for _, tube := range page.Tubes {
				got = append(got, tube.Name)
			}
			cursor = page.Next
		}
		if got := strings.Join(got, " "); got != test.want {
			t.Errorf("%s: %s, want %s", test.query, got, test.want)
		}
	}
}

// The explanation of a tube names other tubes, and the connection that holds a job, only
// for clients that can see them.
func TestWorkersRights(t *testing.T) {
	known := rightsPolicy(t)
	asks := "stats"
	r := start(t, Options{Identify: func(*http.Request) (*access.Identity, bool) { return known[asks], true }})
	r.in(func(e *engine.Engine, now int64) {
		for _, tube := range []string{"telemetry", "mail", "other", "other"} {
			e.PutInto(now-int64(time.Minute), []byte(tube), engine.Spec{TTR: 900}, nil)
		}
		busy, holder := e.Open(nil), e.Open(nil)
		e.Watch(busy, []byte("telemetry"))
		e.Reserve(now-int64(time.Minute), busy, 0)
		e.Watch(busy, []byte("mail"))
		e.Watch(holder, []byte("other"))
		e.Reserve(now-int64(time.Minute), holder, 0)
	})
	for _, test := range []struct{ identity, tube, want string }{
		{"stats", "mail", "1 worker: 1 is busy with telemetry; 1 job is ready"},
		{"stats mail", "mail", "1 worker: 1 is busy with other tubes; 1 job is ready"},
		{"stats", "other", "1 worker: 1 holds a job for up to 60 s (connection 2); 1 job is ready"},
		{"stats other", "other", "1 worker: 1 holds a job for up to 60 s; 1 job is ready"},
	} {
		asks = test.identity
		var why admin.Explanation
		r.want(200, "GET", "/tubes/"+test.tube+"/explain", "", &why)
		if !strings.HasPrefix(why.Text, test.want) {
			t.Errorf("%s asks for %s: %q, want %q", test.identity, test.tube, why.Text, test.want)
		}
	}
}
