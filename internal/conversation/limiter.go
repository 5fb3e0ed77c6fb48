package conversation

import (
	"net/netip"

	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/wire"
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

// A pace is how fast a client may give commands.
//
// A command that was parsed has its token. When there is none for the next one, the
// conversation takes one of the future and is Throttled until then. So clients that share
// a limiter take turns. A client that leaves gives its tokens back.
//
// Strangers share the limiter of their address. They must not keep others from
// authenticating, so a command that does so passes without a token if there is none.
type pace struct {
	limiter  Limiter // nil: none
	stranger bool    // nobody knows who the client is, and it can say so: it was let in on terms
	credit   int     // tokens taken for commands that have not been executed
	resume   int64   // when those may be used; ns, 0: now
}

// Limit bounds how many commands the client gives, until it says who it is, which may
// change the limiter. What is beyond is not refused: the client waits.
func (c *Conversation) Limit(l Limiter) { c.pace.limiter = l }

// allowance returns how many commands may be parsed now. If none, the conversation has
// a token of the future, unless it is a stranger's.
func (p *pace) allowance(now int64) int {
	if p.limiter == nil {
		return maxCommands
	}
	n := min(p.limiter.Tokens(now), maxCommands) + p.credit
	if n == 0 && !p.stranger && p.takeNext(now) {
		n = p.credit
	}
	return min(n, maxCommands)
}

// allowProof is allowance for a stranger for whom there is no token. Its next command
// needs none if that says who it is, or is not complete. For any other it takes the next
// token that there will be.
func (c *Conversation) allowProof(now int64, input []byte) (n int, free bool) {
	p := c.parser // a copy, for c.parser is to see this input again
	var cmd wire.Command
	if _, ok := p.Next(input, &cmd); !ok || c.identify(&cmd) != nil {
		return 1, true
	}
	if c.pace.takeNext(now) {
		return 1, false
	}
	return 0, false
}

// spend takes the tokens of n commands that were parsed, which may be all that there were
// for. If there is none left for another one, it takes that, too.
func (p *pace) spend(now int64, n int, all bool) {
	if p.limiter == nil || n == 0 {
		return
	}
	if n <= p.credit {
		p.credit -= n
	} else {
		p.limiter.Take(now, n-p.credit)
		p.credit = 0
	}
	if all && p.credit == 0 && !p.stranger && p.limiter.Tokens(now) == 0 {
		p.takeNext(now)
	}
}

// takeNext takes the next token that there will be, and reports whether it can be used
// now.
func (p *pace) takeNext(now int64) bool {
	p.credit = 1
	if p.resume = p.limiter.Take(now, 1); p.resume <= now {
		p.resume = 0
	}
	return p.resume == 0
}

// mayResume forgets that the conversation was to wait, if the time has come.
func (p *pace) mayResume(now int64) {
	if p.resume <= now {
		p.resume = 0
	}
}

// giveBack gives the tokens back that the conversation has not used.
func (p *pace) giveBack() {
	if p.limiter != nil && p.credit > 0 {
		p.limiter.GiveBack(p.credit)
	}
	p.credit, p.resume = 0, 0
}

// identified gives the conversation the limiter of an identity.
func (c *Conversation) identified(id *access.Identity) {
	c.pace.giveBack()
	c.pace.limiter, c.pace.stranger = c.shared.Access.LimiterOf(id, netip.Addr{}), false
}
