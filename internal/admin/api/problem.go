package api

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// A problem is an error as RFC 9457 wants it.
type problem struct {
	Type   string  `json:"type"`
	Title  string  `json:"title"`
	Status int     `json:"status"`
	Detail string  `json:"detail"`
	Done   *uint64 `json:"done,omitempty"` // how many jobs were done before; ours

	retryAfter time.Duration // 0: nobody knows
}

func (p *problem) Error() string { return p.Detail }

// problemf returns a problem with the text that says what is wrong and what to do.
func problemf(status int, format string, args ...any) *problem {
	return &problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: fmt.Sprintf(format, args...)}
}

// after lets the answer say when to try again.
func (p *problem) after(wait time.Duration) *problem {
	p.retryAfter = wait
	return p
}

func writeProblem(w http.ResponseWriter, err error) {
	p, ok := errors.AsType[*problem](err)
	if !ok {
		panic(fmt.Sprintf("api: %v is no problem", err))
	}
	if p.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.FormatInt(int64((p.retryAfter+time.Second-1)/time.Second), 10))
	}
	writeJSON(w, "application/problem+json", p.Status, p)
}

// Problem returns what answers every request with a problem.
func Problem(status int, detail string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		writeProblem(w, problemf(status, "%s", detail))
	})
}

// tooMany says that an identity has used up its commands for now.
func tooMany(wait time.Duration) error {
	return problemf(http.StatusTooManyRequests, "that is more than max-commands-per-second allows, of all commands and requests together: try again later").after(wait)
}

// outcomeProblem says why a change was refused that could have been made; nil if it was
// not.
func outcomeProblem(o engine.Outcome) error {
	switch o {
	case engine.OK:
		return nil
	case engine.Draining:
		return problemf(http.StatusServiceUnavailable, "the server drains: no new jobs are taken")
	case engine.OutOfMemory:
		return problemf(http.StatusInsufficientStorage, "there is no room: a limit is reached, or the disk of the journal is full")
	case engine.TooBig:
		return problemf(http.StatusRequestEntityTooLarge, "the job is larger than all that max-memory, or the limit of its tube, allows")
	case engine.Failed:
		return problemf(http.StatusServiceUnavailable, "changes are refused, because the journal cannot be written; the log of the server has the reason")
	}
	panic(fmt.Sprintf("api: outcome %d", o))
}

// partly adds to a problem how many jobs were done before it.
func partly(err error, done uint64) error {
	p, ok := errors.AsType[*problem](err)
	if !ok || done == 0 {
		return err
	}
	more := *p // some problems are values that others share
	more.Done = &done
	return &more
}
