package conversation

import (
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

// A reply or a command that is too long for one turn begins in that turn and goes on
// after it. Until it is over, the conversation executes nothing else.

const (
	// shortList is how many names are formatted at once.
	shortList = 256

	// listPiece is how many bytes of a longer list are formatted at a time.
	listPiece = 64 << 10

	// A body of largeBody bytes or more is not copied into the reply. The engine
	// gives bodies above 128 KiB memory of their own, and never changes it; smaller
	// ones share pages, which are used again.
	largeBody = 128<<10 + 1
)

// A rest is what is left of a reply: names that are formatted while it is
// written, which with 100,000 tubes is over a megabyte, or a large body, or list of
// jobs.
type rest struct {
	body  []byte
	names engine.Names
	next  int
}

// list answers with names.
func (c *Conversation) list(names engine.Names) {
	c.out = wire.AppendListStart(c.out, names.Len(), names.Bytes())
	c.rest = &rest{names: names}
	if names.Len() <= shortList {
		c.continueReply()
	}
}

// continueReply appends the next piece of a reply, when all before is written.
func (c *Conversation) continueReply() {
	r := c.rest
	for end := len(c.out) + listPiece; len(c.out) < end && r.next < r.names.Len(); r.next++ {
		c.out = wire.AppendListItem(c.out, r.names.At(r.next))
	}
	if r.next == r.names.Len() {
		c.out = wire.AppendDataEnd(c.out)
		c.rest = nil
	}
}

// appendJob appends a reply with a job, or the part of it before a large body.
func appendJob(dst []byte, w wire.Word, job engine.Job) ([]byte, *rest) {
	if len(job.Body) < largeBody {
		return wire.AppendJob(dst, w, job.ID, job.Body), nil
	}
	return wire.AppendJobStart(dst, w, job.ID, len(job.Body)), &rest{body: job.Body}
}

// A long command may take several turns.
type long interface {
	// proceed does as much as a turn should bear, and reports whether there is more
	// to do.
	proceed(c *Conversation, e *engine.Engine, now int64) (more bool)

	// answer appends the reply.
	answer(c *Conversation)
}

// begin begins a long command.
func (c *Conversation) begin(e *engine.Engine, now int64, l long) {
	c.failed = false
	c.continueLong(e, now, l)
}

// continueLong does as much of a long command as a turn should bear, and answers when
// that was all.
func (c *Conversation) continueLong(e *engine.Engine, now int64, l long) {
	if l.proceed(c, e, now) {
		c.long = l
		return
	}
	c.long = nil
	if c.failed {
		c.unsuccessful(wire.InternalError)
		return
	}
	l.answer(c)
}

// A kick is the command kick.
type kick struct{ engine.Kick }

func (k *kick) proceed(c *Conversation, e *engine.Engine, now int64) bool {
	return e.ContinueKick(now, &k.Kick)
}

func (k *kick) answer(c *Conversation) {
	if k.Kicked == 0 && k.Refused != engine.OK {
		c.unsuccessful(outcomeWords[k.Refused])
		return
	}
	c.out = wire.AppendKicked(c.out, uint64(k.Kicked))
}
