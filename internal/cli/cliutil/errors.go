package cliutil

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/internal/exit"
)

// A userError is an error with a text for the user of a command.
type userError struct {
	text string
	error
}

func (e *userError) Error() string { return e.text }
func (e *userError) Unwrap() error { return e.error }

// explained returns an error with part of its text replaced.
func explained(err, part error, words string) error {
	return &userError{strings.Replace(err.Error(), part.Error(), words, 1), err}
}

// Dial connects to the server.
func (o *Connection) Dial(ctx context.Context) (*client.Conn, error) {
	opt, err := o.Options()
	if err != nil {
		return nil, err
	}
	return client.Dial(ctx, o.Addr, opt)
}

// Explain returns err with a message for the user and an exit code. An error that already
// has an exit code is returned unchanged.
func (o *Connection) Explain(ctx context.Context, err error) error {
	if err == nil || exit.HasCode(err) {
		return err
	}
	e, ok := errors.AsType[*client.Error](err)
	switch {
	case ctx.Err() != nil && ok:
		return exit.WithCode(exit.Interrupted, explained(err, e, "interrupted"))
	case ctx.Err() != nil:
		return exit.WithCode(exit.Interrupted, explained(err, ctx.Err(), "interrupted"))
	case ok:
		err = explained(err, e, o.words(e))
	}
	code := exit.Failure
	switch {
	case errors.Is(err, client.ErrNotFound), errors.Is(err, client.ErrTimedOut):
		code = exit.Nothing
	case errors.Is(err, client.ErrUnauthorized):
		code = exit.Unauthorized
	case errors.Is(err, client.ErrDisconnected), errors.Is(err, client.ErrOutcomeUnknown):
		code = exit.Disconnected
	case errors.Is(err, client.ErrInvalid):
		code = exit.Usage
		err = &userError{strings.Replace(err.Error(), client.ErrInvalid.Error()+": ", "", 1), err} // the text is clear without the prefix
	}
	return exit.WithCode(code, err)
}

// words returns a description of an error and, if possible, the remedy.
func (o *Connection) words(e *client.Error) string {
	switch {
	case errors.Is(e, client.ErrNotFound) && e.Job != 0:
		return fmt.Sprintf("there is no job %d at %s", e.Job, e.Addr)
	case errors.Is(e, client.ErrNotFound) && e.Tube != "":
		return fmt.Sprintf("there is no tube %s at %s", e.Tube, e.Addr)
	case errors.Is(e, client.ErrInvalid), errors.Is(e, client.ErrTimedOut):
		return e.Err.Error()
	case errors.Is(e, client.ErrUnauthorized) && e.Verb == "connect":
		return e.Addr + " rejects the token from --token or BEANPOLE_TOKEN"
	case errors.Is(e, client.ErrUnauthorized):
		return fmt.Sprintf("%s refuses %s: the token (--token, BEANPOLE_TOKEN) or certificate (--tls-cert) is missing or lacks the right", e.Addr, command(e))
	case errors.Is(e, client.ErrUnknownCommand) && e.Verb == "connect":
		return e.Addr + " does not support tokens: leave out --token and BEANPOLE_TOKEN"
	case errors.Is(e, client.ErrDisconnected):
		return o.disconnected(e)
	}
	for _, r := range replies {
		if errors.Is(e, r.error) {
			return fmt.Sprintf("%v (%s)", e, r.name)
		}
	}
	return e.Error()
}

// replies contains the replies of the protocol, as named in the documentation.
var replies = []struct {
	error
	name string
}{
	{client.ErrDraining, "DRAINING"}, {client.ErrJobTooBig, "JOB_TOO_BIG"}, {client.ErrBuried, "BURIED"}, {client.ErrOutOfMemory, "OUT_OF_MEMORY; 'beanpole attention' reports limits and the disk"},
	{client.ErrInternal, "INTERNAL_ERROR"}, {client.ErrUnknownCommand, "UNKNOWN_COMMAND"}, {client.ErrBadFormat, "BAD_FORMAT"},
}

// command returns the command that failed, with its job or tube.
func command(e *client.Error) string {
	switch {
	case e.Job != 0:
		return fmt.Sprint(e.Verb, " ", e.Job)
	case e.Tube != "":
		return e.Verb + " " + e.Tube
	}
	return e.Verb
}

// disconnected describes a connection that failed or was lost.
func (o *Connection) disconnected(e *client.Error) string {
	if why := whyNoServer(e); why != "" {
		return fmt.Sprintf("no server at %s: %s; start one with 'beanpole', or give its address with --addr or BEANPOLE_ADDR", e.Addr, why)
	}
	why := whyLost(e)
	if why == "" && e.Verb == "connect" && o.Encrypted() && (errors.Is(e, context.DeadlineExceeded) || errors.Is(e, os.ErrDeadlineExceeded)) {
		why = "the server does not answer with TLS; if it does not speak TLS, leave out the --tls options"
	}
	if why == "" {
		return e.Error()
	}
	return e.Addr + ": " + why
}

// whyNoServer returns the reason if err means that there is no server at an address, and
// otherwise "".
func whyNoServer(err error) string {
	switch e, ok := errors.AsType[*net.DNSError](err); {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, fs.ErrNotExist):
		return "no such socket"
	case ok && e.IsNotFound:
		return "no such host"
	}
	return ""
}

// whyLost returns the reason for which a server and a client ended their connection, and
// the remedy. It returns "" if the reason is unknown.
func whyLost(err error) string {
	_, garbled := errors.AsType[tls.RecordHeaderError](err)
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	name, otherName := errors.AsType[x509.HostnameError](err)
	op, isOp := errors.AsType[*net.OpError](err)
	switch {
	case garbled:
		return "the server does not speak TLS; leave out the --tls options"
	case unknown:
		return "the certificate has an unknown authority; trust one with --tls-ca"
	case otherName:
		return fmt.Sprintf("the certificate is for another name (%v); set --tls-server-name to that name", name)
	case isOp && op.Op == "remote error":
		return fmt.Sprintf("the server rejects the connection (%v); it might require another certificate (--tls-cert and --tls-key)", op)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "the server closed the connection; its log has the reason (check the --tls options; a member of a cluster needs a leader)"
	}
	return ""
}

// Count returns a number with a noun, in the plural unless n is 1.
func Count[N int | uint64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
