package client

import (
	"errors"
	"fmt"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

// What a server may answer instead of doing what it was asked. Test for them
// with errors.Is.
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

	// ErrDraining: the server takes no new jobs. Put to another, or later.
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

	// ErrUnauthorized: the server does not take the token, or wants one, or
	// does not allow this command. (UNAUTHORIZED)
	ErrUnauthorized = errors.New("not authorized")

	// ErrUnknownCommand: the server does not know the command: it is one of
	// beanpole, or newer than the server. (UNKNOWN_COMMAND)
	ErrUnknownCommand = errors.New("the server does not know the command")

	// ErrBadFormat: the server does not understand the command. Servers before
	// beanstalkd 1.12 answer a reserve-job so. (BAD_FORMAT, EXPECTED_CRLF)
	ErrBadFormat = errors.New("the server does not understand the command")
)

// What can go wrong on this side.
var (
	// ErrInvalid: an argument that cannot be sent: a tube name that is none, a
	// negative duration, a malformed address. Nothing was sent.
	ErrInvalid = errors.New("invalid argument")

	// ErrClosed: Close was called.
	ErrClosed = errors.New("closed")

	// ErrDisconnected: there is no connection, or it was lost under way, and
	// no other could be had in time. The cause is wrapped too.
	ErrDisconnected = errors.New("no connection")

	// ErrOutcomeUnknown: the connection was lost after the whole command was
	// sent and before its reply came. The server may have done it or not.
	// Nothing is ever sent again after that, unless twice is the same as once:
	// a put is not.
	ErrOutcomeUnknown = errors.New("whether the server has done it is not known")

	// ErrProtocol: the server said what no beanstalk server says. The
	// connection is closed.
	ErrProtocol = errors.New("unexpected reply")
)

// An Error says which command failed where. Err wraps one or more of the errors
// above.
type Error struct {
	Op   string // the command and, if it is about a job or tube, which one: "delete 7"
	Addr string // the server, as it was given to Dial
	Err  error
}

// Error returns the parts, with colons between.
func (e *Error) Error() string { return e.Addr + ": " + e.Op + ": " + e.Err.Error() }

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

// replyError returns what a reply other than the one wanted stands for.
func replyError(r *wire.Reply) error {
	if err := words[r.Kind]; err != nil {
		return err
	}
	return fmt.Errorf("%w: %v", ErrProtocol, r.Kind)
}

// name describes a command for an Error.
func name(cmd *wire.Command) string {
	switch {
	case cmd.ID != 0:
		return fmt.Sprint(cmd.Op, " ", cmd.ID)
	case cmd.Tube != nil:
		return fmt.Sprint(cmd.Op, " ", string(cmd.Tube))
	}
	return cmd.Op.String()
}
