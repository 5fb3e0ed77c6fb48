package main

import (
	"bytes"
	"fmt"

	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/conversation"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

// shared contains the settings of all conversations, as in a server with default
// settings.
var shared = conversation.Shared{MaxJobSize: wire.DefaultMaxBody}

// batchDeleted and batchReserved are the replies to batches whose jobs all exist.
var batchDeleted, batchReserved = []byte("DELETED_BATCH 10 0\r\n"), []byte("RESERVED_BATCH 10\r\n")

// A client is a connection to the server without a socket. It drives a conversation, as
// the event loops do.
type client struct {
	conversation.Conversation
	queue  *queue
	caller *broker.Caller
	batch  *conversation.Batch
}

func newClient(q *queue) *client {
	c := &client{queue: q, batch: conversation.NewBatch(4 << 10)}
	c.Conversation = conversation.New(&shared, c, "driver")
	c.caller = q.NewCaller(c)
	c.Open(q.now.Load())
	q.Call(func(e *engine.Engine, _ int64) { c.OpenSession(e) })
	c.Start()
	return c
}

// send executes complete commands in one turn. All must succeed, and only the last can
// wait for its reply.
func (c *client) send(in []byte) {
	if s := c.State(); s != conversation.Reading {
		panic(fmt.Sprintf("driver: the conversation is %v", s))
	}
	c.Receive(c.batch, c.queue.now.Load(), in)
	c.turn()
}

// turn runs a turn for the batch and reads the replies.
func (c *client) turn() {
	if settled, err := c.caller.Start(nil); err != nil || !settled { // syncs are off
		panic(fmt.Sprintf("driver: a turn is settled: %v, %v", settled, err))
	}
	c.batch.TurnOver()
	c.batch.Settle(nil)
	c.read()
	c.batch.Reset()
}

// read takes the replies in place of a socket. It recognizes failures by an underscore,
// because no successful reply in a scenario contains one, except for replies to batches.
func (c *client) read() {
	for c.State() == conversation.Writing {
		out := c.Output()
		if bytes.IndexByte(out, '_') >= 0 && !bytes.HasSuffix(out, batchDeleted) && !bytes.Contains(out, batchReserved) {
			panic(fmt.Sprintf("driver: replies %q", out))
		}
		c.Wrote(c.queue.now.Load(), len(out))
	}
}

// Apply implements broker.Request.
func (c *client) Apply(e *engine.Engine, now int64) (later int64) { return c.batch.Apply(e, now) }

// Unacknowledged implements conversation.Owner.
func (c *client) Unacknowledged() int { return 0 }

// Dismiss implements conversation.Owner.
func (c *client) Dismiss(reason error) { panic(reason) }

// WaitOver implements engine.Waiter.
func (c *client) WaitOver(job engine.Job, o engine.Outcome) {
	c.Answer(job, o)
	c.queue.Await(c)
}

// Settled implements broker.Settler.
func (c *client) Settled(err error) {
	must(err)
	c.Answered(c.queue.now.Load(), nil)
	c.read()
}

func mustOK(o engine.Outcome) {
	if o != engine.OK {
		panic(fmt.Sprintf("driver: outcome %d", o))
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
