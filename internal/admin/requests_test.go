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
		{"GET", "/", ""},
		{"GET", "/healthz", ""},
		{"GET", "/readyz", ""},
		{"GET", "/metrics", good},
		{"GET", "/metrics", poor},
		{"GET", "/debug/pprof/heap", good},
		{"GET", "/debug/pprof/", ""},
		{"GET", "/api/v1/openapi.yaml", ""},
		{"GET", "/api/v1/tubes/mail", good},
		{"HEAD", "/api/v1/tubes/mail", good},
		{"GET", "/api/v1/tubes/news", good},
		{"GET", "/api/v1/tubes/none", good},
		{"GET", "/api/v1/tubes/mail/jobs?state=ready", "made up"},
		{"POST", "/api/v1/tubes/mail/tasks", good},
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
request_seconds_count{operation="getTube"} 4
request_seconds_count{operation="healthz"} 1
request_seconds_count{operation="index"} 1
request_seconds_count{operation="listJobs"} 1
request_seconds_count{operation="metrics"} 2
request_seconds_count{operation="openapi"} 1
request_seconds_count{operation="profile"} 2
request_seconds_count{operation="readyz"} 1
request_seconds_count{operation="startTask"} 1
request_seconds_count{operation="unknown"} 3
requests_refused_total{reason="not allowed"} 1
requests_refused_total{reason="other host"} 0
requests_refused_total{reason="unknown client"} 2
requests_total{operation="getTube",status="2xx"} 3
requests_total{operation="getTube",status="4xx"} 1
requests_total{operation="healthz",status="2xx"} 1
requests_total{operation="index",status="2xx"} 1
requests_total{operation="listJobs",status="4xx"} 1
requests_total{operation="metrics",status="2xx"} 1
requests_total{operation="metrics",status="4xx"} 1
requests_total{operation="openapi",status="2xx"} 1
requests_total{operation="profile",status="2xx"} 1
requests_total{operation="profile",status="4xx"} 1
requests_total{operation="readyz",status="2xx"} 1
requests_total{operation="startTask",status="4xx"} 1
requests_total{operation="unknown",status="4xx"} 3`
	if got := "\n" + strings.Join(got, "\n"); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}
