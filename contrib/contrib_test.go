// Package contrib_test checks the files in contrib against the program. Each metric in
// the dashboard and the alerts exists with its labels, and Prometheus accepts the
// expressions.
package contrib_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/health"
)

const (
	dashboard = "grafana/beanpole.json"
	rules     = "prometheus/beanpole.rules.yml"
	ruleTests = "prometheus/beanpole.test.yml"
)

// A metric is a line of the table in doc/metrics.md, which a test of internal/admin
// compares with the program.
type metric struct {
	kind   string
	labels []string
}

func documented(t *testing.T) map[string]metric {
	t.Helper()
	line := regexp.MustCompile("(?m)^\\| `(beanpole_[a-z_]+)` \\| ([a-z]+)([^|]*) \\|")
	all := make(map[string]metric)
	for _, m := range line.FindAllStringSubmatch(read(t, "../doc/metrics.md"), -1) {
		labels := regexp.MustCompile("[a-z]+").FindAllString(m[3], -1)
		all[m[1]] = metric{m[2], append(labels, "instance", "job")}
	}
	if len(all) == 0 {
		t.Fatal("doc/metrics.md has no table of metrics")
	}
	return all
}

// series returns the metric to which a name in an expression belongs.
func series(metrics map[string]metric, name string) (m metric, ok bool) {
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		base, cut := strings.CutSuffix(name, suffix)
		m, ok := metrics[base]
		switch {
		case !cut || !ok:
		case m.kind == "histogram":
			return metric{m.kind, append(m.labels, "le")}, true
		case m.kind == "summary" && suffix != "_bucket":
			return m, true
		}
	}
	m, ok = metrics[name]
	return m, ok && m.kind != "histogram" && m.kind != "summary"
}

var (
	selector = regexp.MustCompile(`(beanpole_[a-z_]+)(\{[^}]*\})?`)
	matcher  = regexp.MustCompile(`([a-z]+) *(=|!=|=~|!~) *"`)
	grouping = regexp.MustCompile(`by \(([^)]*)\)`)
)

// problems returns the errors in the metrics and labels of an expression.
func problems(metrics map[string]metric, expr string) (found []string) {
	known := []string{"instance", "job"}
	for _, s := range selector.FindAllStringSubmatch(expr, -1) {
		m, ok := series(metrics, s[1])
		if !ok {
			found = append(found, "there is no "+s[1])
			continue
		}
		known = append(known, m.labels...)
		for _, l := range matcher.FindAllStringSubmatch(s[2], -1) {
			if !slices.Contains(m.labels, l[1]) {
				found = append(found, fmt.Sprintf("%s has no label %s", s[1], l[1]))
			}
		}
	}
	for _, g := range grouping.FindAllStringSubmatch(expr, -1) {
		for label := range strings.SplitSeq(g[1], ",") {
			if label = strings.TrimSpace(label); !slices.Contains(known, label) {
				found = append(found, "no metric has the label "+label)
			}
		}
	}
	return found
}

// A panel contains the fields of a panel that the tests need.
type panel struct {
	ID      int    `json:"id"`
	Type    string `json:"type"`
	Title   string `json:"title"`
	GridPos struct{ H, W, X, Y int }
	Targets []struct {
		RefID string `json:"refId"`
		Expr  string `json:"expr"`
	} `json:"targets"`
}

func panels(t *testing.T) []panel {
	t.Helper()
	var d struct {
		Panels []panel `json:"panels"`
	}
	if err := json.Unmarshal([]byte(read(t, dashboard)), &d); err != nil {
		t.Fatal(err)
	}
	return d.Panels
}

// expressions returns the dashboard's expressions by panel, as Grafana sends them.
func expressions(t *testing.T) map[string]string {
	t.Helper()
	variables := strings.NewReplacer("$__rate_interval", "1m", "$instance", ".*", "$tube", ".*")
	all := make(map[string]string)
	for _, p := range panels(t) {
		for _, q := range p.Targets {
			all[fmt.Sprintf("%s (%d%s)", p.Title, p.ID, q.RefID)] = variables.Replace(q.Expr)
		}
	}
	return all
}

func TestMetricsExist(t *testing.T) {
	metrics := documented(t)
	for what, expr := range expressions(t) {
		for _, p := range problems(metrics, expr) {
			t.Errorf("%s: %s: %s", what, expr, p)
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^ +expr: (.*)$`).FindAllStringSubmatch(read(t, rules), -1) {
		for _, p := range problems(metrics, m[1]) {
			t.Errorf("alerts: %s: %s", m[1], p)
		}
	}
	for _, m := range regexp.MustCompile(`series: '([^']*)'`).FindAllStringSubmatch(read(t, ruleTests), -1) {
		for _, p := range problems(metrics, m[1]) {
			t.Errorf("the test of the alerts: %s: %s", m[1], p)
		}
	}
}

// The files in contrib and dist use image names that the build creates.
func TestImageNames(t *testing.T) {
	build := read(t, "../dist/container/build")
	for file, expr := range map[string]string{
		"compose/compose.yaml":         `BEANPOLE_IMAGE:-([^}]+)`,
		"../dist/container/Dockerfile": `podman run .* (\S+)\n`,
		"../doc/install.md":            `buildah push (\S+)`,
	} {
		m := regexp.MustCompile(expr).FindStringSubmatch(read(t, file))
		if m == nil || !strings.Contains(build, " --tag "+m[1]+" ") {
			t.Errorf("%s uses the image name %q, but dist/container/build does not", file, m)
		}
	}
}

var update = flag.Bool("contrib.update", false, "write kubernetes/prometheusrule.yaml")

// The Prometheus operator's rules contain the same alerts.
func TestPrometheusRule(t *testing.T) {
	const file = "kubernetes/prometheusrule.yaml"
	got := read(t, file)
	head, _, _ := strings.Cut(got, "spec:\n")
	_, groups, _ := strings.Cut(read(t, rules), "groups:\n")
	want := head + "spec:\n  groups:\n" + regexp.MustCompile("(?m)^(.)").ReplaceAllString(groups, "  $1")
	switch {
	case got == want:
	case *update:
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("the alerts of %s differ from those of %s; its first lines describe how to update them", file, rules)
	}
}

// TestProblems checks that TestMetricsExist detects errors.
func TestProblems(t *testing.T) {
	metrics := documented(t)
	for expr, want := range map[string]int{
		`beanpole_jobs{state="ready"}`:                                        0,
		`sum by (le) (rate(beanpole_turn_seconds_bucket{instance=~"a"}[1m]))`: 0,
		`beanpole_job`:                          1,
		`beanpole_jobs{tube="a"}`:               1,
		`beanpole_turn_seconds`:                 1,
		`beanpole_tube_job_work_seconds_bucket`: 1,
		`sum by (tube) (beanpole_jobs)`:         1,
		`beanpole_jobs_bucket / beanpole_turn_seconds_sum{le="1"} > beanpole_xy`: 2,
	} {
		if got := problems(metrics, expr); len(got) != want {
			t.Errorf("%s: %v, want %d", expr, got, want)
		}
	}
}

// Each panel has its own id, a title and an expression, and panels do not overlap.
func TestPanels(t *testing.T) {
	ids := make(map[int]bool)
	taken := make(map[[2]int]string)
	for _, p := range panels(t) {
		if ids[p.ID] || p.ID == 0 || p.Title == "" {
			t.Errorf("panel %d %q: want a unique id and a title", p.ID, p.Title)
		}
		ids[p.ID] = true
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("panel %q has no expression", p.Title)
		}
		if p.GridPos.X+p.GridPos.W > 24 || p.GridPos.W*p.GridPos.H == 0 {
			t.Errorf("panel %q exceeds the 24 columns: %+v", p.Title, p.GridPos)
		}
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if other, ok := taken[at]; ok {
					t.Fatalf("panels %q and %q overlap", other, p.Title)
				}
				taken[at] = p.Title
			}
		}
	}
}

// Each kind of finding has an alert with the same limit, unless it is not a problem in
// itself or another alert covers it.
func TestAlertsAreFindings(t *testing.T) {
	const unlessPaused = " unless on (instance, tube) beanpole_tube_pause_left_seconds > 0"
	lately := fmt.Sprintf("[%.0fm]", health.Lately.Minutes())
	alerts := map[string][2]string{
		"unwatched":   {"BeanpoleNobodyWorks", `{kind="watching"} == 0` + unlessPaused},
		"slow":        {"BeanpoleJobsWait", fmt.Sprintf("> %.0f", health.SlowAfter.Seconds()) + unlessPaused},
		"buried":      {"BeanpoleJobsBuried", lately + ") > 0"},
		"timeouts":    {"BeanpoleJobsTimeOut", lately + ") > 0"},
		"releases":    {"BeanpoleJobsReleased", fmt.Sprintf("%s) >= %d", lately, health.LoopFrom)},
		"held":        {"BeanpoleJobHeld", fmt.Sprintf(">= %.0f and beanpole_tube_longest_reserved_seconds >= %d *", health.SlowAfter.Seconds(), health.LongerBy)},
		"journal":     {"BeanpoleJournalUnhealthy", "== 0"},
		"draining":    {"BeanpoleDraining", "== 1"},
		"connections": {"BeanpoleConnectionsNearLimit", fmt.Sprintf("> %v", health.NearlyFull)},
		"memory":      {"BeanpoleMemoryNearLimit", fmt.Sprintf("> %v", health.NearlyFull)},
		"limit":       {"BeanpoleLimitReached", "beanpole_limit_refusals_total"},
		"refused":     {"BeanpoleUnauthorized", "beanpole_commands_refused_total"},
		"certificate": {"BeanpoleCertificateEnds", "beanpole_tls_certificate_end_timestamp_seconds"},
		"schedule":    {"BeanpoleScheduleFails", `beanpole_schedule_runs_total{result="refused"}`},
		"paused":      {}, "limited": {},
	}
	text := read(t, rules)
	all := health.Tube{
		Ready: 1, Buried: 1, Used: 1, PauseLeft: 1, Work: 1, Workers: &health.Workers{HeldFor: health.SlowAfter},
		Counted: health.Counts{Buried: 1, TimedOut: 1, Released: health.LoopFrom},
	}
	found := all.Findings(nil)
	found = (&health.Tube{Ready: 1}).Findings(found)
	found = (&health.Tube{Ready: 1, Watching: 1, Waits: health.SlowAfter}).Findings(found)
	found = (&health.Server{Journal: "full", Draining: true, Full: true, MemoryUsed: 1, MemoryLimit: 1,
		Certificates: []string{""}, RefusedBy: []string{""}, Refused: 1}).Findings(found)
	found = health.ScheduleFindings(found, "nightly", "full", 0)
	for _, f := range found {
		alert, ok := alerts[f.Kind]
		if !ok {
			t.Errorf("name the alert for %s", f.Kind)
		}
		_, rule, _ := strings.Cut(text, "alert: "+alert[0]+"\n")
		expr, _, _ := strings.Cut(rule, "\n        for:")
		expr, _, _ = strings.Cut(expr, "\n        labels:")
		if alert[0] != "" && !strings.Contains(expr, alert[1]) {
			t.Errorf("%s: %s is%s, without %s", f.Kind, alert[0], expr, alert[1])
		}
	}
}

// promtool accepts the alerts and every expression of the dashboard, and the alerts fire
// as specified.
func TestPromtool(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed (Debian: prometheus)")
	}
	exprs := expressions(t)
	var file strings.Builder
	file.WriteString("groups:\n- name: dashboard\n  rules:\n")
	for i, what := range slices.Sorted(maps.Keys(exprs)) {
		fmt.Fprintf(&file, "  - record: panel:%d\n    expr: %q\n", i, exprs[what])
	}
	asRules := filepath.Join(t.TempDir(), "dashboard.yml")
	if err := os.WriteFile(asRules, []byte(file.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"check", "rules", "--lint=all", "--lint-fatal", rules}, {"check", "rules", asRules}, {"test", "rules", ruleTests}} {
		if out, err := exec.Command(promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
