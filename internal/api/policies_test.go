package api

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/api/task"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/rights"
)

// policies is the part of TestStory about policies. The configuration sets max-releases=9
// for every tube.
func (r *rig) policies() {
	t := r.t
	var p admin.Policy
	r.want(200, "PATCH", "/policies/mail-*", `{"set":{"max-attempts":"5","burst":"3"}}`, &p)
	if p.Source != "runtime" || !maps.Equal(p.Settings, map[string]string{"max-attempts": "5", "burst": "3"}) || len(p.Warnings) != 1 || !strings.Contains(p.Warnings[0], "burst has no effect without rate") {
		t.Errorf("%+v", p)
	}
	r.want(200, "PATCH", "/policies/mail-%3F", `{"set":{"max-attempts":"7"},"unset":["burst"]}`, nil)
	r.want(200, "PATCH", "/policies/mail-*", `{"unset":["burst"]}`, nil)
	explain := func(tube string) (text string) {
		var in admin.TubePolicy
		r.want(200, "GET", "/tubes/"+tube+"/policy", "", &in)
		for _, s := range in.Settings {
			if s.Source != "default" {
				text += fmt.Sprintf("%s=%s %s %s\n", s.Name, s.Value, s.Source, s.Pattern)
			} else if s.Value != s.Default || s.Takes == "" || s.About == "" {
				t.Errorf("%+v", s)
			}
		}
		return text
	}
	const ofFile = "max-releases=9 file *\n"
	if got := explain("mail-1") + explain("mail-12") + explain("other"); got != "max-attempts=7 runtime mail-?\n"+ofFile+"max-attempts=5 runtime mail-*\n"+ofFile+ofFile {
		t.Error(got)
	}
	var all admin.Policies
	r.want(200, "GET", "/policies", "", &all)
	if len(all.Policies) != 3 || all.Policies[0].Source != "file" || all.Policies[0].Number != 1 || all.Policies[2].Pattern != "mail-?" {
		t.Errorf("%+v", all)
	}
	r.want(204, "DELETE", "/policies/mail-%3F", "", nil)
	r.want(404, "DELETE", "/policies/mail-%3F", "", nil)
	p = admin.Policy{}
	r.want(200, "PATCH", "/policies/mail-*", `{"unset":["max-attempts","rate"]}`, &p)
	if got := explain("mail-1"); got != ofFile || len(p.Settings) != 0 {
		t.Error(got, p)
	}
	for body, want := range map[string]string{
		`{}`: "no change: want {", `{"set":{"max-attempt":"5"}}`: `unknown setting "max-attempt"; the settings are max-attempts, `, `{"set":{"max-attempts":5}}`: "set: want an object whose values are strings",
		`{"set":{"exhausted":"burn"}}`: "exhausted: want one of bury, delete, move, not burn", `{"unset":["x"]}`: "unknown setting", `{"unset":"x"}`: "unset: want a list of strings",
	} {
		var problem problem
		if r.want(400, "PATCH", "/policies/mail", body, &problem); !strings.Contains(problem.Detail, want) {
			t.Errorf("%s: %s, want %s", body, problem.Detail, want)
		}
	}
	var wrong problem
	if r.want(400, "PATCH", "/policies/a%20b", `{"set":{"rate":"1"}}`, &wrong); !strings.Contains(wrong.Detail, `"a b" matches no tube`) {
		t.Error(wrong.Detail)
	}
}

// A pause of a pattern applies to new tubes and their waiting workers. When it ends, the
// workers are served.
func TestPauseOfPattern(t *testing.T) {
	r := start(t, Options{})
	r.want(200, "PATCH", "/policies/mail-*", `{"set":{"paused":"1h"}}`, nil)
	worker := r.talk("watch mail-1", "reserve")
	r.want(201, "POST", "/tubes/mail-1/jobs", `{"body":"x"}`, nil)
	var tube admin.Tube
	for tube.Waiting == 0 { // until the server has read the reserve
		r.want(200, "GET", "/tubes/mail-1", "", &tube)
	}
	if tube.PauseLeft < 3500 || tube.PauseLeft > 3600 || tube.Jobs.Ready != 1 {
		t.Errorf("%+v", tube)
	}
	r.want(409, "POST", "/tubes/mail-1/resume", "", nil)
	r.want(200, "PATCH", "/policies/mail-*", `{"unset":["paused"]}`, nil)
	reply := make([]byte, len("RESERVED 1 1\r\n"))
	if _, err := worker.Read(reply); err != nil || string(reply) != "RESERVED 1 1\r\n" {
		t.Errorf("%q %v", reply, err)
	}
}

// Setting a dead tube requires rights on the destination; for a pattern, it requires them
// on each possible destination. Only clients with a right on a dead tube, or on the
// origin of a job, see its name.
func TestDeadTubeRights(t *testing.T) {
	p, err := access.New(access.Config{
		Identities: []access.IdentityConfig{{Name: "mgr", UnixUsers: []uint32{1}}, {Name: "viewer", UnixUsers: []uint32{2}}},
		Rules: []access.RuleConfig{
			{Identities: []string{"mgr"}, Tubes: []string{"pub*"}, Rights: rights.All},
			{Identities: []string{"mgr"}, Tubes: []string{"failed"}, Rights: rights.Put},
			{Identities: []string{"viewer"}, Tubes: []string{"pub*", "secret"}, Rights: rights.Stats},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	user := uint32(1)
	r := start(t, Options{Identify: func(*http.Request) (*access.Identity, bool) {
		return p.Identify(access.Credentials{User: access.UnixUser{ID: user, Known: true}})
	}})
	for _, c := range []struct {
		pattern, dead string
		want          int
	}{
		{"pub", "secret", 403}, {"pub", " secret ", 403}, {"pub", "{tube}.dead", 200}, {"pub", "pubs.dead", 200}, {"pub", "failed", 200}, {"pub", "failed2", 403},
		{"pub*", "{tube}.x", 200}, {"pub*", "x.{tube}", 403}, {"pub%3F", "{tube}", 200}, {"pub", "a b", 400}, {"pub", "secret*", 400}, {"news", "{tube}.dead", 403},
	} {
		if code, body := r.do("PATCH", "/policies/"+c.pattern, `{"set":{"max-attempts":"1","exhausted":"move","dead-tube":"`+c.dead+`"}}`); code != c.want {
			t.Errorf("dead-tube=%s of %s: %d %s, want %d", c.dead, c.pattern, code, body, c.want)
		}
	}
	id := r.dead("secret", "pub")
	r.in(func(e *engine.Engine, _ int64) {
		e.SetPolicy("pub", "dead-tube=secret\nexhausted=move\nmax-attempts=1\n")
		e.SetPolicy("secret", "dead-tube=vault\nexhausted=move\nmax-attempts=1\n") // so that pub gets a warning
	})
	r.tasks.Start(t.Context(), r.changes.Begin(&access.Caller{Identity: new(access.Identity)}, "startTask", ""), admin.Task{Tube: "pub", To: "secret"}, 1, func(context.Context, *task.Task) error { return nil })
	for _, path := range []string{"GET /tubes/pub/policy", "GET /policies", "PATCH /policies/pub", "GET /tasks", "GET /tasks/1", fmt.Sprint("GET /jobs/", id), "GET /tubes/pub/jobs?state=buried", "GET /tubes/pub/search",
		"GET /tubes/pub/export", fmt.Sprintf("POST /jobs/%d/redrive", id)} {
		method, path, _ := strings.Cut(path, " ")
		user = 1
		if code, body := r.do(method, path, map[string]string{"PATCH": `{"set":{"burst":"3"}}`}[method]); strings.Contains(string(body), "secret") || strings.Contains(string(body), "vault") || code == 404 {
			t.Errorf("%s %s names a tube on which the client has no right: %d %s", method, path, code, body)
		}
		user = 2
		if code, body := r.do(method, path, ""); code == 200 && !strings.Contains(path, "tasks") && !strings.Contains(string(body), "secret") {
			t.Errorf("%s %s does not name a tube on which the client has a right: %s", method, path, body)
		}
	}
}

// A policy requires the right on every tube of its pattern. The number of patterns is
// limited, and some are reserved for clients that manage every tube.
func TestPolicyRights(t *testing.T) {
	rule := func(tubes ...string) access.RuleConfig {
		return access.RuleConfig{Identities: []string{"*"}, Tubes: tubes, Rights: rights.Manage | rights.Stats}
	}
	p, err := access.New(access.Config{Rules: []access.RuleConfig{rule("mail-*", "news")}})
	if err != nil {
		t.Fatal(err)
	}
	r := start(t, Options{Identify: func(*http.Request) (*access.Identity, bool) { return p.Nobody(), true }})
	for pattern, may := range map[string]bool{"mail-*": true, "mail-x*": true, "mail-%3F": true, "news": true, "mail": false, "mail*": false, "*": false, "m%3Fil-x": false, "news%3F": false} {
		code, body := r.do("PATCH", "/policies/"+pattern, `{"set":{"rate":"5"}}`)
		if want := map[bool]int{true: 200, false: 403}[may]; code != want {
			t.Errorf("%s: %d %s", pattern, code, body)
		}
	}
	var all admin.Policies
	r.want(200, "GET", "/policies", "", &all)
	if slices.ContainsFunc(all.Policies, func(p admin.Policy) bool { return p.Source == "file" }) || len(all.Policies) != 4 {
		t.Errorf("values of tubes without the right are shown: %+v", all)
	}
	r.in(func(e *engine.Engine, _ int64) {
		for n := 0; e.SetPolicy(fmt.Sprint("t", n), "burst=2\n") != engine.TooBig; n++ {
		}
	})
	var full problem
	if r.want(507, "PATCH", "/policies/mail-more", `{"set":{"rate":"5"}}`, &full); !strings.Contains(full.Detail, "too many patterns with settings (1000)") {
		t.Error(full.Detail)
	}
}
