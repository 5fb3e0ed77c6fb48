package server

import (
	"sync"
	"sync/atomic"
)

// A mailbox receives requests of other goroutines to a loop.
type mailbox struct {
	poll    Poller      // poller of the loop
	waiting atomic.Bool // there might be messages
	streams atomic.Bool // streams might be ready
	sync.Mutex
	messages
	stop   bool // end connections when their clients have all replies
	abort  bool // end them at once
	asleep bool // the loop waits for events, and a message must wake it
	closed bool // the loop has ended
}

// messages are requests to a loop that it has not handled yet.
type messages struct {
	answered  []*socket   // sockets whose waiting reserves have an answer
	settled   []*round    // rounds whose replies can be sent
	acceptors []*acceptor // acceptors to start or continue
	joined    []*socket   // new sockets
	entered   []*socket   // new sockets without a session
	arrived   []*socket   // streams that have events
	dismissed []dismissal // to be ended at once
	everybody error       // reason for ending all sockets whose leads is smaller; nil means none
	before    uint32
	moreDue   bool // a turn has left due timers
	room      bool // a slot is free again
}

// A dismissal is a socket that must be closed, with the reason.
type dismissal struct {
	socket *socket
	reason error
}

// post calls put to change the mailbox, and wakes the loop.
func (m *mailbox) post(put func(*mailbox)) {
	m.Lock()
	defer m.Unlock()
	put(m)
	m.wake()
}

// tellMoreDue requests a turn for timers that the last turn left due.
func (m *mailbox) tellMoreDue() { m.post(func(m *mailbox) { m.moreDue = true }) }

// enter opens the sessions of new clients that are served here, and adds all clients to
// the loop.
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

// wake records that there are messages, and wakes the loop if it is waiting. The caller
// holds the lock.
func (m *mailbox) wake() {
	m.waiting.Store(true)
	if m.asleep && !m.closed {
		m.asleep = false
		m.poll.Wake()
	}
}

// readMail handles the messages.
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
		l.noteSettled(l.srv)
		l.deliver(r)
	}
	for _, a := range got.acceptors {
		l.srv.accepting.begin(a)
	}
	if got.room {
		l.srv.accepting.accept(l, maxAccepted)
	}
	for _, s := range got.joined {
		l.join(s)
	}
	if len(got.entered) > 0 {
		l.enter(got.entered)
	}
	for _, s := range got.arrived {
		switch {
		case !s.isIn(l):
		case s.proxy != nil && s.proxy.stream != nil:
			l.list(s)
		default:
			l.checkBuffer(s)
		}
	}
	for _, d := range got.dismissed {
		if d.socket.isIn(l) {
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
