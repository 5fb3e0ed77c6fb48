package console

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/api"
	"github.com/beanpole-mq/beanpole/internal/test/seeds"
)

// If another server sends invalid or incomplete responses, the console shows its pages,
// and this server continues.
func TestNonsense(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	type answers func(path string) (status int, kind, text string)
	const isJSON, isProblem = "application/json", "application/problem+json"
	all := make(map[string]answers)
	for _, text := range []string{"{}", "null", "[]", "[null]", `"x"`, "-1", "1e400", "", "{", "<html>", strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)} {
		all["the answer "+text] = func(string) (int, string, string) { return 200, isJSON, text }
		all["the problem "+text] = func(string) (int, string, string) { return 400, isProblem, text }
		all["the page "+text] = func(string) (int, string, string) { return 200, "text/html", text }
	}
	for _, status := range []int{-1, 0, 7, 99, 200, 399, 401, 404, 501, 600, 1000} {
		all[fmt.Sprint("a problem with the status ", status)] = func(string) (int, string, string) {
			return 404, isProblem, fmt.Sprintf(`{"status":%d,"detail":"x","done":null}`, status)
		}
	}
	// The API's responses, with each value missing in turn, or all values.
	counts := map[string]any{"ready": 1, "buried": 2}
	recent := map[string]any{"step": 10, "ready": []any{1, 2}, "put": []any{0.5}, "deleted": []any{1e308, -1e308}}
	tube := map[string]any{"name": "mail", "jobs": counts, "recent": recent, "limit": map[string]any{"jobs": 1}}
	job := map[string]any{"id": 1, "tube": "mail", "state": "ready", "body": "x", "body_base64": "eA=="}
	whole := map[string]any{
		"name": "mail", "id": 1, "tube": "mail", "state": "ready", "body": "x", "body_base64": "eA==", "recent": recent, "limit": map[string]any{"bytes": 1},
		"tubes": []any{tube, nil, map[string]any{}}, "matching": 3, "total": 4, "next": "x", "ready": []any{1, 2, 3}, "buried": []any{1}, "step": 1, "end": 1,
		"series": map[string]any{"ready": []any{1, nil, 3}, "put": nil, "buried": []any{nil}}, "findings": []any{map[string]any{"kind": "buried", "tube": "mail"}, nil},
		"connections": []any{nil, map[string]any{"id": 1, "watching": nil}},
		"tasks":       []any{nil, map[string]any{"id": 1, "found": 1, "skipped": nil}}, "changes": []any{nil, map[string]any{"about": map[string]any{"x": []any{nil}}}},
		"settings": []any{nil}, "listeners": []any{nil}, "certificates": []any{nil}, "memory": map[string]any{"jobs": 1, "limit": -1}, "members": []any{nil, map[string]any{"id": 1}},
		"leader": 1, "quorum": true, "commands": map[string]any{"put": nil}, "refused_commands": map[string]any{"X": 1}, "journal": map[string]any{"health": nil},
		"anywhere": []any{"manage", "peek", "put", nil}, "everywhere": []any{"manage", "stats", "peek"}, "watching": []any{nil}, "holding": []any{nil},
	}
	like := func(of map[string]any) answers {
		return func(path string) (int, string, string) {
			of := maps.Clone(of)
			_, missing := of["no jobs"]
			of["jobs"] = counts
			switch {
			case missing:
				delete(of, "jobs")
			case strings.HasSuffix(path, "/jobs"), strings.HasSuffix(path, "/search"):
				of["jobs"] = []any{job, nil, map[string]any{}}
			}
			switch {
			case strings.HasSuffix(path, "/stats"):
				delete(of, "tubes") // the API has a number there
				delete(of, "connections")
			case strings.Contains(path, "/connections/"):
				of["state"], of["tube"] = nil, nil
			case strings.HasSuffix(path, "/me"):
				of["tube"] = []any{"manage", "peek", "put"}
			}
			text, err := json.Marshal(of)
			if err != nil {
				t.Error(err)
			}
			return 200, isJSON, string(text)
		}
	}
	all["all"] = like(whole)
	for _, name := range append(keys(whole), "no jobs") {
		without, nothing := maps.Clone(whole), maps.Clone(whole)
		delete(without, name)
		nothing[name] = nil
		if name == "no jobs" {
			without[name] = true
		}
		all["all without "+name], all["all with nothing as "+name] = like(without), like(nothing)
	}
	var now atomic.Pointer[answers]
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, kind, text := (*now.Load())(r.URL.Path)
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		w.Write([]byte(text))
	}))
	t.Cleanup(s.Close)
	paths := []string{"", "?span=24h", "tubes", "tubes?sort=-attention", "tube/mail", "tube/mail?state=buried", "job/1", "job/1?as=hex", "working", "policies", "failures", "connections", "connection/1", "activity", "server",
		"search?q=x", "search?q=x+tube:mail+state:ready", "tube/mail/put", "confirm?do=clear-tube&tube=mail", "confirm?do=copy-job&job=1"}
	kinds := slices.Sorted(maps.Keys(all))
	for i, step := seeds.Step(3); i <= len(kinds); i += step {
		name := kinds[i-1]
		a := all[name]
		now.Store(&a)
		// Each case uses a new console, because the console does not immediately repeat
		// requests to a server that did not answer.
		own := startWith(t, nil, Options{}, func(a *api.API) []Server {
			a.AddServer("odd", false, api.NewRemote(s.URL, nil, nil))
			return []Server{{Name: "odd", URL: s.URL}}
		})
		for _, path := range paths {
			w := own.send("GET", "/console/s/odd/"+path, nil)
			if text := w.Body.String(); w.Code < 200 || w.Code > 599 || w.Code == 500 || !strings.Contains(text, "</html>") {
				t.Errorf("%.80s: %q: %d %s\n%s", name, path, w.Code, text, own.log)
			}
			h := httptest.NewRequest("GET", "/console/s/odd/"+path, nil)
			page, _ := own.mux.Handler(h)
			if _, isLive := page.(livePage); isLive {
				own.live.values(own.viewOf("/console/s/odd/" + path)) // the page shows the error
			}
		}
		own.page(200, "/console/")
		own.send("POST", "/console/s/odd/do", map[string][]string{"do": {"kick-tube"}, "tube": {"mail"}, "state": {"buried"}})
		own.send("POST", "/console/s/odd/do", map[string][]string{"do": {"put-job"}, "tube": {"mail"}, "body": {"x"}})
		if strings.Contains(own.log.String(), "level=ERROR") {
			t.Errorf("%.80s: %s", name, own.log)
		}
	}
}

func keys(m map[string]any) (names []string) {
	for name := range m {
		names = append(names, name)
	}
	return names
}

// A panic while rendering ends the page's stream, or is shown in place of a part. The
// server continues.
func TestPanic(t *testing.T) {
	t.Parallel()
	var panics atomic.Bool
	bad := transport(func() {
		if panics.Load() {
			panic("planted panic")
		}
	})
	r := startWith(t, nil, Options{Open: bad.at("bad")}, func(*api.API) []Server { return []Server{{Name: "bad"}} })
	log := new(sharedLog)
	r.Console.opt.Logger = slog.New(slog.NewTextHandler(log, nil))
	srv := httptest.NewServer(r)
	defer srv.Close()
	for _, view := range []string{"/console/s/bad/", "/console/s/bad/tubes", "/console/s/bad/server"} {
		panics.Store(false)
		events := bufio.NewReader(r.stream(srv, view).Body)
		next(t, events)
		panics.Store(true)
		if _, err := io.Copy(io.Discard, events); err != nil {
			t.Errorf("%s: %v", view, err)
		}
	}
	until(t, func() bool { return strings.Contains(r.page(200, "/console/"), errPanic.Error()) })
	r.Close()
	if text := log.String(); !strings.Contains(text, "planted panic") || !strings.Contains(text, "nonsense_test.go") {
		t.Error(text)
	}
}

// A sharedLog is a log that is read while it is written.
type sharedLog struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *sharedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *sharedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
