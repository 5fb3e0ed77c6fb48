package conversation

import (
	"errors"
	"io"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// Reasons for which a conversation ends a connection; see Reason.
var (
	ErrQuit         = errors.New("quit")
	ErrHTTP         = errors.New("spoke HTTP")
	ErrTLS          = errors.New("started a TLS handshake on a listener without TLS")
	ErrProxy        = errors.New("started with an unexpected PROXY protocol header")
	ErrForeign      = errors.New("started with bytes of another protocol")
	ErrUnauthorized = errors.New("was refused before it authenticated")
	ErrIdle         = errors.New("silent for longer than the idle timeout")
	ErrStalled      = errors.New("stopped in the middle of a command for longer than the stall timeout")
	ErrNoAuth       = errors.New("did not authenticate in time")
	ErrUnread       = errors.New("left replies unread for longer than the stall timeout")
	ErrStopped      = errors.New("the server stops")
	ErrPassedOn     = errors.New("the leader closed the connection")
)

const (
	// lingerTime is the maximum time for a client to read its last replies and close the
	// connection.
	lingerTime = 4 * time.Second

	// lingerCheck is the interval at which the driver checks for the acknowledgment of
	// the client's kernel, which can take 40 ms. The client itself can be busy for
	// longer.
	lingerCheck = 50 * time.Millisecond
)

// A closing is the progress of a conversation's end, with the reason.
type closing struct {
	phase   phase
	reason  error // nil if neither the conversation nor its input has ended
	until   int64 // end of Lingering in ns; 0 before Drained
	checked int64 // time of the last Drained in ns
}

// A phase is a part of a conversation's life. A conversation goes through the phases in
// order, and can skip some.
type phase uint8

const (
	unheard phase = iota // the client has sent no input
	open                 // the client can send more input
	hungUp               // the client has disconnected during a wait, and the engine is notified; more input can arrive
	noInput              // no more input is accepted, and received input is executed
	over                 // nothing more is executed: the session has ended, or will end in the next turn
)

// lingers reports whether the client gets time to read its last replies. If a connection
// is closed while input is unread, or if input arrives later, the client's kernel
// discards replies that the client has not read.
func (c *closing) lingers() bool {
	switch c.reason {
	case ErrQuit, ErrStopped, ErrUnauthorized, ErrHTTP, ErrPassedOn:
		return true
	}
	return false
}

// Reason returns the reason why the conversation ends or has ended.
func (c *Conversation) Reason() error {
	if c.closing.reason == nil {
		return io.EOF
	}
	return c.closing.reason
}

// endInTurn ends the session within a turn. Later events, even in this turn, find no
// session. The replies are still written.
func (c *Conversation) endInTurn(e *engine.Engine, now int64, reason error) {
	e.Close(now, c.sess)
	c.sess = nil
	c.closing = closing{phase: over, reason: reason}
}

// End ends the conversation in any state, because the connection has failed or must be
// closed at once. Unwritten replies are lost.
func (c *Conversation) End(b *Batch, reason error) {
	switch c.state {
	case Leaving, Closed:
	case Lingering:
		c.state = Closed
	default:
		c.leave(b, reason)
	}
}

// Stop ends the conversation after the client's commands are executed and answered. It
// does not wait for jobs.
func (c *Conversation) Stop(b *Batch) {
	switch c.state {
	case Leaving, Lingering, Closed:
	case Reading, Waiting:
		c.leave(b, ErrStopped)
	default:
		if c.closing.phase != over {
			c.closing = closing{phase: noInput, reason: ErrStopped}
		}
	}
}

// leave makes the turn of the batch end the session, unless an earlier turn has ended it.
func (c *Conversation) leave(b *Batch, reason error) {
	ended := c.closing.phase == over && c.sess == nil
	c.closing = closing{phase: over, reason: reason}
	if ended {
		c.gone()
		return
	}
	c.state = Leaving
	b.tasks = append(b.tasks, task{c: c, do: leave})
}

// A SessionEnd ends the session or the wait of a disconnected client before its driver
// does.
type SessionEnd struct {
	sess *engine.Session
	ends bool // whether all input of the client has been executed
}

// SessionEnd returns the SessionEnd of a disconnected client. ok is false if some of its
// commands are not executed yet; the driver then ends the session after them. unread
// reports whether the driver had unread input when the client disconnected. SessionEnd
// must be called on behalf of the driver.
func (c *Conversation) SessionEnd(unread bool) (d SessionEnd, ok bool) {
	switch c.state {
	case Waiting:
		return SessionEnd{c.sess, c.in.empty() && !unread}, true
	case Reading:
		ok = !unread
	case Ready:
		ok = c.closing.phase == over && c.sess != nil
	case Leaving:
		ok = c.sess != nil
	}
	return SessionEnd{c.sess, true}, ok
}

// Apply ends the session or the wait. It is called within a turn. The driver later does
// the same, without effect.
func (d SessionEnd) Apply(e *engine.Engine, now int64) {
	e.HalfClose(d.sess)
	if d.ends {
		e.Close(now, d.sess)
	}
}

// EndPassedOn ends the conversation of a client whose commands another server executed.
// The conversation owns the given replies, writes them and lingers.
func (c *Conversation) EndPassedOn(now int64, replies []byte) {
	c.progress.at = now
	c.closing = closing{phase: over, reason: ErrPassedOn}
	c.out.bytes = replies
	c.proceed()
	c.account()
}

// expire ends the conversation of a client that was silent for too long, unless goesOn is
// true.
func (c *Conversation) expire(goesOn bool) {
	switch {
	case c.state != Executing: // it is already leaving
	case goesOn:
		c.proceed()
	default:
		c.closing = closing{phase: over, reason: ErrIdle}
		c.gone()
	}
}

// abandon ends the conversation at once, without a reply, because its engine no longer
// belongs to the leader. A turn of that engine might be ending its wait at the same time.
func (c *Conversation) abandon(reason error) {
	c.closing = closing{phase: over, reason: reason}
	c.gone()
}

// gone frees the resources of a conversation whose session has ended and that has no
// reply to write.
func (c *Conversation) gone() {
	c.in.free()
	c.sess, c.out, c.long, c.alongside = nil, output{}, longCommand{}, 0
	if c.state = Closed; c.closing.lingers() {
		c.state = Lingering
	}
	c.account()
}

// Drained must be called in the state Lingering after n bytes of input, possibly zero,
// were read and discarded. ended is the error that ended the input, or nil. The first
// call reports whether the client gets time to read its replies; then the driver
// half-closes the connection. Lingering ends early if there is no input and the client's
// kernel has acknowledged all replies.
func (c *Conversation) Drained(now int64, n int, ended error) (halfClose bool) {
	if ended != nil || n == 0 && c.owner.Unacknowledged() <= 0 {
		c.state = Closed
		return false
	}
	first := c.closing.until == 0
	if first {
		c.closing.until = now + int64(lingerTime)
	}
	c.closing.checked = now
	return first
}
