package api

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/api/task"
	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/jobjson"
	"github.com/beanpole-mq/beanpole/internal/server"
)

func (r *rig) putAll(tube string, bodies ...string) {
	r.t.Helper()
	r.in(func(e *engine.Engine, now int64) {
		for _, body := range bodies {
			e.PutInto(now, []byte(tube), engine.Spec{Pri: 1024, TTR: 60}, []byte(body))
		}
	})
}

// find reads all pages of a search and returns the found ids.
func (r *rig) find(path string, query ...string) (ids []uint64, pages int) {
	r.t.Helper()
	v := make(url.Values)
	for pair := range slices.Chunk(query, 2) {
		v.Set(pair[0], pair[1])
	}
	for looked := uint64(0); ; {
		var page admin.Found
		r.want(200, "GET", path+"?"+v.Encode(), "", &page)
		pages++
		for _, j := range page.Jobs {
			ids = append(ids, j.ID)
		}
		if page.Looked < looked {
			r.t.Fatalf("looked at %d jobs, earlier at %d", page.Looked, looked)
		}
		looked = page.Looked
		if page.Next == "" {
			return ids, pages
		}
		v.Set("cursor", page.Next)
	}
}

// A search finds jobs by text, regular expression or JSON value.
func TestSearchBodies(t *testing.T) {
	r := start(t, Options{})
	r.putAll("mail",
		"hello world", // 1
		`{"user":{"id":17,"name":"ann"},"tags":["a","b"]}`, // 2
		`{"user":{"id":1.70e1,"name":"Ann"}}`,              // 3
		`{"a/b":{"m~n":true},"\u0075ser":{"id":"17"}}`,     // 4
		"\xff\x00binary world",                             // 5
		`[{"x":null}]`,                                     // 6
		`17`,                                               // 7
		`{"user":{"id":17`,                                 // 8: not valid JSON
	)
	for _, test := range []struct {
		query []string
		want  []uint64
	}{
		{nil, []uint64{1, 2, 3, 4, 5, 6, 7, 8}},
		{[]string{"q", "world"}, []uint64{1, 5}},
		{[]string{"q", ""}, []uint64{1, 2, 3, 4, 5, 6, 7, 8}},
		{[]string{"q", "World"}, nil},
		{[]string{"q", "/(?i)hello|ANN/"}, []uint64{1, 2, 3}},
		{[]string{"q", "/^hello/"}, []uint64{1}},
		{[]string{"q", "/user/id"}, []uint64{2, 3, 4}},
		{[]string{"q", "/user/id:17"}, []uint64{2, 4}},
		{[]string{"q", "/tags/1:b"}, []uint64{2}},
		{[]string{"q", "/tags/01:*"}, nil},
		{[]string{"q", "/tags/2:b"}, nil},
		{[]string{"q", "/a~1b/m~0n:true"}, []uint64{4}},
		{[]string{"q", "/0/x:null"}, []uint64{6}},
		{[]string{"state", "buried"}, nil},
	} {
		for _, limit := range []string{"1", "3", "100"} {
			if got, _ := r.find("/tubes/mail/search", append([]string{"limit", limit}, test.query...)...); !slices.Equal(got, test.want) {
				t.Errorf("%q, %s a page: %d, want %d", test.query, limit, got, test.want)
			}
		}
	}
	for query, want := range map[string]string{
		"q=/(/":                          "regexp: error parsing regexp: missing closing ): `(`; the syntax is RE2's",
		"state=held":                     "state: want one of [ready reserved delayed buried], or none for all",
		"cursor=abc":                     "cursor: want the value of next from a page, or nothing",
		"q=" + strings.Repeat("x", 2049): "q: want 2048 bytes at most",
	} {
		var p problem
		if r.want(400, "GET", "/search?"+query, "", &p); p.Detail != want {
			t.Errorf("%.30s: %s, want %s", query, p.Detail, want)
		}
	}
	r.want(404, "GET", "/tubes/none/search", "", nil)
}

// A search of all tubes covers each state of each tube, for all sizes of its pages. A
// page ends after a bounded number of jobs, even if none matches.
func TestSearchAll(t *testing.T) {
	r := start(t, Options{})
	var want []uint64
	rng := rand.New(rand.NewPCG(1, 2))
	byTube := make(map[string][]uint64)
	r.in(func(e *engine.Engine, now int64) {
		for range 200 {
			tube := fmt.Sprintf("t%d", rng.IntN(30))
			id, _ := e.PutInto(now, []byte(tube), engine.Spec{Pri: rng.Uint32N(5), TTR: 60}, []byte("needle"))
			if rng.IntN(3) == 0 {
				e.BuryJob(id, 0)
			}
			byTube[tube] = append(byTube[tube], id)
		}
	})
	for _, ids := range byTube {
		want = append(want, ids...)
	}
	slices.Sort(want)
	for _, limit := range []string{"3", "7", "1000"} {
		got, _ := r.find("/search", "q", "needle", "limit", limit)
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s a page: %d jobs, want %d", limit, len(got), len(want))
		}
	}
	r.in(func(e *engine.Engine, now int64) {
		for range jobsPerSearch + 20_000 {
			e.PutInto(now, []byte("many"), engine.Spec{TTR: 60}, nil)
		}
	})
	if got, pages := r.find("/tubes/many/search", "q", "needle"); len(got) != 0 || pages < 2 { // on a slow machine there are more pages, because the time of a page is limited
		t.Errorf("%d jobs on %d pages", len(got), pages)
	}
}

// A task performs its operation on the listed or matching jobs, and reports the skipped
// ones.
func TestTasks(t *testing.T) {
	for _, test := range []struct {
		request string
		done    uint64
		skipped map[string]uint64
		state   string // state of the tubes after the task
	}{
		{`{"do":"kick","state":"buried"}`, 2, nil, "mail ready=5 reserved=1 delayed=1 buried=0 other=1"},
		{`{"do":"kick","state":"delayed","count":9}`, 1, nil, "mail ready=4 reserved=1 delayed=0 buried=2 other=1"},
		{`{"do":"delete","state":"ready","q":"a"}`, 2, nil, "mail ready=1 reserved=1 delayed=1 buried=2 other=1"},
		{`{"do":"delete","state":"ready","q":"/^b/","count":0}`, 0, nil, "mail ready=3 reserved=1 delayed=1 buried=2 other=1"},
		{`{"do":"bury","state":"reserved","priority":3}`, 1, nil, "mail ready=3 reserved=0 delayed=1 buried=3 other=1"},
		{`{"do":"release","state":"reserved","delay":99}`, 1, nil, "mail ready=3 reserved=0 delayed=2 buried=2 other=1"},
		{`{"do":"move","state":"ready","count":2,"to":"other"}`, 2, nil, "mail ready=1 reserved=1 delayed=1 buried=2 other=3"},
		{`{"do":"change","state":"ready","delay":50,"priority":1}`, 3, nil, "mail ready=0 reserved=1 delayed=4 buried=2 other=1"},
		{`{"do":"delete","ids":[1,5,6,7,8,9,99]}`, 3, map[string]uint64{"gone": 2, "in another tube": 1, "reserved": 1}, "mail ready=2 reserved=1 delayed=1 buried=0 other=1"},
		{`{"do":"kick","ids":[1,5]}`, 1, map[string]uint64{"ready": 1}, "mail ready=4 reserved=1 delayed=1 buried=1 other=1"},
		{`{"do":"change","ids":[5,6],"delay":3}`, 0, map[string]uint64{"buried": 2}, "mail ready=3 reserved=1 delayed=1 buried=2 other=1"},
	} {
		r := start(t, Options{})
		r.putAll("mail", "a", "b", "a", "d", "buried a", "buried b", "held") // job 4 is delayed
		r.putAll("other", "x")                                               // job 8
		r.in(func(e *engine.Engine, now int64) {
			e.AlterJob(now, 4, engine.Alteration{Delay: new(uint32(77))})
			e.BuryJob(5, 1)
			e.BuryJob(6, 1)
			e.PutInto(now, []byte("gone"), engine.Spec{}, nil)
			e.DeleteJob(9)
		})
		r.talk("watch mail", "reserve-job 7")
		var task admin.Task
		r.want(202, "POST", "/tubes/mail/tasks", test.request, &task)
		r.want(200, "GET", fmt.Sprintf("/tasks/%d?wait=60", task.ID), "", &task)
		if task.Status != "done" || task.Done != test.done || !maps.Equal(task.Skipped, test.skipped) && len(test.skipped)+len(task.Skipped) > 0 {
			t.Errorf("%s: %+v", test.request, task)
		}
		var state string
		r.in(func(e *engine.Engine, now int64) {
			st, _ := e.TubeStats(now, []byte("mail"))
			other, _ := e.TubeStats(now, []byte("other"))
			state = fmt.Sprintf("mail ready=%d reserved=%d delayed=%d buried=%d other=%d", st.Ready, st.Reserved, st.Delayed, st.Buried, other.Ready)
		})
		if state != test.state {
			t.Errorf("%s: %s, want %s", test.request, state, test.state)
		}
		if line := r.lastLine(); !strings.Contains(line, "operation=endTask") || !strings.Contains(line, fmt.Sprintf("count=%d", test.done)) || !strings.Contains(line, "result=ok") {
			t.Error(line)
		}
	}
}

// Invalid tasks are refused with a reason.
func TestTasksRefused(t *testing.T) {
	r := start(t, Options{})
	r.putAll("mail", "x")
	for request, want := range map[string]string{
		`{"do":"eat","state":"ready"}`:                                  "do: want one of [kick bury release redrive delete move change]",
		`{"do":"kick","state":"ready"}`:                                 "state: want one of [buried delayed]",
		`{"do":"kick"}`:                                                 "want one of state and ids",
		`{"do":"kick","state":"buried","ids":[1]}`:                      "want one of state and ids",
		`{"do":"kick","state":"buried","to":"x"}`:                       "kick does not accept to",
		`{"do":"move","state":"ready"}`:                                 "to: want the name of a tube",
		`{"do":"move","state":"ready","to":"mail"}`:                     "to: the jobs are already in that tube",
		`{"do":"move","state":"ready","to":"-x"}`:                       `"-x" cannot be the name of a tube`,
		`{"do":"change","state":"ready"}`:                               "no change: want priority, delay or ttr",
		`{"do":"change","state":"buried","delay":1}`:                    "delay: a buried job has no delay; kick it first",
		`{"do":"delete","ids":[1],"q":"x"}`:                             "want either ids or a search",
		`{"do":"delete","ids":["x"]}`:                                   "ids: want a list of numbers",
		`{"do":"delete","ids":[` + strings.Repeat("1,", 10_000) + "1]}": "ids: want at most 10000",
	} {
		h := newRequest("POST", "/tubes/mail/tasks", request)
		w := httptest.NewRecorder()
		r.ServeHTTP(w, h)
		if w.Code != 400 || !strings.Contains(w.Body.String(), `"detail":"`+strings.ReplaceAll(want, `"`, `\"`)) {
			t.Errorf("%.60s: %d %s, want %s", request, w.Code, w.Body, want)
		}
	}
	// A task on a missing tube is accepted, and finds no jobs.
	var task admin.Task
	r.want(202, "POST", "/tubes/none/tasks", `{"do":"delete","state":"ready"}`, &task)
	if r.want(200, "GET", "/tasks/1?wait=60", "", &task); task.Status != "done" || task.Found != 0 {
		t.Errorf("%+v", task)
	}
}

// A task can be cancelled. The numbers of running tasks, of running tasks of a client, and
// of stored tasks are limited.
func TestManyTasks(t *testing.T) {
	r := start(t, Options{})
	running := make(chan struct{}, task.Most)
	begin := func(address string) {
		r.tasks.Start(t.Context(), r.changes.Begin(&access.Caller{Identity: new(access.Identity), Address: address}, "startTask", ""), admin.Task{Tube: "mail"}, 0, func(ctx context.Context, _ *task.Task) error {
			running <- struct{}{}
			<-ctx.Done()
			return ctx.Err()
		})
		<-running
	}
	for range task.Share {
		begin("192.0.2.1:1")
	}
	var p problem
	r.want(503, "POST", "/tubes/mail/tasks", `{"do":"delete","state":"ready"}`, &p)
	if !strings.Contains(p.Detail, "too many running tasks (3, of which 3 are yours)") {
		t.Error(p.Detail)
	}
	begin("192.0.2.2:1")
	r.want(503, "POST", "/tubes/mail/tasks", `{"do":"delete","state":"ready"}`, &p)
	if !strings.Contains(p.Detail, "too many running tasks (4, of which 3 are yours)") {
		t.Error(p.Detail)
	}
	var shown admin.Task
	r.want(200, "GET", "/tasks/2", "", &shown)
	if shown.Ended != "" {
		t.Errorf("%+v", shown)
	}
	r.want(204, "DELETE", "/tasks/2", "", nil)
	r.want(200, "GET", "/tasks/2", "", &shown)
	if shown.Status != "cancelled" || shown.Ended == "" {
		t.Errorf("%+v", shown)
	}
	for range task.Kept {
		r.want(202, "POST", "/tubes/mail/tasks", `{"do":"delete","ids":[]}`, &shown)
		r.want(200, "GET", fmt.Sprintf("/tasks/%d?wait=60", shown.ID), "", nil)
	}
	var all admin.Tasks
	r.want(200, "GET", "/tasks", "", &all)
	if len(all.Tasks) != task.Kept || all.Tasks[0].ID != shown.ID {
		t.Errorf("%d tasks are remembered, the newest is %d", len(all.Tasks), all.Tasks[0].ID)
	}
	r.want(404, "GET", "/tasks/2", "", nil)
	r.want(400, "GET", "/tasks/1?wait=61", "", nil)
}

// If the server refuses to change a job, the task ends and reports the reason.
func TestTaskFails(t *testing.T) {
	r := startWith(t, Options{}, server.Options{}, engine.Options{Limits: engine.Limits{
		Tube: func(name string) engine.TubeLimits {
			return engine.TubeLimits{Jobs: map[string]int64{"small": 2}[name]}
		},
	}}, broker.Options{})
	r.putAll("mail", "1", "2", "3")
	r.want(202, "POST", "/tubes/mail/tasks", `{"do":"move","state":"ready","to":"small"}`, nil)
	var task admin.Task
	r.want(200, "GET", "/tasks/1?wait=60", "", &task)
	if task.Status != "failed" || task.Done != 2 || !strings.Contains(task.Problem, "a limit is reached") {
		t.Errorf("%+v", task)
	}
	if line := r.lastLine(); !strings.Contains(line, "count=2") || !strings.Contains(line, `result="no space`) {
		t.Error(line)
	}
	r.want(507, "POST", "/tubes/small/jobs", `{"body":""}`, nil)
	var tube admin.Tube
	r.want(200, "GET", "/tubes/small", "", &tube)
	if tube.Limit == nil || tube.Limit.Jobs != 2 {
		t.Errorf("%+v", tube.Limit)
	}
}

// Import restores exported jobs, except for values that the server assigns.
func TestExportImport(t *testing.T) {
	r := start(t, Options{})
	big := strings.Repeat("x", 60_000)
	r.putAll("mail", "plain", "", "\xff\xfe", "buried", "held", "later", "\u2028</script>", big, `{"error_class":"E","error_message":"m"}`)
	r.in(func(e *engine.Engine, now int64) {
		s := e.Open(nil)
		attempt := func(id uint64, note string) {
			e.ReserveJob(now, s, id)
			e.Note(s, id, []byte(note))
		}
		attempt(1, "taken: by the operator")
		e.ReleaseJob(now, 1, 1024, 0)
		attempt(4, "SMTPError: 535")
		e.Bury(s, 4, 9)
		attempt(6, "again")
		e.Release(now, s, 6, 0, 0)
		attempt(7, "not over")
		e.BuryJob(9, 0)
		e.AlterJob(now, 6, engine.Alteration{Delay: new(uint32(1000)), Pri: new(uint32(3)), TTR: new(uint32(5))})
	})
	r.talk("watch mail", "reserve-job 5")
	lines := r.want(200, "GET", "/tubes/mail/export", "", nil)
	if got := r.stream("/tubes/copy/import", "\n"+lines+"\r\n\n"); got != `{"imported":9}` {
		t.Fatal(got)
	}
	var jobs []jobjson.Job
	for line := range strings.SplitSeq(r.want(200, "GET", "/tubes/copy/export", "", nil), "\n") {
		var j jobjson.Job
		if err := json.Unmarshal([]byte(line), &j); err != nil {
			t.Fatal(err)
		}
		jobs = append(jobs, j)
	}
	got := make(map[string]string)
	for _, j := range jobs {
		text := fmt.Sprintf("%s %d %d", j.State, j.Priority, j.TTR)
		if j.State == "buried" {
			text += fmt.Sprint(", delay ", j.Delay)
		}
		if f := j.Failure; f != nil {
			text += fmt.Sprintf(", %s %d %t %s", f.End, f.Attempt, f.Buried > 0, f.Reason)
		}
		got[string(j.Bytes())] = text
	}
	want := map[string]string{"plain": "ready 1024 60, taken 1 false taken: by the operator", "": "ready 1024 60", "\xff\xfe": "ready 1024 60", "buried": "buried 9 60, delay 0, buried 1 true SMTPError: 535", "held": "ready 1024 60",
		"later": "delayed 3 5, released 1 false again", "\u2028</script>": "ready 1024 60,  0 false not over", big: "ready 1024 60", `{"error_class":"E","error_message":"m"}`: "buried 0 60, delay 0,  0 true E: m"}
	if !maps.Equal(got, want) {
		t.Errorf("%.200v", got)
	}
	if got := r.want(200, "GET", "/tubes/mail/export?state=ready&q=plain", "", nil); !strings.HasPrefix(got, `{"id":1,`) || strings.Contains(got, "\n") {
		t.Error(got)
	}
}

// A failed import reports its last line, and the number of jobs that it has put.
func TestImportRefused(t *testing.T) {
	r := startWith(t, Options{}, server.Options{MaxJobSize: 10}, engine.Options{}, broker.Options{})
	for _, test := range []struct {
		path, lines string
		status      int
		detail      string
		done        uint64
	}{
		{"/tubes/t/import", "{\"body\":\"1\"}\n{\"body\":\"2\"}\n\n{\"bodi\":\"3\"}\n{\"body\":\"4\"}", 400, `line 4: not a job in JSON: unknown field "bodi"`, 2},
		{"/tubes/t/import", `{"body":"12345678901"}`, 413, "line 1: the body is too large: the maximum is 10 bytes", 0},
		{"/tubes/t/import", strings.Repeat("x", 70_000), 413, "line 1 has more than 65556 bytes", 0},
		{"/import", `{"body":"x"}`, 400, "line 1: tube: want the name of a tube", 0},
		{"/import", `{"body":"x","tube":"-t"}`, 400, `line 1: "-t" cannot be the name of a tube`, 0},
		{"/tubes/t/import", `{"body":"x","failure":{"end":"odd"}}`, 400, "line 1: failure: want the end, the times and the address of an export", 0},
		{"/tubes/t/import", `{"body":"x","failure":{"address":"odd"}}`, 400, "line 1: failure: want the end", 0},
		{"/tubes/t/import", `{"body":"x","failure":{"at":-1}}`, 400, "line 1: failure: want the end", 0},
		{"/tubes/t/import", `{"body":"x","failure":{"policy":"odd"}}`, 400, `line 1: failure: unknown policy "odd"`, 0},
		{"/tubes/t/import", `{"body":"x","failure":{"at":"1"}}`, 400, "line 1: failure.at: want a whole number", 0},
	} {
		code, text := r.sendStream(test.path, test.lines)
		var p problem
		if err := json.Unmarshal([]byte(text), &p); err != nil || code != test.status || !strings.HasPrefix(p.Detail, test.detail) || (p.Done == nil) != (test.done == 0) || p.Done != nil && *p.Done != test.done {
			t.Errorf("%.40s: %d %s", test.lines, code, text)
		}
	}
	r.want(415, "POST", "/import", `{"body":"x","tube":"t"}`, nil)
}

// A job can be changed unless a client holds it.
func TestChangeJob(t *testing.T) {
	r := start(t, Options{})
	r.putAll("mail", "a", "b", "c")
	r.in(func(e *engine.Engine, _ int64) { e.BuryJob(2, 0) })
	r.talk("watch mail", "reserve-job 3")
	for _, test := range []struct {
		path, request string
		status        int
		detail        string
	}{
		{"/jobs/1", `{"priority":7,"ttr":0}`, 204, ""},
		{"/jobs/1", `{"delay":100}`, 204, ""},
		{"/jobs/2", `{"priority":7}`, 204, ""},
		{"/jobs/2", `{"delay":7}`, 409, "job 2 is buried and cannot be changed in this way"},
		{"/jobs/3", `{"priority":7}`, 409, "job 3 is reserved and cannot be changed in this way"},
		{"/jobs/1", `{}`, 400, "want priority, delay, ttr or a body"},
		{"/jobs/1", `{"body":"mended","delay":100}`, 204, ""},
		{"/jobs/2", `{"body_base64":"AP8="}`, 204, ""},
		{"/jobs/3", `{"body":"x"}`, 409, "job 3 is reserved and cannot be changed in this way"},
		{"/jobs/1", `{"body":"x","body_base64":"AP8="}`, 400, "want one of body and body_base64"},
		{"/jobs/1", fmt.Sprintf(`{"body":"%s"}`, strings.Repeat("x", 1<<16)), 413, "the maximum is 65535 bytes"},
		{"/jobs/1", `{"priority":-7}`, 400, "priority: want a number"},
		{"/jobs/9", `{"priority":7}`, 404, "there is no job 9"},
	} {
		if code, text := r.do("PATCH", test.path, test.request); code != test.status || !strings.Contains(text, test.detail) {
			t.Errorf("%s %s: %d %s", test.path, test.request, code, text)
		}
	}
	r.in(func(e *engine.Engine, now int64) {
		if st, _ := e.JobStats(now, 1); st.State != engine.Delayed || st.Pri != 7 || st.TTR != 1 || st.Delay != 100 || st.TimeLeft < 90 {
			t.Errorf("%+v", st)
		}
		one, _ := e.Peek(1)
		if two, _ := e.Peek(2); string(one.Body) != "mended" || string(two.Body) != "\x00\xff" {
			t.Errorf("%q, %q", one.Body, two.Body)
		}
	})
}

// FuzzValueAt compares valueAt with a complete JSON parser.
func FuzzValueAt(f *testing.F) {
	for _, body := range []string{`{"a":{"b":[1,{"c":"x"}]}}`, `[[],[1]]`, `{"a\"}":"]","a":1,"a":{"b" : 2}}`, ` { "a" : [ ] } `, `"x"`, `{"\u0061":{"b":"y"}}`, "{\"\xff\":1}"} {
		f.Add(body, "a", "b")
		f.Add(body, "1", "0")
	}
	f.Fuzz(func(t *testing.T, body, first, second string) {
		if !json.Valid([]byte(body)) || !utf8.ValidString(body) || strings.Contains(body, `\u`) {
			t.Skip("a reader of whole values puts other characters there")
		}
		path := []string{first, second}
		got, ok := valueAt([]byte(body), path)
		var whole any
		if err := json.Unmarshal([]byte(body), &whole); err != nil {
			t.Skip("a number is too large for it")
		}
		for _, name := range path {
			var there bool
			switch v := whole.(type) {
			case map[string]any:
				whole, there = v[name]
			case []any:
				if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(v) && strconv.Itoa(i) == name {
					whole, there = v[i], true
				}
			}
			if !there {
				if ok {
					t.Errorf("%q at %q: %s, want nothing", body, path, got)
				}
				return
			}
		}
		var value any
		if err := json.Unmarshal(got, &value); !ok || err != nil || fmt.Sprint(value) != fmt.Sprint(whole) {
			t.Errorf("%q at %q: %s (%v), want %v", body, path, got, ok, whole)
		}
	})
}

// FuzzSearchCursor checks that invented cursors are refused.
func FuzzSearchCursor(f *testing.F) {
	f.Add("")
	f.Add(searchCursor{"mail", engine.Buried, engine.Cursor{}, 7}.String())
	f.Add(base64.RawURLEncoding.EncodeToString([]byte("a 1 40000000000.1 5")))
	f.Fuzz(func(t *testing.T, text string) {
		if c, err := parseSearchCursor(text); err == nil && text != "" && c.String() != text {
			t.Errorf("%q is %+v, which is %q", text, c, c.String())
		}
	})
}
