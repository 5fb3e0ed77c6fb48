package conversation

import (
	"bytes"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

// A long command starts in one turn and continues in others. Until it ends, the
// conversation executes no other command.
type long interface {
	// proceed does the work of one turn, and reports whether work is left.
	proceed(c *Conversation, e *engine.Engine, now int64) (more bool)

	// answer appends the reply.
	answer(c *Conversation)
}

// A longCommand is a long command in progress.
type longCommand struct {
	command long // nil if there is none
	changes changes
	held    int64 // the command's memory, in bytes, for account
}

// changes is the state of the changes that a long command has made.
type changes uint8

const (
	settled   changes = iota // all changes are durable
	unsettled                // the last turn made changes
	lost                     // some changes could not be made durable
)

// begin starts a long command.
func (c *Conversation) begin(e *engine.Engine, now int64, l long) {
	c.long = longCommand{command: l}
	c.continueLong(e, now)
}

// continueLong does one turn's work of the long command, and answers at its end.
func (c *Conversation) continueLong(e *engine.Engine, now int64) {
	l := c.long
	if l.command.proceed(c, e, now) {
		return
	}
	c.long = longCommand{}
	if l.changes == lost {
		c.unsuccessful(wire.InternalError)
		return
	}
	l.command.answer(c)
}

// A deletion is the command delete-batch.
type deletion struct{ engine.DeleteBatch }

func (c *Conversation) deleteBatch(e *engine.Engine, now int64, list []byte) {
	d := &deletion{engine.DeleteBatch{IDs: make([]uint64, 0, bytes.Count(list, []byte(" "))+1)}}
	for id, rest, ok := wire.NextID(list); ok; id, rest, ok = wire.NextID(rest) {
		d.IDs = append(d.IDs, id)
	}
	if c.terms != nil && !c.identity.Unrestricted() {
		d.May = func(tube string) bool { return c.identity.Meets(wire.DeleteBatch.Need(), tube) }
	}
	c.begin(e, now, d)
}

func (d *deletion) proceed(c *Conversation, e *engine.Engine, now int64) bool {
	c.long.held = int64(8 * cap(d.IDs))
	return e.ContinueDeleteBatch(c.sess, &d.DeleteBatch)
}

func (d *deletion) answer(c *Conversation) {
	if d.Refused != engine.OK {
		c.unsuccessful(outcomeWords[d.Refused])
		return
	}
	c.out.bytes = wire.AppendDeletedBatch(c.out.bytes, d.Deleted, d.NotFound)
}
