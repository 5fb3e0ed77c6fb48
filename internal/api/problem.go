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

// problemf returns a problem with the text that says what is wrong and what to do.
func problemf(status int, format string, args ...any) *problem {
	return admin.Problemf(status, format, args...)
}

func badRequest(format string, args ...any) *problem {
	return problemf(http.StatusBadRequest, format, args...)
}

func writeProblem(w http.ResponseWriter, err error) {
	p, ok := errors.AsType[*problem](err)
	if !ok {
		panic(fmt.Sprintf("api: %v is no problem", err))
	}
	if p.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.FormatInt(int64((p.RetryAfter+time.Second-1)/time.Second), 10))
	}
	if p.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="beanpole"`)
	}
	writeJSON(w, "application/problem+json", p.Status, jsonOf(p))
}

// Problem returns what answers every request with a problem.
func Problem(status int, detail string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		writeProblem(w, problemf(status, "%s", detail))
	})
}

// outcomeIn returns the problem of an outcome in a turn, with the limits that have refused something in it.
func outcomeIn(e *engine.Engine, o engine.Outcome) error {
	if limits := e.RefusedInTurn(); o == engine.OutOfMemory && len(limits) > 0 {
		return problemf(http.StatusInsufficientStorage, "no room: the limit %s is reached", strings.Join(limits, " and "))
	}
	return outcomeProblem(o)
}

// outcomeProblem says why a change was refused that could have been made; nil if it was
// not.
func outcomeProblem(o engine.Outcome) error {
	switch o {
	case engine.OK, engine.Duplicate:
		return nil
	case engine.Draining:
		return problemf(http.StatusServiceUnavailable, "the server drains: no new jobs are taken")
	case engine.OutOfMemory:
		return problemf(http.StatusInsufficientStorage, "no room: a limit is reached, or the disk of the journal is full")
	case engine.TooBig:
		return problemf(http.StatusRequestEntityTooLarge, "the job is larger than all that max-memory, or the limit of its tube, allows")
	case engine.Failed:
		return problemf(http.StatusServiceUnavailable, "changes are refused, because the journal cannot be written; the log of the server has the reason")
	}
	panic(fmt.Sprintf("api: outcome %d", o))
}
