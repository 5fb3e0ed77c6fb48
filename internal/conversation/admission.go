package conversation

import (
	"bytes"
	"slices"
	"time"

	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/rights"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

// AuthTimeout is the maximum time for a client to authenticate, if it must.
const AuthTimeout = 10 * time.Second

// insertedToken is the id in the reply to a put whose body was a token. No job has it.
const insertedToken = 0

// Admit sets the requirements of the client's listener, and the client's identity if it
// is already known, for example from a certificate; otherwise, the identity is nil. The
// conversation must be new. Without a call of Admit, the client has all rights, and auth
// is not a command.
func (c *Conversation) Admit(terms *access.ListenerPolicy, id *access.Identity) {
	c.terms = terms
	if id == nil {
		id, _ = c.shared.Access.Identify(access.Credentials{})
		c.stranger = true
	}
	c.identity = id
	c.limitParser()
}

// locked reports whether the client must authenticate before any other command.
func (c *Conversation) locked() bool { return c.stranger && c.terms.Required }

// limitParser makes auth a command, and limits the bodies of an unauthenticated client.
func (c *Conversation) limitParser() {
	if c.terms == nil {
		return
	}
	c.parser.Auth = true
	if c.locked() {
		c.parser.MaxBody = min(c.parser.MaxBody, access.MaxToken)
	}
}

// identify returns the identity of the token in a command. Like the parser, it runs
// outside turns.
func (c *Conversation) identify(cmd *wire.Command) *access.Identity {
	token := cmd.Text
	switch {
	case cmd.Op == wire.Put && c.terms.TokenInPut:
		token = bytes.TrimSpace(cmd.Body) // "echo TOKEN" ends with a line feed, and a token must not become a job
	case cmd.Op != wire.Auth:
		return nil
	}
	id, known := c.shared.Access.Identify(access.Credentials{Token: token})
	if !known {
		return nil
	}
	c.parser.MaxBody = c.shared.MaxJobSize // the following commands might be buffered already
	return id
}

// passes reports whether the client may execute a command. If not, it answers the
// command.
func (c *Conversation) passes(e *engine.Engine, now int64, cmd *command) bool {
	switch {
	case cmd.Op == wire.Auth || cmd.identity != nil:
		c.enter(e, now, cmd)
		return false
	case cmd.Fault == wire.FaultHTTP:
		return true
	case c.locked():
		if cmd.Op == wire.Quit {
			c.endInTurn(e, now, ErrQuit)
			return false
		}
		c.refuse(cmd.Op.String() + " before auth")
		c.endInTurn(e, now, ErrUnauthorized)
		return false
	case cmd.Fault != wire.None || c.identity.Unrestricted():
		return true
	}
	var room [2]string
	tubes := c.tubesOf(e, &cmd.Command, room[:0])
	if c.identity.Meets(cmd.Op.Need(), tubes...) {
		return true
	}
	c.refuse(cmd.Op.String(), slices.Clone(tubes)...)
	return false
}

// refuse answers a command for which the client lacks a right.
func (c *Conversation) refuse(what string, tubes ...string) {
	c.unsuccessful(wire.Unauthorized)
	if c.shared.Refused != nil {
		c.shared.Refused(c, what, tubes)
	}
}

// enter gives the client the identity of its token. It ends the conversation if the token
// is invalid, or if the identity may not reserve from a tube that the client already
// watches.
func (c *Conversation) enter(e *engine.Engine, now int64, cmd *command) {
	if cmd.identity == nil || cmd.Fault != wire.None || !c.mayKeepWatching(cmd.identity) {
		c.refuse("the token")
		c.endInTurn(e, now, ErrUnauthorized)
		return
	}
	c.identity, c.stranger = cmd.identity, false
	if cmd.Op == wire.Put {
		c.out.bytes = wire.AppendNumber(c.out.bytes, wire.Inserted, insertedToken)
		return
	}
	c.word(wire.Authenticated)
}

// watchedBefore is the maximum number of tubes that a client can watch when it
// authenticates.
const watchedBefore = 100

// mayKeepWatching reports whether an identity may reserve from all watched tubes except
// default, which every client watches at first.
func (c *Conversation) mayKeepWatching(id *access.Identity) bool {
	names := c.sess.WatchedNames()
	if id.Unrestricted() {
		return true
	}
	if names.Len() > watchedBefore {
		return false
	}
	for i := range names.Len() {
		if name := names.At(i); name != defaultTube && !id.Meets(wire.Watch.Need(), name) {
			return false
		}
	}
	return true
}

const defaultTube = "default"

// tubesOf appends the tubes on which a client needs the rights for a command. It appends
// none if the command's job does not exist: the command then fails in the usual way.
func (c *Conversation) tubesOf(e *engine.Engine, cmd *wire.Command, tubes []string) []string {
	switch cmd.Op.Need().Place {
	case rights.NamedTube:
		return append(tubes, string(cmd.Tube))
	case rights.TwoTubes:
		return append(tubes, string(cmd.Tube), string(cmd.Text))
	case rights.TubeInUse:
		return append(tubes, c.sess.Using())
	case rights.WatchedTubes:
		if e.Watches(c.sess, defaultTube) {
			return append(tubes, defaultTube) // the other tubes were checked when they were added
		}
	case rights.TubeOfJob:
		if tube, ok := e.TubeOf(cmd.ID); ok {
			return append(tubes, tube)
		}
	}
	return tubes
}
