package server

import (
	"github.com/beanpole-mq/beanpole/internal/conversation"
	"github.com/beanpole-mq/beanpole/internal/engine"
)

const (
	// roundInput is how many bytes a round reads, and roundOutput how many
	// bytes of replies it makes, more or less. What is put is copied from the one
	// and what is reserved into the other, so both had better stay in the
	// processor's cache.
	roundInput  = 256 << 10
	roundOutput = 256 << 10

	// maxRoundCommands is how many commands a round has at most, more or less,
	// and minRoundCommands what that comes down to when replies are large.
	maxRoundCommands = 2048
	minRoundCommands = 4
)

// A round is what a loop gathers for one turn, until the replies are written.
type round struct {
	*conversation.Batch
	loop *loop
	err  error // why the changes are not durable, when it is settled
}

// Settled implements broker.Settler.
func (r *round) Settled(err error) {
	r.err = err
	m := &r.loop.mail
	m.Lock()
	defer m.Unlock()
	m.settled = append(m.settled, r)
	r.loop.wake()
}

// turn runs one turn of the broker for all that has been gathered. If that is
// settled at once it delivers the round.
func (l *loop) turn() {
	if l.round.AsksForClients() {
		l.accept(maxForStats)
	}
	if r := l.round; r.Len() > 0 {
		l.moreDue = false
		l.round = l.newRound() // what is to be ended from here on goes there
		commands := r.Commands()
		l.turning = r
		l.collect()
		settled, err := l.caller.Start(r)
		l.farewellOver()
		r.TurnOver()
		l.adapt(r.Replies(), commands)
		if settled {
			r.err = err
			l.readMail() // sockets that waited get their answers first
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

// runDue runs a turn for what the one before has left due. No round waits until it is
// settled, but answers of its waiters may. So the loop asks for a sync, unless it will
// for a round that the sync under way is not for.
func (l *loop) runDue() {
	l.moreDue = false
	if settled, _ := l.opener.Start(nobody{}); !settled && l.unsettled == l.syncing {
		l.srv.broker.StartSync()
	}
}

// nobody implements broker.Settler.
type nobody struct{}

func (nobody) Settled(error) {}

// Apply implements broker.Request.
func (l *loop) Apply(e *engine.Engine, now int64) (later int64) {
	return l.turning.Apply(e, l.farewell.Apply(e, now))
}

// newRound returns a round for the next turn.
func (l *loop) newRound() *round {
	if n := len(l.unused); n > 0 {
		r := l.unused[n-1]
		l.unused = l.unused[:n-1]
		return r
	}
	return &round{Batch: conversation.NewBatch(2 * roundOutput), loop: l}
}

// adapt lets the next round have fewer commands if the replies of this one were
// many bytes, and more if they were not.
func (l *loop) adapt(replies, commands int) {
	if replies > roundOutput {
		l.limit.commands = max(minRoundCommands, commands*roundOutput/replies)
	} else {
		l.limit.commands = min(maxRoundCommands, l.limit.commands+l.limit.commands/8+1)
	}
}

// deliver writes the replies of a round that is settled.
func (l *loop) deliver(r *round) {
	r.Settle(r.err)
	for i := range r.Len() {
		l.proceed(r.Owner(i).(*socket))
	}
	r.Reset()
	l.unused = append(l.unused, r)
}

// sync makes the unsettled rounds durable. The loop runs a short sync itself: to have
// another goroutine do it and to hear of its end costs more than the loop could do
// meanwhile, unless there is more due. If it has waited there may be something to do now.
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

// noteSettled notes that a round is settled, and learns how long a sync takes. A single
// very long one counts little.
func (l *loop) noteSettled() {
	if l.syncing > 0 && l.syncedAt > 0 { // the first round that this sync is for
		took := min(l.srv.now()-l.syncedAt, 4*max(0, int64(l.srv.opt.SlowSync)))
		l.syncTime += (took - l.syncTime) / 8
		l.syncedAt = 0
	}
	l.unsettled--
	l.syncing = max(0, l.syncing-1) // rounds are settled in order
}
