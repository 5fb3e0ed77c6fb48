package conversation

import (
	"errors"
	"sync"

	"github.com/beanpole-mq/beanpole/internal/engine/heap"
)

// ErrMemory is the reason for ending the connection with the largest buffers when the
// buffers of all clients exceed the limit.
var ErrMemory = errors.New("the buffers of all clients use too much memory, and it used the most")

// leastHeld is the buffer size, in bytes, from which Memory tracks a conversation.
const leastHeld = 4 << 10

// nameHeader is the size of an entry in a list of names, without its text, in bytes.
const nameHeader = 16

// Memory limits the memory of all connections: unexecuted input, long commands in
// progress, and unwritten replies. If the total exceeds Max, Memory dismisses the
// connection that uses the most memory. A body or a list of names counts once for each
// reply that refers to it.
type Memory struct {
	// Max is the limit in bytes. Zero or a negative number means no limit. It must not
	// change.
	Max int64

	mu      sync.Mutex
	held    int64      // in bytes
	holders []*Holding // a heap
}

// Held returns the total size of the buffers, in bytes, of conversations that hold at
// least 4 KiB.
func (m *Memory) Held() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.held
}

// A Holding is the entry of a connection in Memory.
type Holding struct {
	counts bool // whether the last Set was not zero; owned by the caller of Set

	// Guarded by Memory.mu.
	owner interface{ Dismiss(reason error) }
	bytes int64
	index int // index in Memory.holders, from 1; 0 if absent
}

// Before implements heap.Element.
func (h *Holding) Before(o *Holding) bool { return h.bytes > o.bytes }

// Moved implements heap.Element.
func (h *Holding) Moved(index int) { h.index = index + 1 }

// account passes to Memory the number of bytes that the conversation holds, except the
// answer to a waiting reserve, which the turn owns.
func (c *Conversation) account() {
	held := int64(cap(c.in.buf)) + c.alongside + c.long.held
	if c.state == Writing || c.state == Settling {
		held += c.out.size()
	}
	if held >= leastHeld || c.holding.counts {
		c.shared.Memory.Set(&c.holding, c.owner, held)
	}
}

// Alongside sets the number of bytes of the client's input that the driver holds.
func (c *Conversation) Alongside(bytes int) {
	c.alongside = int64(bytes)
	c.account()
}

// size returns the memory of the replies, in bytes.
func (o *output) size() (n int64) {
	if n = int64(cap(o.bytes)); o.borrowed {
		n = int64(len(o.bytes)) // the batch cannot reuse its buffer before they are written
	}
	if o.rest != nil {
		n += int64(len(o.rest.body) + o.rest.names.Bytes() + nameHeader*o.rest.names.Len())
	}
	return n
}

// Set records the number of bytes that a connection holds. If the total is too large, it
// dismisses the connections that use the most memory. It is safe for concurrent use with
// different Holdings.
func (m *Memory) Set(h *Holding, owner interface{ Dismiss(reason error) }, held int64) {
	if held < leastHeld {
		held = 0
	}
	if held == 0 && !h.counts {
		return
	}
	h.counts = held > 0
	m.mu.Lock()
	h.owner = owner
	m.held += held - h.bytes
	h.bytes = held
	switch {
	case h.index == 0 && held > 0:
		heap.Push(&m.holders, h)
	case h.index > 0 && held == 0:
		m.remove(h)
	case h.index > 0:
		heap.Fix(m.holders, h.index-1)
	}
	var dismissed []*Holding
	for m.Max > 0 && m.held > m.Max && len(m.holders) > 0 {
		most := m.holders[0]
		m.held -= most.bytes // its memory no longer counts
		m.remove(most)
		dismissed = append(dismissed, most)
	}
	m.mu.Unlock()
	for _, d := range dismissed {
		d.owner.Dismiss(ErrMemory)
	}
}

// remove removes a connection. The caller holds the lock.
func (m *Memory) remove(h *Holding) {
	heap.Remove(&m.holders, h.index-1)
	h.bytes = 0
}
