package api

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/engine"
)

type problem = admin.Problem

// problemf returns a problem. The text states the cause and a remedy.
func problemf(status int, format string, args ...any) *problem {
	return admin.Problemf(status, format, args...)
}

func badRequest(format string, args ...any) *problem {
	return problemf(http.StatusBadRequest, format, args...)
}

func writeProblem(w http.ResponseWriter, err error) {
	p, ok := errors.AsType[*problem](err)
	if !ok {
		panic(fmt.Sprintf("api: %v is not a problem", err))
	}
	if p.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.FormatInt(int64((p.RetryAfter+time.Second-1)/time.Second), 10))
	}
	if p.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="beanpole"`)
	}
	writeJSON(w, "application/problem+json", p.Status, jsonOf(p))
}

// Problem returns a handler that answers every request with a problem.
func Problem(status int, detail string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		writeProblem(w, problemf(status, "%s", detail))
	})
}

// outcomeIn returns the problem for an outcome. It must be called in the same turn. The
// problem names the limits that refused the change.
func outcomeIn(e *engine.Engine, o engine.Outcome) error {
	if limits := e.RefusedInTurn(); o == engine.OutOfMemory && len(limits) > 0 {
		return problemf(http.StatusInsufficientStorage, "no space: the limit %s is reached", strings.Join(limits, " and "))
	}
	return outcomeProblem(o)
}

// outcomeProblem returns the problem for a refused change, or nil for any other outcome.
func outcomeProblem(o engine.Outcome) error {
	switch o {
	case engine.OK, engine.Duplicate:
		return nil
	case engine.Draining:
		return problemf(http.StatusServiceUnavailable, "the server is draining and rejects new jobs")
	case engine.OutOfMemory:
		return problemf(http.StatusInsufficientStorage, "no space: a limit is reached, or the journal's disk is full")
	case engine.TooBig:
		return problemf(http.StatusRequestEntityTooLarge, "the job is larger than max-memory or the limit of its tube")
	case engine.Failed:
		return problemf(http.StatusServiceUnavailable, "the journal cannot be written, so changes are refused; the log of the server has the reason")
	}
	panic(fmt.Sprintf("api: outcome %d", o))
}
