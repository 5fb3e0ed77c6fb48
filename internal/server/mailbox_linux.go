package server

import (
	"sync"
	"sync/atomic"
)

// A mailbox is how other goroutines reach a loop.
type mailbox struct {
	waiting atomic.Bool // there may be mail
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
	dismissed []dismissal // sockets to be ended at once
	everybody error       // why all sockets are to be ended at once; nil: they are not
}

// A dismissal says that a socket is to be ended, and why.
type dismissal struct {
	socket *socket
	reason error
}

// post puts something into the mailbox.
func (l *loop) post(put func(*mailbox)) {
	l.mail.Lock()
	defer l.mail.Unlock()
	put(&l.mail)
	l.wake()
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
	for _, s := range got.joined {
		l.join(s)
	}
	for _, d := range got.dismissed {
		if l.socks[d.socket.index] == d.socket {
			l.end(d.socket, d.reason)
		}
	}
	if got.everybody != nil {
		l.endAll(got.everybody)
	}
	clear(got.answered)
	clear(got.settled)
	l.noMessages = messages{answered: got.answered[:0], settled: got.settled[:0]}
	if stop || abort {
		l.stop(abort)
	}
}
