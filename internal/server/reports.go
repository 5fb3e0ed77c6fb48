package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/conversation"
	"github.com/beanpole-mq/beanpole/internal/server/ratelog"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

// reports logs the events of clients and counts refusals.
type reports struct {
	log      *slog.Logger
	refusals *ratelog.Logger
	puts     *ratelog.Logger // logs puts refused because of their size or form
	changes  *ratelog.Logger
	onChange atomic.Pointer[func(*Change)]
	foreign  rate.Sometimes // limits the lines about clients that speak another protocol
	full     rate.Sometimes
	accepts  rate.Sometimes // errors of accepting

	crowded atomic.Uint64 // connections refused because their address had too many
	evicted atomic.Uint64 // connections closed because they used too much memory

	// Numbers of refusals for lack of rights.
	refusedConnections, refusedCommands atomic.Uint64
}

func newReports(log *slog.Logger) *reports {
	return &reports{
		log:      log,
		refusals: ratelog.New(log, 5, 20),
		puts:     ratelog.New(log, 1, 5),
		changes:  ratelog.New(log, 20, 200),
		foreign:  rate.Sometimes{Interval: time.Minute},
		full:     rate.Sometimes{Interval: time.Minute},
		accepts:  rate.Sometimes{Interval: time.Minute},
	}
}

// nameOf returns a client's address, or "" if the address must not be logged.
func (r *reports) nameOf(client net.Addr) string {
	if !r.log.Enabled(context.Background(), slog.LevelDebug) {
		return ""
	}
	return client.String()
}

// slotsTaken logs a warning that no client is accepted until a connection is closed.
func (r *reports) slotsTaken(limit int) {
	r.full.Do(func() {
		r.log.Warn("maximum number of connections reached; new clients wait", "limit", limit)
	})
}

// disconnected logs the end of a connection with its reason.
func (r *reports) disconnected(c *socket, reason error) {
	r.log.Debug("disconnected", "client", c.Client(), "reason", reason)
	foreign := func(warning string) {
		r.foreign.Do(func() { r.log.Warn(warning, "client", c.address()) })
	}
	switch reason {
	case conversation.ErrMemory:
		r.evicted.Add(1)
		r.refusals.Warn("a connection was closed", "client", c.address(), "reason", reason)
	case conversation.ErrHTTP:
		foreign("disconnected a client that spoke HTTP; a web page might be trying to use the queue")
	case conversation.ErrProxy:
		foreign("closed a connection with a PROXY protocol header; add the proxy's network to --proxy-protocol")
	case conversation.ErrTLS:
		foreign("disconnected a client that started a TLS handshake; the listener has no TLS")
	}
}

// reject counts and logs a refused connection. It does not count errors of connections
// that the client closed.
func (r *reports) reject(client net.Addr, err error) {
	if _, ok := errors.AsType[*rejection](err); ok {
		r.refusedConnections.Add(1)
	} else if err == access.ErrAddressFull {
		r.crowded.Add(1)
	} else {
		return
	}
	r.refusals.Warn("a connection was refused", "client", client.String(), "reason", err)
}

// commandRefused counts and logs a refused command.
func (r *reports) commandRefused(c *conversation.Conversation, what string, tubes []string) {
	r.refusedCommands.Add(1)
	r.Refused(c.Owner().(*socket).address(), c.Identity(), what, tubes...)
}

// putRefused logs a put that is too large or malformed.
func (r *reports) putRefused(c *conversation.Conversation, reply wire.Word, bytes uint32) {
	args := []any{"reply", reply.String(), "client", c.Owner().(*socket).address(), "identity", c.Identity(), "tube", c.Using()}
	if bytes > 0 {
		args = append(args, "bytes", bytes)
	}
	r.puts.Warn("a put was refused", args...)
}

// Refused logs that a client of the server or of the admin listener was refused, and the
// tubes on which it lacks rights.
func (r *reports) Refused(client, identity, what string, tubes ...string) {
	args := []any{"client", client, "identity", identity, "refused", what}
	if len(tubes) > 0 {
		args = append(args, "tube", strings.Join(tubes, ", "))
	}
	r.refusals.Warn("a client was refused", args...)
}

// A Change is the effect of a command on a tube or on many jobs.
type Change struct {
	Command, Identity, Client string
	About                     []any // names and values of log attributes
}

// OnChange makes f receive logged changes through the protocol. f is called within turns
// and must not block.
func (r *reports) OnChange(f func(*Change)) { r.onChange.Store(&f) }

// changed logs the effect of a command on a tube or on many jobs.
func (r *reports) changed(c *conversation.Conversation, command wire.Op, what ...any) {
	one := &Change{command.String(), c.Identity(), c.Owner().(*socket).address(), what}
	args := []any{"command", one.Command, "identity", one.Identity, "client", one.Client}
	logged := r.changes.Info("a change through the protocol", append(args, what...)...)
	if f := r.onChange.Load(); logged && f != nil {
		(*f)(one)
	}
}
