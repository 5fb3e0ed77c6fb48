package queue

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/beanpole-mq/beanpole/client/admin"
)

// An interrupted command cancels its task and reports the jobs that the task has changed.
func TestInterruptedTask(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	var requests []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests = append(requests, r.Method+" "+r.URL.Path)
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.Method == http.MethodGet && ctx.Err() == nil:
			interrupt()
			<-r.Context().Done()
		case len(requests) == 3:
			w.WriteHeader(http.StatusNoContent)
		default:
			fmt.Fprint(w, `{"id":7,"status":"working","done":5}`)
		}
	}))
	defer srv.Close()
	s := new(session)
	s.Err = io.Discard
	done, err := s.runTask(ctx, admin.On(&admin.HTTP{URL: srv.URL}), &admin.StartTask{OfTube: admin.OfTube{Tube: "mail"}, Do: "delete", State: new("ready")})
	if done != 5 || !errors.Is(err, context.Canceled) {
		t.Errorf("%d jobs, %v, want 5 jobs and a cancelled context", done, err)
	}
	want := []string{"POST /api/v1/tubes/mail/tasks", "GET /api/v1/tasks/7", "DELETE /api/v1/tasks/7", "GET /api/v1/tasks/7"}
	if !slices.Equal(requests, want) {
		t.Errorf("requests %q, want %q", requests, want)
	}
}
