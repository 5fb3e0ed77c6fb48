package conversation

import (
	"time"

	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

// A Gate is what a listener asks of its clients. Without one, everybody may do
// everything, and auth is no command.
type Gate struct {
	// Policy returns the policy in force, which may be another each time.
	Policy func() *access.Policy

	// Required makes a client prove who it is before anything else.
	Required bool

	// TokenInPut lets the body of the first put be the token.
	TokenInPut bool

	// Limiter returns the limiter of an identity. It may be called within turns, and
	// must not block. Nil: a client keeps the one that it has.
	Limiter func(id *access.Identity) Limiter

	// Refused is told of each refusal: of which client, and what. It is called
	// within turns, and must not block.
	Refused func(client, identity, what string)
}

// AuthTimeout is how long a client that must prove who it is may take for that.
const AuthTimeout = 10 * time.Second

// insertedToken is the id in the reply to a put whose body was a token. It is
// that of no job.
const insertedToken = 0

// Guard puts a gate before the conversation, which must be new. The client's name is
// for Refused; id is the identity that is known already, from a certificate for
// example, or nil.
func (c *Conversation) Guard(g *Gate, client string, id *access.Identity) {
	c.gate, c.client = g, client
	c.locked = g.Required && id == nil
	if id == nil {
		id = g.Policy().Nobody()
	}
	c.identity = id
	c.guardParser()
}

// guardParser makes auth a command, and does not let a stranger send large bodies.
func (c *Conversation) guardParser() {
	if c.gate == nil {
		return
	}
	c.parser.Auth = true
	if c.locked {
		c.parser.MaxBody = min(c.parser.MaxBody, access.MaxToken)
	}
}

// identify looks up whose token a command has: outside turns, since a driver parses
// there.
func (c *Conversation) identify(cmd *wire.Command) *access.Identity {
	token := cmd.Text
	switch {
	case cmd.Op == wire.Put && c.locked && c.gate.TokenInPut:
		token = cmd.Body
	case cmd.Op != wire.Auth:
		return nil
	}
	id, ok := c.gate.Policy().ByToken(string(token))
	if ok {
		c.parser.MaxBody = c.shared.MaxJobSize // what follows may be here already
	}
	return id
}

// passes reports whether a command may be executed. If not, it is answered.
func (c *Conversation) passes(e *engine.Engine, cmd *command) bool {
	switch {
	case cmd.Op == wire.Auth || c.locked && cmd.identity != nil:
		c.enter(e, cmd)
		return false
	case cmd.Fault == wire.FaultHTTP:
		return true
	case c.locked:
		if c.quit = true; cmd.Op != wire.Quit {
			c.refuse(cmd.Op.String() + " before auth")
		}
		return false
	case cmd.Fault != wire.None || c.identity.Unrestricted() || c.may(e, &cmd.Command):
		return true
	}
	c.refuse(cmd.Op.String())
	return false
}

// refuse answers that the client may not do something.
func (c *Conversation) refuse(what string) {
	c.unsuccessful(wire.Unauthorized)
	if c.gate.Refused != nil {
		c.gate.Refused(c.client, c.identity.Name(), what)
	}
}

// enter gives the client the identity that its token belongs to. The conversation ends
// if the token is not known, or if that identity may not reserve from a tube that the
// client watches already.
func (c *Conversation) enter(e *engine.Engine, cmd *command) {
	if cmd.identity == nil || cmd.Fault != wire.None || !c.mayKeepWatching(cmd.identity) {
		c.refuse("the token")
		c.quit = true
		return
	}
	c.identity, c.locked = cmd.identity, false
	c.identified(cmd.identity)
	if cmd.Op == wire.Put {
		c.out = wire.AppendInserted(c.out, insertedToken)
		return
	}
	c.word(wire.Authenticated)
}

// watchedBefore is how many tubes a client may watch when it says who it is.
const watchedBefore = 100

// mayKeepWatching reports whether an identity may reserve from the tubes that are
// watched. The tube default does not count: every client watches it at first.
func (c *Conversation) mayKeepWatching(id *access.Identity) bool {
	names := c.sess.WatchedNames()
	if id.Unrestricted() {
		return true
	}
	if names.Len() > watchedBefore {
		return false
	}
	for i := range names.Len() {
		if name := names.At(i); name != defaultTube && !id.May(access.Reserve, name) {
			return false
		}
	}
	return true
}

const defaultTube = "default"

// A requirement is what a client needs for a command: rights, all or any of them, on
// some tube.
type requirement struct {
	rights access.Rights
	any    bool // of the rights
	on     place
}

// A place says which tube a command is about.
type place uint8

const (
	unstated place = iota // of a command that has no row: it is refused
	nowhere               // none, and no right is needed
	named                 // the one that it names
	used                  // the one in use
	both                  // the two that it names
	ofJob                 // that of its job
	watched               // all that are watched
	anywhere              // some tube
)

// requirements is the table of rights, a row a command.
var requirements = [wire.NumOps]requirement{
	wire.Put:            {access.Put, false, used},
	wire.Use:            {access.Put | access.Peek | access.Manage | access.Stats, true, named},
	wire.Peek:           {access.Peek, false, ofJob},
	wire.PeekReady:      {access.Peek, false, used},
	wire.PeekDelayed:    {access.Peek, false, used},
	wire.PeekBuried:     {access.Peek, false, used},
	wire.Watch:          {access.Reserve, false, named},
	wire.Reserve:        {access.Reserve, false, watched},
	wire.ReserveTimeout: {access.Reserve, false, watched},
	wire.ReserveJob:     {access.Reserve, false, ofJob},
	wire.Delete:         {access.Reserve | access.Manage, true, ofJob},
	wire.Release:        {access.Reserve, false, ofJob},
	wire.Bury:           {access.Reserve, false, ofJob},
	wire.Touch:          {access.Reserve, false, ofJob},
	wire.Kick:           {access.Manage, false, used},
	wire.KickJob:        {access.Manage, false, ofJob},
	wire.PauseTube:      {access.Manage, false, named},
	wire.FlushTube:      {access.Manage, false, named},
	wire.MoveJobs:       {access.Manage, false, both},
	wire.ListJobs:       {access.Stats, false, named},
	wire.StatsJob:       {access.Stats, false, ofJob},
	wire.StatsTube:      {access.Stats, false, named},
	wire.Stats:          {access.Stats, false, anywhere},
	wire.ListTubes:      {access.Stats, false, anywhere},

	wire.Unknown:          {on: nowhere},
	wire.Ignore:           {on: nowhere},
	wire.ListTubesWatched: {on: nowhere},
	wire.ListTubeUsed:     {on: nowhere},
	wire.Quit:             {on: nowhere},
	wire.Auth:             {on: nowhere},
}

// may reports whether the client has the rights that a command needs. What does not
// exist needs none: that is answered as always.
func (c *Conversation) may(e *engine.Engine, cmd *wire.Command) bool {
	n := &requirements[cmd.Op]
	tube := ""
	switch n.on {
	case unstated:
		return false
	case nowhere:
		return true
	case anywhere:
		return c.identity.MayAnywhere(n.rights)
	case named:
		tube = string(cmd.Tube)
	case both:
		return c.identity.May(n.rights, string(cmd.Tube)) && c.identity.May(n.rights, string(cmd.Text))
	case used:
		tube = c.sess.Using()
	case watched:
		// The others were checked when they were added.
		return !e.Watches(c.sess, defaultTube) || c.identity.May(n.rights, defaultTube)
	case ofJob:
		var ok bool
		if tube, ok = e.TubeOf(cmd.ID); !ok {
			return true
		}
	}
	if n.any {
		return c.identity.MayAny(n.rights, tube)
	}
	return c.identity.May(n.rights, tube)
}
