package cliutil

import (
	"errors"
	"fmt"
)

// Exit codes. Those of the server that beanstalkd has too are the same.
const (
	ExitFailure      = 1
	ExitNothing      = 2   // what was asked for is not there
	ExitDisconnected = 3   // the server cannot be reached, or the connection was lost
	ExitUnauthorized = 4   // the server refuses: the token is missing or wrong, or does not allow this
	ExitUsage        = 5   // the command line is wrong, the environment, or the configuration
	ExitJournal      = 10  // the journal's directory cannot be used
	ExitLookup       = 32  // looking up the user of -u failed
	ExitNoUser       = 33  // the user of -u does not exist
	ExitPrivilege    = 34  // becoming the user of -u failed
	ExitSocket       = 111 // a socket cannot be set up
	ExitInterrupted  = 130 // by a signal
)

// A codedError ends the program with a code of its own.
type codedError struct {
	code int
	err  error
}

func (e *codedError) Error() string { return e.err.Error() }
func (e *codedError) Unwrap() error { return e.err }

// WithCode returns an error with the text of err that ends the program with a code; nil of nil.
func WithCode(code int, err error) error {
	if err == nil {
		return nil
	}
	return &codedError{code, err}
}

// UsageError returns an error that says what is wrong with the command line or the
// configuration.
func UsageError(format string, args ...any) error {
	return WithCode(ExitUsage, fmt.Errorf(format, args...))
}

// NotFoundError returns an error about a job or tube that is not there, or not as it would have to
// be.
func NotFoundError(format string, args ...any) error {
	return WithCode(ExitNothing, fmt.Errorf(format, args...))
}

// HasCode reports whether an error has a code of its own.
func HasCode(err error) bool {
	_, ok := errors.AsType[*codedError](err)
	return ok
}

// ExitCode returns the code that the program ends with when a command has failed.
func ExitCode(err error) int {
	if coded, ok := errors.AsType[*codedError](err); ok {
		return coded.code
	}
	return ExitFailure
}
