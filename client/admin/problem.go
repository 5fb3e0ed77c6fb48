package admin

import (
	"errors"
	"fmt"
	"net/http"
	"time"
)

// A Problem is an error response of the server, in the format of RFC 9457.
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status" min:"400" max:"599"`
	Detail string `json:"detail" minlen:"1"`
	// Number of jobs that were kicked, deleted, moved or put before the error.
	Done *uint64 `json:"done,omitempty" min:"1"`

	RetryAfter time.Duration `json:"-"` // 0 if unknown
}

// Error implements error.
func (p *Problem) Error() string { return p.Detail }

// Problemf returns a problem. The text states the cause and a remedy.
func Problemf(status int, format string, args ...any) *Problem {
	return &Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: fmt.Sprintf(format, args...)}
}

// After sets the time after which the client can retry.
func (p *Problem) After(wait time.Duration) *Problem {
	p.RetryAfter = wait
	return p
}

// StatusOf returns the status of a Problem, or 0 for any other error.
func StatusOf(err error) int {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p.Status
	}
	return 0
}
