package admin

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/api"
	"github.com/beanpole-mq/beanpole/internal/server"
)

// Each request is counted by its kind and result, and not by values that a client can
// invent.
func TestRequests(t *testing.T) {
	b, policy := newQueue(t), policyOf(t)
	identify := identifyBy(t, policy)
	h := New(b, Options{Identify: identify, Profiles: true, API: api.New(b, api.Options{Server: server.New(b, server.Options{}), Identify: identify})})
	for _, request := range []struct{ method, path, token string }{
		{"GET", "/healthz", ""},
		{"GET", "/metrics", good},
		{"GET", "/metrics", poor},
		{"GET", "/debug/pprof/heap", good},
		{"GET", "/debug/pprof/", ""},
		{"GET", "/api/v1/tubes/mail", good},
		{"HEAD", "/api/v1/tubes/mail", good},
		{"GET", "/api/v1/tubes/news", good},
		{"GET", "/api/v1/tubes/none", good},
		{"PUT", "/api/v1/tubes/mail", good},
		{"BREW", "/coffee", ""},
		{"GET", "/api/v1/made/up", good},
	} {
		r := httptest.NewRequest(request.method, request.path, nil)
		r.Header.Set("Authorization", "Bearer "+request.token)
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	_, body := get(t, h, "/metrics", good)
	var got []string
	for line := range strings.Lines(body) {
		if strings.HasPrefix(line, "beanpole_http_requests") || strings.HasPrefix(line, "beanpole_http_request_seconds_count") {
			got = append(got, strings.TrimSpace(strings.TrimPrefix(line, "beanpole_http_")))
		}
	}
	want := `
request_seconds_count{pattern="/"} 2
request_seconds_count{pattern="GET /api/v1/tubes/{tube}"} 4
request_seconds_count{pattern="GET /debug/pprof/"} 2
request_seconds_count{pattern="GET /healthz"} 1
request_seconds_count{pattern="GET /metrics"} 2
request_seconds_count{pattern="unknown"} 1
requests_total{pattern="/",status="404"} 2
requests_total{pattern="GET /api/v1/tubes/{tube}",status="200"} 3
requests_total{pattern="GET /api/v1/tubes/{tube}",status="404"} 1
requests_total{pattern="GET /debug/pprof/",status="200"} 1
requests_total{pattern="GET /debug/pprof/",status="401"} 1
requests_total{pattern="GET /healthz",status="200"} 1
requests_total{pattern="GET /metrics",status="200"} 1
requests_total{pattern="GET /metrics",status="403"} 1
requests_total{pattern="unknown",status="404"} 1`
	if got := "\n" + strings.Join(got, "\n"); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}
