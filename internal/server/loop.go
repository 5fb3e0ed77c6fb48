package server

import (
	"io"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/conversation"
	"github.com/beanpole-mq/beanpole/internal/server/epoll"
)

const (
	// maxRoundTasks is how many sockets a round has at most where a turn costs no write
	// to a log. The replies to fewer wake their clients at nearly the same time; among
	// more, the first need not wait for the last.
	maxRoundTasks = 64

	// readSize is how many bytes are read from one socket at a time: a job of
	// the default size with its line.
	readSize = 64 << 10

	// maxUnsynced is how many tasks may wait for a sync: then one begins, even if more
	// sockets are ready.
	maxUnsynced = 4 * epoll.MaxEvents

	// unsyncedTime is how long a sync waits for more sockets to be ready, and their tasks
	// to share it, from the first task on; ns. It is about what maxUnsynced tasks take.
	unsyncedTime = int64(4 * time.Millisecond)

	// yieldPause is how long the loop goes on before it yields; ns.
	yieldPause = int64(5 * time.Millisecond)

	// closesPerRound is how many sockets are closed in a round. The kernel takes ten
	// times as long for it as for a read, and thousands of clients may leave at once.
	closesPerRound = 4

	// leavesPerPass is how many clients that have hung up are served in a pass. More wait
	// until the poller reports them again, and those that are still there come in
	// between.
	leavesPerPass = 16

	// writesPerRound is how many pieces of a long reply a socket is given in a
	// round; others come in between.
	writesPerRound = 3

	// maxPiece is how many bytes of a large body are written at a time. What is copied
	// into replies is less.
	maxPiece = 512 << 10

	// passOutput is how many bytes are written in a pass, more or less: about a
	// millisecond's worth. Then sockets get only the first piece of new replies, and
	// those that are in the middle of some have to wait.
	passOutput = 1 << 20
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
//
// Where the log syncs, a round is delivered when it is settled. Meanwhile the loop
// goes on with the sockets that are not in it, and what they change is for the
// next sync: that begins when the last one has ended, its replies are written, and
// the clients that have answered by then are served. So most clients share each sync.
type loop struct {
	srv    *Server
	caller *broker.Caller
	poll   Poller
	mail   mailbox

	first   bool                // it waits for the listening sockets, too
	opening *conversation.Batch // opens the sessions of clients that it has accepted
	opener  *broker.Caller      // with a turn for that

	// driving is held while the goroutine drives conversations, and not while it waits.
	driving  sync.Mutex
	farewell farewell

	// Owned by the goroutine.
	now      int64  // ns, as Server.now; that of the round
	pass     uint64 // how often it has waited
	clients  clients
	dials    int    // goroutines that open streams to the leader
	yieldAt  int64  // when to yield
	timers   timers // sockets that want to be looked at later
	moreDue  bool   // a turn is needed even if no socket has anything for it
	stopping bool   // as the mailbox says
	aborting bool
	ready    []*socket // for the next pass: they have input that was read and not executed
	gone     []*socket // their conversations are over, and they are to be closed

	noMessages messages // whose lists the mailbox gets back

	// Of the pass, and not dealt with yet.
	serving []*socket // that were ready
	events  []epoll.Event
	arrived []*socket // something has happened to them that the poller does not tell; for the next pass, too
	written int       // bytes, in this pass
	putOff  []*socket // could take more of their replies when enough was written; they come first in the next pass
	leaves  int       // clients that have hung up, and were served in this pass

	// The round that is gathered; it is lent to the turn.
	round     *round
	turning   *round         // the one whose turn is under way
	in        []byte         // input; the commands of the round refer to it
	discarded [16 << 10]byte // input that nobody wants
	limit     struct {       // when the round is full
		tasks, commands, input int
	}

	unused    []*round // rounds that were delivered
	unsettled int      // rounds whose turn is over, but whose changes may not be durable
	syncing   int      // unsettled rounds that the sync under way is for
	unsynced  int      // tasks of the other unsettled rounds

	unsyncedAt int64 // ns; when the first of those rounds was gathered

	syncedAt int64 // ns; when the sync under way began, 0 if it is known to have ended
	syncTime int64 // ns; how long one takes, a moving average
}

func newLoop(s *Server, newPoller func() (Poller, error)) (*loop, error) {
	poll, err := newPoller()
	if err != nil {
		return nil, err
	}
	if err := s.departures.nest(poll); err != nil {
		poll.Close()
		return nil, err
	}
	l := &loop{srv: s, poll: poll}
	l.round = l.newRound()
	l.limit.tasks, l.limit.commands, l.limit.input = maxRoundTasks, maxRoundCommands, roundInput
	if s.opt.Log != nil {
		l.limit.tasks = epoll.MaxEvents
	}
	l.in = make([]byte, 0, l.limit.input+readSize)
	l.caller = s.broker.NewCaller(l)
	l.opening = conversation.NewBatch(0)
	l.opener = s.broker.NewCaller(l.opening)
	return l, nil
}

// run is the loop. It ends when it was told to stop and no socket is left.
func (l *loop) run() {
	defer l.close()
	l.driving.Lock()
	defer l.driving.Unlock()
	for !l.stopping || l.clients.taken()+l.dials > 0 {
		l.step()
	}
}

// step waits, unless the pass goes on, and makes a round of it.
func (l *loop) step() {
	if len(l.serving)+len(l.events) == 0 {
		l.wait()
	}
	l.now = l.srv.now()
	l.yield()
	l.readMail()
	l.gather()
	l.turn()
	l.closeSome()
}

// yield lets the scheduler of the Go runtime run, every few milliseconds. It takes the
// processor away from a goroutine that has run for 10 ms without it, as soon as it finds
// it in a system call; and after that its monitor looks every 20 us for a while. That was
// a twentieth of the server's processor time where replies wait for a sync.
func (l *loop) yield() {
	if l.now >= l.yieldAt {
		l.yieldAt = l.now + yieldPause
		runtime.Gosched()
	}
}

// close ends the loop: nobody may wake the poller any more.
func (l *loop) close() {
	l.mail.Lock()
	defer l.mail.Unlock()
	l.mail.closed = true
	l.srv.departures.unnest(l.poll)
	l.poll.Close()
}

// wait waits for events, unless there is something to do without. A sync begins
// when nothing is ready any more: the more commands share one, the better, and
// clients which were just answered are soon back.
func (l *loop) wait() {
	timeout := time.Duration(0)
	if l.unsettled > 0 && l.syncing == 0 {
		l.events = nil
		more := false
		if l.unsynced < min(l.clients.taken(), maxUnsynced) && l.now-l.unsyncedAt < unsyncedTime {
			l.events = l.poll.Wait(0)
			more = len(l.events)+l.atHand() > 0 || l.mail.streams.Load()
		}
		if more || l.sync() {
			l.begin()
			return
		}
	}
	if l.atHand()+len(l.gone) == 0 && !l.moreDue {
		l.mail.Lock()
		if !l.mail.waiting.Load() {
			timeout = l.untilDue()
			l.mail.asleep = true
		}
		l.mail.Unlock()
	}
	l.driving.Unlock()
	l.events = l.poll.Wait(timeout)
	l.driving.Lock()
	if timeout != 0 {
		l.mail.Lock()
		l.mail.asleep = false
		l.mail.Unlock()
	}
	l.begin()
}

// atHand is how much there is to do in the next pass, whatever the poller reports.
func (l *loop) atHand() int { return len(l.ready) + len(l.arrived) + len(l.putOff) + l.round.Len() }

// begin begins a pass, which serves what is ready. New clients come first.
func (l *loop) begin() {
	hungUp := len(l.events) >= epoll.MaxEvents // that of departures may be among the others
	if len(l.events) > 0 && l.events[0].Index == epoll.Nested {
		l.events, hungUp = l.events[1:], true
	}
	if hungUp {
		l.srv.departures.take()
	}
	if len(l.events) > 0 && l.events[0].Index == epoll.Listeners {
		l.events = l.events[1:]
		l.accept(maxAccepted)
	}
	l.takeDue()
	l.pass++
	l.leaves, l.written = 0, 0
	if l.srv.opt.Member != nil {
		l.endsFirst()
	}
	l.serving, l.ready = l.ready, l.serving
}

// gather reads and parses, until the round is full.
func (l *loop) gather() {
	n := 0
	for ; n < len(l.serving) && !l.full(); n++ {
		s := l.serving[n]
		l.serving[n] = nil
		s.pass = l.pass
		if s.proxy != nil {
			l.proxyDue(s)
			continue
		}
		if s.State() == conversation.Reading { // if the process stood still its time may be over, but what came meanwhile counts
			l.input(s)
		}
		if s.State() != conversation.Executing {
			s.Advance(l.round.Batch, l.now)
		}
		l.proceed(s)
	}
	l.serving = slices.Delete(l.serving, 0, n)
	l.continueWriting()
	for len(l.events) > 0 && !l.full() {
		ev := l.events[0]
		l.events = l.events[1:]
		switch s := l.clients.all[ev.Index]; {
		case s == nil || ev.Events == 0:
		case s.proxy != nil:
			l.handleProxied(s, ev.Events)
			l.checkBuffer(s)
		case !l.later(s, ev.Events):
			l.handle(s, ev.Events)
			l.checkBuffer(s)
		}
	}
	if len(l.arrived) > 0 {
		l.serveListed()
	}
}

// later reports whether a socket waits for another pass, in which the poller reports
// again what has happened: it was served in this one, or its client has hung up, as many
// others have.
func (l *loop) later(s *socket, events epoll.Events) bool {
	switch {
	case s.interest.Has(epoll.Once): // it is not reported again
		return false
	case s.pass == l.pass:
		return true
	case !events.Has(epoll.HalfClosed | epoll.HungUp), s.State() == conversation.Closed:
		return false
	}
	l.leaves++
	return l.leaves > leavesPerPass
}

// full reports whether the round has enough to do.
func (l *loop) full() bool {
	return l.round.Len() >= l.limit.tasks || l.round.Commands() >= l.limit.commands || len(l.in) >= l.limit.input
}

// handle deals with what has happened to a socket.
func (l *loop) handle(s *socket, events epoll.Events) {
	switch s.State() {
	case conversation.Opening, conversation.Reading:
		l.read(s)
	case conversation.Writing:
		if !s.putOff && l.written >= passOutput {
			s.putOff = true
			l.putOff = append(l.putOff, s)
		}
		if !s.putOff {
			l.proceed(s) // a write will tell of a reset
		}
	case conversation.Lingering:
		l.proceed(s) // as a read will
	case conversation.Waiting:
		// What the client sends after the reserve stays with the kernel.
		switch {
		case events.Has(epoll.Failed):
			l.end(s, unix.ECONNRESET)
		case events.Has(epoll.HalfClosed | epoll.HungUp):
			s.HangUp(l.round.Batch)
			l.expect(s, 0)
		case s.isEncrypted() && !s.AheadIsFull(): // it may be the farewell of TLS, which is the end
			l.readAhead(s)
		default:
			l.expect(s, epoll.HalfClosed)
		}
	case conversation.Throttled:
		// What the client has sent stays with the kernel, even if it hangs up.
		if events.Has(epoll.Failed) {
			l.end(s, unix.ECONNRESET)
		}
	default: // it wants nothing of the socket now
		if events.Has(epoll.Failed) {
			l.end(s, unix.ECONNRESET)
		} else {
			l.expect(s, 0)
		}
	}
}

// read reads once, and goes on with what the conversation wants.
func (l *loop) read(s *socket) {
	l.input(s)
	if s.State() != conversation.Executing { // as it is most often: then deliver goes on with it
		l.proceed(s)
	}
}

// readAhead reads what comes after a reserve that waits.
func (l *loop) readAhead(s *socket) {
	buf := l.scratch()
	switch n, err := s.fd.Read(buf); err {
	case nil:
		s.Receive(l.round.Batch, l.now, buf[:n])
	case epoll.ErrWouldBlock:
	case io.EOF:
		s.EndInput(l.round.Batch)
		l.expect(s, 0)
	default:
		l.end(s, err)
	}
}

// input reads once: into the round's buffer or, if there is unread input already,
// after that.
func (l *loop) input(s *socket) {
	var n int
	var err error
	if s.Unread() {
		if n, err = s.fd.Read(s.Space()); err == nil {
			s.Filled(l.now, n)
			s.Advance(l.round.Batch, l.now)
		}
	} else {
		at := len(l.in)
		buf := l.in[at : at+readSize]
		n, err = s.fd.Read(buf)
		l.in = l.in[:at+n]
		if err == nil {
			s.Receive(l.round.Batch, l.now, buf[:n:n])
		}
	}
	switch err {
	case nil, epoll.ErrWouldBlock:
	case io.EOF:
		s.EndInput(l.round.Batch)
	default:
		l.end(s, err)
	}
}

// proceed does for a socket what its conversation wants: it writes, or makes it a
// part of the next pass, or waits for an event, or closes it.
func (l *loop) proceed(s *socket) {
	if s.State() == conversation.Writing {
		l.write(s)
	}
	if s.State() == conversation.Lingering {
		l.linger(s)
	}
	switch s.State() {
	case conversation.Ready:
		l.ready = append(l.ready, s)
		return
	case conversation.Closed:
		l.remove(s)
		return
	case conversation.Writing:
		l.expect(s, epoll.Writable)
	case conversation.Reading, conversation.Lingering:
		l.expect(s, epoll.Readable|epoll.HalfClosed)
	case conversation.Throttled:
		// The poller reports once meanwhile if the client hangs up, which ends
		// nothing: it may have sent commands before.
		l.expect(s, epoll.Once)
	case conversation.Waiting:
		if !s.interest.Has(epoll.HalfClosed) && !s.HasHungUp() {
			l.expect(s, epoll.Readable|epoll.HalfClosed)
		}
	}
	l.timers.set(s, s.Next())
}

// linger throws away what the client still sends, until it closes the connection.
func (l *loop) linger(s *socket) {
	n, err := s.fd.Read(l.discarded[:])
	if err == epoll.ErrWouldBlock {
		err = nil
	}
	if s.Drained(l.now, n, err) {
		s.fd.CloseWrite() // an error is that of a connection that has failed, which reading will tell
	}
}

// write writes what the socket takes, but no more than its share.
func (l *loop) write(s *socket) {
	for range writesPerRound {
		out := s.Output()
		out = out[:min(len(out), maxPiece)]
		n, err := s.fd.Write(out)
		if err != nil {
			l.end(s, err)
			return
		}
		l.written += n
		s.Wrote(l.now, n)
		if n < len(out) || s.State() != conversation.Writing || l.written >= passOutput {
			return
		}
	}
}

// continueWriting lets those write that were put off.
func (l *loop) continueWriting() {
	n := 0
	for ; n < len(l.putOff) && l.written < passOutput; n++ {
		s := l.putOff[n]
		s.putOff = false
		if s.State() == conversation.Writing {
			l.proceed(s)
		}
	}
	l.putOff = slices.Delete(l.putOff, 0, n)
}

// expect tells the poller what to wait for.
func (l *loop) expect(s *socket, events epoll.Events) {
	if events == s.interest {
		return
	}
	s.interest = events
	if l.checkBuffer(s); s.isStream() {
		return
	}
	if err := l.poll.Modify(s.fd, s.index, events); err != nil {
		l.end(s, err)
	}
}
