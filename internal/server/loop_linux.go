package server

import (
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/engine"
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

	// roundCommands is how many commands a round has at most, more or less.
	roundCommands = 2048

	// fewCommands is what that comes down to when replies are large.
	fewCommands = 4

	// roundsPerPass is in how many rounds those are served who are ready at the
	// same time: a client can go on as soon as its round is over. Where a turn
	// costs a sync there is one round.
	roundsPerPass = 4

	// fewTasks is how many sockets a round has at least, if they are ready.
	fewTasks = 2

	// readSize is how many bytes are read from one socket at a time: a job of
	// the default size with its line.
	readSize = 64 << 10
)

// A loop serves its share of the sockets from one goroutine. It goes round:
//
//	wait     for sockets that have something to read, or can be written again
//	gather   read from each, once, and parse
//	turn     one turn of the broker, for the commands of all of them
//	deliver  write to each its replies
//
// So a command costs one read and one write, and its share of one wait and of
// one turn; and an idle connection costs no buffer. When there is more to do than
// fits, a wait is followed by several rounds, and each socket is in one of them.
type loop struct {
	srv    *Server
	caller *broker.Caller
	poll   *epoll.Poller
	begun  time.Time
	mail   mailbox

	// Owned by the goroutine, and lent to the turn.
	now      int64     // ns since begun; that of the round
	pass     uint64    // how often it has waited
	socks    []*socket // by index; nil: free
	free     []int     // indexes
	open     int       // sockets
	sweepAt  int64     // when to look for silent clients
	stopping bool      // as the mailbox says
	aborting bool

	tasks []task    // for the next turn, in the order in which they came up
	again []*socket // have input that was read and not executed: for the next pass
	spare struct {  // to be used again
		tasks []task
		over  []*socket
	}

	// Of the pass, and yet to be looked at.
	todo   []*socket // was again
	events []epoll.Event

	// Of the round.
	cmds []parsed
	in   []byte                        // input; the commands refer to it
	out  []byte                        // replies
	most struct{ tasks, cmds, in int } // when the round is full
}

// A task is what the turn of a round is to do for a socket.
type task struct {
	s        *socket
	what     action
	from, to int    // commands: loop.cmds[from:to]
	src      []byte // what they were parsed from; nil if that is s.in
	taken    int    // bytes of that which parse has dealt with
	executed int    // commands, when the turn is over
}

// A mailbox is how other goroutines reach a loop.
type mailbox struct {
	some atomic.Bool // there may be mail
	sync.Mutex
	joined []*socket // new ones
	over   []*socket // whose wait is over
	stop   bool      // end connections when they have finished what they are about
	abort  bool      // end them at once
	asleep bool      // the loop waits for events: ring when there is mail
}

func newLoop(s *Server) (*loop, error) {
	poll, err := epoll.New()
	if err != nil {
		return nil, err
	}
	l := &loop{srv: s, poll: poll, begun: time.Now(), out: make([]byte, 0, 2*roundOutput)}
	l.most.cmds, l.most.in = roundCommands, roundInput
	if s.opt.Log != nil {
		l.most.tasks, l.most.in = epoll.MaxEvents, loggedInput
	}
	l.in = make([]byte, 0, l.most.in+readSize)
	l.caller = s.broker.NewCaller(l)
	return l, nil
}

// post puts something into the mailbox.
func (l *loop) post(put func(*mailbox)) {
	l.mail.Lock()
	defer l.mail.Unlock()
	put(&l.mail)
	l.wake()
}

// wake tells the loop that there is mail; with the mailbox locked.
func (l *loop) wake() {
	l.mail.some.Store(true)
	if l.mail.asleep {
		l.mail.asleep = false
		l.poll.Wake()
	}
}

// run is the loop. It ends when it was told to stop and no socket is left.
func (l *loop) run() {
	defer l.poll.Close()
	for {
		if len(l.todo)+len(l.events) == 0 {
			l.wait()
		}
		l.now = int64(time.Since(l.begun))
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

// wait waits for events, unless there is something to do without.
func (l *loop) wait() {
	most := time.Duration(0)
	if len(l.again)+len(l.tasks) == 0 {
		l.mail.Lock()
		if !l.mail.some.Load() {
			most = l.untilSweep()
			l.mail.asleep = true
		}
		l.mail.Unlock()
	}
	l.events = l.poll.Wait(most)
	if most != 0 {
		l.mail.Lock()
		l.mail.asleep = false
		l.mail.Unlock()
	}
	l.pass++
	l.todo, l.again = l.again, l.todo
	if l.srv.opt.Log == nil {
		ready := len(l.todo) + len(l.events)
		l.most.tasks = max(fewTasks, (ready+roundsPerPass-1)/roundsPerPass)
	}
}

// readMail deals with what other goroutines, and the turn, have sent: it ends the
// waits that are over, and takes in new sockets.
func (l *loop) readMail() {
	if !l.mail.some.Load() {
		return
	}
	l.mail.Lock()
	l.mail.some.Store(false)
	joined, over := l.mail.joined, l.mail.over
	l.mail.joined, l.mail.over = nil, l.spare.over[:0]
	abort := l.mail.abort && !l.aborting
	l.stopping, l.aborting = l.mail.stop, l.mail.abort
	l.mail.Unlock()
	for _, s := range over {
		l.answer(s)
	}
	clear(over)
	l.spare.over = over
	for _, s := range joined {
		l.join(s)
	}
	if abort {
		for _, s := range l.socks {
			l.drop(s, errStopped)
		}
	}
}

// gather reads and parses, until the round is full.
func (l *loop) gather() {
	at := 0
	for ; at < len(l.todo) && !l.full(); at++ {
		s := l.todo[at]
		l.todo[at] = nil
		s.queued = false
		if s.idle() {
			s.pass = l.pass
			l.parse(s, nil)
		}
	}
	l.todo = slices.Delete(l.todo, 0, at)
	for len(l.events) > 0 && !l.full() {
		ev := l.events[0]
		l.events = l.events[1:]
		if s := l.socks[ev.Index]; s != nil && s.pass != l.pass && !s.gone {
			l.handle(s, ev.Events)
		}
	}
}

// full reports whether the round has enough to do.
func (l *loop) full() bool {
	return len(l.tasks) >= l.most.tasks || len(l.cmds) >= l.most.cmds || len(l.in) >= l.most.in
}

// handle deals with what has happened to a socket.
func (l *loop) handle(s *socket, events epoll.Events) {
	switch {
	case len(s.out) > 0:
		l.drain(s)
	case s.eof: // a reset, which a write will tell
	case s.full():
		if events.Has(epoll.Failed) {
			l.drop(s, unix.ECONNRESET)
		} else if events.Has(epoll.HalfClosed | epoll.HungUp) {
			l.tasks = append(l.tasks, task{s: s, what: halfClose})
		}
	default:
		l.receive(s)
	}
}

// receive reads once.
func (l *loop) receive(s *socket) {
	src, err := l.read(s)
	switch {
	case err == epoll.ErrWouldBlock:
	case err == io.EOF:
		s.eof = true
		if s.waiting {
			l.tasks = append(l.tasks, task{s: s, what: halfClose})
		} else {
			l.drop(s, err) // a command that is not whole is dropped
			return
		}
	case err != nil:
		l.drop(s, err)
		return
	default:
		s.heard = l.now
		if !s.waiting {
			l.parse(s, src)
		}
	}
	l.watch(s)
}

// read reads into the round's buffer and returns what it read there or, if there
// is unread input already, into the socket's own.
func (l *loop) read(s *socket) (src []byte, err error) {
	if s.waiting || !s.in.empty() {
		return nil, s.in.fill(s.fd, s.parser.Need())
	}
	at := len(l.in)
	src = l.in[at : at+readSize]
	n, err := s.fd.Read(src)
	l.in = l.in[:at+n]
	return src[:n:n], err
}

// parse makes a task of the commands that are whole in src; nil stands for what
// the socket has kept. A command that takes several turns comes before them.
func (l *loop) parse(s *socket, src []byte) {
	if s.kick != nil {
		l.tasks = append(l.tasks, task{s: s, what: execute})
		return
	}
	buf := src
	if src == nil {
		buf = s.in.unread()
	}
	t := task{s: s, what: execute, from: len(l.cmds), src: src}
	l.cmds, t.taken = s.parse(buf, l.cmds)
	if t.to = len(l.cmds); t.to > t.from {
		l.tasks = append(l.tasks, t)
		return
	}
	s.keep(src, t.taken)
	if s.eof {
		l.drop(s, io.EOF)
	}
}

// turn runs one turn of the broker for all that has been gathered.
func (l *loop) turn() {
	if len(l.tasks) == 0 {
		return
	}
	if l.caller.DoNow() != nil {
		l.failed()
	}
}

// adapt lets the next round have fewer commands if the replies of this one were
// many bytes, and more if they were not.
func (l *loop) adapt(replies int) {
	if replies > roundOutput {
		l.most.cmds = max(fewCommands, len(l.cmds)*roundOutput/replies)
	} else {
		l.most.cmds = min(roundCommands, l.most.cmds+l.most.cmds/8+1)
	}
}

// Apply implements broker.Request.
func (l *loop) Apply(e *engine.Engine, now int64) int64 {
	replies := 0
	for i := range l.tasks {
		t := &l.tasks[i]
		s := t.s
		room := l.out[len(l.out):]
		if t.what == execute { // so all its replies have been written
			s.out = room
		}
		t.executed, now = s.act(e, now, t.what, l.cmds[t.from:t.to])
		if t.what == execute && cap(s.out) == cap(room) { // they have not outgrown that
			l.out = l.out[:len(l.out)+len(s.out)]
		}
		replies += len(s.out)
		now++
	}
	l.adapt(replies)
	return now - 1
}

// failed tells that the changes of the turn are not durable.
func (l *loop) failed() {
	for i := range l.tasks {
		l.tasks[i].s.failed()
	}
}

// deliver writes the replies, those to waiting workers first, and gets ready
// for the next round.
func (l *loop) deliver() {
	done := l.tasks
	l.tasks = l.spare.tasks[:0]
	l.readMail()
	for i := range done {
		switch t := &done[i]; t.what {
		case leave:
			l.close(t.s)
		case execute:
			l.conclude(t)
		}
	}
	clear(done)
	clear(l.cmds) // they must not keep buffers alive
	l.spare.tasks, l.cmds = done, l.cmds[:0]
	l.in, l.out = l.in[:0], l.out[:0]
}

// conclude ends the task of a socket whose commands, or some of them, have been
// executed.
func (l *loop) conclude(t *task) {
	s := t.s
	n := t.to - t.from
	more := n == 0 || n == maxBatch || s.kick != nil // there may be; 0 is a command that goes on
	if t.executed < n {
		t.taken = l.cmds[t.from+t.executed-1].end
		s.reparse()
		more = true
	}
	s.keep(t.src, t.taken)
	if !l.flush(s) {
		return
	}
	if s.quit && len(s.out) == 0 {
		l.drop(s, errQuit)
		return
	}
	if (more || s.eof) && s.idle() {
		l.repeat(s)
	}
	l.watch(s)
}

// repeat makes a socket part of the next pass, if it has something to do: it has
// unread input or is within a command, or its client has ended.
func (l *loop) repeat(s *socket) {
	if !s.queued && (s.eof || !s.in.empty() || s.kick != nil) {
		s.queued = true
		l.again = append(l.again, s)
	}
}
