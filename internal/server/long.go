package server

import (
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

// What is too long for one turn is begun within it and goes on after it. Until
// it is over nothing else of the connection is executed.

const (
	// shortList is how many names a list has at most that is formatted at once.
	shortList = 256

	// listPiece is how many bytes of a longer one are formatted at a time.
	listPiece = 64 << 10
)

// A listing is the rest of the reply to a list command, which is formatted while
// it is written. With 100,000 tubes that is over a megabyte.
type listing struct {
	names engine.Names
	next  int
}

// list answers with names.
func (c *conn) list(names engine.Names) {
	c.out = wire.AppendListStart(c.out, names.Len(), names.Bytes())
	c.rest = &listing{names: names}
	if names.Len() <= shortList {
		c.formatRest()
	}
}

// formatRest appends the next piece of what is left of a reply.
func (c *conn) formatRest() {
	l := c.rest
	for end := len(c.out) + listPiece; len(c.out) < end && l.next < l.names.Len(); l.next++ {
		c.out = wire.AppendListItem(c.out, l.names.At(l.next))
	}
	if l.next == l.names.Len() {
		c.out = wire.AppendListEnd(c.out)
		c.rest = nil
	}
}

// A kick is one that takes several turns.
type kick struct {
	engine.Kick
	failed bool // jobs that it has kicked are not durable
}

// proceed does as much of a kick as a turn should bear, and answers when that
// was all.
func (c *conn) proceed(e *engine.Engine, now int64, k kick) {
	if e.ContinueKick(now, c.sess, &k.Kick) {
		c.kick = &k
		return
	}
	c.kick = nil
	switch {
	case k.failed:
		c.word(wire.InternalError)
	case k.Kicked == 0 && k.Refused != engine.OK:
		c.word(outcomeWords[k.Refused])
	default:
		c.out = wire.AppendKicked(c.out, uint64(k.Kicked))
	}
}
