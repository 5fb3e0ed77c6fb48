package server

import (
	"slices"
	"sync"
	"sync/atomic"
)

// An inbox receives requests of other goroutines to a loop.
type inbox struct {
	poll    Poller      // poller of the loop
	waiting atomic.Bool // there might be messages
	streams atomic.Bool // streams might have events
	sync.Mutex
	messages
	ending ending
	asleep bool // the loop waits for events, and a message must wake it
	closed bool // the loop has ended
}

// messages are requests to a loop that it has not handled yet.
type messages struct {
	answered  []*socket   // sockets whose waiting reserves have an answer
	settled   []*batch    // batches whose replies can be sent
	joined    []*socket   // new sockets
	entered   []*socket   // new sockets without a session
	arrived   []*socket   // streams that have events
	dismissed []dismissal // sockets to close at once
	gathered  []gathering
	announce  bool // the leader must get the number of clients to resume
	moreDue   bool // a turn has left due timers
	accept    bool // the first loop can accept clients again
}

// An ending specifies how a loop ends its connections and stops.
type ending struct {
	leads uint32 // end connections that are older than this change of leadership
	stop  bool   // end each connection when its client has received all replies
	abort bool   // end all connections at once
}

// A dismissal is a socket that must be closed, with the reason.
type dismissal struct {
	socket *socket
	reason error
}

// The methods below post a message. They can be called from any goroutine.

func (m *inbox) answer(s *socket)                { post(m, &m.answered, s) }
func (m *inbox) settle(r *batch)                 { post(m, &m.settled, r) }
func (m *inbox) join(s *socket)                  { post(m, &m.joined, s) }
func (m *inbox) enter(s *socket)                 { post(m, &m.entered, s) }
func (m *inbox) dismiss(s *socket, reason error) { post(m, &m.dismissed, dismissal{s, reason}) }
func (m *inbox) endGathering(g gathering)        { post(m, &m.gathered, g) }
func (m *inbox) announceClients()                { set(m, &m.announce, true) }
func (m *inbox) deferDue()                       { set(m, &m.moreDue, true) }
func (m *inbox) acceptClients()                  { set(m, &m.accept, true) }
func (m *inbox) end(how ending)                  { set(m, &m.ending, how) }

// arrive posts a stream that has events.
func (m *inbox) arrive(s *socket) {
	m.streams.Store(true)
	post(m, &m.arrived, s)
}

// post adds a message to a list of the inbox, and wakes the loop.
func post[T any](m *inbox, list *[]T, message T) {
	m.Lock()
	defer m.Unlock()
	*list = append(*list, message)
	m.wake()
}

// set sets a field of the inbox, and wakes the loop.
func set[T any](m *inbox, field *T, value T) {
	m.Lock()
	defer m.Unlock()
	*field = value
	m.wake()
}

// enter opens the sessions of new clients that are served here, and adds all new clients
// to the loop. A deposed broker opens no session, and refuses the commands of these
// clients until Follow disconnects them.
func (l *loop) enter(entered []*socket) {
	if slices.ContainsFunc(entered, func(s *socket) bool { return s.proxy == nil }) {
		l.runAlone(l.opener)
		l.srv.mu.Lock()
		for _, s := range entered {
			s.entering = false
		}
		l.srv.mu.Unlock()
	}
	for _, s := range entered {
		if s.proxy == nil {
			l.srv.log.Debug("connected", "client", s.Client())
			s.Start()
		}
		l.join(s)
	}
}

// wake records that there are messages, and wakes the loop if it is waiting. The caller
// holds the lock.
func (m *inbox) wake() {
	m.waiting.Store(true)
	if m.asleep && !m.closed {
		m.asleep = false
		m.poll.Wake()
	}
}

// drainInbox handles all messages in the inbox.
func (l *loop) drainInbox() {
	if !l.inbox.waiting.Load() {
		return
	}
	l.inbox.Lock()
	l.inbox.waiting.Store(false)
	l.inbox.streams.Store(false)
	got := l.inbox.messages
	l.inbox.messages = l.spare
	before := l.ending
	l.ending = l.inbox.ending
	if l.delivering && l.ending.leads != before.leads { // clients get the replies of this turn first
		l.ending.leads = before.leads
		l.inbox.announce, l.inbox.gathered = got.announce, got.gathered
		got.announce, got.gathered = false, nil
		l.inbox.waiting.Store(true)
	}
	l.inbox.Unlock()
	for _, s := range got.answered {
		if s.joining {
			s.early = true
			continue
		}
		s.Answered(l.now, s.waitErr)
		l.proceed(s)
	}
	for _, r := range got.settled {
		l.noteSettled(l.srv)
		l.deliver(r)
	}
	if got.accept {
		l.srv.acceptors.accept(l, maxAccepted)
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
		switch s := d.socket; {
		case s.isIn(l):
			l.end(s, d.reason)
		case s.loop != l: // the socket was pending here, and is now in another loop
			s.loop.inbox.dismiss(s, d.reason)
		case s.joining:
			s.dismissal = d.reason
		}
	}
	if l.ending.leads != before.leads {
		l.changeLeader()
	}
	if got.announce {
		l.announce()
	}
	for _, g := range got.gathered {
		l.endGathering(g)
	}
	l.moreDue = l.moreDue || got.moreDue
	clear(got.answered)
	clear(got.settled)
	clear(got.arrived)
	l.spare = messages{answered: got.answered[:0], settled: got.settled[:0], arrived: got.arrived[:0]}
	if l.ending.stop != before.stop || l.ending.abort != before.abort {
		l.stop()
	}
}
