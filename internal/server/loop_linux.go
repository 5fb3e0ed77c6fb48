package server

import (
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/conversation"
	"github.com/beanpole-mq/beanpole/internal/epoll"
)

const (
	// roundInput is how many bytes a round reads, and roundOutput how many
	// bytes of replies it makes, more or less. What is put is copied from the one
	// and what is reserved into the other, so both had better stay in the
	// processor's cache.
	roundInput  = 256 << 10
	roundOutput = 256 << 10

	// loggedInput is roundInput where a turn costs a sync: then it is better to
	// have few of them.
	loggedInput = 4 << 20

	// maxRoundCommands is how many commands a round has at most, more or less,
	// and minRoundCommands what that comes down to when replies are large.
	maxRoundCommands = 2048
	minRoundCommands = 4

	// roundsPerPass is how many rounds share the sockets that are ready at the
	// same time: a client can go on as soon as its round is over. Where a turn
	// costs a sync there is one round.
	roundsPerPass = 4

	// minRoundTasks is how many sockets a round has at least, if so many are ready.
	minRoundTasks = 2

	// readSize is how many bytes are read from one socket at a time: a job of
	// the default size with its line.
	readSize = 64 << 10

	// writesPerRound is how many pieces of a long reply a socket is given in a
	// round; others come in between.
	writesPerRound = 3
)

// A loop drives the conversations of its share of the sockets from one goroutine.
// It repeats:
//
//	wait     for sockets that have something to read, or can be written again
//	gather   read from each, once, and parse
//	turn     one turn of the broker, for the commands of all of them
//	deliver  write to each its replies
//
// So a command costs one read and one write, and its share of one wait and of
// one turn; and an idle connection costs no buffer. The sockets that are ready
// after one wait are a pass. It takes several rounds of gather, turn and deliver
// when there is more to do than fits into one, and each socket is in one of them.
type loop struct {
	srv    *Server
	caller *broker.Caller
	poll   *epoll.Poller
	mail   mailbox

	// Owned by the goroutine.
	now      int64     // ns, as Server.now; that of the round
	pass     uint64    // how often it has waited
	socks    []*socket // by index; nil: free
	free     []int     // indexes
	open     int       // sockets
	sweepAt  int64     // when to look for clients that make no progress
	stopping bool      // as the mailbox says
	aborting bool
	ready    []*socket // for the next pass: they have input that was read and not executed

	// Of the pass, and not dealt with yet.
	todo   []*socket // was ready
	events []epoll.Event

	// Of the round. The batch is lent to the turn.
	batch *conversation.Batch
	idle  *conversation.Batch // the other one
	in    []byte              // input; the commands of the batch refer to it
	err   error               // why the turn's changes are not durable
	limit struct {            // when the round is full
		tasks, commands, input int
	}
}

// A mailbox is how other goroutines reach a loop.
type mailbox struct {
	waiting atomic.Bool // there may be mail
	sync.Mutex
	joined   []*socket // new ones
	answered []*socket // whose reserve has been answered
	stop     bool      // end connections when they have finished what they are about
	abort    bool      // end them at once
	asleep   bool      // the loop waits for events: wake it when there is mail
	closed   bool      // the loop has ended
}

func newLoop(s *Server) (*loop, error) {
	poll, err := epoll.New()
	if err != nil {
		return nil, err
	}
	l := &loop{srv: s, poll: poll, batch: conversation.NewBatch(2 * roundOutput), idle: conversation.NewBatch(2 * roundOutput)}
	l.limit.commands, l.limit.input = maxRoundCommands, roundInput
	if s.opt.Log != nil {
		l.limit.tasks, l.limit.input = epoll.MaxEvents, loggedInput
	}
	l.in = make([]byte, 0, l.limit.input+readSize)
	l.caller = s.broker.NewCaller(l)
	return l, nil
}

// post puts something into the mailbox, unless the loop has ended.
func (l *loop) post(put func(*mailbox)) {
	l.mail.Lock()
	defer l.mail.Unlock()
	if !l.mail.closed {
		put(&l.mail)
		l.wake()
	}
}

// wake tells the loop that there is mail; with the mailbox locked.
func (l *loop) wake() {
	l.mail.waiting.Store(true)
	if l.mail.asleep {
		l.mail.asleep = false
		l.poll.Wake()
	}
}

// run is the loop. It ends when it was told to stop and no socket is left.
func (l *loop) run() {
	defer l.close()
	for {
		if len(l.todo)+len(l.events) == 0 {
			l.wait()
		}
		l.now = l.srv.now()
		l.readMail()
		l.gather()
		l.turn()
		l.deliver()
		l.sweep()
		if l.stopping {
			if l.dismiss(); l.open == 0 {
				return
			}
		}
	}
}

// close ends the loop: nobody may wake the poller any more.
func (l *loop) close() {
	l.mail.Lock()
	defer l.mail.Unlock()
	l.mail.closed = true
	l.poll.Close()
}

// wait waits for events, unless there is something to do without.
func (l *loop) wait() {
	timeout := time.Duration(0)
	if len(l.ready)+l.batch.Len() == 0 {
		l.mail.Lock()
		if !l.mail.waiting.Load() {
			timeout = l.untilSweep()
			l.mail.asleep = true
		}
		l.mail.Unlock()
	}
	l.events = l.poll.Wait(timeout)
	if timeout != 0 {
		l.mail.Lock()
		l.mail.asleep = false
		l.mail.Unlock()
	}
	l.pass++
	l.todo, l.ready = l.ready, l.todo
	if l.srv.opt.Log == nil {
		n := len(l.todo) + len(l.events)
		l.limit.tasks = max(minRoundTasks, (n+roundsPerPass-1)/roundsPerPass)
	}
}

// readMail deals with what other goroutines, and the turn, have sent: it passes
// answers on to those who waited, and takes in new sockets.
func (l *loop) readMail() {
	if !l.mail.waiting.Load() {
		return
	}
	l.mail.Lock()
	l.mail.waiting.Store(false)
	joined, answered := l.mail.joined, l.mail.answered
	l.mail.joined, l.mail.answered = nil, nil
	abort := l.mail.abort && !l.aborting
	l.stopping, l.aborting = l.mail.stop, l.mail.abort
	l.mail.Unlock()
	for _, s := range answered {
		s.Answered(l.now)
		l.proceed(s)
	}
	l.reuse(answered)
	for _, s := range joined {
		l.join(s)
	}
	if abort {
		for _, s := range l.socks {
			if s != nil {
				l.end(s, errStopped)
			}
		}
	}
}

// reuse gives the mailbox its list back, unless it has a new one by now.
func (l *loop) reuse(answered []*socket) {
	clear(answered)
	l.mail.Lock()
	defer l.mail.Unlock()
	if l.mail.answered == nil {
		l.mail.answered = answered[:0]
	}
}

// gather reads and parses, until the round is full.
func (l *loop) gather() {
	n := 0
	for ; n < len(l.todo) && !l.full(); n++ {
		s := l.todo[n]
		l.todo[n] = nil
		s.pass = l.pass
		if s.State() == conversation.Ready {
			s.Advance(l.batch, l.now)
			l.proceed(s)
		}
	}
	l.todo = slices.Delete(l.todo, 0, n)
	for len(l.events) > 0 && !l.full() {
		ev := l.events[0]
		l.events = l.events[1:]
		if s := l.socks[ev.Index]; s != nil && s.pass != l.pass {
			l.handle(s, ev.Events)
		}
	}
}

// full reports whether the round has enough to do.
func (l *loop) full() bool {
	return l.batch.Len() >= l.limit.tasks || l.batch.Commands() >= l.limit.commands || len(l.in) >= l.limit.input
}

// handle deals with what has happened to a socket.
func (l *loop) handle(s *socket, events epoll.Events) {
	switch s.State() {
	case conversation.Opening, conversation.Reading:
		l.read(s)
	case conversation.Writing:
		l.proceed(s) // a write will tell of a reset
	case conversation.Waiting:
		// What the client sends behind the reserve stays with the kernel.
		switch {
		case events.Has(epoll.Failed):
			l.end(s, unix.ECONNRESET)
		case events.Has(epoll.HalfClosed | epoll.HungUp):
			s.HangUp(l.batch)
			l.expect(s, 0)
		default:
			l.expect(s, epoll.HalfClosed)
		}
	default: // it wants nothing of the socket now
		if events.Has(epoll.Failed) {
			l.end(s, unix.ECONNRESET)
		} else {
			l.expect(s, 0)
		}
	}
}

// read reads once: into the round's buffer or, if there is unread input already,
// behind that.
func (l *loop) read(s *socket) {
	var n int
	var err error
	if s.Unread() {
		if n, err = s.fd.Read(s.Space()); err == nil {
			s.Filled(l.now, n)
			s.Advance(l.batch, l.now)
		}
	} else {
		at := len(l.in)
		buf := l.in[at : at+readSize]
		n, err = s.fd.Read(buf)
		l.in = l.in[:at+n]
		if err == nil {
			s.Receive(l.batch, l.now, buf[:n:n])
		}
	}
	switch err {
	case nil, epoll.ErrWouldBlock:
	case io.EOF:
		s.EndInput(l.batch)
	default:
		l.end(s, err)
		return
	}
	l.proceed(s)
}

// turn runs one turn of the broker for all that has been gathered.
func (l *loop) turn() {
	if commands := l.batch.Commands(); l.batch.Len() > 0 {
		l.err = l.caller.DoNow()
		l.batch.TurnOver()
		l.adapt(l.batch.Replies(), commands)
	}
	l.in = l.in[:0]
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

// deliver writes the replies, those to waiting workers first, and gets ready
// for the next round.
func (l *loop) deliver() {
	done := l.batch
	l.batch = l.idle // what is to be ended now goes there
	l.readMail()
	done.Settle(l.err)
	for i := range done.Len() {
		l.proceed(done.Owner(i).(*socket))
	}
	done.Reset()
	l.idle = done
}

// proceed does for a socket what its conversation wants: it writes, or makes it a
// part of the next pass, or ends it.
func (l *loop) proceed(s *socket) {
	if s.State() == conversation.Writing {
		l.write(s)
	}
	switch s.State() {
	case conversation.Ready:
		l.ready = append(l.ready, s)
	case conversation.Done:
		l.end(s, s.Reason())
	case conversation.Closed:
		l.remove(s)
	case conversation.Writing:
		l.expect(s, epoll.Writable)
	case conversation.Reading:
		l.expect(s, epoll.Readable|epoll.HalfClosed)
	case conversation.Waiting:
		if !s.interest.Has(epoll.HalfClosed) && !s.HasHungUp() {
			l.expect(s, epoll.Readable|epoll.HalfClosed)
		}
	}
}

// write writes what the socket takes.
func (l *loop) write(s *socket) {
	for range writesPerRound {
		out := s.Output()
		n, err := s.fd.Write(out)
		if err != nil {
			l.end(s, err)
			return
		}
		s.Wrote(l.now, n)
		if n < len(out) || s.State() != conversation.Writing {
			return
		}
	}
}

// expect tells the poller what to wait for.
func (l *loop) expect(s *socket, events epoll.Events) {
	if events == s.interest {
		return
	}
	s.interest = events
	if err := l.poll.Modify(s.fd, s.index, events); err != nil {
		l.end(s, err)
	}
}
