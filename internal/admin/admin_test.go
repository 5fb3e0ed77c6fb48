package admin

import (
	"context"
	"flag"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/api"
	"github.com/beanpole-mq/beanpole/internal/api/tubes"
	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/certs"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/engine/histogram"
	"github.com/beanpole-mq/beanpole/internal/rights"
	"github.com/beanpole-mq/beanpole/internal/server"
	"github.com/beanpole-mq/beanpole/internal/test/seeds"
)

// newQueue returns a broker whose engine has jobs in all states, put half a minute ago.
func newQueue(t *testing.T) *broker.Broker {
	t.Helper()
	var clock atomic.Int64
	b := broker.New(engine.New(engine.Options{Limits: engine.Limits{Memory: 1e6}}), broker.Options{Now: clock.Load})
	t.Cleanup(func() { b.Close() })
	b.Call(func(e *engine.Engine, now int64) {
		s := e.Open(nil)
		put := func(tube string, delay uint32) uint64 {
			e.Use(s, []byte(tube))
			id, o := e.Put(now, s, engine.Spec{Pri: 5, Delay: delay, TTR: 60}, []byte("body"))
			if o != engine.OK {
				t.Errorf("put: %v", o)
			}
			return id
		}
		put("mail", 0)
		put("mail", 0)
		put("mail", 3600)
		buried := put("news", 0)
		e.ReserveJob(now, s, buried)
		e.Bury(s, buried, 5)
		e.ReserveJob(now, s, put("news", 0))
		e.Delete(s, put("news", 0))
		e.Pause(now, []byte("news"), 100)
	})
	clock.Store(int64(30 * time.Second))
	return b
}

func get(t *testing.T, h http.Handler, path, token string) (code int, body string) {
	t.Helper()
	r := httptest.NewRequest("GET", path, nil)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// everything returns options with which every metric exists.
func everything() Options {
	var syncs histogram.Histogram
	syncs.Record(1 << 20)
	syncs.Record(3 << 20)
	return Options{
		Version:      "1.2.3",
		SyncLasts:    func() time.Duration { return 0 },
		Certificates: func() []certs.Expiry { return []certs.Expiry{{File: "tls.crt", End: time.Unix(2e9, 0)}} },
		Server: func() server.Counts {
			return server.Counts{Commands: map[string]uint64{"put": 7}, CrowdedConnections: 2, RefusedConnections: 3, RefusedCommands: map[string]uint64{"OUT_OF_MEMORY": 4}, Resumed: 6, RefusedClaims: map[string]uint64{"gone": 1}, MaxConnections: 100, MaxJobSize: 65535}
		},
		Cluster: func() (ClusterStats, bool) {
			return ClusterStats{Leads: true, Evicted: 5, Cluster: admin.Cluster{Self: 40, Quorum: true, Term: 7, Members: []admin.ClusterMember{
				{ID: 40, Role: admin.Leader, Progress: &admin.Progress{Lag: 3}}, {ID: 41, Role: admin.Voter, MustRejoin: true}, {ID: 42, Role: admin.Voter, Reachable: true},
			}}}, true
		},
		Journal: func() server.JournalStats {
			return server.JournalStats{Segments: 2, Bytes: 300, LiveBytes: 100, RecordsWritten: 10, RecordsMigrated: 4, Syncs: syncs}
		},
	}
}

var update = flag.Bool("update", false, "write the golden file")

// The metrics of the queue from newQueue equal those in testdata, and Prometheus accepts
// them.
func TestMetrics(t *testing.T) {
	h := New(newQueue(t), everything())
	code, body := get(t, h, "/metrics", "")
	if code != http.StatusOK {
		t.Fatalf("status %d: %s", code, body)
	}
	var got strings.Builder
	last := ""
	for line := range strings.Lines(body) {
		name, value, _ := strings.Cut(line, " ")
		if strings.HasPrefix(line, "beanpole_jobs_memory_") && !strings.Contains(name, "limit") {
			line = name + " some\n" // any form that the engine produces
		}
		if bucket := strings.Contains(line, "_bucket{"); strings.HasPrefix(line, "beanpole_") && !(bucket && value == last) { // skip buckets without further samples
			got.WriteString(line)
		}
		last = value
	}
	const file = "testdata/metrics.txt"
	if *update {
		if err := os.WriteFile(file, []byte(got.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if diff := cmp.Diff(string(want), got.String()); err != nil || diff != "" {
		t.Errorf("the metrics differ from %s, which -update writes: %v\n%s", file, err, diff)
	}
	for _, name := range []string{"go_goroutines", "process_resident_memory_bytes"} {
		if !strings.Contains(body, "\n"+name+" ") {
			t.Errorf("%s is missing", name)
		}
	}
	problems, err := promlint.New(strings.NewReader(body)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// after returns the rest of the line after a text.
func after(body, text string) string {
	_, rest, _ := strings.Cut(body, text)
	line, _, _ := strings.Cut(rest, "\n")
	return line
}

// If there are too many tubes, the server exports the metrics of the most important ones
// and the number of the others.
func TestMostOf(t *testing.T) {
	tube := func(name string, st engine.TubeStats) tubes.Tube { return tubes.Tube{Name: name, TubeStats: st} }
	all := []tubes.Tube{
		tube("forgotten", engine.TubeStats{TubeCounts: engine.TubeCounts{TotalJobs: 900}}),
		tube("watched", engine.TubeStats{TubeCounts: engine.TubeCounts{TotalJobs: 500}, Watching: 1}),
		tube("watched-more", engine.TubeStats{TubeCounts: engine.TubeCounts{TotalJobs: 501}, Watching: 1}),
		tube("restored", engine.TubeStats{Buried: 7}),
		tube("backlog", engine.TubeStats{TubeCounts: engine.TubeCounts{TotalJobs: 8}, Ready: 1}),
	}
	for n, want := range []string{"", "restored", "restored watched-more", "restored backlog watched-more", "restored backlog watched-more watched"} {
		var names []string
		for _, t := range mostOf(slices.Clone(all), n) {
			names = append(names, t.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("the first %d are %q, want %q", n, got, want)
		}
	}
}

// The most important tubes are selected while all tubes are being read in parts.
func TestMostOfParts(t *testing.T) {
	seeds.Each(t, 50, func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 0))
		all := make([]tubes.Tube, 1+r.IntN(60))
		for i := range all {
			all[i] = tubes.Tube{Name: strconv.Itoa(i), TubeStats: engine.TubeStats{Ready: r.Uint64N(4), Using: r.Uint64N(2), TubeCounts: engine.TubeCounts{TotalJobs: r.Uint64N(9)}}}
		}
		n := 1 + r.IntN(30)
		var kept []tubes.Tube
		for part := range slices.Chunk(slices.Clone(all), 1+r.IntN(10)) {
			kept = mostOf(append(kept, part...), n)
		}
		names := func(some []tubes.Tube) (names []string) {
			for _, t := range some {
				names = append(names, t.Name)
			}
			return slices.Sorted(slices.Values(names))
		}
		if got, want := names(kept), names(mostOf(all, n)); !slices.Equal(got, want) {
			t.Errorf("%q, want %q of %+v", got, want, all)
		}
	})
}

func TestManyTubes(t *testing.T) {
	b := newQueue(t)
	for tubes, want := range map[int]struct{ series, left string }{2: {"mail news", "1"}, -1: {"", "3"}, 9: {"default mail news", "0"}} {
		_, body := get(t, New(b, Options{Tubes: tubes}), "/metrics", "")
		var names []string
		for _, name := range []string{"default", "mail", "news"} {
			if strings.Contains(body, `tube="`+name+`"`) {
				names = append(names, name)
			}
		}
		if got := strings.Join(names, " "); got != want.series {
			t.Errorf("with %d tubes: metrics of %q, want %q", tubes, got, want.series)
		}
		if left := after(body, "\nbeanpole_tubes_without_metrics "); left != want.left {
			t.Errorf("with %d tubes: %s left out, want %s", tubes, left, want.left)
		}
	}
}

func TestHealth(t *testing.T) {
	b := newQueue(t)
	why, journal, counts, ends := "", server.JournalStats{}, server.Counts{MaxConnections: 7}, []string(nil)
	h := New(b, Options{
		NotReady: func() string { return why }, Journal: func() server.JournalStats { return journal }, Server: func() server.Counts { return counts },
		Warnings: func() []string { return ends },
	})
	const damaged, full = "rewriting the damaged journal", "new jobs are refused: no space left on device"
	for _, step := range []struct {
		do    func()
		ready int
		body  string
	}{
		{func() {}, 200, "ok\n"},
		{func() { why = "no leader is known" }, 503, "no leader is known\n"},
		{func() { why = "" }, 200, "ok\n"},
		{func() { journal.Health = damaged }, 200, "ok\nwarning: the journal: " + damaged + "\n"},
		{func() { journal.Refusal = full }, 503, "the journal: " + full + "\n"},
		{func() { journal = server.JournalStats{} }, 200, "ok\n"},
		{func() { counts.Full = true }, 200, "ok\nwarning: too many connections: new clients wait (max-connections 7)\n"},
		{func() { counts.Full, ends = false, []string{"the certificate tls.crt ends"} }, 200, "ok\nwarning: the certificate tls.crt ends\n"},
		{func() { b.Call(func(e *engine.Engine, _ int64) { e.Drain() }) }, 503, "draining: rejecting new jobs\n"},
	} {
		step.do()
		if code, body := get(t, h, "/readyz", ""); code != step.ready || body != step.body {
			t.Errorf("/readyz: %d %q, want %d %q", code, body, step.ready, step.body)
		}
		if code, _ := get(t, h, "/healthz", ""); code != 200 {
			t.Errorf("/healthz: %d", code)
		}
		_, body := get(t, h, "/metrics", "")
		if got, want := after(body, "\nbeanpole_ready "), map[int]string{200: "1", 503: "0"}[step.ready]; got != want {
			t.Errorf("beanpole_ready is %s, want %s", got, want)
		}
		if got := after(body, "\nbeanpole_journal_healthy "); (got == "1") != (journal.Health == "") {
			t.Errorf("beanpole_journal_healthy is %s although the journal reports %q", got, journal.Health)
		}
	}
}

// Health pages require no rights, but all other pages do. Profiles exist only if they are
// enabled.
func TestPermission(t *testing.T) {
	policy := policyOf(t)
	identify := identifyBy(t, policy)
	for _, c := range []struct {
		path, token string
		profiles    bool
		code        int
	}{
		{"/metrics", good, false, 200},
		{"/metrics", poor, false, 403},
		{"/metrics", "bad", false, 401},
		{"/metrics", "", false, 401},
		{"/healthz", "", false, 200},
		{"/readyz", "", false, 200},
		{"/debug/pprof/", good, false, 404},
		{"/debug/pprof/", good, true, 200},
		{"/debug/pprof/heap", good, true, 200},
		{"/debug/pprof/", "", true, 401},
		{"/debug/pprof/heap", poor, true, 403},
		{"/nothing", good, true, 404},
	} {
		heard := 0
		h := New(newQueue(t), Options{Identify: identify, Refused: func(string, string, string, ...string) { heard++ }, Profiles: c.profiles})
		if code, _ := get(t, h, c.path, c.token); code != c.code {
			t.Errorf("%s with token %q: %d, want %d", c.path, c.token, code, c.code)
		}
		if want := map[int]int{401: 1, 403: 1}[c.code]; heard != want {
			t.Errorf("%s with token %q: %d refusals reported, want %d", c.path, c.token, heard, want)
		}
	}
}

const (
	good = "good-0123456789-abcdef"
	poor = "poor-0123456789-abcdef"
)

// identifyBy returns the function that authenticates requests by a policy.
func identifyBy(t *testing.T, p *access.Policy) func(*http.Request) (*access.Identity, bool) {
	t.Helper()
	control, err := access.NewControl(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	return api.Identify(control)
}

// policyOf returns a policy with two tokens. One of them lacks the stats right.
func policyOf(t *testing.T) *access.Policy {
	t.Helper()
	var c access.Config
	for _, token := range []string{good, poor} {
		h, err := access.HashOf(token)
		if err != nil {
			t.Fatal(err)
		}
		c.Identities = append(c.Identities, access.IdentityConfig{Name: token[:4], Tokens: []access.Hash{h}})
	}
	c.Rules = []access.RuleConfig{{Identities: []string{"good"}, Tubes: []string{"*"}, Rights: rights.Stats | rights.Manage},
		{Identities: []string{"poor"}, Tubes: []string{"*"}, Rights: rights.Put}}
	p, err := access.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func everybody() *access.Identity {
	id, _ := new(access.Control).Identify(access.Credentials{})
	return id
}

// The metrics of a tube require the stats right on it.
func TestMetricsOfTubes(t *testing.T) {
	var c access.Config
	for name, tubes := range map[string][]string{"mail": {"mail"}, "other": {"other*", "no-such"}, "all": {"*"}} {
		h, err := access.HashOf(name + "-0123456789-0123456789")
		if err != nil {
			t.Fatal(err)
		}
		c.Identities = append(c.Identities, access.IdentityConfig{Name: name, Tokens: []access.Hash{h}})
		c.Rules = append(c.Rules, access.RuleConfig{Identities: []string{name}, Tubes: tubes, Rights: rights.Stats})
	}
	c.Rules = append(c.Rules, access.RuleConfig{Identities: []string{"*"}, Tubes: []string{"mail", "news"}, Rights: rights.Put})
	policy, err := access.New(c)
	if err != nil {
		t.Fatal(err)
	}
	b := newQueue(t) // contains the tubes mail and news
	h := New(b, Options{Identify: identifyBy(t, policy)})
	for name, want := range map[string][]string{"mail": {"mail"}, "other": nil, "all": {"mail", "news"}} {
		_, text := get(t, h, "/metrics", name+"-0123456789-0123456789")
		var got []string
		for _, tube := range []string{"mail", "news"} {
			if strings.Contains(text, `tube="`+tube+`"`) {
				got = append(got, tube)
			}
		}
		if !slices.Equal(got, want) || !strings.Contains(text, "beanpole_jobs{") {
			t.Errorf("%s sees the metrics of %q, want %q", name, got, want)
		}
	}
}

// Requests on loopback must have a loopback host name. Otherwise a web page could reach
// the server through its own name.
func TestRebinding(t *testing.T) {
	h := New(newQueue(t), Options{API: http.NotFoundHandler()})
	for _, c := range []struct {
		local, host string
		code        int
	}{
		{"127.0.0.1", "127.0.0.1:11380", 200},
		{"127.0.0.1", "localhost", 200},
		{"127.0.0.1", "LocalHost:80", 200},
		{"127.0.0.1", "queue.localhost:80", 200},
		{"127.0.0.1", "", 200},
		{"::1", "[::1]:11380", 200},
		{"::1", "[::1]", 200},
		{"127.0.0.1", "evil.example:11380", 421},
		{"127.0.0.1", "127.0.0.1.evil.example", 421},
		{"127.0.0.1", "10.0.0.1:11380", 421},
		{"10.0.0.1", "queue.example:11380", 200},
	} {
		for _, path := range []string{"/healthz", "/metrics", "/api/v1/x"} {
			r := httptest.NewRequest("GET", path, nil)
			r.Host = c.host
			r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: net.ParseIP(c.local)}))
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			want := c.code
			if path == "/api/v1/x" && want == 200 {
				want = 404 // from the API
			}
			if w.Code != want {
				t.Errorf("%s on %s for %q: %d, want %d", path, c.local, c.host, w.Code, want)
			}
		}
	}
}

// The root path redirects to the console, if there is one.
func TestConsole(t *testing.T) {
	pages := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	for path, want := range map[string]int{"/": 303, "/console/tubes": 200} {
		if code, _ := get(t, New(newQueue(t), Options{Console: pages}), path, ""); code != want {
			t.Errorf("%s: %d, want %d", path, code, want)
		}
		if code, _ := get(t, New(newQueue(t), Options{}), path, ""); code != 404 {
			t.Errorf("without a console, %s: %d", path, code)
		}
	}
}

// If a file contains several certificates, the other metrics are still exported.
func TestMetricsOfOneFile(t *testing.T) {
	now := time.Now()
	h := New(newQueue(t), Options{Certificates: func() []certs.Expiry {
		return []certs.Expiry{{File: "a.crt", End: now}, {File: "a.crt", End: now.Add(1)}}
	}})
	if code, body := get(t, h, "/metrics", ""); code != 200 || !strings.Contains(body, "\nbeanpole_jobs{") {
		t.Errorf("%d %.200s", code, body)
	}
}

// As in the API, the rate of wrong tokens is limited.
func TestGuesses(t *testing.T) {
	h := New(newQueue(t), Options{Identify: func(*http.Request) (*access.Identity, bool) { return nil, false }})
	for i := range 12 {
		code, _ := get(t, h, "/metrics", "wrong")
		if want := map[bool]int{true: 401, false: 429}[i < 10]; code != want {
			t.Errorf("guess %d: %d, want %d", i, code, want)
		}
	}
}

// A removed member also exports all metrics of the cluster.
func TestMetricsOfRemoved(t *testing.T) {
	o := everything()
	all := o.Cluster
	o.Cluster = func() (ClusterStats, bool) {
		s, ok := all()
		s.Members = s.Members[1:]
		return s, ok
	}
	if _, body := get(t, New(newQueue(t), o), "/metrics", ""); !strings.Contains(body, "\nbeanpole_cluster_lag_entries 0\n") {
		t.Error(body)
	}
}
