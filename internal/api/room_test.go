package api

import (
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/server"
)

// The server does not read a job that limits or draining will refuse.
func TestRefusedJobIsNotRead(t *testing.T) {
	const memory = 200_000
	for _, test := range []struct {
		name   string
		size   int
		length int64 // content length of the request
		limits engine.Limits
		drains bool
		status int
		read   int64 // bytes at most
	}{
		{"more than all memory", 1_000_000, 1_000_000, engine.Limits{Memory: memory}, false, 413, 0},
		{"more than all memory, and no length", 1_000_000, -1, engine.Limits{Memory: memory}, false, 413, smallBody + jsonPerByte*memory + 1},
		{"more than is left", 400_000, 400_000, engine.Limits{Memory: memory}, false, 507, 0},
		{"a tube that is full", 100, 100, engine.Limits{Tube: func(string) engine.TubeLimits { return engine.TubeLimits{Jobs: 1} }}, false, 507, 0},
		{"draining", 100, 100, engine.Limits{}, true, 503, 0},
		{"none", 1000, 1000, engine.Limits{Memory: memory}, false, 201, 1100},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := startWith(t, Options{}, server.Options{MaxJobSize: 10 << 20}, engine.Options{}, broker.Options{})
			r.in(func(e *engine.Engine, now int64) {
				e.PutInto(now, []byte("mail"), engine.Spec{TTR: 9}, make([]byte, 60_000))
				e.SetLimits(test.limits)
				if test.drains {
					e.Drain()
				}
			})
			read := new(counter)
			body := strings.NewReader(`{"body":"` + strings.Repeat("x", test.size) + `"}`)
			h := httptest.NewRequest("POST", Prefix+"/tubes/mail/jobs", io.TeeReader(body, read))
			h.Header.Set("Content-Type", "application/json")
			h.ContentLength = test.length
			w := httptest.NewRecorder()
			if r.ServeHTTP(w, h); w.Code != test.status || int64(*read) > test.read {
				t.Errorf("%d after %d bytes, want %d after %d at most: %s", w.Code, *read, test.status, test.read, w.Body)
			}
			if limit := map[string]string{"a tube that is full": "[[limit]] jobs", "more than is left": "max-memory"}[test.name]; !strings.Contains(w.Body.String(), limit) {
				t.Errorf("the response does not name the limit %s: %s", limit, w.Body)
			}
		})
	}
}
