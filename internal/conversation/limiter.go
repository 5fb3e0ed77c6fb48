package conversation

import (
	"net/netip"

	"github.com/beanpole-mq/beanpole/internal/access"
)

// A Limiter bounds how many commands come in a second, from one conversation or from
// several that share it. Its methods may be called by any goroutine, and do not block.
// Times are those of the driver, in ns.
type Limiter interface {
	// Tokens returns how many commands may come now; a large number if there is no
	// limit.
	Tokens(now int64) int

	// Take takes tokens for n commands, those of the future if need be, and returns
	// when they may come.
	Take(now int64, n int) (at int64)

	// GiveBack gives tokens back that were taken and not used.
	GiveBack(n int)
}

// Limit bounds how many commands the client gives, until it says who it is, which may
// change the limiter. What is beyond is not refused: the client waits.
//
// A command that was parsed has its token. When there is none for the next one, the
// conversation takes one of the future and is Throttled until then. So clients that
// share a limiter take turns, and each that is woken has something to do. A client that goes
// before leaves its tokens to the others.
func (c *Conversation) Limit(l Limiter) { c.limiter = l }

// Resume returns when a conversation that is Throttled wants Advance.
func (c *Conversation) Resume() int64 { return c.resume }

// allowance returns how many commands may be parsed now. If none, the conversation has
// a token of the future.
func (c *Conversation) allowance(now int64) int {
	if c.limiter == nil {
		return maxCommands
	}
	n := min(c.limiter.Tokens(now), maxCommands) + c.credit
	if n == 0 && c.takeNext(now) {
		n = c.credit
	}
	return min(n, maxCommands)
}

// spend takes the tokens of n commands that were parsed. If there is none left for
// another one, it takes that, too.
func (c *Conversation) spend(now int64, n int) {
	if c.limiter == nil || n == 0 {
		return
	}
	if n <= c.credit {
		c.credit -= n
	} else {
		c.limiter.Take(now, n-c.credit)
		c.credit = 0
	}
	if c.credit == 0 && c.limiter.Tokens(now) == 0 {
		c.takeNext(now)
	}
}

// takeNext takes the next token that there will be, and reports whether it can be used
// now.
func (c *Conversation) takeNext(now int64) bool {
	c.credit = 1
	if c.resume = c.limiter.Take(now, 1); c.resume <= now {
		c.resume = 0
	}
	return c.resume == 0
}

// mayResume forgets that the conversation was to wait, if the time has come.
func (c *Conversation) mayResume(now int64) {
	if c.resume <= now {
		c.resume = 0
	}
}

// giveBack gives the tokens back that the conversation has not used.
func (c *Conversation) giveBack() {
	if c.limiter != nil && c.credit > 0 {
		c.limiter.GiveBack(c.credit)
	}
	c.credit, c.resume = 0, 0
}

// identified gives the conversation the limiter of an identity.
func (c *Conversation) identified(id *access.Identity) {
	c.giveBack()
	c.limiter = c.shared.Access.LimiterOf(id, netip.Addr{})
}
