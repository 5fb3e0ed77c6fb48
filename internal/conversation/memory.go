package conversation

import (
	"container/list"
	"errors"
	"sync"
)

// ErrMemory is why a conversation ends when the buffers of all clients take too much memory.
var ErrMemory = errors.New("the buffers of all clients take too much memory, and it has made no progress for longer than the others")

// leastHeld is how many bytes a conversation holds at least for Memory to know of it.
const leastHeld = 4 << 10

// nameHeader is what a name takes in a list of names, besides its bytes.
const nameHeader = 16

// Memory bounds what the buffers of all conversations hold together: input that is not
// executed, and replies that their clients do not take. When there is too much, the one that
// has made no progress for longest is dismissed. A body or a list of names that several
// replies refer to counts for each of them.
type Memory struct {
	// Max is how many bytes they may hold; not positive: any number. It is static.
	Max int64

	mu      sync.Mutex
	held    int64     // bytes
	holders list.List // of *Conversation, those that have made no progress for longest first
}

// Held returns how many bytes the buffers hold, of conversations that hold 4 KiB or more.
func (m *Memory) Held() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.held
}

// A holding is what Memory knows of a conversation. Its lock guards it.
type holding struct {
	bytes int64
	at    int64         // when the client made progress, ns
	place *list.Element // in Memory.holders; nil: not there
}

// account tells Memory what the conversation holds. The answer to a waiting reserve is not
// the driver's yet, and a small buffer before.
func (c *Conversation) account() {
	held := int64(cap(c.in.buf))
	if c.state == Writing {
		held += c.out.size()
	}
	if held < leastHeld && c.holding.bytes == 0 {
		return
	}
	c.shared.Memory.set(c, held)
}

// size returns how many bytes the replies hold.
func (o *output) size() (n int64) {
	if !o.borrowed {
		n = int64(cap(o.bytes))
	}
	if o.rest != nil {
		n += int64(len(o.rest.body) + o.rest.names.Bytes() + nameHeader*o.rest.names.Len())
	}
	return n
}

// set notes how much a conversation holds, and dismisses others, or it, if that is too much.
func (m *Memory) set(c *Conversation, held int64) {
	m.mu.Lock()
	if held < leastHeld {
		held = 0
	}
	h := &c.holding
	switch {
	case held == 0 && h.place != nil:
		m.holders.Remove(h.place)
		h.place = nil
	case held > 0 && h.place == nil:
		h.place = m.holders.PushBack(c)
	case held > 0 && h.at != c.progress.at:
		m.holders.MoveToBack(h.place)
	}
	m.held += held - h.bytes
	h.bytes, h.at = held, c.progress.at
	dismissed := m.makeRoom()
	m.mu.Unlock()
	for _, d := range dismissed {
		d.owner.Dismiss(ErrMemory)
	}
}

// makeRoom takes conversations away that are to be dismissed, with the lock held. What they
// hold does not count any more.
func (m *Memory) makeRoom() (dismissed []*Conversation) {
	for m.Max > 0 && m.held > m.Max && m.holders.Len() > 0 {
		c := m.holders.Remove(m.holders.Front()).(*Conversation)
		m.held -= c.holding.bytes
		c.holding.bytes, c.holding.place = 0, nil
		dismissed = append(dismissed, c)
	}
	return dismissed
}
