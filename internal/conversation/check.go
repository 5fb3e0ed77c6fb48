package conversation

import (
	"errors"
	"fmt"
)

// Check tests every invariant of the conversation and reports all that are
// broken. It is for tests, and for its driver alone to call.
func (c *Conversation) Check() error {
	var broken []error
	assert := func(ok bool, format string, args ...any) {
		if !ok {
			broken = append(broken, fmt.Errorf("conversation: "+format, args...))
		}
	}
	toWrite := len(c.out) > 0 || c.rest != nil
	switch c.state {
	case Writing:
		assert(toWrite, "V1: writing, but there is nothing to write")
	case Executing, Settling, Leaving:
	default:
		assert(!toWrite, "V1: %v, with %d bytes of replies", c.state, len(c.out))
	}
	switch c.state {
	case Reading, Ready, Throttled, Done, Closed:
		assert(!c.waiting, "V2: %v, but a reserve waits", c.state)
	case Waiting:
		assert(c.waiting, "V2: waiting for no reserve")
	}
	assert(!c.waiting || c.long == nil, "V2: a reserve waits behind a command that goes on")
	assert(c.waiting || !c.answered, "V3: answered, but not waiting")
	assert(!c.quit || c.in.empty() && !c.more, "V4: there is input behind a quit")
	if c.state == Reading && c.in.empty() {
		assert(c.in.asked || c.in.buf == nil, "V5: idle, with a buffer of %d bytes", len(c.in.buf))
		assert(c.out == nil && cap(c.answer.out) <= keptAnswer, "V5: idle, with buffers for replies of %d and %d bytes", cap(c.out), cap(c.answer.out))
	}
	if r := c.rest; r != nil && c.state != Leaving {
		assert(len(r.body) > 0 || r.next <= r.names.Len(), "V6: a reply goes on that is over")
	}
	switch c.state {
	case Opening, Leaving, Executing, Done: // Executing, when it opens in the same turn
	default:
		assert((c.sess == nil) == (c.state == Closed), "V7: %v, with a session: %v", c.state, c.sess != nil)
	}
	if c.waiting {
		assert(c.in.len() < MaxAhead+max(stepInput, len(c.in.buf)/2), "V8: %d bytes behind a waiting reserve", c.in.len())
	}
	if c.state == Throttled {
		assert(c.resume != 0 && c.credit > 0 && c.long == nil, "V9: throttled until %d, with %d tokens", c.resume, c.credit)
	}
	return errors.Join(broken...)
}
