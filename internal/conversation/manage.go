package conversation

import (
	"math"

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

// A sweep is the command flush-tube or move-jobs.
type sweep struct {
	sweeps  []engine.Sweep // one sweep for each state, in order
	left    uint64         // number of jobs that the sweeps can still process
	done    uint64         // number of jobs that the previous sweeps have processed
	refused engine.Outcome
	reply   wire.Word

	// The arguments of Shared.Changed.
	command wire.Op
	about   []any
}

func (c *Conversation) flushTube(e *engine.Engine, now int64, cmd *wire.Command) {
	states := []engine.State{engine.Ready, engine.Delayed, engine.Buried}
	if cmd.State != wire.AnyState {
		states = []engine.State{statesOf[cmd.State]}
	}
	w := newSweep(cmd, wire.Flushed)
	for _, state := range states {
		s, o := e.BeginClear(cmd.Tube, state)
		if c.failed(o) {
			return
		}
		w.sweeps = append(w.sweeps, s)
	}
	c.begin(e, now, w)
}

func (c *Conversation) moveJobs(e *engine.Engine, now int64, cmd *wire.Command) {
	s, o := e.BeginMove(cmd.Tube, cmd.Text, statesOf[cmd.State])
	if c.failed(o) {
		return
	}
	w := newSweep(cmd, wire.Moved)
	w.sweeps = append(w.sweeps, s)
	c.begin(e, now, w)
}

func newSweep(cmd *wire.Command, reply wire.Word) *sweep {
	w := &sweep{left: uint64(cmd.Count), reply: reply, command: cmd.Op, about: []any{"tube", string(cmd.Tube)}}
	if cmd.Op == wire.MoveJobs {
		w.about = append(w.about, "to", string(cmd.Text))
	}
	if cmd.State != wire.AnyState {
		w.about = append(w.about, "state", cmd.State.String())
	}
	if cmd.Count == 0 {
		w.left = math.MaxUint64
	}
	return w
}

func (w *sweep) proceed(_ *Conversation, e *engine.Engine, now int64) bool {
	for len(w.sweeps) > 0 && w.refused == engine.OK {
		s := &w.sweeps[0]
		s.AtMost(w.left)
		if e.ContinueSweep(now, s) {
			return true
		}
		w.refused = s.Refused
		w.done += s.Done
		w.left -= s.Done
		w.sweeps = w.sweeps[1:]
	}
	return false
}

func (w *sweep) answer(c *Conversation) {
	if w.done == 0 && w.refused != engine.OK {
		c.unsuccessful(outcomeWords[w.refused])
		return
	}
	if w.done > 0 {
		c.changed(w.command, append(w.about, "count", w.done)...)
	}
	c.out.bytes = wire.AppendNumber(c.out.bytes, w.reply, w.done)
}
