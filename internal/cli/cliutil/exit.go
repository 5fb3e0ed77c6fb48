package cliutil

import (
	"errors"
	"fmt"
)

// Exit codes. The server shares the codes 10 and above with beanstalkd.
const (
	ExitFailure      = 1
	ExitNothing      = 2   // no such job or tube, or no job in time
	ExitDisconnected = 3   // the server is unreachable, or the connection was lost
	ExitUnauthorized = 4   // the token is missing, wrong or not sufficient
	ExitUsage        = 5   // the command line, environment or configuration is wrong
	ExitJournal      = 10  // the journal's directory is unusable
	ExitLookup       = 32  // looking up the user of -u failed
	ExitNoUser       = 33  // the user of -u does not exist
	ExitPrivilege    = 34  // switching to the user of -u failed
	ExitSocket       = 111 // the server cannot open a socket
	ExitInterrupted  = 130 // by a signal
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
	return WithCode(ExitUsage, fmt.Errorf(format, args...))
}

// NotFoundError returns an error about a job or tube that does not exist, or is in another state.
func NotFoundError(format string, args ...any) error {
	return WithCode(ExitNothing, fmt.Errorf(format, args...))
}

// HasCode reports whether an error has an exit code.
func HasCode(err error) bool {
	_, ok := errors.AsType[*codedError](err)
	return ok
}

// ExitCode returns the exit code of an error.
func ExitCode(err error) int {
	if coded, ok := errors.AsType[*codedError](err); ok {
		return coded.code
	}
	return ExitFailure
}
