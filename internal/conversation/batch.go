package conversation

import (
	"errors"
	"slices"

	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

// A Batch contains the commands of conversations for one turn, in order. A driver fills
// the batch and passes it to the broker, which calls Apply within the turn. Then the
// driver calls TurnOver and Settle. A buffer of the batch contains the replies. After
// they are written, the driver can reuse the batch.
type Batch struct {
	tasks    []task
	commands []command
	promises []span
	out      []byte
	replies  int    // in bytes
	asked    uint64 // one bit for each wire.Op in the batch
}

// An action is the work that a task requests from the turn.
type action uint8

const (
	execute   action = iota // execute commands
	halfClose               // the client ends its input
	leave                   // end the session
	expire                  // end the session of a silent client, unless it holds jobs
)

// A task is a conversation's request to a turn.
type task struct {
	c        *Conversation
	do       action
	from, to int    // the commands are Batch.commands[from:to]; none if a long command continues
	fresh    []byte // the driver's buffer with the commands; nil means c.in
	parsed   int    // number of bytes of that buffer to discard when all commands are executed
	more     bool   // more complete commands might follow; for expire, the session continues
	executed int    // number of executed commands
	ran      bool   // the turn has executed commands
	promised [2]int // the replies that depend on the log: Batch.promises[promised[0]:promised[1]]
}

// A command is a parsed command with the position of its end in the input.
type command struct {
	wire.Command
	end      int
	identity *access.Identity // identity of the token; nil if the token is unknown
}

// A span is the position of a reply in Conversation.out.
type span struct{ from, to int }

// NewBatch returns an empty batch. It keeps the replies in one buffer while they have at
// most size bytes.
func NewBatch(size int) *Batch { return &Batch{out: make([]byte, 0, size)} }

// Len returns the number of tasks. A conversation can have several.
func (b *Batch) Len() int { return len(b.tasks) }

// Commands returns the number of parsed commands.
func (b *Batch) Commands() int { return len(b.commands) }

// AsksForClients reports whether a command needs the number of clients.
func (b *Batch) AsksForClients() bool { return b.asked&(1<<wire.Stats|1<<wire.StatsTube) != 0 }

// Replies returns the size of the replies in bytes, after the turn.
func (b *Batch) Replies() int { return b.replies }

// Owner returns the owner of the conversation of task i.
func (b *Batch) Owner(i int) Owner { return b.tasks[i].c.owner }

// another adds an empty command for the caller to fill in.
func (b *Batch) another() *command {
	n := len(b.commands)
	if n == cap(b.commands) {
		b.commands = slices.Grow(b.commands, 1)
	}
	b.commands = b.commands[:n+1] // the commands after the end are zero or incomplete
	return &b.commands[n]
}

// Apply performs the tasks of the conversations and returns the time of the last one. The
// time advances by a nanosecond with each task. It is called within a turn.
func (b *Batch) Apply(e *engine.Engine, now int64) (later int64) {
	for i := range b.tasks {
		t := &b.tasks[i]
		switch t.do {
		case halfClose:
			e.HalfClose(t.c.sess)
		case leave:
			e.Close(now, t.c.sess)
		case expire:
			if t.more = t.c.sess.Holds(); !t.more {
				e.Close(now, t.c.sess)
			}
		case execute:
			now = b.execute(t, e, now)
			continue
		}
		now++
	}
	return now - 1
}

// execute executes the commands of a task, and returns the time of the next event. It
// writes replies to the batch's buffer while they fit.
func (b *Batch) execute(t *task, e *engine.Engine, now int64) (later int64) {
	c := t.c
	t.ran = true
	room := b.out[len(b.out):]
	c.out.bytes = room
	t.promised[0] = len(b.promises)
	t.executed, later = c.execute(b, e, now, b.commands[t.from:t.to])
	t.promised[1] = len(b.promises)
	if c.record != nil {
		c.recordState(e)
	}
	out := &c.out
	if out.borrowed = cap(out.bytes) == cap(room); out.borrowed {
		b.out = b.out[:len(b.out)+len(out.bytes)]
	}
	b.replies += len(out.bytes)
	out.bytes = out.bytes[:len(out.bytes):len(out.bytes)] // the bytes after it belong to other tasks
	return later
}

// TurnOver ends the turn. The driver calls it and can then reuse the buffers that it
// passed to Receive.
func (b *Batch) TurnOver() {
	for i := range b.tasks {
		switch t := &b.tasks[i]; t.do {
		case leave:
			t.c.wait = wait{}
			t.c.gone()
		case expire:
			t.c.expire(t.more)
		case execute:
			b.keepUnexecuted(t)
		}
	}
	clear(b.commands) // the commands refer to buffers
	b.commands, b.asked = b.commands[:0], 0
}

// keepUnexecuted copies the unexecuted part of a task's input.
func (b *Batch) keepUnexecuted(t *task) {
	c := t.c
	n := t.to - t.from
	more := n == 0 || t.more || c.long.command != nil || t.executed < n
	if t.executed < n {
		t.parsed = 0
		if t.executed > 0 {
			t.parsed = b.commands[t.from+t.executed-1].end
		}
		c.resetParser() // the parser will get that input again
	}
	if c.closing.phase == over {
		c.in.free()
	} else {
		c.keep(t.fresh, t.parsed)
		c.in.more = more && !c.in.empty()
	}
	if c.state == Executing {
		c.state = Settling
	}
	if c.long.held+c.out.size() >= leastHeld {
		c.account() // it can take long until the turn is settled
	}
	t.fresh = nil
}

// Settle must be called by the driver when the changes of the turn and of all earlier
// turns are durable, or have failed to become durable with err. Then the replies can be
// written. After [broker.ErrDeposed] there are no replies, and the conversations are
// closed, because the changes might not have happened.
func (b *Batch) Settle(err error) {
	if errors.Is(err, broker.ErrDeposed) {
		b.abandon(err)
		return
	}
	for i := range b.tasks {
		t := &b.tasks[i]
		if t.do != execute || t.c.state != Settling {
			continue // the client of a conversation that leaves reads no replies
		}
		if err != nil {
			b.fail(t)
		}
		t.c.settle()
	}
}

// abandon closes the conversations. A conversation that is already in another batch ends
// with that batch.
func (b *Batch) abandon(reason error) {
	for i := range b.tasks {
		t := &b.tasks[i]
		c := t.c
		if c.record != nil && c.state == Settling && t.do == execute && !t.ran {
			c.record.refused = true // until the driver ends it
			continue
		}
		switch c.state {
		case Settling, Waiting:
			c.abandon(reason)
		}
	}
}

// fail turns the replies of a task that depend on the log into errors.
func (b *Batch) fail(t *task) {
	c := t.c
	if c.long.changes == unsettled {
		c.long.changes = lost
	}
	promises := b.promises[t.promised[0]:t.promised[1]]
	if len(promises) == 0 {
		return
	}
	c.shared.broken.Add(uint64(len(promises)))
	in, at := c.out.bytes, 0
	out := make([]byte, 0, len(in))
	for _, s := range promises {
		out = append(out, in[at:s.from]...)
		out = wire.AppendWord(out, wire.InternalError)
		at = s.to
	}
	rest := c.out.rest
	if at == len(in) {
		rest = nil // it belonged to the last reply
	}
	c.out = output{bytes: append(out, in[at:]...), rest: rest}
}

// Reset empties the batch.
func (b *Batch) Reset() {
	clear(b.tasks)
	b.tasks, b.promises, b.out, b.replies = b.tasks[:0], b.promises[:0], b.out[:0], 0
}
