package conversation

import (
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// A client makes progress when it sends leastProgress bytes of a command, or receives as
// many bytes of its replies. A slower client could hold memory forever, so it is
// disconnected after StallTimeout.
const leastProgress = 4 << 10

// progress records the last actions of a client and their times, in ns of the driver's
// clock.
type progress struct {
	opened  int64 // time at which the client connected
	at      int64 // time of the last progress
	dripped int   // bytes of an incomplete command received since then
	asked   int64 // time at which the driver was last asked for the unacknowledged bytes
	unacked int   // bytes written that the client's kernel has not acknowledged, if known
}

func (p *progress) made(now int64) { p.at, p.dripped = now, 0 }

// received records that input has arrived. A client makes progress when a command starts,
// when it is complete, and every leastProgress bytes of a long command, but not with
// every byte.
func (c *Conversation) received(now int64, n int) {
	if c.isIdle() {
		c.progress.made(now)
		return
	}
	if c.progress.dripped += n; c.progress.dripped >= leastProgress {
		c.progress.made(now)
	}
}

// isIdle reports whether the client is between commands.
func (c *Conversation) isIdle() bool { return c.in.empty() && !c.parser.Discarding() }

// askUnacknowledged asks the driver for the number of unacknowledged bytes. So a client
// that reads slowly but steadily stays connected, even if all buffers are full.
func (c *Conversation) askUnacknowledged(now int64) {
	p, n := &c.progress, c.owner.Unacknowledged()
	switch {
	case n < 0: // only bytes accepted by the kernel count
	case n > p.unacked: // this is the first check, and the buffers contain earlier replies
		p.unacked = n
	case p.unacked-n >= leastProgress, n == 0:
		p.at, p.unacked = now, n
	}
	p.asked = now
	c.account()
}

// Next returns the time of the next call to Advance, in ns, or engine.Never. The time can
// be early, but not late. It can change with the state, and after Advance.
func (c *Conversation) Next() int64 {
	at, _ := c.deadline()
	switch c.state {
	case Ready:
		return 0
	case Lingering:
		return min(at, c.closing.checked+int64(lingerCheck))
	case Writing:
		if limit := int64(c.shared.StallTimeout); limit > 0 {
			return min(at, max(c.progress.at, c.progress.asked)+limit/4)
		}
	}
	return at
}

// Advance handles due timeouts in any state. In Ready it adds the next commands, or the
// end of the session, to the batch. If the client has exceeded a timeout, its session
// ends in the turn of the batch.
func (c *Conversation) Advance(b *Batch, now int64) {
	if c.state == Writing {
		c.askUnacknowledged(now)
	}
	if at, reason := c.deadline(); at <= now {
		if reason != ErrIdle {
			c.End(b, reason)
			return
		}
		c.progress.made(now) // if the client holds jobs, its silence counts from now on
		b.tasks = append(b.tasks, task{c: c, do: expire})
		c.state = Executing
		return
	}
	switch {
	case c.state != Ready:
	case c.closing.phase == over:
		c.leave(b, c.closing.reason)
	case c.long.command != nil:
		b.tasks = append(b.tasks, task{c: c, do: execute, from: len(b.commands), to: len(b.commands)})
		c.state = Executing
	default:
		c.parse(b, now, nil)
	}
}

// deadline returns the time at which the conversation will end the connection, and the
// reason. The time is engine.Never if there is no deadline.
func (c *Conversation) deadline() (at int64, reason error) {
	at, reason = c.patience()
	if by := c.progress.opened + int64(AuthTimeout); c.locked() && by < at && c.closing.phase != over {
		return by, ErrNoAuth
	}
	return at, reason
}

// patience returns the deadline of an authenticated client.
func (c *Conversation) patience() (at int64, reason error) {
	var limit time.Duration
	switch {
	case c.state == Lingering && c.closing.until != 0:
		return c.closing.until, c.closing.reason
	case c.state == Writing:
		limit, reason = c.shared.StallTimeout, ErrUnread
	case c.state != Reading:
		return engine.Never, nil
	case c.isIdle():
		limit, reason = c.shared.IdleTimeout, ErrIdle
	default:
		limit, reason = c.shared.StallTimeout, ErrStalled
	}
	if limit <= 0 {
		return engine.Never, nil
	}
	return c.progress.at + int64(limit), reason
}
