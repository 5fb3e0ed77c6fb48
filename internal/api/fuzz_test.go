package api

import (
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// FuzzRequest sends arbitrary requests to a server with a job in each state and a
// connection. The server must not panic, each response must match openapi.yaml, and the
// engine must stay consistent.
func FuzzRequest(f *testing.F) {
	for _, seed := range []struct{ method, path, body string }{
		{"GET", "/stats", ""},
		{"GET", "/tubes?cursor=a&limit=2", ""},
		{"GET", "/tubes/mail/jobs?state=ready&limit=1&cursor=5.1", ""},
		{"POST", "/tubes/a%2Fb/jobs", `{"body":"\u0000","priority":1,"delay":2,"ttr":3}`},
		{"POST", "/tubes/mail/jobs", `{"body_base64":"/w=="}`},
		{"POST", "/tubes/mail/tasks", `{"do":"kick","state":"delayed","count":1}`},
		{"POST", "/tubes/mail/pause", `{"seconds":1}`},
		{"POST", "/tubes/mail/resume", ``},
		{"POST", "/tubes/mail/tasks?wait=1", `{"do":"move","state":"ready","to":"news"}`},
		{"DELETE", "/jobs/1", ""},
		{"POST", "/jobs/2/bury", `{"priority":0}`},
		{"POST", "/jobs/4/release", `{"delay":1,"priority":2}`},
		{"POST", "/jobs/3/kick", ""},
		{"GET", "/connections/1", ""},
		{"DELETE", "/connections/18446744073709551615", ""},
		{"POST", "/drain", "{}"},
		{"PATCH", "/%zz", "{}"},
	} {
		f.Add(seed.method, seed.path, seed.body)
	}
	f.Fuzz(func(t *testing.T, method, path, body string) {
		u, err := url.ParseRequestURI(Prefix + path)
		if err != nil || strings.Trim(method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" || method == "" || method == "CONNECT" {
			t.Skip("the HTTP server rejects the request")
		}
		r := start(t, Options{})
		r.in(func(e *engine.Engine, now int64) {
			for range 4 {
				e.PutInto(now, []byte("mail"), engine.Spec{TTR: 9, Delay: uint32(e.LastID() % 2)}, []byte("body"))
			}
			e.BuryJob(3, 0)
		})
		r.talk("reserve-job 4")
		h := httptest.NewRequest("GET", "/", strings.NewReader(body))
		h.Method, h.URL, h.RequestURI = method, u, u.RequestURI()
		h.Header.Set("Content-Type", "application/json")
		if code, answer := r.send(h, body); code >= 500 && code != 503 {
			t.Errorf("%d %s", code, answer)
		}
	})
}
