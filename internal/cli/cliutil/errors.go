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
)

// A userError is an error of the client in words for a person.
type userError struct {
	text string
	error
}

func (e *userError) Error() string { return e.text }
func (e *userError) Unwrap() error { return e.error }

// inWords returns an error with words in the place of a part of its text.
func inWords(err, part error, words string) error {
	return &userError{strings.Replace(err.Error(), part.Error(), words, 1), err}
}

// Dial connects to the server.
func (o *Connection) Dial(ctx context.Context) (*client.Conn, error) {
	opt, err := o.Options()
	if err != nil {
		return nil, err
	}
	c, err := client.Dial(ctx, o.Addr, opt)
	return c, UnreachableError(o.Addr, "--addr or BEANPOLE_ADDR", err)
}

// Explain returns the error with which a command ends that has asked the server: in words for a
// person, and with its exit code. One that has a code stays as it is.
func (o *Connection) Explain(ctx context.Context, err error) error {
	if err == nil || HasCode(err) {
		return err
	}
	e, ok := errors.AsType[*client.Error](err)
	switch {
	case ctx.Err() != nil && ok:
		return WithCode(ExitInterrupted, inWords(err, e, "interrupted"))
	case ctx.Err() != nil:
		return WithCode(ExitInterrupted, inWords(err, ctx.Err(), "interrupted"))
	case ok:
		err = inWords(err, e, o.words(e))
	}
	code := ExitFailure
	switch {
	case errors.Is(err, client.ErrNotFound), errors.Is(err, client.ErrTimedOut):
		code = ExitNothing
	case errors.Is(err, client.ErrUnauthorized):
		code = ExitUnauthorized
	case errors.Is(err, client.ErrDisconnected), errors.Is(err, client.ErrOutcomeUnknown):
		code = ExitDisconnected
	case errors.Is(err, client.ErrInvalid):
		code = ExitUsage
		err = &userError{strings.Replace(err.Error(), client.ErrInvalid.Error()+": ", "", 1), err} // its words say it
	}
	return WithCode(code, err)
}

// words says what an error means, and what to do about it where that is known.
func (o *Connection) words(e *client.Error) string {
	switch {
	case errors.Is(e, client.ErrNotFound) && e.Job != 0:
		return fmt.Sprintf("there is no job %d at %s", e.Job, e.Addr)
	case errors.Is(e, client.ErrNotFound) && e.Tube != "":
		return fmt.Sprintf("there is no tube %s at %s", e.Tube, e.Addr)
	case errors.Is(e, client.ErrInvalid), errors.Is(e, client.ErrTimedOut):
		return e.Err.Error()
	case errors.Is(e, client.ErrUnauthorized):
		return o.refused(e)
	case errors.Is(e, client.ErrUnknownCommand) && e.Verb == "connect":
		return e.Addr + " knows no tokens: leave out --token and BEANPOLE_TOKEN"
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

// replies are the names of replies, by which the pages tell of them.
var replies = []struct {
	error
	name string
}{
	{client.ErrDraining, "DRAINING"}, {client.ErrJobTooBig, "JOB_TOO_BIG"}, {client.ErrBuried, "BURIED"}, {client.ErrOutOfMemory, "OUT_OF_MEMORY"},
	{client.ErrInternal, "INTERNAL_ERROR"}, {client.ErrUnknownCommand, "UNKNOWN_COMMAND"}, {client.ErrBadFormat, "BAD_FORMAT"},
}

// refused is words for what the server does not allow.
func (o *Connection) refused(e *client.Error) string {
	switch {
	case e.Verb == "connect":
		return e.Addr + " does not take the token of --token or BEANPOLE_TOKEN"
	case o.Proof() == "":
		return fmt.Sprintf("%s refuses %s: it wants a token (--token, BEANPOLE_TOKEN) or a certificate (--tls-cert)", e.Addr, command(e))
	}
	return fmt.Sprintf("%s refuses %s: its rules do not allow that with this %s", e.Addr, command(e), o.Proof())
}

// command names the command that failed, with the job or tube that it is about.
func command(e *client.Error) string {
	switch {
	case e.Job != 0:
		return fmt.Sprint(e.Verb, " ", e.Job)
	case e.Tube != "":
		return e.Verb + " " + e.Tube
	}
	return e.Verb
}

// disconnected is words for a connection that cannot be had, or was lost.
func (o *Connection) disconnected(e *client.Error) string {
	_, unknown := errors.AsType[x509.UnknownAuthorityError](e)
	name, otherName := errors.AsType[x509.HostnameError](e)
	_, garbled := errors.AsType[tls.RecordHeaderError](e)
	_, alert := errors.AsType[tls.AlertError](e)
	if op, ok := errors.AsType[*net.OpError](e); ok && op.Op == "remote error" {
		alert = true
	}
	switch {
	case errors.Is(e, syscall.ECONNREFUSED), errors.Is(e, fs.ErrNotExist):
		return "there is no server at " + e.Addr + " now"
	case garbled:
		return e.Addr + " does not speak TLS: leave out --tls and what begins with it"
	case unknown:
		return "the certificate of " + e.Addr + " is of an authority that is not trusted; --tls-ca says which one to trust"
	case otherName:
		return fmt.Sprintf("the certificate of %s is for another name (%v); --tls-server-name says for which", e.Addr, name)
	case alert:
		return fmt.Sprintf("%s does not take this connection (%v); does it want another certificate (--tls-cert and --tls-key)?", e.Addr, e.Err)
	case isTimeout(e) && e.Verb == "connect" && o.Encrypted():
		return e.Addr + " does not answer in TLS; if it does not speak that, leave out --tls and what begins with it"
	case errors.Is(e, io.EOF), errors.Is(e, io.ErrUnexpectedEOF), errors.Is(e, syscall.ECONNRESET), errors.Is(e, syscall.EPIPE):
		text := e.Addr + " has closed the connection; its log has the reason"
		switch {
		case !o.Encrypted():
			text += " (a server that expects TLS needs --tls; a member of a cluster needs a leader)"
		case e.Verb == "connect":
			text += "; if it does not speak TLS, leave out --tls and the options that begin with it"
		}
		return text
	}
	return e.Error()
}

// Count says how many there are of something.
func Count[N int | uint64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// isTimeout reports whether a connection could not be made in time. Which of the two it is depends on what notices that first.
func isTimeout(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)
}

// whyUnreachable says why there is no server at an address, or "" if it is another error.
func whyUnreachable(err error) string {
	switch e, ok := errors.AsType[*net.DNSError](err); {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the connection is refused"
	case errors.Is(err, fs.ErrNotExist):
		return "there is no such socket"
	case ok && e.IsNotFound:
		return "there is no such host"
	}
	return ""
}

// UnreachableError says what to do about an error of [client.Dial] if there is no server, and where
// the address comes from.
func UnreachableError(addr, given string, err error) error {
	why := whyUnreachable(err)
	if why == "" {
		return err
	}
	if strings.HasSuffix(why, "host") && strings.Contains(addr, "/") {
		why += " (unix:" + addr + " is a socket)"
	}
	return WithCode(ExitDisconnected, fmt.Errorf("no server at %s: %s; start one with 'beanpole', or say where it is with %s", addr, why, given))
}

// RefusedBy returns the limits that have refused something between two moments of a server, by
// their settings.
func RefusedBy(now, before *client.ServerStats) (settings []string) {
	for _, limit := range []struct {
		setting     string
		now, before uint64
	}{
		{"[[limit]]", now.RefusedByTubeLimit, before.RefusedByTubeLimit}, {"max-memory", now.RefusedByMaxMemory, before.RefusedByMaxMemory},
		{"max-tubes", now.RefusedByMaxTubes, before.RefusedByMaxTubes}, {"max-watched", now.RefusedByMaxWatched, before.RefusedByMaxWatched},
	} {
		if limit.now > limit.before {
			settings = append(settings, limit.setting)
		}
	}
	return settings
}
