package top

import (
	"fmt"
	"html"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/access"
	pages "github.com/beanpole-mq/beanpole/internal/admin"
	"github.com/beanpole-mq/beanpole/internal/api"
	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/console"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/health"
	"github.com/beanpole-mq/beanpole/internal/server"
)

// A situation is a sequence of events in the tube mail, which occur every ten seconds for
// half an hour.
type situation struct {
	begin, step func(e *engine.Engine, now int64, worker *engine.Session)
	kinds       string   // kinds of the findings
	says        []string // contained in the explanation of the tube
	alerts      string   // alerts that fire
}

var mail = []byte("mail")

func put(e *engine.Engine, now int64, tube string, ttr uint32) uint64 {
	id, _ := e.PutInto(now, []byte(tube), engine.Spec{TTR: ttr}, nil)
	return id
}

func watch(e *engine.Engine, _ int64, s *engine.Session) { e.Watch(s, mail) }

var situations = map[string]situation{
	"calm": {
		begin: watch,
		step: func(e *engine.Engine, now int64, s *engine.Session) {
			put(e, now, "mail", 60)
			job, _ := e.Reserve(now, s, 0)
			e.Delete(s, job.ID)
		},
		says: []string{"no jobs"},
	},
	"no workers": {
		begin: func(e *engine.Engine, now int64, _ *engine.Session) { put(e, now, "mail", 60) },
		kinds: "unwatched", says: []string{"no workers: 1 job is ready, the next for 30 min"}, alerts: "BeanpoleNobodyWorks BeanpoleJobsWait",
	},
	"idle workers": {
		begin: func(e *engine.Engine, now int64, s *engine.Session) {
			watch(e, now, s)
			put(e, now, "mail", 60)
		},
		kinds: "slow", says: []string{"1 worker: none is waiting for or holding a job; 1 job is ready"}, alerts: "BeanpoleJobsWait",
	},
	"workers busy with another tube": {
		begin: func(e *engine.Engine, now int64, s *engine.Session) {
			e.Watch(s, []byte("telemetry"))
			put(e, now, "telemetry", 3600)
			e.Reserve(now, s, 0)
			watch(e, now, s)
			put(e, now, "mail", 60)
		},
		kinds: "slow", says: []string{"1 worker: 1 is busy with telemetry; 1 job is ready"}, alerts: "BeanpoleJobsWait",
	},
	"paused": {
		begin: func(e *engine.Engine, now int64, _ *engine.Session) {
			put(e, now, "mail", 60)
			e.Pause(now, mail, 7200)
		},
		kinds: "paused", says: []string{"paused until"},
	},
	"failed long ago": {
		begin: func(e *engine.Engine, now int64, _ *engine.Session) { e.BuryJob(put(e, now, "mail", 60), 0) },
		kinds: "buried", says: []string{"no job is ready; 1 buried job"},
	},
	"failing": {
		step:  func(e *engine.Engine, now int64, _ *engine.Session) { e.BuryJob(put(e, now, "mail", 60), 0) },
		kinds: "buried", says: []string{"buried jobs, 60 more than 10 min ago"}, alerts: "BeanpoleJobsBuried",
	},
	"a TTR that is too short": {
		begin: func(e *engine.Engine, now int64, s *engine.Session) {
			watch(e, now, s)
			put(e, now, "mail", 1)
		},
		step:  func(e *engine.Engine, now int64, s *engine.Session) { e.Reserve(now, s, 0) },
		kinds: "timeouts",
		says:  []string{"in the last 10 min 60 reservations timed out and no job was deleted: the TTR is too short, or workers hang"}, alerts: "BeanpoleJobsTimeOut",
	},
	"a release loop": {
		begin: func(e *engine.Engine, now int64, s *engine.Session) {
			watch(e, now, s)
			put(e, now, "mail", 60)
		},
		step: func(e *engine.Engine, now int64, s *engine.Session) {
			for range 50 {
				job, _ := e.Reserve(now, s, 0)
				e.Release(now, s, job.ID, 0, 0)
			}
		},
		kinds: "releases", says: []string{"1 worker: 3,000 jobs were reserved", "in the last 10 min 3,000 jobs were released and no job was deleted"}, alerts: "BeanpoleJobsReleased",
	},
	"one hung worker among two": {
		begin: func(e *engine.Engine, now int64, s *engine.Session) {
			watch(e, now, s)
			hung := e.Open(nil)
			watch(e, now, hung)
			put(e, now, "mail", 7200)
			e.Reserve(now, hung, 0)
		},
		step: func(e *engine.Engine, now int64, s *engine.Session) {
			for _, hold := range e.Holds(now, s, 1) {
				e.Delete(s, hold.ID)
			}
			put(e, now, "mail", 60)
			e.Reserve(now, s, 0)
		},
		kinds: "held", says: []string{"no job is ready: 2 reserved; a job has been reserved for 30 min (connection 2), but jobs take 10 s on average"}, alerts: "BeanpoleJobHeld",
	},
}

// phrases are contained in the text of a finding and in the summary of its alert.
var phrases = map[string]string{
	"BeanpoleNobodyWorks": "no workers", "BeanpoleJobsWait": "ready for", "BeanpoleJobsBuried": "10 min ago", "BeanpoleJobHeld": "a job has been reserved for",
	"BeanpoleJobsTimeOut": "reservations timed out", "BeanpoleJobsReleased": "jobs were released",
}

// TestAgree plays each situation on a server. The API's findings, the explanation of the
// tube, the overview of the console, the mark of the view, and the Prometheus alerts must
// agree.
func TestAgree(t *testing.T) {
	var rules strings.Builder
	file, err := filepath.Abs("../../../contrib/prometheus/beanpole.rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(&rules, "rule_files: [%s]\nevaluation_interval: 1m\ntests:\n", file)
	for name, s := range situations {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { rules.WriteString(s.play(t, name)) }) })
	}
	text, err := os.ReadFile(file)
	for alert, phrase := range phrases {
		_, rule, _ := strings.Cut(string(text), "alert: "+alert+"\n")
		if summary := regexp.MustCompile(`summary: .*`).FindString(rule); err != nil || !strings.Contains(summary, phrase) {
			t.Errorf("%s: %v, %s: it lacks %q", alert, err, summary, phrase)
		}
	}
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed (Debian: prometheus)")
	}
	test := filepath.Join(t.TempDir(), "agree.yml")
	if err := os.WriteFile(test, []byte(rules.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(promtool, "test", "rules", test).CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}

// play runs the situation for half an hour, compares its representations, and returns the
// test of its alerts for promtool.
func (s *situation) play(t *testing.T, name string) (test string) {
	eng := engine.New(engine.Options{Epoch: time.Now().UnixNano()})
	b := broker.New(eng, broker.Options{})
	defer b.Close()
	srv := server.New(b, server.Options{})
	a := api.New(b, api.Options{Server: srv})
	defer a.Close()
	site := console.New(console.Options{Identify: api.Identify(new(access.Control)), Open: a.Open, Host: "a", Sessions: console.NewSessions()})
	defer site.Close()
	metrics := pages.New(b, pages.Options{Server: srv.Counts})
	in := func(f func(e *engine.Engine, now int64)) {
		if err := b.Call(f); err != nil {
			t.Fatal(err)
		}
	}
	var worker *engine.Session
	in(func(e *engine.Engine, now int64) {
		worker = e.Open(nil)
		if s.begin != nil {
			s.begin(e, now, worker)
		}
	})
	go a.Record(t.Context())
	time.Sleep(5 * time.Second) // so that no step coincides with a sample
	series := make(map[string][]string)
	for i := range 30*6 + 1 {
		if s.step != nil {
			in(func(e *engine.Engine, now int64) { s.step(e, now, worker) })
		}
		if i%6 == 0 {
			w := httptest.NewRecorder()
			metrics.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
			for _, line := range regexp.MustCompile(`(?m)^(beanpole_tube_\S*tube="mail"\S*)} (\S+)$`).FindAllStringSubmatch(w.Body.String(), -1) {
				series[line[1]] = append(series[line[1]], line[2])
			}
		}
		time.Sleep(10 * time.Second)
	}

	anyone, err := access.New(access.Config{})
	if err != nil {
		t.Fatal(err)
	}
	open := a.Open(access.Caller{Identity: anyone.Nobody()}, "")
	attention, err := open.GetAttention(t.Context(), &admin.GetAttention{Limit: 1000, Each: true})
	if err != nil {
		t.Fatal(err)
	}
	why, err := open.ExplainTube(t.Context(), &admin.OfTube{Tube: "mail"})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	site.ServeHTTP(w, httptest.NewRequest("GET", "/console/", nil))
	overview := strings.ReplaceAll(html.UnescapeString(w.Body.String()), "\u202f", ",")
	m := newModel(newFakeServer(), "a", time.Second)
	m.width = 500
	snap := Snapshot{At: time.Now(), Tubes: []Tube{{Tube: admin.Tube{Name: "mail"}}}, Found: attention.Findings}
	next, _ := m.Update(snapshotMsg{snap, nil})
	m = next.(model)

	var kinds []string
	worst := ""
	for _, f := range attention.Findings {
		if f.Tube != "mail" {
			continue
		}
		if kinds = append(kinds, f.Kind); worst != health.Bad {
			worst = f.Severity
		}
		if !strings.Contains(why.Text, f.Text) {
			t.Errorf("the sentence lacks the finding %q", f.Text)
		}
		if !strings.Contains(overview, f.Text) {
			t.Errorf("the overview of the console lacks the finding %q", f.Text)
		}
		for alert := range strings.FieldsSeq(s.alerts) {
			if !strings.Contains(strings.ReplaceAll(f.Text, "the next for", "ready for"), phrases[alert]) {
				t.Errorf("the finding %q and its alert %s have other words", f.Text, alert)
			}
		}
	}
	if slices.Sort(kinds); strings.Join(kinds, " ") != s.kinds || why.Severity != worst {
		t.Errorf("findings %q, severity %q and %q; want %q", kinds, worst, why.Severity, s.kinds)
	}
	for _, says := range s.says {
		if !strings.Contains(why.Text, says) {
			t.Errorf("the sentence %q lacks %q", why.Text, says)
		}
	}
	if marked := strings.Contains(m.plain(), "\n>!mail "); marked != (worst == health.Bad) {
		t.Errorf("marked: %v; worst finding %q", marked, worst)
	}
	if len(kinds) > 0 && !strings.Contains(m.plain(), "\nmail: "+attention.Findings[slices.IndexFunc(attention.Findings, func(f admin.Finding) bool { return f.Tube == "mail" })].Text) {
		t.Errorf("the view does not show the finding:\n%s", m.plain())
	}

	test = fmt.Sprintf("  - name: %s\n    interval: 1m\n    input_series:\n", name)
	for series, values := range series {
		test += fmt.Sprintf("      - {series: '%s,instance=\"a\",job=\"beanpole\"}', values: '%s'}\n", series, strings.Join(values, " "))
	}
	test += "    promql_expr_test:\n      - expr: 'count by (alertname) (ALERTS{alertstate=\"firing\"})'\n        eval_time: 30m\n        exp_samples:\n"
	for alert := range strings.FieldsSeq(s.alerts) {
		test += fmt.Sprintf("          - {labels: '{alertname=%q}', value: 1}\n", alert)
	}
	return test
}
