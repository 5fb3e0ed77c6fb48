package client

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

// Errors for unsuccessful replies. Test for them with errors.Is.
var (
	// ErrNotFound reports that the job or tube does not exist, or that the job is in
	// another state (NOT_FOUND). After a delete, release, bury or touch of a reserved
	// job, it means that its time to run expired or its connection was lost: another
	// worker might have the job.
	ErrNotFound = errors.New("not found")

	// ErrTimedOut reports that no job became ready in time (TIMED_OUT).
	ErrTimedOut = errors.New("no job in time")

	// ErrDeadlineSoon reports that the time to run of a job that this connection holds
	// expires within a second, and that no other job is ready (DEADLINE_SOON). Finish,
	// touch or release that job before the next reserve.
	ErrDeadlineSoon = errors.New("the time to run of a reserved job is about to expire")

	// ErrDraining reports that the server rejects new jobs (DRAINING). Use another
	// server, or retry later.
	ErrDraining = errors.New("the server accepts no new jobs")

	// ErrJobTooBig reports that the body exceeds [ServerStats.MaxJobSize] or another
	// limit (JOB_TOO_BIG).
	ErrJobTooBig = errors.New("the body of the job is too big")

	// ErrBuried reports that the server had no memory to queue the job, and has buried it
	// (BURIED as the reply to a put or a release). beanpole never sends it.
	ErrBuried = errors.New("the server had no memory for the job and buried it")

	// ErrOutOfMemory reports that the server has reached a limit or its disk is full, and
	// that nothing has changed (OUT_OF_MEMORY). Retry later.
	ErrOutOfMemory = errors.New("the server has no space")

	// ErrInternal reports that the server could not make the change durable, or has a
	// defect (INTERNAL_ERROR). The change might have happened.
	ErrInternal = errors.New("internal error of the server")

	// ErrUnauthorized reports that the token is missing or invalid, or that the client
	// lacks the right to this command (UNAUTHORIZED).
	ErrUnauthorized = errors.New("not authorized")

	// ErrUnknownCommand reports that the server lacks the command (UNKNOWN_COMMAND): it
	// is not a beanpole, or is too old.
	ErrUnknownCommand = errors.New("the server does not support the command")

	// ErrBadFormat reports that the server cannot parse the command (BAD_FORMAT,
	// EXPECTED_CRLF). Servers before beanstalkd 1.12 send this reply to a reserve-job.
	ErrBadFormat = errors.New("the server does not understand the command")
)

// Errors of the client and of the network.
var (
	// ErrInvalid reports an invalid argument, such as a malformed tube name or address,
	// or a negative duration. Nothing was sent.
	ErrInvalid = errors.New("invalid argument")

	// ErrClosed reports that Close was called.
	ErrClosed = errors.New("closed")

	// ErrDisconnected reports that there is no connection, or that it was lost during the
	// command and could not be replaced in time. It also wraps the cause.
	ErrDisconnected = errors.New("no connection")

	// ErrOutcomeUnknown reports that the connection was lost after the whole command was
	// sent and before the reply arrived. The server might have executed the command. The
	// client repeats commands only if executing them twice is harmless, which excludes
	// puts. For a delete, the error means that the repeated delete found no such job, or
	// that the client could not reconnect.
	ErrOutcomeUnknown = errors.New("the server might have executed the command")

	// ErrProtocol reports an invalid reply of the server. The connection is closed.
	ErrProtocol = errors.New("unexpected reply")
)

// An Error describes a failed command.
type Error struct {
	Verb string // the command in the protocol, such as "delete"; or "connect"
	Job  uint64 // id of the command's job; 0 if it has none
	Tube string // the command's tube; empty if it has none, or many
	Addr string // the address passed to [Dial]; empty if the error does not come from one server
	Err  error  // the cause: wraps one or more of the errors above, or the cause of a context
}

// Error returns a text such as "10.0.0.1:11300: delete 7: not found".
func (e *Error) Error() string {
	text := e.Verb
	if e.Job != 0 {
		text += " " + strconv.FormatUint(e.Job, 10)
	} else if e.Tube != "" {
		text += " " + e.Tube
	}
	if e.Addr != "" {
		text = e.Addr + ": " + text
	}
	return text + ": " + e.Err.Error()
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// words maps replies to errors.
var words = map[wire.Word]error{
	wire.NotFound:       ErrNotFound,
	wire.TimedOut:       ErrTimedOut,
	wire.DeadlineSoon:   ErrDeadlineSoon,
	wire.Draining:       ErrDraining,
	wire.JobTooBig:      ErrJobTooBig,
	wire.Buried:         ErrBuried,
	wire.OutOfMemory:    ErrOutOfMemory,
	wire.InternalError:  ErrInternal,
	wire.Unauthorized:   ErrUnauthorized,
	wire.UnknownCommand: ErrUnknownCommand,
	wire.BadFormat:      ErrBadFormat,
	wire.ExpectedCRLF:   ErrBadFormat,
}

// replyError returns the error for an unsuccessful reply.
func replyError(r *wire.Reply) error {
	if err := words[r.Kind]; err != nil {
		return err
	}
	return fmt.Errorf("%w: %v", ErrProtocol, r.Kind)
}

// connectError returns the error of a failed connection to a server.
func connectError(addr string, err error) error {
	return &Error{Verb: "connect", Addr: withoutToken(addr), Err: err}
}
