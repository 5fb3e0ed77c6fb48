package server

import (
	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/conversation"
	"github.com/beanpole-mq/beanpole/internal/engine"
)

const (
	// A batch reads about batchInput bytes and produces about batchOutput bytes of
	// replies. Bodies are copied from input to output, so both should stay in the
	// processor's cache.
	batchInput  = 256 << 10
	batchOutput = 256 << 10

	// A batch has at most about maxBatchCommands commands. If replies are large, the
	// limit decreases down to minBatchCommands.
	maxBatchCommands = 2048
	minBatchCommands = 4
)

// A batch contains the commands of one turn of a loop. It exists from the first read
// until the replies are written.
type batch struct {
	*conversation.Batch
	loop *loop
	err  error // the error passed to Settled: the changes are not durable
}

// Settled implements broker.Settler.
func (r *batch) Settled(err error) {
	r.err = err
	r.loop.inbox.settle(r)
}

// turn runs a turn of the broker for the gathered batch, and delivers the batch if it is
// settled at once.
func (l *loop) turn() {
	if l.batch.AsksForClients() {
		l.srv.acceptors.accept(l, maxForStats)
	}
	if r := l.batch; r.Len() > 0 {
		l.srv.broker.AwaitRoom()
		l.moreDue = false
		commands := r.Commands()
		l.hangupStep.collect(l)
		settled, err := l.caller.Start(r)
		l.hangupStep.finish(&l.srv.hangups)
		l.batch = l.newBatch() // conversations that end from now on belong to the new batch
		r.TurnOver()
		l.limit.adapt(r.Replies(), commands)
		if settled {
			r.err = err
			l.delivering = true
			l.drainInbox() // deliver the answers to sockets that waited first
			l.delivering = false
			l.deliver(r)
		} else {
			if l.unsynced == 0 {
				l.unsyncedAt = l.now
			}
			l.unsettled++
			l.unsynced += r.Len()
		}
	} else if l.moreDue {
		l.moreDue = false
		l.runAlone(l.opener)
	}
	l.in = l.in[:0]
}

// runAlone runs a turn without a batch. No batch waits until the turn is settled, but
// replies to waiting reserves can. Therefore, the loop starts a sync, unless it is going
// to start one for a batch that the running sync does not cover.
func (l *loop) runAlone(c *broker.Caller) {
	if settled, _ := c.Start(nil); !settled && l.unsettled == l.syncing {
		l.srv.broker.StartSync()
	}
}

// An opening is the request to open the sessions of new clients.
type opening struct{ srv *Server }

// Apply implements broker.Request.
func (o opening) Apply(e *engine.Engine, now int64) (later int64) { return o.srv.openSessions(e, now) }

// Apply implements broker.Request.
func (l *loop) Apply(e *engine.Engine, now int64) (later int64) {
	if l.batch.AsksForClients() {
		now = l.srv.openSessions(e, now) + 1
	}
	return l.batch.Apply(e, l.hangupStep.Apply(e, now))
}

// newBatch returns an empty batch.
func (l *loop) newBatch() *batch {
	if n := len(l.unused); n > 0 {
		r := l.unused[n-1]
		l.unused = l.unused[:n-1]
		return r
	}
	return &batch{Batch: conversation.NewBatch(2 * batchOutput), loop: l}
}

// A limit is the maximum size of a batch.
type limit struct{ tasks, commands, input int }

// reached reports whether a batch, including the input that it refers to, has reached the
// limit.
func (m *limit) reached(r *batch, input []byte) bool {
	return r.Len() >= m.tasks || r.Commands() >= m.commands || len(input) >= m.input
}

// adapt lowers the limit of commands if the replies of a batch were too large, and raises
// it otherwise.
func (m *limit) adapt(replies, commands int) {
	if replies > batchOutput {
		m.commands = max(minBatchCommands, commands*batchOutput/replies)
	} else {
		m.commands = min(maxBatchCommands, m.commands+m.commands/8+1)
	}
}

// deliver writes the replies of a settled batch.
func (l *loop) deliver(r *batch) {
	r.Settle(r.err)
	for i := range r.Len() {
		l.proceed(r.Owner(i).(*socket))
	}
	r.Reset()
	l.unused = append(l.unused, r)
}

// sync makes the unsettled batches durable. The loop waits for a short sync, unless
// timers are due, because passing the sync to another goroutine costs more. waited
// reports whether the loop waited, and might therefore have new work.
func (l *loop) sync() (waited bool) {
	l.syncing, l.unsynced = l.unsettled, 0
	l.syncedAt = l.srv.now()
	if l.moreDue || l.syncTime >= int64(l.srv.opt.SlowSync) {
		l.srv.broker.StartSync()
		return false
	}
	l.driving.Unlock()
	l.srv.broker.Sync()
	l.driving.Lock()
	return true
}

// syncs contains the batches of a loop that are not durable yet.
type syncs struct {
	unsettled  int   // batches whose turn is over and whose changes might not be durable
	syncing    int   // unsettled batches that the running sync covers
	unsynced   int   // number of tasks in the other unsettled batches
	unsyncedAt int64 // time in ns at which the first of those batches was gathered
	syncedAt   int64 // start of the current sync in ns; 0 if none is running
	syncTime   int64 // moving average of the duration of a sync in ns
}

// noteSettled counts a settled batch and updates the average time of a sync. A single,
// unusually long sync has little weight.
func (y *syncs) noteSettled(s *Server) {
	if y.syncing > 0 && y.syncedAt > 0 { // the first batch that the running sync covers
		took := min(s.now()-y.syncedAt, 4*max(0, int64(s.opt.SlowSync)))
		y.syncTime += (took - y.syncTime) / 8
		y.syncedAt = 0
	}
	y.unsettled--
	y.syncing = max(0, y.syncing-1) // batches settle in order
}
