package conversation

import (
	"errors"
	"io"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

const (
	// maxCommands is how many commands of one conversation a turn executes at
	// most, so that a client that floods the server does not keep the others
	// waiting.
	maxCommands = 128

	// maxOut is how many bytes of replies a turn may leave with a conversation,
	// give or take one reply; they are written before it goes on.
	maxOut = 256 << 10

	// keptAnswer is the largest buffer for answers of waiting reserves that a
	// conversation keeps, in bytes.
	keptAnswer = 1 << 10
)

// MaxAhead is how many bytes behind a waiting reserve a driver may read, which it may
// have to do to notice that the client has gone. Then it reads no more.
const MaxAhead = 64 << 10

// A State is where a conversation stands, and what it wants of its driver.
type State uint8

const (
	Opening   State = iota // nothing: it has no session before the turn of its first batch
	Reading                // input: Receive, or Space and Filled
	Ready                  // a turn: Advance
	Executing              // nothing: it is in a batch whose turn is to come
	Settling               // nothing: its replies are not durable yet
	Writing                // that Output is written: Wrote
	Throttled              // a turn when it is time to Resume: Advance
	Waiting                // nothing but to hear when the client hangs up: a reserve waits
	Done                   // its end: End
	Leaving                // nothing: its session ends in the turn of a batch
	Closed                 // nothing any more
)

// String returns the name of a state in lower case.
func (s State) String() string { return stateNames[s] }

var stateNames = [...]string{"opening", "reading", "ready", "executing", "settling", "writing", "throttled", "waiting", "done", "leaving", "closed"}

// Why a conversation ends by itself; see Reason and Deadline.
var (
	ErrQuit    = errors.New("quit")
	ErrHTTP    = errors.New("spoke HTTP")
	ErrIdle    = errors.New("silent for longer than the idle timeout")
	ErrStalled = errors.New("stopped in the middle of a command for longer than the stall timeout")
	ErrNoAuth  = errors.New("did not prove who it is in time")
	ErrUnread  = errors.New("left replies unread for longer than the stall timeout")
)

// Shared is what all conversations of a server have in common.
type Shared struct {
	// Static.
	MaxJobSize   int           // largest body of a job, bytes
	Compat       wire.Compat   // the version of beanstalkd whose protocol is spoken
	IdleTimeout  time.Duration // how long a client may be silent between commands; not positive: for ever
	StallTimeout time.Duration // how long it may make no progress within one, or with replies; not positive: for ever
	Trace        *slog.Logger  // gets each command and reply, at level debug; nil: none

	// Access knows who clients are. Nil only if nobody is asked; see Admit.
	Access *access.Control

	// Refused is told of each command that a client may not give, and of each token
	// that does not let it in. It is called within turns, and must not block. Nil:
	// nobody is told.
	Refused func(c *Conversation, what string)

	// Stats returns what the command stats tells. It is called within turns.
	Stats func(e *engine.Engine, commands *[wire.NumOps]uint64) *wire.ServerStats

	// Owned by the turn: how often each command was given, as stats counts, and how
	// often each word was the reply that is not the one for success.
	commands     [wire.NumOps]uint64
	unsuccessful [math.MaxUint8 + 1]uint64

	broken atomic.Uint64 // replies that became INTERNAL_ERROR after their turn
}

// Commands returns how often each command was given. It is for turns.
func (s *Shared) Commands() *[wire.NumOps]uint64 { return &s.commands }

// Unsuccessful returns how often a word was the reply to a command that was not
// successful. The answers of reserves that have waited are not counted. It is for turns.
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

// resetParser makes the parser forget what it has seen of the input that is kept.
func (c *Conversation) resetParser() {
	c.parser = c.shared.newParser()
	c.limitParser()
}

// A Conversation is one client as the protocol sees it. It belongs to its driver,
// which lends it to the turn with a batch. Copying one is a mistake.
type Conversation struct {
	// Static after New.
	shared *Shared
	client string
	owner  engine.Waiter

	sess   *engine.Session
	parser wire.Parser
	in     input // received and not executed

	out  []byte // replies, or what is left of them to write
	rest *rest  // of the last reply in out; nil if that is whole
	long long   // command that goes on in the next turn; nil: none

	terms    *access.Terms    // on which the client was let in; nil: it may do everything
	identity *access.Identity // who the client is; nil without terms

	state      State
	locked     bool // the client must prove who it is before anything else
	shares     bool // out is a part of the batch's buffer
	more       bool // there may be whole commands in the input, or a long one goes on
	waiting    bool // a reserve has no answer yet, or one that is not in out
	answered   bool // the turn that answered the waiting reserve is settled
	unsettled  bool // the long command has made changes in the last turn
	failed     bool // changes of the long command could not be made durable
	quit       bool // the client has said so, or has lost its right to go on
	http       bool // the client has spoken HTTP
	eof        bool // the client will send nothing more
	halfClosed bool // the engine knows that, or will in the next turn

	limiter Limiter // nil: none
	credit  int     // tokens taken for commands that have not been executed
	resume  int64   // when those may be used; ns, 0: now

	opened   int64 // when the client came; ns
	progress int64 // when the client last made progress; ns
	dripped  int   // bytes that it has sent since, of a command that is not complete
	unacked  int   // bytes written that the client's kernel has not acknowledged, as far as the driver knows

	// The answer to a waiting reserve. It belongs to the turn that ends the wait,
	// and from the settlement of that turn on to the driver.
	answer struct {
		out  []byte
		rest *rest
	}
}

// New returns the conversation with a client. The engine tells owner when a wait
// ends; owner calls Answer then, and Answered later. The client's name is for the
// trace.
func New(shared *Shared, owner engine.Waiter, client string) Conversation {
	return Conversation{shared: shared, owner: owner, client: client, parser: shared.newParser()}
}

// State returns where the conversation stands.
func (c *Conversation) State() State { return c.state }

// Owner returns the owner that New was given.
func (c *Conversation) Owner() engine.Waiter { return c.owner }

// Client returns the name that New was given.
func (c *Conversation) Client() string { return c.client }

// Identity returns the name of who the client is; empty if that is not known. It is for
// turns.
func (c *Conversation) Identity() string {
	if c.identity == nil {
		return ""
	}
	return c.identity.Name()
}

// Opened returns when Open was called.
func (c *Conversation) Opened() int64 { return c.opened }

// Reason returns why the conversation is Done.
func (c *Conversation) Reason() error {
	switch {
	case c.http:
		return ErrHTTP
	case c.quit:
		return ErrQuit
	}
	return io.EOF
}

// Memory returns how many bytes the buffers for input and for replies have. A
// large body that a reply refers to is not among them.
func (c *Conversation) Memory() (input, replies int) {
	return cap(c.in.buf), cap(c.out) + cap(c.answer.out)
}

// Open makes the turn of the batch open a session.
func (c *Conversation) Open(b *Batch, now int64) {
	c.progress, c.opened = now, now
	b.tasks = append(b.tasks, task{c: c, do: open})
}

// End makes the turn of the batch end the session, whatever the state. What was
// not written is lost.
func (c *Conversation) End(b *Batch) {
	if c.state == Leaving || c.state == Closed {
		return
	}
	c.state = Leaving
	b.tasks = append(b.tasks, task{c: c, do: leave})
}

// Unread reports whether input was received that is not executed. Then the driver
// reads into Space; else it may read into a buffer of its own.
func (c *Conversation) Unread() bool { return !c.in.empty() }

// Receive takes input that the driver has read into a buffer of its own. In the
// states Opening and Reading, which must be without unread input, whole commands
// become a part of the batch, and the buffer must stay as it is until TurnOver. In
// the state Waiting it is copied, and kept for later.
func (c *Conversation) Receive(b *Batch, now int64, input []byte) {
	c.received(now, len(input))
	if c.state == Waiting {
		c.in.append(input)
		return
	}
	c.parse(b, now, input)
}

// Space returns room for the driver to read into; see Filled.
func (c *Conversation) Space() []byte { return c.in.space(c.parser.Need()) }

// Filled takes the first n bytes of Space, in the state Reading.
func (c *Conversation) Filled(now int64, n int) {
	c.received(now, n)
	c.in.filled(n)
	if n > 0 {
		c.state, c.more = Ready, true
	}
}

// Advance makes a conversation that is Ready, or Throttled no longer, a part of the
// batch, if a command is whole or goes on.
func (c *Conversation) Advance(b *Batch, now int64) {
	if c.state == Throttled {
		c.progress, c.resume = now, 0
	}
	if c.long != nil {
		b.tasks = append(b.tasks, task{c: c, do: execute, from: len(b.commands), to: len(b.commands)})
		c.state = Executing
		return
	}
	c.parse(b, now, nil)
}

// parse makes a task of the whole commands in what was received; fresh is nil, or
// the driver's buffer.
func (c *Conversation) parse(b *Batch, now int64, fresh []byte) {
	buf := fresh
	if fresh == nil {
		buf = c.in.unread()
	}
	t := task{c: c, do: execute, from: len(b.commands), fresh: fresh}
	limit := c.allowance(now)
	for range limit {
		if t.parsed == len(buf) {
			break
		}
		b.commands = append(b.commands, command{})
		cmd := &b.commands[len(b.commands)-1]
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
		if cmd.identity != nil {
			t.more = true // what follows takes tokens of that identity
			break
		}
	}
	t.to = len(b.commands)
	t.more = t.more || t.to-t.from == limit
	c.spend(now, t.to-t.from)
	if t.to > t.from {
		c.progress, c.dripped = now, 0
		b.tasks = append(b.tasks, t)
		c.state = Executing
		return
	}
	c.keep(fresh, t.parsed)
	c.more = t.more && !c.in.empty()
	if c.state != Opening || c.eof {
		c.proceed()
	}
}

// keep drops the first n bytes of the input, which are done with, and keeps the others.
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

// EndInput tells that the client will send nothing more. What it has sent is
// executed, but for a command that is not complete.
func (c *Conversation) EndInput(b *Batch) {
	c.eof = true
	switch {
	case c.waiting:
		c.HangUp(b)
	case c.state == Reading, c.state == Opening:
		c.proceed()
	}
}

// HangUp tells that the client has hung up: its reserve waits no longer. The driver
// may still have input to read that came before.
func (c *Conversation) HangUp(b *Batch) {
	if c.waiting && !c.halfClosed {
		c.halfClosed = true
		b.tasks = append(b.tasks, task{c: c, do: halfClose})
	}
}

// HasHungUp reports whether HangUp or EndInput was called during a wait.
func (c *Conversation) HasHungUp() bool { return c.halfClosed }

// AheadIsFull reports whether MaxAhead bytes behind a waiting reserve were read.
func (c *Conversation) AheadIsFull() bool { return c.in.len() >= MaxAhead }

// Answer takes the outcome of a waiting reserve. It is called within the turn that
// ends the wait, whoever's that is.
func (c *Conversation) Answer(job engine.Job, o engine.Outcome) {
	if o != engine.OK {
		c.answer.out = wire.AppendWord(c.answer.out, outcomeWords[o])
		return
	}
	c.answer.out, c.answer.rest = appendJob(c.answer.out, wire.Reserved, job)
}

// Answered tells that the turn that called Answer is settled. If its changes are
// not durable the answer goes out all the same: it promises nothing of the log.
func (c *Conversation) Answered(now int64) {
	if c.state == Leaving || c.state == Closed {
		return
	}
	c.answered = true
	c.progress = now
	c.mayResume(now)
	if c.state == Waiting || c.state == Writing {
		c.endWait()
		c.proceed()
	}
}

// endWait puts the answer behind the replies to what came before the reserve.
func (c *Conversation) endWait() {
	c.waiting, c.answered = false, false
	if len(c.out) == 0 {
		c.out = c.answer.out // its next use is after this was written
	} else {
		c.out = append(c.out, c.answer.out...)
	}
	c.rest, c.answer.rest = c.answer.rest, nil
	if c.answer.out = c.answer.out[:0]; cap(c.answer.out) > keptAnswer {
		c.answer.out = nil
	}
	c.more = !c.in.empty()
}

// settle tells that the turn of a batch with commands of the conversation is
// settled, in the state Settling.
func (c *Conversation) settle() {
	if c.answered {
		c.endWait()
	}
	c.proceed()
}

// proceed decides what comes next when nothing is under way.
func (c *Conversation) proceed() {
	switch {
	case len(c.out) > 0 || c.rest != nil:
		c.state = Writing
		return
	case c.quit:
		c.in.free()
		c.state = Done
	case c.waiting:
		c.state = Waiting
	case c.resume != 0 && c.long == nil && (c.more || !c.eof):
		c.state = Throttled
	case c.more:
		c.state = Ready
	case c.eof:
		c.state = Done
	default:
		c.state = Reading
	}
	c.out, c.shares, c.unacked = nil, false, 0
}

// Output returns replies to write, in the state Writing. There may be more when
// these are written.
func (c *Conversation) Output() []byte {
	if len(c.out) > 0 {
		return c.out
	}
	return c.rest.body
}

// Wrote tells that the client has taken the first n bytes of Output. The driver
// has to write once, at least, before it uses the batch again: what is left then
// is copied.
func (c *Conversation) Wrote(now int64, n int) {
	if c.shared.Trace != nil && n > 0 {
		c.shared.Trace.Debug("replies", "client", c.client, "bytes", n)
	}
	if n > 0 {
		c.progress = now
		c.unacked += n
	}
	c.mayResume(now)
	if len(c.out) > 0 {
		c.out = c.out[n:]
		if len(c.out) > 0 {
			if c.shares {
				c.out = append([]byte(nil), c.out...)
				c.shares = false
			}
			return
		}
		c.out, c.shares = nil, false
	} else {
		c.rest.body = c.rest.body[n:]
	}
	if c.rest != nil && len(c.rest.body) == 0 {
		c.continueReply()
	}
	c.proceed()
}
