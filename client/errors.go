package client

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

// Errors for the answers of a server that are not a success. Test for them with
// errors.Is.
var (
	// ErrNotFound: there is no such job or tube, or the job is not in a state
	// for the command. After a delete, release, bury or touch of a job that
	// was reserved it means that its time to run was over, or that its
	// connection was lost: another worker may have it. (NOT_FOUND)
	ErrNotFound = errors.New("not found")

	// ErrTimedOut: no job came in time. (TIMED_OUT)
	ErrTimedOut = errors.New("no job in time")

	// ErrDeadlineSoon: a reserve was answered without a job, because the time
	// to run of a job that this connection holds ends within a second. Finish,
	// touch or release that job before the next reserve. (DEADLINE_SOON)
	ErrDeadlineSoon = errors.New("the time to run of a reserved job is nearly over")

	// ErrNotIgnored: a connection must watch at least one tube. (NOT_IGNORED)
	ErrNotIgnored = errors.New("the only tube watched cannot be ignored")

	// ErrDraining: the server takes no new jobs. Put the job to another server, or later.
	// (DRAINING)
	ErrDraining = errors.New("the server takes no new jobs")

	// ErrJobTooBig: the body is larger than the server allows, which is
	// [ServerStats.MaxJobSize]. (JOB_TOO_BIG)
	ErrJobTooBig = errors.New("the body of the job is too big")

	// ErrBuried: the server took the job but had no room to queue it, and has
	// buried it. beanpole never does. (BURIED as the answer to a put or a
	// release)
	ErrBuried = errors.New("the server had no room for the job and has buried it")

	// ErrOutOfMemory: the server has no room; nothing was done. Try later.
	// (OUT_OF_MEMORY)
	ErrOutOfMemory = errors.New("the server has no room")

	// ErrInternal: the server could not make the change durable, or has a
	// defect. The change may have happened. (INTERNAL_ERROR)
	ErrInternal = errors.New("internal error of the server")

	// ErrUnauthorized: the server does not accept the token, or requires one, or
	// does not allow this command. (UNAUTHORIZED)
	ErrUnauthorized = errors.New("not authorized")

	// ErrUnknownCommand: the server does not know the command, because only beanpole
	// has it or because the server is too old. (UNKNOWN_COMMAND)
	ErrUnknownCommand = errors.New("the server does not know the command")

	// ErrBadFormat: the server does not understand the command. Servers before
	// beanstalkd 1.12 give this answer to a reserve-job. (BAD_FORMAT, EXPECTED_CRLF)
	ErrBadFormat = errors.New("the server does not understand the command")
)

// Errors of the client itself, and of the network.
var (
	// ErrInvalid: an argument is not valid, such as a malformed tube name or address, or
	// a negative duration. Nothing was sent.
	ErrInvalid = errors.New("invalid argument")

	// ErrClosed: Close was called.
	ErrClosed = errors.New("closed")

	// ErrDisconnected: there is no connection, or it was lost during the command, and
	// no new one could be made in time. The cause is wrapped too.
	ErrDisconnected = errors.New("no connection")

	// ErrOutcomeUnknown: the connection was lost after the whole command was sent and
	// before its reply came. The server might have executed it or not. The client sends
	// such a command again only if executing it twice does no harm, which rules out a
	// put. For a delete the error means that it was sent again and the server had no such
	// job then, or that no new connection could be made.
	ErrOutcomeUnknown = errors.New("whether the server has done it is not known")

	// ErrProtocol: the server sent a reply that does not belong to the protocol. The
	// connection is closed.
	ErrProtocol = errors.New("unexpected reply")
)

// An Error says which command failed, and where.
type Error struct {
	Verb string // the command as the protocol has it, such as "delete"; or "connect"
	Job  uint64 // the id of the job that the command is about; 0: none
	Tube string // the tube that the command is about; empty: none, or many
	Addr string // the address that was given to [Dial]; empty: no particular server
	Err  error  // why: wraps one or more of the errors above, or the cause of a context
}

// Error returns the parts: "10.0.0.1:11300: delete 7: not found".
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

// words are the errors that replies stand for.
var words = map[wire.Word]error{
	wire.NotFound:       ErrNotFound,
	wire.TimedOut:       ErrTimedOut,
	wire.DeadlineSoon:   ErrDeadlineSoon,
	wire.NotIgnored:     ErrNotIgnored,
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

// replyError returns the error for a reply that is not a success.
func replyError(r *wire.Reply) error {
	if err := words[r.Kind]; err != nil {
		return err
	}
	return fmt.Errorf("%w: %v", ErrProtocol, r.Kind)
}

// connectError is why there is no connection to a server.
func connectError(addr string, err error) error {
	return &Error{Verb: "connect", Addr: withoutToken(addr), Err: err}
}

// reserveError is why a reserve failed before it was a command to a server.
func reserveError(addr string, err error) error {
	return &Error{Verb: wire.Reserve.String(), Addr: addr, Err: err}
}

// asTimeout adds [ErrTimedOut] to the error of a reserve if the deadline of its context
// has passed, unless no server is reachable.
func asTimeout(ctx context.Context, addr string, err error) error {
	if err == nil || errors.Is(err, ErrTimedOut) || errors.Is(err, ErrDisconnected) || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return err
	}
	return reserveError(addr, fmt.Errorf("%w: %w", ErrTimedOut, err))
}

// commandError is why a command failed. Its tube may be known from the request only.
func commandError(addr string, q *request, err error) error {
	e := &Error{Verb: q.Op.String(), Job: q.ID, Tube: string(q.Tube), Addr: addr, Err: err}
	if e.Tube == "" && q.tube != usedTube {
		e.Tube = q.tube
	}
	return e
}
