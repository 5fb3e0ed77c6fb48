package admin

import (
	"errors"
	"fmt"
	"net/http"
	"time"
)

// A Problem is what the server answers to a request that it does not serve, as RFC 9457 has it.
type Problem struct {
	Type   string  `json:"type"`
	Title  string  `json:"title"`
	Status int     `json:"status" min:"400" max:"599"`
	Detail string  `json:"detail" minlen:"1"`
	Done   *uint64 `json:"done,omitempty" min:"1"` // How many jobs were kicked, deleted, moved or put before the rest was refused.

	RetryAfter time.Duration `json:"-"` // 0: nobody knows
}

// Error implements error.
func (p *Problem) Error() string { return p.Detail }

// Problemf returns a problem with the text that says what is wrong and what to do.
func Problemf(status int, format string, args ...any) *Problem {
	return &Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: fmt.Sprintf(format, args...)}
}

// After lets the answer say when to try again.
func (p *Problem) After(wait time.Duration) *Problem {
	p.RetryAfter = wait
	return p
}

// StatusOf returns the status of the problem that an error is; 0: it is none.
func StatusOf(err error) int {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p.Status
	}
	return 0
}
