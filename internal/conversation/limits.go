package conversation

import (
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// A client makes progress when it sends leastProgress bytes of a command, or takes as
// many of its replies. One that does less in a StallTimeout could hold memory for ever.
const leastProgress = 4 << 10

// received notes that input has come. A client makes progress when a command
// begins, when one is complete, and every leastProgress bytes of a long one; not
// with every byte.
func (c *Conversation) received(now int64, n int) {
	if c.in.empty() && !c.parser.Discarding() {
		c.progress, c.dripped = now, 0
		return
	}
	if c.dripped += n; c.dripped >= leastProgress {
		c.progress, c.dripped = now, 0
	}
}

// Unacknowledged tells how many bytes of what was written the client's kernel has
// not acknowledged, in the state Writing. So a client that reads slowly and steadily
// stays connected, though the buffers on the way may be full for long.
func (c *Conversation) Unacknowledged(now int64, n int) {
	switch {
	case n >= c.unacked:
		c.unacked = n // the first look
	case c.unacked-n >= leastProgress, n == 0:
		c.progress, c.unacked = now, n
	}
}

// Deadline returns when the driver should end the conversation, in ns on its own
// clock, and why: engine.Never if it may stay as it is.
func (c *Conversation) Deadline() (at int64, reason error) {
	at, reason = c.patience()
	if by := c.opened + int64(AuthTimeout); c.locked && by < at {
		return by, ErrNoAuth
	}
	return at, reason
}

// patience is Deadline for a client that has proved who it is.
func (c *Conversation) patience() (at int64, reason error) {
	var limit time.Duration
	switch {
	case c.state == Writing:
		limit, reason = c.shared.StallTimeout, ErrUnread
	case c.state != Reading:
		return engine.Never, nil
	case c.in.empty() && !c.parser.Discarding():
		limit, reason = c.shared.IdleTimeout, ErrIdle
	default:
		limit, reason = c.shared.StallTimeout, ErrStalled
	}
	if limit <= 0 {
		return engine.Never, nil
	}
	return c.progress + int64(limit), reason
}
