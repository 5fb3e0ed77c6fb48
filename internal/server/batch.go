package server

import (
	"sync"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

// maxBatch is how many commands of one connection a turn executes at most, so
// that a client that floods the server does not keep the others waiting.
const maxBatch = 128

// A batch is commands that are parsed and not yet executed: cmds[next:n]. They
// refer to the input buffer of their connection.
type batch struct {
	cmds    [maxBatch]wire.Command
	next, n int
}

// A connection has a batch only while it executes, for there may be many idle
// connections.
var batches = sync.Pool{New: func() any { return new(batch) }}

func getBatch() *batch {
	b := batches.Get().(*batch)
	b.next, b.n = 0, 0
	return b
}

func (b *batch) put() {
	if b != nil {
		clear(b.cmds[:b.n]) // it must not keep input buffers alive
		batches.Put(b)
	}
}
