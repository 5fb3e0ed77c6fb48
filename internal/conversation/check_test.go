package conversation

import (
	"strings"
	"testing"
)

// Check reports every invariant that is broken.
func TestCheckReports(t *testing.T) {
	for _, test := range []struct {
		invariant string
		state     State
		do        func(c *Conversation)
	}{
		{"V1", Reading, func(c *Conversation) { c.out = []byte("x") }},
		{"V1", Writing, func(c *Conversation) { c.out = nil }},
		{"V2", Reading, func(c *Conversation) { c.waiting = true }},
		{"V2", Waiting, func(c *Conversation) {}},
		{"V2", Executing, func(c *Conversation) { c.waiting, c.long = true, &kick{} }},
		{"V3", Reading, func(c *Conversation) { c.answered = true }},
		{"V4", Executing, func(c *Conversation) { c.quit = true; c.in.append([]byte("x")) }},
		{"V5", Reading, func(c *Conversation) { c.in.buf = make([]byte, 1) }},
		{"V5", Reading, func(c *Conversation) { c.answer.out = make([]byte, 2*keptAnswer) }},
		{"V6", Writing, func(c *Conversation) { c.rest = &rest{next: 1} }},
		{"V7", Closed, func(c *Conversation) {}},
		{"V7", Reading, func(c *Conversation) { c.sess = nil }},
		{"V8", Waiting, func(c *Conversation) { c.waiting = true; c.in.append(make([]byte, 3*MaxAhead)) }},
	} {
		g := newDesk(t).guest()
		g.state = test.state
		test.do(&g.Conversation)
		if err := g.Check(); err == nil || !strings.Contains(err.Error(), test.invariant+":") {
			t.Errorf("%v: %v, want %s", test.state, err, test.invariant)
		}
	}
}
