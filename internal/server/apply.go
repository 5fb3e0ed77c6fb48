package server

import (
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

// A span is the place of a reply in conn.out.
type span struct{ from, to int }

// act does what the connection wants of the engine, within a turn; cmds are for
// execute. It returns how many of them were executed, and the time then.
func (c *conn) act(e *engine.Engine, now int64, a action, cmds []parsed) (executed int, later int64) {
	c.logged = c.logged[:0]
	switch a {
	case open:
		c.sess = e.Open(c.waiter)
	case execute:
		return c.execute(e, now, cmds)
	case halfClose:
		e.HalfClose(c.sess)
	case leave:
		e.Close(now, c.sess)
	}
	return 0, now
}

// execute applies the commands until the client has to wait, has quit, or has
// enough replies, or the turn has done enough work. Each happens a nanosecond
// after the one before.
func (c *conn) execute(e *engine.Engine, now int64, cmds []parsed) (n int, later int64) {
	if c.kick != nil {
		from, pending := len(c.out), e.Pending()
		c.proceed(e, now, *c.kick)
		c.note(from, e.Pending() > pending)
		now++
	}
	for n < len(cmds) && c.ready() && len(c.out) < maxOut && (n == 0 || !e.Spent()) {
		from, pending := len(c.out), e.Pending()
		c.command(e, now, &cmds[n].Command)
		c.note(from, e.Pending() > pending)
		now++
		n++
	}
	return n, now
}

// ready reports whether the next command may be executed, as far as those before
// are concerned.
func (c *conn) ready() bool { return !c.waiting && !c.quit && c.rest == nil && c.kick == nil }

// note notes whether the reply that begins at from promises anything. There is
// none yet if the command goes on in the next turn.
func (c *conn) note(from int, logged bool) {
	if logged && len(c.out) > from {
		c.logged = append(c.logged, span{from, len(c.out)})
	}
}

// failed tells, after the turn, that its changes are not durable: the replies
// that promise something is in the log become errors. A round may have two tasks
// for a connection, and then calls it twice.
func (c *conn) failed() {
	out := c.out
	c.out = make([]byte, 0, len(out))
	at := 0
	for _, s := range c.logged {
		c.out = append(c.out, out[at:s.from]...)
		c.word(wire.InternalError)
		at = s.to
	}
	c.out = append(c.out, out[at:]...)
	c.logged = c.logged[:0]
	if c.kick != nil {
		c.kick.failed = true
	}
}

func (c *conn) word(w wire.Word) { c.out = wire.AppendWord(c.out, w) }

// done appends the word for success, or that of any other outcome.
func (c *conn) done(o engine.Outcome, success wire.Word) {
	if o != engine.OK {
		success = outcomeWords[o]
	}
	c.word(success)
}

var outcomeWords = [...]wire.Word{
	engine.NotFound:     wire.NotFound,
	engine.TimedOut:     wire.TimedOut,
	engine.DeadlineSoon: wire.DeadlineSoon,
	engine.Draining:     wire.Draining,
	engine.OutOfMemory:  wire.OutOfMemory,
	engine.Failed:       wire.InternalError,
}

// command executes one command and appends its reply.
func (c *conn) command(e *engine.Engine, now int64, cmd *wire.Command) {
	if cmd.Counted {
		c.srv.commands[cmd.Op]++
	}
	if cmd.Fault != wire.None {
		if cmd.Fault == wire.FaultNoCRLF {
			e.SkipID(c.sess)
		}
		if cmd.Fault == wire.FaultHTTP {
			c.quit = true
			return
		}
		c.word(cmd.Fault.Word())
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
	case wire.ReserveJob:
		job, o := e.ReserveJob(now, c.sess, cmd.ID)
		if o == engine.OK {
			c.out = wire.AppendReserved(c.out, job.ID, job.Body)
			return
		}
		c.word(outcomeWords[o])
	case wire.Delete:
		c.done(e.Delete(c.sess, cmd.ID), wire.Deleted)
	case wire.Release:
		c.done(e.Release(now, c.sess, cmd.ID, cmd.Pri, cmd.Delay), wire.Released)
	case wire.Bury:
		c.done(e.Bury(c.sess, cmd.ID, cmd.Pri), wire.Buried)
	case wire.Touch:
		c.done(e.Touch(now, c.sess, cmd.ID), wire.Touched)
	case wire.Kick:
		c.proceed(e, now, kick{Kick: e.BeginKick(c.sess, cmd.Count)})
	case wire.KickJob:
		c.done(e.KickJob(now, cmd.ID), wire.Kicked)
	case wire.Peek:
		c.found(e.Peek(cmd.ID))
	case wire.PeekReady:
		c.found(e.PeekState(c.sess, engine.Ready))
	case wire.PeekDelayed:
		c.found(e.PeekState(c.sess, engine.Delayed))
	case wire.PeekBuried:
		c.found(e.PeekState(c.sess, engine.Buried))
	case wire.Use:
		e.Use(c.sess, cmd.Tube)
		c.out = wire.AppendUsing(c.out, c.sess.Using())
	case wire.Watch:
		c.out = wire.AppendWatching(c.out, e.Watch(c.sess, cmd.Tube))
	case wire.Ignore:
		c.ignore(e, cmd.Tube)
	case wire.PauseTube:
		c.done(e.Pause(now, cmd.Tube, cmd.Delay), wire.Paused)
	case wire.ListTubes:
		c.list(e.TubeNames())
	case wire.ListTubesWatched:
		c.list(c.sess.WatchedNames())
	case wire.ListTubeUsed:
		c.out = wire.AppendUsing(c.out, c.sess.Using())
	case wire.Stats:
		c.stats(e, now)
	case wire.StatsTube:
		c.statsTube(e, now, cmd.Tube)
	case wire.StatsJob:
		c.statsJob(e, now, cmd.ID)
	case wire.Quit:
		c.quit = true
	}
}

func (c *conn) put(e *engine.Engine, now int64, cmd *wire.Command) {
	id, o := e.Put(now, c.sess, engine.Spec{Pri: cmd.Pri, Delay: cmd.Delay, TTR: cmd.TTR}, cmd.Body)
	if o != engine.OK {
		c.word(outcomeWords[o])
		return
	}
	c.out = wire.AppendInserted(c.out, id)
}

func (c *conn) reserve(e *engine.Engine, now, timeout int64) {
	job, o := e.Reserve(now, c.sess, timeout)
	if o == engine.Waiting {
		c.waiting = true
		return
	}
	c.out = appendReserved(c.out, job, o)
}

func (c *conn) found(job engine.Job, o engine.Outcome) {
	if o != engine.OK {
		c.word(outcomeWords[o])
		return
	}
	c.out = wire.AppendFound(c.out, job.ID, job.Body)
}

func (c *conn) ignore(e *engine.Engine, tube []byte) {
	n, ok := e.Ignore(c.sess, tube)
	if !ok {
		c.word(wire.NotIgnored)
		return
	}
	c.out = wire.AppendWatching(c.out, n)
}

// appendReserved appends the reply of a reserve.
func appendReserved(dst []byte, job engine.Job, outcome engine.Outcome) []byte {
	if outcome == engine.OK {
		return wire.AppendReserved(dst, job.ID, job.Body)
	}
	return wire.AppendWord(dst, outcomeWords[outcome])
}
