package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/api/task"
	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/rights"
	"github.com/beanpole-mq/beanpole/internal/schedule"
	"github.com/beanpole-mq/beanpole/internal/server"
)

// rightsPolicy has an identity with the name of each right, which has that right on all
// tubes, and some identities for single tubes.
func rightsPolicy(t *testing.T) map[string]*access.Identity {
	t.Helper()
	var c access.Config
	known := make(map[string]*access.Identity)
	hashes := make(map[string]string)
	add := func(name string, set rights.Set, tubes ...string) {
		token := "token-of-" + strings.ReplaceAll(name, " ", "-") + "-0123456789"
		h, err := access.HashOf(token)
		if err != nil {
			t.Fatal(err)
		}
		hashes[name] = token
		c.Identities = append(c.Identities, access.IdentityConfig{Name: name, Tokens: []access.Hash{h}})
		c.Rules = append(c.Rules, access.RuleConfig{Identities: []string{name}, Tubes: tubes, Rights: set})
	}
	for _, right := range []rights.Set{rights.Put, rights.Reserve, rights.Peek, rights.Manage, rights.Stats} {
		add(right.String(), right, "*")
		add(right.String()+" mail", right, "mail")
		add(right.String()+" other", right, "other")
	}
	add("both", rights.Stats|rights.Peek, "*")
	add("both mail", rights.Stats|rights.Peek, "mail")
	add("both other", rights.Stats|rights.Peek, "other")
	p, err := access.New(c)
	if err != nil {
		t.Fatal(err)
	}
	for name, token := range hashes {
		known[name], _ = p.Identify(access.Credentials{Token: []byte(token)})
	}
	return known
}

// TestRights tries every operation with every right: on all tubes, on the operation's
// tube, and on another tube.
func TestRights(t *testing.T) {
	var names []string
	known := rightsPolicy(t)
	for name := range known {
		names = append(names, name)
	}
	everybody := strings.Join(names, ", ")
	allowed := make(map[string]string) // permitted identities, by operation
	for who, ids := range map[string]string{
		"stats, stats mail, stats other, both, both mail, both other": "getStats getAttention getCluster listTubes listPolicies listReserved listSchedules",
		"stats, both":                        "getHistory listConnections getConnection",
		"manage, manage mail":                "setPolicy deletePolicy pauseTube resumeTube kickJob buryJob releaseJob getTask cancelTask startTask changeJob",
		everybody:                            "getMe",
		"manage":                             "transferLead listChanges drain undrain rewriteJournal closeConnection getServer moveJob redriveJob", // a job also on the other tube
		"peek, both":                         "getJournal",
		"stats, stats mail, both, both mail": "getTube explainTube getTubeHistory explainPolicy listJobs getJob getSchedule",
		"put, put mail":                      "putJob importAll importTube",
		"peek, peek mail, both, both mail":   "getBody",
		"manage, manage mail, reserve, reserve mail": "deleteJob",
		"manage, manage mail, manage other":          "listTasks",
		"both, both mail, both other":                "searchAll exportAll listFailures",
		"both, both mail":                            "searchTube exportTube listClasses",
		"":                                           "copyJob setSchedule removeSchedule runSchedule pauseSchedule resumeSchedule", // they also need put
	} {
		for id := range strings.FieldsSeq(ids) {
			allowed[id] = who
		}
	}
	bodies := map[string]string{
		"putJob": `{"body":"x"}`, "pauseTube": `{"seconds":9}`,
		"setPolicy": `{"set":{"max-attempts":"5"}}`, "setSchedule": `{"settings":{"every":"1h","tube":"mail"}}`,
		"startTask": `{"do":"delete","ids":[1]}`, "changeJob": `{"priority":9}`, "copyJob": `{"to":"mail"}`, "moveJob": `{"to":"another"}`,
		"importAll": `{"tube":"mail","body":"x"}`, "importTube": `{"body":"x"}`,
	}
	jobs := map[string]string{"kickJob": "2", "releaseJob": "3", "redriveJob": "4"}
	paths := strings.NewReplacer("{tube}", "mail", "{pattern}", "mail", "{connection}", "1", "{task}", "1", "{schedule}", "nightly")
	for name, who := range known {
		for _, op := range operations() {
			r := start(t, Options{RewriteJournal: func() {}, Cluster: oneMember, Transfer: func(context.Context, uint64) error { return nil }, Backup: emptyBackup, Identify: func(*http.Request) (*access.Identity, bool) { return who, true }})
			r.in(func(e *engine.Engine, now int64) {
				e.SetPolicy("mail", "burst=2\n")
				e.SetSchedule("nightly", schedule.Text(map[string]string{"every": "1h", "tube": "mail"}))
				e.PutInto(now, []byte("mail"), engine.Spec{TTR: 9}, nil)
				e.PutInto(now, []byte("mail"), engine.Spec{TTR: 9, Delay: 900}, nil)
				e.PutInto(now, []byte("mail"), engine.Spec{TTR: 9}, nil)
			})
			r.talk("use mail", "reserve-job 3") // connection 1
			if op.ID == "redriveJob" {
				r.dead("another", "mail")
			}
			r.sampleTubes(t.Context(), 1)
			path := paths.Replace(op.path)
			if id := jobs[op.ID]; id != "" {
				path = strings.Replace(path, "{job}", id, 1)
			}
			path = strings.Replace(path, "{job}", "1", 1)
			if op.ID == "listJobs" {
				path += "?state=ready"
			}
			before := r.everything()
			r.tasks.Start(t.Context(), r.changes.Begin(&access.Caller{Identity: new(access.Identity)}, "startTask", ""), admin.Task{Tube: "mail"}, 0, func(ctx context.Context, _ *task.Task) error { <-ctx.Done(); return nil })
			h := newRequest(op.method, path, bodies[op.ID])
			if op.plan.Streams() {
				h.Header.Set("Content-Type", ndjson)
			}
			code, body := r.send(h, bodies[op.ID])
			may := false
			for _, one := range strings.Split(allowed[op.ID], ", ") {
				may = may || one == name
			}
			switch {
			case may && code >= 300:
				t.Errorf("%s must not %s: %d %s", name, op.ID, code, body)
			case !may && code != http.StatusForbidden:
				t.Errorf("%s is allowed to %s: %d %s", name, op.ID, code, body)
			case !may && r.everything() != before:
				t.Errorf("%s must not %s, but the queue changed:\n%s\n%s", name, op.ID, before, r.everything())
			}
		}
	}
}

// dead puts a job into a tube and lets a policy move it to a tube of dead jobs.
func (r *rig) dead(origin, to string) (id uint64) {
	r.in(func(e *engine.Engine, now int64) {
		e.SetPolicy(origin, "max-attempts=1\nexhausted=move\ndead-tube="+to+"\n")
		id, _ = e.PutInto(now, []byte(origin), engine.Spec{TTR: 9}, nil)
	})
	r.talk(fmt.Sprint("reserve-job ", id), "use "+to, fmt.Sprint("release ", id, " 0 0"), "use "+to) // one line for each line that the server sends
	return id
}

// everything formats the visible state of the queue as text.
func (r *rig) everything() string {
	var text []byte
	r.in(func(e *engine.Engine, _ int64) {
		all := []any{e.Stats(), e.IsDraining()}
		for id := range e.LastID() {
			st, o := e.JobStats(0, id+1)
			st.Age, st.TimeLeft = 0, 0
			all = append(all, st, o)
		}
		st, _ := e.TubeStats(0, []byte("mail"))
		st.OldestReady = 0
		text, _ = json.Marshal(append(all, st))
	})
	return string(text)
}

// A client with rights on some tubes sees only those, and sees bodies only with the peek
// right.
func TestPartlyVisible(t *testing.T) {
	known := rightsPolicy(t)
	var who *access.Identity
	var refusals bytes.Buffer
	r := startWith(t, Options{Identify: func(*http.Request) (*access.Identity, bool) { return who, who != nil }},
		server.Options{Logger: slog.New(slog.NewTextHandler(&refusals, nil))}, engine.Options{}, broker.Options{})
	r.in(func(e *engine.Engine, now int64) {
		for _, tube := range []string{"a", "b", "mail", "z"} {
			e.PutInto(now, []byte(tube), engine.Spec{TTR: 9}, []byte("secret"))
		}
	})
	who = known["stats mail"]
	var tubes admin.Tubes
	r.want(200, "GET", "/tubes?limit=1", "", &tubes)
	if len(tubes.Tubes) != 1 || tubes.Tubes[0].Name != "mail" || tubes.Next != "" {
		t.Errorf("%+v", tubes)
	}
	if got := r.want(200, "GET", "/jobs/3", "", nil); strings.Contains(got, "secret") || strings.Contains(got, "body") {
		t.Error(got)
	}
	if got := r.want(403, "GET", "/tubes/mail/jobs?state=ready&bodies=true", "", nil); !strings.Contains(got, "listJobs needs the peek right on the tube mail, for the bodies") {
		t.Error(got)
	}
	if got := r.want(403, "GET", "/jobs/1", "", nil); !strings.Contains(got, "getJob needs the stats right on the tube of job 1") {
		t.Error(got)
	}
	// To see the reason of a failure, a caller needs the peek right. To see the worker,
	// it needs the stats right on all tubes.
	who = known["put"]
	r.stream("/import", `{"tube":"mail","state":"buried","body":"","failure":{"end":"buried","attempt":1,"identity":"worker","address":"192.0.2.7:5","reason":"SMTPError: 535"}}`)
	for name, want := range map[string]string{"stats mail": "   ", "both mail": "SMTPError SMTPError: 535  ", "stats": "  worker 192.0.2.7:5", "both": "SMTPError SMTPError: 535 worker 192.0.2.7:5"} {
		who = known[name]
		var one admin.Job
		var page admin.Jobs
		r.want(200, "GET", "/jobs/5", "", &one)
		r.want(200, "GET", "/tubes/mail/jobs?state=buried", "", &page)
		for _, j := range append(page.Jobs, one) {
			if f := j.Failure; f.End != "buried" || fmt.Sprintf("%s %s %s %s", f.Class, f.Reason, f.Identity, f.Address) != want {
				t.Errorf("%s sees %+v, want %s", name, f, want)
			}
		}
	}
	who = nil
	h := newRequest("GET", "/stats", "")
	if code, _ := r.send(h, ""); code != 401 {
		t.Errorf("without an identity: %d", code)
	}
	for _, want := range []string{`identity="stats mail" refused=getJob`, `identity="" refused="getStats without a valid token"`} {
		if !strings.Contains(refusals.String(), `msg="a client was refused" client=192.0.2.1:1234 `+want) {
			t.Errorf("the log has no line %s:\n%s", want, &refusals)
		}
	}
}

// Redrive moves dead jobs only to tubes that the caller can manage.
func TestRedrive(t *testing.T) {
	known := rightsPolicy(t)
	who := known["manage mail"]
	r := startWith(t, Options{Identify: func(*http.Request) (*access.Identity, bool) { return who, true }}, server.Options{}, engine.Options{}, broker.Options{})
	r.in(func(e *engine.Engine, now int64) {
		e.SetPolicies(onePolicy{&engine.Policy{MaxReleases: 1, Exhausted: engine.MoveExhausted, DeadTube: "mail"}})
		s := e.Open(nil)
		for _, tube := range []string{"x", "y", "mail"} {
			id, _ := e.PutInto(now, []byte(tube), engine.Spec{TTR: 9}, nil)
			e.ReserveJob(now, s, id)
			e.Release(now, s, id, 0, 0)
		}
	})
	if task := r.sweep("mail", `{"do":"redrive","state":"buried"}`); task.Done != 0 || task.Skipped["not permitted"] != 2 || task.Skipped["without an origin"] != 1 {
		t.Errorf("%+v", task)
	}
	r.want(403, "POST", "/tubes/mail/tasks", `{"do":"redrive","state":"buried","to":"x"}`, nil)
	who = known["manage"]
	if task := r.sweep("mail", `{"do":"redrive","state":"buried","count":1}`); task.Done != 1 {
		t.Errorf("%+v", task)
	}
	who = known["both"]
	if got := r.want(200, "GET", "/jobs/1", "", nil); !strings.Contains(got, `"tube":"x"`) || !strings.Contains(got, `"state":"ready"`) || strings.Contains(got, "origin") {
		t.Error(got)
	}
	if got := r.want(200, "GET", "/jobs/2", "", nil); !strings.Contains(got, `"origin":"y"`) {
		t.Error(got)
	}
	who = known["manage"]
	if task := r.sweep("mail", `{"do":"redrive","state":"buried","to":"z"}`); task.Done != 2 {
		t.Errorf("%+v", task)
	}
}
