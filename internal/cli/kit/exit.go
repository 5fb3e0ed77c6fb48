package kit

import (
	"errors"
	"fmt"
)

// Exit codes. Those that beanstalkd has too are the same.
const (
	ExitFailure   = 1
	ExitUsage     = 5
	ExitJournal   = 10  // the journal's directory cannot be used
	ExitLookup    = 32  // looking up the user of -u failed
	ExitNoUser    = 33  // the user of -u does not exist
	ExitPrivilege = 34  // becoming the user of -u failed
	ExitSocket    = 111 // a socket cannot be set up
)

// A codedError ends the program with a code of its own.
type codedError struct {
	code int
	err  error
}

func (e *codedError) Error() string { return e.err.Error() }
func (e *codedError) Unwrap() error { return e.err }
func (e *codedError) ExitCode() int { return e.code }

// WithCode returns an error with the text of err that ends the program with a code.
func WithCode(code int, err error) error { return &codedError{code, err} }

// UsageError returns an error that says what is wrong with the command line or the
// configuration.
func UsageError(format string, args ...any) error {
	return WithCode(ExitUsage, fmt.Errorf(format, args...))
}

// ExitCode returns the code that the program ends with when a command has failed.
func ExitCode(err error) int {
	if coded, ok := errors.AsType[interface {
		error
		ExitCode() int
	}](err); ok {
		return coded.ExitCode()
	}
	return ExitFailure
}
