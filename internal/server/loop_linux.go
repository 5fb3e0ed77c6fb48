package server

import (
	"io"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/engine"
)

const (
	// roundInput is how many bytes a loop reads for all sockets of a round
	// before it reads into buffers of their own.
	roundInput = 512 << 10

	// readSize is how many bytes it reads from one socket at a time.
	readSize = 64 << 10

	// leastRead is the least room worth reading into.
	leastRead = 4 << 10

	// roundOutput is how many bytes of replies the turn of a round writes
	// before it makes buffers for each socket.
	roundOutput = 256 << 10

	// roundCommands is how many commands a round has, more or less, when many
	// clients flood the server: then each gets fewer than maxBatch.
	roundCommands = 2048

	// fewCommands is the least that each gets.
	fewCommands = 16
)

// A loop serves its share of the sockets from one goroutine. It goes round:
//
//	wait     for sockets that have something to read, or can be written again
//	gather   read from each, once, and parse
//	turn     one turn of the broker, for the commands of all of them
//	deliver  write to each its replies
//
// So a command costs one read and one write, and its share of one wait and of
// one turn; and an idle connection costs no buffer.
type loop struct {
	srv    *Server
	caller *broker.Caller
	poll   *poller
	begun  time.Time
	mail   mailbox

	// Owned by the goroutine, and lent to the turn.
	now      int64     // ns since begun; that of the round
	number   uint64    // of the round
	socks    []*socket // by index; nil: free
	free     []int     // indexes
	open     int       // sockets
	sweepAt  int64     // when to look for silent clients
	stopping bool      // as the mailbox says
	aborting bool

	tasks []task    // for the next turn, in the order in which they came up
	again []*socket // have input that was read and not executed
	spare struct {  // to be used again
		tasks       []task
		again, over []*socket
	}

	// Of the round.
	cmds  []parsed
	quota int    // commands of one socket
	in    []byte // input; the commands refer to it
	out   []byte // replies
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
	sync.Mutex
	joined []*socket // new ones
	over   []*socket // whose wait is over
	stop   bool      // end connections when they have finished what they are about
	abort  bool      // end them at once
	asleep bool      // the loop waits for events: ring when there is mail
}

func newLoop(s *Server) (*loop, error) {
	poll, err := newPoller()
	if err != nil {
		return nil, err
	}
	l := &loop{srv: s, poll: poll, begun: time.Now(), in: make([]byte, 0, roundInput), out: make([]byte, 0, roundOutput)}
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

// wake ends the loop's wait, if it waits; with the mailbox locked.
func (l *loop) wake() {
	if l.mail.asleep {
		l.mail.asleep = false
		l.poll.ring()
	}
}

// run is the loop. It ends when it was told to stop and no socket is left.
func (l *loop) run() {
	defer l.poll.close()
	for {
		events := l.wait()
		l.number++
		l.now = int64(time.Since(l.begun))
		l.readMail()
		l.gather(events)
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
func (l *loop) wait() []unix.EpollEvent {
	most := time.Duration(0)
	l.mail.Lock()
	if len(l.again)+len(l.tasks)+len(l.mail.joined)+len(l.mail.over) == 0 && l.mail.stop == l.stopping && l.mail.abort == l.aborting {
		most = l.untilSweep()
		l.mail.asleep = true
	}
	l.mail.Unlock()
	events := l.poll.wait(most)
	if most != 0 {
		l.mail.Lock()
		l.mail.asleep = false
		l.mail.Unlock()
	}
	return events
}

// readMail deals with what other goroutines have sent.
func (l *loop) readMail() {
	l.mail.Lock()
	joined := l.mail.joined
	l.mail.joined = nil
	abort := l.mail.abort && !l.aborting
	l.stopping, l.aborting = l.mail.stop, l.mail.abort
	l.mail.Unlock()
	for _, s := range joined {
		l.join(s)
	}
	if abort {
		for _, s := range l.socks {
			l.drop(s, errStopped)
		}
	}
	l.answerWaits()
}

// answerWaits writes to those whose wait is over.
func (l *loop) answerWaits() {
	l.mail.Lock()
	over := l.mail.over
	l.mail.over = l.spare.over[:0]
	l.mail.Unlock()
	for _, s := range over {
		l.answer(s)
	}
	clear(over)
	l.spare.over = over
}

// gather reads and parses.
func (l *loop) gather(events []unix.EpollEvent) {
	l.quota = min(maxBatch, max(fewCommands, roundCommands/(len(events)+len(l.again)+1)))
	again := l.again
	l.again = l.spare.again[:0]
	for _, s := range again {
		s.queued = false
		if s.idle() {
			s.round = l.number
			l.parse(s, nil)
		}
	}
	clear(again)
	l.spare.again = again
	for i := range events {
		if index := int(events[i].Fd); index == bellIndex {
			l.poll.silence()
		} else if s := l.socks[index]; s != nil && s.round != l.number && !s.gone {
			l.handle(s, events[i].Events)
		}
	}
}

// handle deals with what has happened to a socket.
func (l *loop) handle(s *socket, events uint32) {
	switch {
	case len(s.out) > 0:
		l.drain(s)
	case s.eof: // a reset, which a write will tell
	case s.full():
		if events&unix.EPOLLERR != 0 {
			l.drop(s, unix.ECONNRESET)
		} else if events&(unix.EPOLLRDHUP|unix.EPOLLHUP) != 0 {
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
	case err == unix.EAGAIN:
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

// read reads into the round's buffer and returns what it read there, or, if
// there is unread input already or no room, into the socket's own.
func (l *loop) read(s *socket) (src []byte, err error) {
	at := len(l.in)
	if room := cap(l.in) - at; s.waiting || !s.in.empty() || room < leastRead {
		return nil, s.in.fill(s.fd, s.parser.Need())
	} else {
		src = l.in[at : at+min(room, readSize)]
	}
	n, err := s.fd.Read(src)
	l.in = l.in[:at+n]
	return src[:n:n], err
}

// parse makes a task of the commands that are whole in src; nil stands for what
// the socket has kept.
func (l *loop) parse(s *socket, src []byte) {
	buf := src
	if src == nil {
		buf = s.in.unread()
	}
	t := task{s: s, what: execute, from: len(l.cmds), src: src}
	l.cmds, t.taken = s.parse(buf, l.cmds, l.quota)
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
	if len(l.tasks) > 0 {
		l.caller.Do()
	}
}

// Apply implements broker.Request.
func (l *loop) Apply(e *engine.Engine, now int64) int64 {
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
		now++
	}
	return now - 1
}

// Failed implements broker.Request.
func (l *loop) Failed(error) {
	for i := range l.tasks {
		l.tasks[i].s.failed()
	}
}

// deliver writes the replies, those to waiting workers first, and gets ready
// for the next round.
func (l *loop) deliver() {
	done := l.tasks
	l.tasks = l.spare.tasks[:0]
	l.answerWaits()
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
	more := n == l.quota // there may be
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

// repeat makes a socket, which has unread input or has ended, part of the next
// round.
func (l *loop) repeat(s *socket) {
	if !s.queued && (s.eof || !s.in.empty()) {
		s.queued = true
		l.again = append(l.again, s)
	}
}
