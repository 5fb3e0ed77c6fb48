package main

import (
	"fmt"

	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

// A client stands in for a connection of the server.
type client struct {
	broker *broker.Broker
	caller *broker.Caller
	sess   *engine.Session
	parser wire.Parser
	cmds   []wire.Command // of the request
	out    []byte         // the replies to it, and of a wait that has ended since
}

func newClient(b *broker.Broker) *client {
	c := &client{broker: b, parser: wire.Parser{MaxBody: wire.DefaultMaxBody}}
	c.caller = b.NewCaller(c)
	must(b.Call(func(e *engine.Engine, _ int64) { c.sess = e.Open(c) }))
	return c
}

// send gives the server whole commands, in one turn.
func (c *client) send(in []byte) {
	c.cmds, c.out = c.cmds[:0], c.out[:0]
	for len(in) > 0 {
		c.cmds = append(c.cmds, wire.Command{})
		n, ok := c.parser.Next(in, &c.cmds[len(c.cmds)-1])
		if !ok {
			panic(fmt.Sprintf("driver: half a command: %q", in))
		}
		in = in[n:]
	}
	must(c.caller.Do())
}

// Apply implements broker.Request.
func (c *client) Apply(e *engine.Engine, now int64) int64 {
	for i := range c.cmds {
		c.command(e, now, &c.cmds[i])
		now++
	}
	return now
}

// WaitOver implements engine.Waiter.
func (c *client) WaitOver(job engine.Job, o engine.Outcome) {
	mustOK(o)
	c.out = wire.AppendReserved(c.out, job.ID, job.Body)
	c.broker.Await(c)
}

// Settled implements broker.Settler. The server would write to the socket now.
func (c *client) Settled(error) {}

// command does what internal/conversation does, for the verbs that scenarios
// have.
func (c *client) command(e *engine.Engine, now int64, cmd *wire.Command) {
	if cmd.Fault != wire.None {
		panic(fmt.Sprintf("driver: %v: %v", cmd.Op, cmd.Fault.Word()))
	}
	switch cmd.Op {
	case wire.Put:
		id, o := e.Put(now, c.sess, engine.Spec{Pri: cmd.Pri, Delay: cmd.Delay, TTR: cmd.TTR}, cmd.Body)
		mustOK(o)
		c.out = wire.AppendInserted(c.out, id)
	case wire.Reserve:
		job, o := e.Reserve(now, c.sess, engine.Forever)
		if o == engine.Waiting {
			return
		}
		mustOK(o)
		c.out = wire.AppendReserved(c.out, job.ID, job.Body)
	case wire.Delete:
		c.done(e.Delete(c.sess, cmd.ID), wire.Deleted)
	case wire.Release:
		c.done(e.Release(now, c.sess, cmd.ID, cmd.Pri, cmd.Delay), wire.Released)
	case wire.Bury:
		c.done(e.Bury(c.sess, cmd.ID, cmd.Pri), wire.Buried)
	case wire.Touch:
		c.done(e.Touch(now, c.sess, cmd.ID), wire.Touched)
	case wire.Kick:
		if n := e.Kick(now, c.sess, cmd.Count); n > 0 {
			c.out = wire.AppendKicked(c.out, uint64(n))
			return
		}
		panic("driver: nothing was kicked")
	case wire.Peek:
		job, o := e.Peek(cmd.ID)
		mustOK(o)
		c.out = wire.AppendFound(c.out, job.ID, job.Body)
	case wire.Use:
		e.Use(c.sess, cmd.Tube)
		c.out = wire.AppendUsing(c.out, c.sess.Using())
	case wire.Watch:
		n, _ := e.Watch(c.sess, cmd.Tube)
		c.out = wire.AppendWatching(c.out, n)
	case wire.Ignore:
		n, _ := e.Ignore(c.sess, cmd.Tube)
		c.out = wire.AppendWatching(c.out, n)
	default:
		panic(fmt.Sprintf("driver: no scenario has %v", cmd.Op))
	}
}

func (c *client) done(o engine.Outcome, success wire.Word) {
	mustOK(o)
	c.out = wire.AppendWord(c.out, success)
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
