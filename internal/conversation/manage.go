package conversation

import (
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

// Commands for managing a queue, which beanstalkd does not have. Each can take several
// turns.

const (
	// defaultListed is the default number of jobs in a reply to list-jobs.
	defaultListed = 100

	// maxListed is the maximum number of jobs in such a reply. It keeps a reply below 300
	// KB.
	maxListed = 1000
)

// statesOf maps the states of package wire to those of the engine.
var statesOf = [...]engine.State{
	wire.StateReady: engine.Ready, wire.StateReserved: engine.Reserved, wire.StateDelayed: engine.Delayed, wire.StateBuried: engine.Buried,
}

// A listing is the command list-jobs.
type listing struct {
	engine.PageSearch
	cursor []byte // cursor after the last job
	data   []byte
}

func (c *Conversation) listJobs(e *engine.Engine, now int64, cmd *wire.Command) {
	after, err := engine.ParseCursor(string(cmd.Text))
	if err != nil {
		c.unsuccessful(wire.BadFormat)
		return
	}
	limit := int(min(cmd.Count, maxListed))
	if cmd.Count == 0 {
		limit = defaultListed
	}
	p, o := e.BeginPage(cmd.Tube, statesOf[cmd.State], after, limit)
	if c.failed(o) {
		return
	}
	c.begin(e, now, &listing{PageSearch: p, data: wire.AppendListedStart(nil)})
}

func (l *listing) proceed(c *Conversation, e *engine.Engine, now int64) (more bool) {
	more = e.ContinuePage(now, &l.PageSearch, func(st engine.JobStats, at engine.Cursor) {
		l.cursor = at.Append(l.cursor[:0])
		c.shared.job = jobStats(&st)
		e.Charge(listedWork)
		l.data = wire.AppendListed(l.data, &c.shared.job, l.cursor)
	})
	c.long.held = int64(cap(l.data)) + l.Memory()
	return more
}

func (l *listing) answer(c *Conversation) {
	c.out.bytes = wire.AppendNumber(c.out.bytes, wire.OK, uint64(len(l.data)))
	c.out.rest = &rest{body: l.data}
}

// A sweep is the command kick, flush-tube or move-jobs.
type sweep struct {
	engine.Sweep
	command  wire.Op
	reply    wire.Word
	tube, to string
	state    wire.State
}

func (c *Conversation) kick(e *engine.Engine, now int64, cmd *wire.Command) {
	c.begin(e, now, &sweep{Sweep: e.BeginKick(c.sess, cmd.Count), command: cmd.Op, reply: wire.Kicked, tube: c.sess.Using()})
}

func (c *Conversation) flushTube(e *engine.Engine, now int64, cmd *wire.Command) {
	w, o := e.BeginClear(cmd.Tube, statesOf[cmd.State], cmd.Count)
	if c.failed(o) {
		return
	}
	c.begin(e, now, &sweep{Sweep: w, command: cmd.Op, reply: wire.Flushed, tube: string(cmd.Tube), state: cmd.State})
}

func (c *Conversation) moveJobs(e *engine.Engine, now int64, cmd *wire.Command) {
	w, o := e.BeginMove(cmd.Tube, cmd.Text, statesOf[cmd.State], cmd.Count)
	if c.failed(o) {
		return
	}
	c.begin(e, now, &sweep{w, cmd.Op, wire.Moved, string(cmd.Tube), string(cmd.Text), cmd.State})
}

func (w *sweep) proceed(_ *Conversation, e *engine.Engine, now int64) bool {
	return e.ContinueSweep(now, &w.Sweep)
}

func (w *sweep) answer(c *Conversation) {
	if w.Done == 0 && w.Refused != engine.OK {
		c.unsuccessful(outcomeWords[w.Refused])
		return
	}
	if w.Done > 1 || w.Done == 1 && w.command != wire.Kick {
		about := []any{"tube", w.tube}
		if w.to != "" {
			about = append(about, "to", w.to)
		}
		if w.state != wire.AnyState {
			about = append(about, "state", w.state.String())
		}
		c.changed(w.command, append(about, "count", w.Done)...)
	}
	c.out.bytes = wire.AppendNumber(c.out.bytes, w.reply, w.Done)
}
