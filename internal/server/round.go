package server

import (
	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/conversation"
	"github.com/beanpole-mq/beanpole/internal/engine"
)

const (
	// A round reads about roundInput bytes and produces about roundOutput bytes of
	// replies. Bodies are copied from input to output, so both should stay in the
	// processor's cache.
	roundInput  = 256 << 10
	roundOutput = 256 << 10

	// A round has about maxRoundCommands commands at most. If replies are large, the
	// limit falls to minRoundCommands.
	maxRoundCommands = 2048
	minRoundCommands = 4
)

// A round is the batch of a loop's turn, from reading the commands until the replies are
// written.
type round struct {
	*conversation.Batch
	loop *loop
	err  error // error of Settled: the changes are not durable
}

// Settled implements broker.Settler.
func (r *round) Settled(err error) {
	r.err = err
	r.loop.mail.settle(r)
}

// turn runs a turn of the broker for the gathered round, and delivers the round if it is
// settled at once.
func (l *loop) turn() {
	if l.round.AsksForClients() {
		l.srv.acceptors.accept(l, maxForStats)
	}
	if r := l.round; r.Len() > 0 {
		l.srv.broker.AwaitRoom()
		l.moreDue = false
		commands := r.Commands()
		l.farewell.collect(l)
		settled, err := l.caller.Start(r)
		l.farewell.over(&l.srv.departures)
		l.round = l.newRound() // conversations that end from here on belong to it
		r.TurnOver()
		l.limit.adapt(r.Replies(), commands)
		if settled {
			r.err = err
			l.delivering = true
			l.readMail() // first the answers of sockets that waited
			l.delivering = false
			l.deliver(r)
		} else {
			if l.unsynced == 0 {
				l.unsyncedAt = l.now
			}
			l.unsettled++
			l.unsynced += r.Len()
			for i := range r.Len() {
				if r.GoesOn(i) {
					l.proceed(r.Owner(i).(*socket))
				}
			}
		}
	} else if l.moreDue {
		l.runDue()
	}
	l.in = l.in[:0]
}

// runDue runs a turn for the timers that the previous one left due.
func (l *loop) runDue() {
	l.moreDue = false
	l.runAlone(l.opener)
}

// runAlone runs a turn that belongs to no round. No round waits for its settlement, but
// replies to waiting reserves can. Therefore, the loop starts a sync, unless it will
// start one for a round that the running sync does not cover.
func (l *loop) runAlone(c *broker.Caller) {
	if settled, _ := c.Start(noSettler{}); !settled && l.unsettled == l.syncing {
		l.srv.broker.StartSync()
	}
}

// noSettler implements broker.Settler and ignores the settling.
type noSettler struct{}

func (noSettler) Settled(error) {}

// An opening is the request to open the sessions of new clients.
type opening struct{ srv *Server }

// Apply implements broker.Request.
func (o opening) Apply(e *engine.Engine, now int64) (later int64) { return o.srv.openSessions(e, now) }

// Apply implements broker.Request.
func (l *loop) Apply(e *engine.Engine, now int64) (later int64) {
	if l.round.AsksForClients() {
		now = l.srv.openSessions(e, now) + 1
	}
	return l.round.Apply(e, l.farewell.Apply(e, now))
}

// newRound returns an empty round.
func (l *loop) newRound() *round {
	if n := len(l.unused); n > 0 {
		r := l.unused[n-1]
		l.unused = l.unused[:n-1]
		return r
	}
	return &round{Batch: conversation.NewBatch(2 * roundOutput), loop: l}
}

// A limit is the maximum size of a round.
type limit struct{ tasks, commands, input int }

// reached reports whether a round, with its referenced input, has reached the limit.
func (m *limit) reached(r *round, input []byte) bool {
	return r.Len() >= m.tasks || r.Commands() >= m.commands || len(input) >= m.input
}

// adapt lowers the limit of commands if the replies of a round were too large, and raises
// it otherwise.
func (m *limit) adapt(replies, commands int) {
	if replies > roundOutput {
		m.commands = max(minRoundCommands, commands*roundOutput/replies)
	} else {
		m.commands = min(maxRoundCommands, m.commands+m.commands/8+1)
	}
}

// deliver writes the replies of a settled round.
func (l *loop) deliver(r *round) {
	r.Settle(r.err)
	for i := range r.Len() {
		l.proceed(r.Owner(i).(*socket))
	}
	r.Reset()
	l.unused = append(l.unused, r)
}

// sync makes the unsettled rounds durable. The loop waits for a short sync, unless timers
// are due, because passing the sync to another goroutine costs more. waited reports
// whether the loop has waited and can have new work.
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

// syncs contains the rounds of a loop that are not durable yet.
type syncs struct {
	unsettled  int   // number of rounds whose turn is over and whose changes might not be durable
	syncing    int   // unsettled rounds that the sync under way covers
	unsynced   int   // tasks of the other unsettled rounds
	unsyncedAt int64 // time in ns at which the first of those rounds was gathered
	syncedAt   int64 // start of the current sync in ns; 0 if none is running
	syncTime   int64 // moving average of the duration of a sync in ns
}

// noteSettled counts a settled round and updates the average time of a sync. A single
// very long sync has little weight.
func (y *syncs) noteSettled(s *Server) {
	if y.syncing > 0 && y.syncedAt > 0 { // the first round that this sync covers
		took := min(s.now()-y.syncedAt, 4*max(0, int64(s.opt.SlowSync)))
		y.syncTime += (took - y.syncTime) / 8
		y.syncedAt = 0
	}
	y.unsettled--
	y.syncing = max(0, y.syncing-1) // rounds settle in order
}
