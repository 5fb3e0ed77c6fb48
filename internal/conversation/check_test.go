package conversation

import (
	"strings"
	"testing"
)

// Check reports each violated invariant.
func TestCheckReports(t *testing.T) {
	seen := make(map[string]bool)
	for _, test := range []struct {
		invariant string
		state     State
		do        func(c *Conversation)
	}{
		{"V1", Reading, func(c *Conversation) { c.out.bytes = []byte("x") }},
		{"V1", Writing, func(c *Conversation) { c.out = output{} }},
		{"V2", Reading, func(c *Conversation) { c.wait.phase = waiting }},
		{"V2", Waiting, func(c *Conversation) {}},
		{"V2", Executing, func(c *Conversation) { c.wait.phase, c.long.command = waiting, &sweep{} }},
		{"V3", Reading, func(c *Conversation) { c.wait.answer.bytes = []byte("x") }},
		{"V4", Executing, func(c *Conversation) { c.sess, c.closing.phase = nil, over; c.in.append([]byte("x")) }},
		{"V4", Reading, func(c *Conversation) { c.in.more = true }},
		{"V5", Reading, func(c *Conversation) { c.in.buf = make([]byte, 1) }},
		{"V5", Reading, func(c *Conversation) { c.wait.answer.bytes = make([]byte, 2*keptAnswer) }},
		{"V6", Writing, func(c *Conversation) { c.out.rest = &rest{next: 1} }},
		{"V7", Closed, func(c *Conversation) {}},
		{"V7", Lingering, func(c *Conversation) {}},
		{"V7", Reading, func(c *Conversation) { c.sess = nil }},
		{"V8", Waiting, func(c *Conversation) { c.wait.phase = waiting; c.in.append(make([]byte, 3*MaxAhead)) }},
		{"V9", Closed, func(c *Conversation) { c.holding.bytes = 1 }},
	} {
		seen[test.invariant] = true
		g := newDriver(t).connect()
		g.state = test.state
		test.do(&g.Conversation)
		if err := g.Check(); err == nil || !strings.Contains(err.Error(), test.invariant+":") {
			t.Errorf("%v: %v, want %s", test.state, err, test.invariant)
		}
	}
	if len(seen) != 9 {
		t.Errorf("the test violates %d invariants, want all 9", len(seen))
	}
}
