package server

import (
	"sync"
	"sync/atomic"
)

// A mailbox is how other goroutines reach a loop.
type mailbox struct {
	waiting atomic.Bool // there may be mail
	streams atomic.Bool // of streams that may be ready
	sync.Mutex
	messages
	stop   bool // end connections when they have finished what they are about
	abort  bool // end them at once
	asleep bool // the loop waits for events: wake it when there is mail
	closed bool // the loop has ended
}

// messages are what was sent to a loop and not dealt with yet.
type messages struct {
	answered  []*socket   // their reserves have been answered
	settled   []*round    // their replies can go
	acceptors []*acceptor // to accept from, again
	joined    []*socket   // new ones
	entered   []*socket   // new ones, whose sessions are not open
	dialed    []dialed    // what has become of their streams to the leader
	arrived   []*socket   // streams to which something has happened
	dismissed []dismissal // sockets to be ended at once
	everybody error       // why all sockets are to be ended at once that are older than before; nil: they are not
	before    uint32      // as socket.leads
	moreDue   bool        // a turn has left something due
	room      bool        // there is a slot again for those who wait for one
}

// A dismissal says that a socket is to be ended, and why.
type dismissal struct {
	socket *socket
	reason error
}

// post changes the mailbox, and wakes the loop.
func (l *loop) post(put func(*mailbox)) {
	l.mail.Lock()
	defer l.mail.Unlock()
	put(&l.mail)
	l.wake()
}

// tellMoreDue asks for a turn, for what the last one has left due.
func (l *loop) tellMoreDue() {
	l.mail.Lock()
	defer l.mail.Unlock()
	l.mail.moreDue = true
	l.wake()
}

// enter adds new clients to the loop, and opens the sessions of those that are served here.
func (l *loop) enter(entered []*socket) {
	var open []*socket
	for _, s := range entered {
		if s.proxy == nil {
			open = append(open, s)
		}
	}
	if len(open) > 0 {
		l.openSessions(open)
	}
	for _, s := range entered {
		l.join(s)
	}
}

// wake tells the loop, unless it has ended, that there is mail; with the mailbox
// locked.
func (l *loop) wake() {
	l.mail.waiting.Store(true)
	if l.mail.asleep && !l.mail.closed {
		l.mail.asleep = false
		l.poll.Wake()
	}
}

// readMail deals with what other goroutines, and turns, have sent: it passes
// answers on to the sockets that waited, delivers rounds, and takes in new sockets.
func (l *loop) readMail() {
	if !l.mail.waiting.Load() {
		return
	}
	l.mail.Lock()
	l.mail.waiting.Store(false)
	l.mail.streams.Store(false)
	got := l.mail.messages
	l.mail.messages = l.noMessages
	stop, abort := l.mail.stop && !l.stopping, l.mail.abort && !l.aborting
	l.stopping, l.aborting = l.mail.stop, l.mail.abort
	l.mail.Unlock()
	for _, s := range got.answered {
		s.Answered(l.now, s.waitErr)
		l.proceed(s)
	}
	for _, r := range got.settled {
		l.noteSettled()
		l.deliver(r)
	}
	for _, a := range got.acceptors {
		l.beginAccepting(a)
	}
	if got.room {
		l.accept(maxAccepted)
	}
	for _, s := range got.joined {
		l.join(s)
	}
	if len(got.entered) > 0 {
		l.enter(got.entered)
	}
	for _, d := range got.dialed {
		l.dialed(d)
	}
	for _, s := range got.arrived {
		switch {
		case s.loop != l:
		case s.proxy != nil && s.proxy.stream != nil:
			l.list(s)
		default:
			l.checkBuffer(s)
		}
	}
	for _, d := range got.dismissed {
		if s := d.socket; s.loop == l && l.clients.all[s.index] == s {
			l.end(d.socket, d.reason)
		}
	}
	if got.everybody != nil {
		l.endAll(got.everybody, got.before)
	}
	l.moreDue = l.moreDue || got.moreDue
	clear(got.answered)
	clear(got.settled)
	clear(got.arrived)
	l.noMessages = messages{answered: got.answered[:0], settled: got.settled[:0], arrived: got.arrived[:0]}
	if stop || abort {
		l.stop(abort)
	}
}
