package conversation

import (
	"errors"
	"fmt"
)

// Check tests the invariants of the conversation and returns all violations. It is for
// tests, and only the driver can call it.
func (c *Conversation) Check() error {
	var broken []error
	assert := func(ok bool, format string, args ...any) {
		if !ok {
			broken = append(broken, fmt.Errorf("conversation: "+format, args...))
		}
	}
	switch c.state {
	case Writing:
		assert(!c.out.empty(), "V1: writing, but there is nothing to write")
	case Executing, Settling, Leaving:
	default:
		assert(c.out.empty(), "V1: %v, with %d bytes of replies", c.state, len(c.out.bytes))
	}
	switch c.state {
	case Reading, Ready, Lingering, Closed:
		assert(c.wait.phase == noWait || c.closing.phase == over, "V2: %v, but a reserve waits", c.state)
	case Waiting:
		assert(c.wait.phase == waiting, "V2: waiting for no reserve")
	}
	assert(c.wait.phase == noWait || c.long.command == nil, "V2: a reserve waits after an incomplete command")
	assert(c.wait.phase != noWait || len(c.wait.answer.bytes) == 0 && c.wait.answer.rest == nil, "V3: an answer, but no wait")
	assert(c.closing.phase != over || c.in.empty() || c.sess != nil, "V4: there is input after the end of the session")
	assert(!c.in.more || !c.in.empty() || c.state == Leaving, "V4: commands in no input")
	if c.state == Reading && c.in.empty() {
		assert(c.in.buf == nil, "V5: idle, with a buffer of %d bytes", len(c.in.buf))
		assert(c.out.bytes == nil && cap(c.wait.answer.bytes) <= keptAnswer, "V5: idle, with buffers for replies of %d and %d bytes", cap(c.out.bytes), cap(c.wait.answer.bytes))
	}
	if r := c.out.rest; r != nil && c.state != Leaving {
		assert(len(r.body) > 0 || r.next <= r.names.Len(), "V6: a complete reply continues")
	}
	switch c.state {
	case Lingering, Closed:
		assert(c.sess == nil && c.closing.phase == over, "V7: %v, with a session", c.state)
	case Opening, Leaving:
	default:
		assert(c.sess != nil || c.closing.phase == over, "V7: %v, without a session", c.state)
	}
	if c.wait.phase != noWait {
		assert(c.in.len() < MaxAhead+max(stepInput, len(c.in.buf)/2), "V8: %d bytes after a waiting reserve", c.in.len())
	}
	assert((c.holding.bytes > 0) == (c.holding.index > 0) && (c.holding.bytes == 0 || c.state != Closed), "V9: %v, and it counts for %d bytes", c.state, c.holding.bytes)
	return errors.Join(broken...)
}
