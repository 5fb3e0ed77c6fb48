package conversation

import (
	"errors"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/conversation/proxyproto"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

const (
	// maxCommands is the maximum number of commands of one conversation in a turn, so
	// that a client that floods the server does not delay the others.
	maxCommands = 128

	// maxOut is the approximate maximum size, in bytes, of the replies that a
	// conversation has after a turn. They are written before the conversation continues.
	maxOut = 256 << 10
)

// MaxAhead is the maximum number of bytes that a driver reads after a waiting reserve. It
// reads them to detect that the client disconnects.
const MaxAhead = 64 << 10

// A State determines the next step of a conversation's driver. Next returns the time of
// the next call to Advance.
type State uint8

const (
	Opening   State = iota // nothing: the conversation has no session before Start
	Reading                // input: call Receive, or Space and Filled
	Ready                  // a turn: call Advance
	Executing              // nothing: the conversation is in a batch whose turn will run
	Settling               // nothing: the replies are not durable yet
	Writing                // Output must be written: call Wrote
	Waiting                // only to detect that the client disconnects: a reserve waits
	Leaving                // nothing: the session ends in the turn of a batch
	Lingering              // input to discard: call Drained
	Closed                 // closing the connection
)

// String returns the name of a state in lower case.
func (s State) String() string { return stateNames[s] }

var stateNames = [...]string{"opening", "reading", "ready", "executing", "settling", "writing", "waiting", "leaving", "lingering", "closed"}

// Shared contains the settings and counters of all conversations of a server.
type Shared struct {
	// Constant fields.
	MaxJobSize   int           // maximum size of a body, in bytes
	Compat       wire.Compat   // version of beanstalkd to imitate
	IdleTimeout  time.Duration // maximum silence between commands; not positive means no limit
	StallTimeout time.Duration // maximum time without progress within a command or with replies; not positive means no limit
	Trace        *slog.Logger  // receives each command and reply, at level debug; nil disables this

	// Access identifies clients. It can be nil if authentication is off; see Admit.
	Access *access.Control

	// Refused is called for each refused token, and for each command for which the client
	// lacks rights, with the tubes on which it lacks them. It is called within turns and
	// must not block. It can be nil.
	Refused func(c *Conversation, what string, tubes []string)

	// PutRefused is called for each put that is refused, with the reply and the size of
	// its body, or zero if the size is unknown. It is called within turns and must not
	// block. It can be nil.
	PutRefused func(c *Conversation, reply wire.Word, bytes uint32)

	// Changed is called for each effect of a command on a tube or on many jobs. what
	// contains names and values for the log. It is called within turns and must not
	// block. It can be nil.
	Changed func(c *Conversation, command wire.Op, what ...any)

	// Memory limits the total memory of the conversations.
	Memory Memory

	// Stats returns the statistics for a client's stats command. It is called within
	// turns.
	Stats func(e *engine.Engine, commands *[wire.NumOps]uint64, asker Owner) *wire.ServerStats

	// The turn owns these fields: the number of commands by kind, as in stats; the number
	// of unsuccessful replies by word; and buffers.
	commands     [wire.NumOps]uint64
	unsuccessful [math.MaxUint8 + 1]uint64
	reserved     []engine.Job
	claims       []engine.Claim
	job          wire.JobStats  // scratch
	engine       *engine.Engine // the engine of the last recorded state

	broken atomic.Uint64 // number of replies that became INTERNAL_ERROR after their turn
}

// Commands returns the number of commands by kind. It must be called within a turn.
func (s *Shared) Commands() *[wire.NumOps]uint64 { return &s.commands }

// Unsuccessful returns the number of unsuccessful commands with this reply. It does not
// count reserves that waited. It must be called within a turn.
func (s *Shared) Unsuccessful(w wire.Word) uint64 {
	n := s.unsuccessful[w]
	if w == wire.InternalError {
		n += s.broken.Load()
	}
	return n
}

func (s *Shared) newParser() wire.Parser {
	return wire.Parser{MaxBody: s.MaxJobSize, Compat: s.Compat}
}

// resetParser makes the parser start at the beginning of the buffered input.
func (c *Conversation) resetParser() {
	c.parser = c.shared.newParser()
	c.limitParser()
}

// An Owner is the driver of a conversation.
type Owner interface {
	// WaitOver is called within a turn when a wait ends. It must call Answer. When the
	// turn is settled, the driver must call Answered.
	engine.Waiter

	// Unacknowledged returns the number of written bytes that the client's kernel has not
	// acknowledged, or a negative number if it is unknown. It is called in the states
	// Writing and Lingering.
	Unacknowledged() int

	// Dismiss makes the driver end the conversation soon. It is safe for concurrent use.
	Dismiss(reason error)
}

// A Conversation is the protocol state of one client. Its driver owns it, and lends it to
// a turn as part of a batch. It must not be copied.
type Conversation struct {
	// Constant after New.
	shared *Shared
	client string
	owner  Owner

	state   State
	share   uint8 // maximum number of commands in the next turn; reduced if the last turn had no time for all commands
	closing closing
	sess    *engine.Session
	parser  wire.Parser

	in   input       // received input that is not executed
	long longCommand // a command that continues in the next turn
	last lastCommand // last executed command; the turn owns it
	wait wait        // wait of a reserve

	want   *want   // requested facts, or nil; the turn owns it
	record *record // nil if the conversation cannot be resumed
	out    output  // replies to write

	progress  progress
	holding   Holding
	alongside int64 // bytes of input that the driver holds

	terms    *access.ListenerPolicy // requirements of the listener; nil means all rights
	identity *access.Identity       // identity of the client; nil without terms
	stranger bool                   // admitted with requirements, but not identified
}

// New returns a conversation. client is the name of the client in the trace.
func New(shared *Shared, owner Owner, client string) Conversation {
	return Conversation{shared: shared, owner: owner, client: client, parser: shared.newParser(), share: maxCommands}
}

// State returns the state of the conversation.
func (c *Conversation) State() State { return c.state }

// Owner returns the owner passed to New.
func (c *Conversation) Owner() Owner { return c.owner }

// Client returns the name passed to New.
func (c *Conversation) Client() string { return c.client }

// Using returns the tube that the client uses. It must be called within a turn.
func (c *Conversation) Using() string { return c.sess.Using() }

// Identity returns the name of the client's identity, or "" if it has none. It must be
// called within a turn.
func (c *Conversation) Identity() string {
	if c.identity == nil {
		return ""
	}
	return c.identity.Name()
}

// A lastCommand is a command with its start time.
type lastCommand struct {
	op wire.Op
	at int64 // time in ns on the engine's clock
}

// LastCommand returns the last command and its start time on the engine's clock. ok is
// false if there was none. It must be called within a turn.
func (c *Conversation) LastCommand() (op wire.Op, at int64, ok bool) {
	return c.last.op, c.last.at, c.last != lastCommand{}
}

// Opened returns the time of the call of Open.
func (c *Conversation) Opened() int64 { return c.progress.opened }

// Memory returns the sizes of the buffers for input and for replies, in bytes. It does
// not count large bodies to which replies refer.
func (c *Conversation) Memory() (input, replies int) {
	return cap(c.in.buf), cap(c.out.bytes) + cap(c.wait.answer.bytes)
}

// Open starts the timeouts of a new conversation.
func (c *Conversation) Open(now int64) { c.progress.at, c.progress.opened = now, now }

// OpenSession opens the session of a conversation after Open, within a turn.
func (c *Conversation) OpenSession(e *engine.Engine) { c.sess = e.Open(c.owner) }

// Start starts the conversation after the turn of OpenSession.
func (c *Conversation) Start() { c.proceed() }

// Unread reports whether some received input has not been executed. If so, the driver
// must read into Space; otherwise, into its own buffer.
func (c *Conversation) Unread() bool { return !c.in.empty() }

// Receive processes input that the driver has read into its own buffer. In the state
// Reading, there must be no unread input. Receive adds complete commands to
// the batch, and the driver must not change the buffer until TurnOver. In the state
// Waiting, Receive copies the input for later.
func (c *Conversation) Receive(b *Batch, now int64, input []byte) {
	c.received(now, len(input))
	if c.state == Waiting {
		c.in.append(input)
		c.account()
		return
	}
	c.parse(b, now, input)
}

// Space returns a buffer for the driver to read into after unread input; see Filled.
func (c *Conversation) Space() []byte { return c.in.space(c.parser.Need()) }

// Filled must be called in the state Reading after n bytes were read into Space.
func (c *Conversation) Filled(now int64, n int) {
	c.received(now, n)
	c.in.filled(n)
	if n > 0 {
		c.state, c.in.more = Ready, true
	}
}

// parse adds a task with the complete commands in the input. fresh is the driver's
// buffer, or nil.
func (c *Conversation) parse(b *Batch, now int64, fresh []byte) {
	buf := fresh
	if fresh == nil {
		buf = c.in.unread()
	}
	if c.closing.phase == unheard && len(buf) > 0 {
		c.closing.phase = open
		if err := foreign(buf); err != nil {
			c.leave(b, err)
			return
		}
	}
	t := task{c: c, do: execute, from: len(b.commands), fresh: fresh}
	for range c.share {
		if t.parsed == len(buf) {
			break
		}
		cmd := b.another()
		n, ok := c.parser.Next(buf[t.parsed:], &cmd.Command)
		t.parsed += n
		if !ok {
			b.commands = b.commands[:len(b.commands)-1]
			break
		}
		cmd.end = t.parsed
		b.asked |= 1 << cmd.Op
		if c.terms != nil {
			cmd.identity = c.identify(&cmd.Command)
		}
		if c.shared.Trace != nil {
			c.shared.Trace.Debug("command", "client", c.client, "verb", cmd.Op)
		}
	}
	t.to = len(b.commands)
	t.more = t.to-t.from == int(c.share)
	if t.to > t.from {
		c.progress.made(now)
		b.tasks = append(b.tasks, t)
		c.state = Executing
		return
	}
	c.keep(fresh, t.parsed)
	c.in.more = t.more && !c.in.empty()
	c.proceed()
}

// foreign returns an error if the first bytes of a connection belong to another protocol.
// Such input must not be executed: a TLS hello contains names that a web page can choose.
// After a proxy header, the client would match each reply to the wrong command.
func foreign(input []byte) error {
	switch first := input[0]; {
	case first == 0x16:
		return ErrTLS
	case proxyproto.Begins(input):
		return ErrProxy
	case first < ' ' && first != '\r' && first != '\n' || first > '~':
		return ErrForeign
	}
	return nil
}

// keep removes the first n bytes of the input, which were executed, and keeps the rest.
func (c *Conversation) keep(fresh []byte, n int) {
	switch {
	case fresh == nil:
		c.in.consume(n)
	case n < len(fresh):
		c.in.append(fresh[n:])
	}
	if c.in.buf != nil && c.in.empty() {
		c.in.free()
	}
}

// EndInput must be called at the end of the client's input. Complete commands are still
// executed.
func (c *Conversation) EndInput(b *Batch) {
	c.HangUp(b)
	c.closing.phase = max(c.closing.phase, noInput)
	if c.state == Reading {
		c.proceed()
	}
}

// HangUp must be called when the client has disconnected. It ends the client's waiting
// reserve. The driver can still have unread input.
func (c *Conversation) HangUp(b *Batch) {
	if c.wait.phase != noWait && c.closing.phase < hungUp {
		c.closing.phase = hungUp
		b.tasks = append(b.tasks, task{c: c, do: halfClose})
	}
}

// HasHungUp reports whether HangUp or EndInput was called during a wait.
func (c *Conversation) HasHungUp() bool { return c.closing.phase >= hungUp }

// AheadIsFull reports whether MaxAhead bytes have been read after a waiting reserve.
func (c *Conversation) AheadIsFull() bool { return c.in.len() >= MaxAhead }

// Answer receives the outcome of a waiting reserve. It is called within the turn that
// ends the wait, which can belong to another caller.
func (c *Conversation) Answer(job engine.Job, o engine.Outcome) {
	a := &c.wait.answer
	switch {
	case o != engine.OK:
		a.bytes = wire.AppendWord(a.bytes, outcomeWords[o])
	case c.wait.batch:
		a.batch([]engine.Job{job}, c.want)
	default:
		a.job(wire.Reserved, job, c.want)
	}
	if c.shared.Trace != nil {
		c.trace(a.bytes)
	}
	if r := c.record; r != nil {
		r.answer = c.appendState(c.shared.engine, r.answer[:0], false)
	}
}

// Answered must be called when the turn of Answer is settled. It sends the reply even if
// the turn's changes are not durable, because the reply promises nothing about the log.
// After [broker.ErrDeposed] it does not send the reply, because the job might not exist.
func (c *Conversation) Answered(now int64, err error) {
	switch {
	case c.wait.phase == noWait, c.state == Leaving, c.state == Closed:
		return // the conversation has already ended
	case errors.Is(err, broker.ErrDeposed) && c.record != nil && c.state == Waiting:
		c.wait.answer = output{} // the reserve can continue to wait on the next leader
		return
	case errors.Is(err, broker.ErrDeposed):
		c.abandon(err)
		return
	}
	c.wait.phase = answered
	c.progress.at = now
	if c.state == Waiting || c.state == Writing {
		c.endWait()
		c.proceed()
	}
}

// endWait continues the conversation after a wait.
func (c *Conversation) endWait() {
	c.wait.end(&c.out)
	if r := c.record; r != nil {
		r.state, r.answer, r.recorded = r.answer, r.state, false
	}
	c.in.more = !c.in.empty()
}

// settle is called in the state Settling when the turn of the conversation's commands is
// settled.
func (c *Conversation) settle() {
	if c.long.changes == unsettled {
		c.long.changes = settled
	}
	if c.wait.phase == answered {
		c.endWait()
	}
	c.proceed()
}

// proceed selects the next state when no operation is in progress.
func (c *Conversation) proceed() {
	if !c.out.empty() {
		c.state = Writing
		return
	}
	waits := c.wait.phase != noWait
	switch {
	case c.closing.phase == over && c.sess == nil:
		c.gone()
		return
	case waits && (c.closing.phase != noInput || c.closing.reason != ErrStopped): // after Stop, it does not wait
		c.state = Waiting
	case !waits && (c.in.more || c.long.command != nil):
		c.state = Ready
	case c.closing.phase >= noInput:
		c.closing.phase = over
		c.state = Ready
	default:
		c.state = Reading
	}
	c.out, c.progress.unacked = output{}, 0
	c.account()
}

// Output returns replies to write, in the state Writing. More replies can follow.
func (c *Conversation) Output() []byte { return c.out.next() }

// Wrote must be called after the first n bytes of Output were written. The driver must
// write at least once before it uses the batch again; the remaining bytes are then
// copied.
func (c *Conversation) Wrote(now int64, n int) {
	if n > 0 {
		c.progress.at = now
		c.progress.unacked += n
	}
	piece := len(c.out.next())
	if c.out.wrote(n); len(c.out.bytes) == 0 {
		c.proceed()
	}
	if n < piece { // the client currently accepts no more
		c.account()
	}
}
