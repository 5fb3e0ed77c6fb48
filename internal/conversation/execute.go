package conversation

import (
	"bytes"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

// execute executes at least one of the commands. It stops when the client must wait, has
// quit or has enough replies, or when the turn has done enough work. The time advances by
// a nanosecond with each command.
func (c *Conversation) execute(b *Batch, e *engine.Engine, now int64, commands []command) (n int, later int64) {
	if c.long.command != nil {
		from, promises := len(c.out.bytes), e.Promises()
		c.continueLong(e, now)
		c.promise(b, from, e.Promises() > promises)
		if c.shared.Trace != nil {
			c.trace(c.out.bytes[from:])
		}
		now++
	}
	for n < len(commands) && c.ready() && len(c.out.bytes) < maxOut && (n == 0 || !e.Spent()) {
		from, promises := len(c.out.bytes), e.Promises()
		if c.terms == nil || c.passes(e, now, &commands[n]) {
			c.command(e, now, &commands[n].Command)
		}
		if c.record != nil {
			switch op := commands[n].Op; {
			case op == wire.Use, op == wire.Watch, op == wire.Ignore, op == wire.Want, op == wire.Auth, commands[n].identity != nil:
				c.record.changed = true
			}
		}
		c.promise(b, from, e.Promises() > promises)
		if c.shared.Trace != nil {
			c.trace(c.out.bytes[from:])
		}
		now++
		n++
	}
	if n > 0 {
		c.last = lastCommand{commands[n-1].Op, now - 1}
	}
	switch { // parse only as much as the turn has time for
	case n < len(commands) && c.ready():
		c.share = uint8(max(n, 1))
	case n >= int(c.share):
		c.share = uint8(min(2*n, maxCommands))
	}
	return n, now
}

// trace logs the first line of a reply. The reply is empty if the client waits.
func (c *Conversation) trace(reply []byte) {
	if line, _, ok := bytes.Cut(reply, []byte{'\r'}); ok {
		c.shared.Trace.Debug("reply", "client", c.client, "reply", string(line))
	}
}

// ready reports whether the previous commands permit the next one.
func (c *Conversation) ready() bool {
	return c.wait.phase == noWait && c.closing.phase != over && c.out.rest == nil && c.long.command == nil
}

// promise records that the reply starting at from depends on the log. There is no reply
// yet if the command continues in the next turn.
func (c *Conversation) promise(b *Batch, from int, promised bool) {
	switch {
	case !promised:
	case len(c.out.bytes) > from:
		b.promises = append(b.promises, span{from, len(c.out.bytes)})
	case c.long.command != nil && c.long.changes == settled:
		c.long.changes = unsettled
	}
}

// The work of commands outside the engine, in the engine's units. Each connection
// executes at least one command per pass. So 300 connections that flood the server with
// stats still delay the other clients by 3 ms or more, as they do in beanstalkd.
const (
	statsWork    = 110 // stats reads the clocks of the process and formats a hundred values
	listedWork   = 1   // per job of list-jobs, in addition to the search
	namesPerUnit = 16  // names of list-tubes per unit
)

// list replies with names. Formatting names while the client reads them takes no time of
// the turn.
func (c *Conversation) list(e *engine.Engine, names engine.Names) {
	e.Charge(min(names.Len(), shortList) / namesPerUnit)
	c.out.list(names)
}

func (c *Conversation) word(w wire.Word) { c.out.bytes = wire.AppendWord(c.out.bytes, w) }

// done appends the reply for success, or the reply for another outcome.
func (c *Conversation) done(o engine.Outcome, success wire.Word) {
	if !c.failed(o) {
		c.word(success)
	}
}

// failed reports whether an outcome is a failure. If so, it appends its word.
func (c *Conversation) failed(o engine.Outcome) bool {
	if o != engine.OK {
		c.unsuccessful(outcomeWords[o])
	}
	return o != engine.OK
}

// unsuccessful appends the word of an unsuccessful reply, and counts it.
func (c *Conversation) unsuccessful(w wire.Word) {
	c.shared.unsuccessful[w]++
	c.word(w)
}

var outcomeWords = [...]wire.Word{
	engine.NotFound:     wire.NotFound,
	engine.TimedOut:     wire.TimedOut,
	engine.DeadlineSoon: wire.DeadlineSoon,
	engine.Draining:     wire.Draining,
	engine.OutOfMemory:  wire.OutOfMemory,
	engine.TooBig:       wire.JobTooBig,
	engine.Failed:       wire.InternalError,
}

// command executes one command and appends its reply.
func (c *Conversation) command(e *engine.Engine, now int64, cmd *wire.Command) {
	if cmd.Counted {
		c.shared.commands[cmd.Op]++
	}
	if cmd.Fault != wire.None {
		switch cmd.Fault {
		case wire.FaultNoCRLF:
			e.SkipID(c.sess)
		case wire.FaultHTTP:
			c.endInTurn(e, now, ErrHTTP)
			return
		}
		if cmd.Op == wire.Put && c.shared.PutRefused != nil {
			c.shared.PutRefused(c, cmd.Fault.Word(), cmd.Count)
		}
		c.unsuccessful(cmd.Fault.Word())
		return
	}
	switch cmd.Op {
	case wire.Put:
		c.put(e, now, cmd)
	case wire.Reserve:
		c.reserve(e, now, engine.Forever)
	case wire.ReserveTimeout:
		timeout := int64(cmd.Timeout)
		if cmd.Timeout == wire.Forever {
			timeout = engine.Forever
		}
		c.reserve(e, now, timeout)
	case wire.ReserveBatch:
		c.reserveBatch(e, now, int64(cmd.Timeout), int(cmd.Count))
	case wire.ReserveJob:
		job, o := e.ReserveJob(now, c.sess, cmd.ID)
		c.job(wire.Reserved, job, o)
	case wire.Delete:
		c.done(e.Delete(c.sess, cmd.ID), wire.Deleted)
	case wire.DeleteBatch:
		c.deleteBatch(e, now, cmd.Text)
	case wire.Release:
		c.done(e.Release(now, c.sess, cmd.ID, cmd.Pri, cmd.Delay), wire.Released)
	case wire.Bury:
		c.done(e.Bury(c.sess, cmd.ID, cmd.Pri), wire.Buried)
	case wire.Note:
		c.done(e.Note(c.sess, cmd.ID, cmd.Text), wire.Noted)
	case wire.Touch:
		c.done(e.Touch(now, c.sess, cmd.ID), wire.Touched)
	case wire.Kick:
		c.kick(e, now, cmd)
	case wire.KickJob:
		c.done(e.KickJob(now, cmd.ID), wire.Kicked)
	case wire.Peek:
		job, o := e.Peek(cmd.ID)
		c.job(wire.Found, job, o)
	case wire.PeekReady:
		c.peek(e, engine.Ready)
	case wire.PeekDelayed:
		c.peek(e, engine.Delayed)
	case wire.PeekBuried:
		c.peek(e, engine.Buried)
	case wire.Use:
		if !c.failed(e.Use(c.sess, cmd.Tube)) {
			c.out.bytes = wire.AppendUsing(c.out.bytes, c.sess.Using())
		}
	case wire.Watch:
		c.watch(e, cmd.Tube)
	case wire.Ignore:
		c.ignore(e, cmd.Tube)
	case wire.PauseTube:
		o := e.Pause(now, cmd.Tube, cmd.Delay)
		if o == engine.OK {
			c.changed(cmd.Op, "tube", string(cmd.Tube), "seconds", cmd.Delay)
		}
		c.done(o, wire.Paused)
	case wire.ListTubes:
		c.list(e, e.TubeNames())
	case wire.ListTubesWatched:
		c.list(e, c.sess.WatchedNames())
	case wire.ListTubeUsed:
		c.out.bytes = wire.AppendUsing(c.out.bytes, c.sess.Using())
	case wire.ListJobs:
		c.listJobs(e, now, cmd)
	case wire.FlushTube:
		c.flushTube(e, now, cmd)
	case wire.MoveJobs:
		c.moveJobs(e, now, cmd)
	case wire.Stats:
		e.Charge(statsWork)
		c.out.bytes = wire.AppendStats(c.out.bytes, c.shared.Stats(e, &c.shared.commands, c.owner))
	case wire.StatsTube:
		c.statsTube(e, now, cmd.Tube)
	case wire.StatsJob:
		c.statsJob(e, now, cmd.ID)
	case wire.Caps:
		c.out.bytes = wire.AppendCaps(c.out.bytes)
	case wire.Want:
		c.want = nil
		if cmd.Count != 0 {
			c.want = &want{facts: wire.Facts(cmd.Count), engine: e, job: &c.shared.job}
		}
		c.word(wire.OK)
	case wire.Quit:
		c.endInTurn(e, now, ErrQuit)
	}
}

// changed calls Shared.Changed with the effect of a command on a tube or on many jobs.
func (c *Conversation) changed(command wire.Op, what ...any) {
	if c.shared.Changed != nil {
		c.shared.Changed(c, command, what...)
	}
}

func (c *Conversation) put(e *engine.Engine, now int64, cmd *wire.Command) {
	id, o := e.Put(now, c.sess, engine.Spec{Pri: cmd.Pri, Delay: cmd.Delay, TTR: cmd.TTR}, cmd.Body)
	if o != engine.OK && o != engine.Duplicate {
		c.unsuccessful(outcomeWords[o])
		return
	}
	c.out.bytes = wire.AppendNumber(c.out.bytes, wire.Inserted, id)
}

func (c *Conversation) reserve(e *engine.Engine, now, timeout int64) {
	job, o := e.Reserve(now, c.sess, timeout)
	if o == engine.Waiting {
		c.wait.phase, c.wait.batch = waiting, false
		return
	}
	c.job(wire.Reserved, job, o)
}

// reserveBatch replies with up to n ready jobs. It waits if there is none and the timeout
// is not 0.
func (c *Conversation) reserveBatch(e *engine.Engine, now, timeout int64, n int) {
	jobs, o := e.ReserveBatch(now, c.sess, timeout, n, c.shared.reserved[:0])
	switch {
	case o == engine.Waiting:
		c.wait.phase, c.wait.batch = waiting, true
	case o != engine.OK && timeout != 0:
		c.unsuccessful(outcomeWords[o])
	default:
		c.out.batch(jobs, c.want)
	}
	clear(jobs) // the jobs refer to bodies
	c.shared.reserved = jobs[:0]
}

// peek replies with the first job of a state in the used tube.
func (c *Conversation) peek(e *engine.Engine, state engine.State) {
	job, o := e.PeekState(c.sess, state)
	c.job(wire.Found, job, o)
}

// job replies with a job, or with the reason why there is none.
func (c *Conversation) job(success wire.Word, job engine.Job, o engine.Outcome) {
	if !c.failed(o) {
		c.out.job(success, job, c.want)
	}
}

func (c *Conversation) watch(e *engine.Engine, tube []byte) {
	n, o := e.Watch(c.sess, tube)
	if c.failed(o) {
		return
	}
	c.out.bytes = wire.AppendNumber(c.out.bytes, wire.Watching, uint64(n))
}

func (c *Conversation) ignore(e *engine.Engine, tube []byte) {
	n, ok := e.Ignore(c.sess, tube)
	if !ok {
		c.unsuccessful(wire.NotIgnored)
		return
	}
	c.out.bytes = wire.AppendNumber(c.out.bytes, wire.Watching, uint64(n))
}
