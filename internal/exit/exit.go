// Package exit defines the exit codes of the program, and errors that have an exit code.
package exit

import (
	"errors"
	"fmt"
)

// Exit codes. The server shares the codes 10 and above with beanstalkd.
const (
	Failure      = 1
	Nothing      = 2   // no such job or tube, or no job became available in time
	Disconnected = 3   // the server is unreachable, or the connection was lost
	Unauthorized = 4   // the token is missing, invalid or not sufficient
	Usage        = 5   // the command line, environment or configuration is invalid
	Journal      = 10  // the journal's directory is unusable
	NoUser       = 33  // the user of -u does not exist
	Privilege    = 34  // switching to the user of -u failed
	Socket       = 111 // the server cannot open a socket
	Interrupted  = 130 // interrupted by a signal
)

// A codedError is an error with an exit code.
type codedError struct {
	code int
	err  error
}

func (e *codedError) Error() string { return e.err.Error() }
func (e *codedError) Unwrap() error { return e.err }

// WithCode returns err with an exit code. It returns nil if err is nil.
func WithCode(code int, err error) error {
	if err == nil {
		return nil
	}
	return &codedError{code, err}
}

// UsageError returns an error about the command line or the configuration.
func UsageError(format string, args ...any) error {
	return WithCode(Usage, fmt.Errorf(format, args...))
}

// NotFoundError returns an error about a job or tube that does not exist or is in the
// wrong state.
func NotFoundError(format string, args ...any) error {
	return WithCode(Nothing, fmt.Errorf(format, args...))
}

// HasCode reports whether an error has an exit code.
func HasCode(err error) bool {
	_, ok := errors.AsType[*codedError](err)
	return ok
}

// Code returns the exit code of an error.
func Code(err error) int {
	if coded, ok := errors.AsType[*codedError](err); ok {
		return coded.code
	}
	return Failure
}
