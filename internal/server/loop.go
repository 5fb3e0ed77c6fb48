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
	// maxBatchTasks is the maximum number of sockets in a batch if the turn writes no
	// log. In a larger batch, the first replies would wait for the last command.
	maxBatchTasks = 64

	// readSize is the maximum number of bytes that a loop reads from a socket at a time.
	// It fits a command with a body of the default maximum size.
	readSize = 64 << 10

	// maxUnsynced is the number of tasks after which a sync starts, even if more sockets
	// are ready.
	maxUnsynced = 4 * epoll.MaxEvents

	// unsyncedTime is the time in ns for which a sync waits for more sockets to share it,
	// counted from its first task. maxUnsynced tasks take about as long.
	unsyncedTime = int64(4 * time.Millisecond)

	yieldPause = int64(5 * time.Millisecond) // ns between two calls of Gosched

	// closesPerBatch is the maximum number of sockets that a loop closes in a batch. A
	// close costs the kernel ten times as much as a read, and thousands of clients can
	// disconnect at once.
	closesPerBatch = 4

	// writesPerBatch is the maximum number of pieces of a long reply that a loop writes
	// to a socket in a batch.
	writesPerBatch = 3

	// maxPiece is the maximum number of bytes of a large body that a loop writes at a
	// time. Copied replies are shorter.
	maxPiece = 512 << 10

	// iterationOutput is the approximate number of bytes that a loop writes in an
	// iteration, which takes a millisecond. Beyond it, the loop writes only the first
	// piece of new replies.
	iterationOutput = 1 << 20
)

// A loop drives the conversations of its sockets in one goroutine. It repeats:
//
//	wait     for sockets that are readable, or writable again
//	gather   read from each, once, and parse
//	turn     run one turn of the broker for the commands of all of them
//	deliver  write the replies of each
//
// So a command costs one read, one write, and a share of a wait and a turn. An idle
// connection needs no buffer. The sockets that are ready after a wait form an iteration.
// An iteration takes as many batches of gather, turn and deliver as necessary, and each
// socket is in one of them.
//
// The poller reports most sockets. Two lists contain the others: the runnable sockets of
// this iteration, and those deferred to the next one. A socket is runnable when it is
// deferred for unexecuted input or output, when its timer fires, and when it has buffered
// input. The state of the conversation determines the action:
//
//	state               runnable         event of the poller          afterwards (proceed)
//	Opening, Reading    read, Advance    read                         expect input
//	Ready               Advance          -                            defer
//	Executing           -                end if the socket failed     deliver continues
//	Settling, Leaving   Advance          end if the socket failed     deliver continues
//	Writing             Advance          -                            write; then expect
//	                                                                  room, or defer
//	Waiting             Advance          end if failed, HangUp, or    expect a hang-up
//	                                     read ahead if encrypted
//	Lingering           Advance          -                            discard input, expect more
//	Closed              -                -                            close
//
// If the log syncs, the loop delivers a batch when it is settled, and serves other
// sockets until then. Their changes wait for the next sync. It starts when the current
// sync has ended, its replies are written, and the clients that have answered are served.
// So most clients share each sync.
type loop struct {
	srv    *Server
	caller *broker.Caller
	poll   Poller
	inbox  inbox

	first  bool           // polls the listening sockets as well
	opener *broker.Caller // opens the sessions of new clients

	// driving is locked while the goroutine drives conversations, and unlocked while it
	// waits.
	driving    sync.Mutex
	hangupStep hangupStep

	// Owned by the goroutine.
	now       int64  // time of the batch, in ns like Server.now
	iteration uint64 // number of the iteration
	clients   clients
	yieldAt   int64     // time of the next yield
	timers    timers    // sockets that need Advance later
	moreDue   bool      // a turn is needed even if no socket has commands
	ending    ending    // copied from the inbox
	closing   []*socket // sockets to close: their conversations are over

	delivering  bool   // the batch of a settled turn is to be delivered next
	state       []byte // a buffer
	sentTerm    uint64 // the leadership for which sentClients was sent
	sentClients int    // number of clients to resume, as last sent to the leader

	spare messages // contains the lists for the next exchange with the inbox

	// The state of the iteration.
	runnable []*socket     // to serve without an event
	deferred []*socket     // runnable in the next iteration
	events   []epoll.Event // not handled yet
	written  int           // in bytes

	// The batch being gathered. The turn borrows it.
	batch     *batch
	in        []byte         // the input to which the commands of the batch refer
	discarded [16 << 10]byte // input of lingering clients, which is discarded
	limit     limit          // limit of the batch

	unused []*batch // delivered batches, for reuse
	syncs
}

func newLoop(s *Server, newPoller func() (Poller, error)) (*loop, error) {
	poll, err := newPoller()
	if err != nil {
		return nil, err
	}
	if err := s.hangups.addLoop(poll); err != nil {
		poll.Close()
		return nil, err
	}
	l := &loop{srv: s, poll: poll}
	l.inbox.poll = poll
	l.batch = l.newBatch()
	l.limit.tasks, l.limit.commands, l.limit.input = maxBatchTasks, maxBatchCommands, batchInput
	if s.opt.Journal != nil {
		l.limit.tasks = epoll.MaxEvents
	}
	l.in = make([]byte, 0, l.limit.input+readSize)
	l.caller = s.broker.NewCaller(l)
	l.opener = s.broker.NewCaller(opening{s})
	return l, nil
}

// run runs the loop until it is stopped and has no sockets.
func (l *loop) run() {
	defer l.close()
	l.driving.Lock()
	defer l.driving.Unlock()
	for !l.ending.stop || l.clients.taken() > 0 {
		l.step()
	}
}

// step runs a batch. If the last iteration is over, it waits for events first.
func (l *loop) step() {
	if len(l.runnable)+len(l.events) == 0 {
		l.wait()
	}
	l.now = l.srv.now()
	l.yield()
	l.drainInbox()
	l.gather()
	l.turn()
	l.closeSome()
}

// yield calls the Go scheduler every few milliseconds. When a goroutine that has run for
// 10 ms is in a system call, the runtime preempts it. The runtime's monitor then checks
// every 20 us for a while. This took a twentieth of the server's CPU time when replies
// waited for syncs.
func (l *loop) yield() {
	if l.now >= l.yieldAt {
		l.yieldAt = l.now + yieldPause
		runtime.Gosched()
	}
}

// close closes the poller. The loop must not be woken afterwards.
func (l *loop) close() {
	l.inbox.Lock()
	defer l.inbox.Unlock()
	l.inbox.closed = true
	l.poll.Close()
}

// wait waits for events, unless there is other work. It starts a sync when no socket is
// ready, so that many commands share the sync: clients that were just answered soon send
// again.
func (l *loop) wait() {
	timeout := time.Duration(0)
	if l.unsettled > 0 && l.syncing == 0 {
		l.events = nil
		more := false
		if l.unsynced < min(l.clients.taken(), maxUnsynced) && l.now-l.unsyncedAt < unsyncedTime {
			l.events = l.poll.Wait(0)
			more = len(l.events)+len(l.deferred)+l.batch.Len() > 0 || l.inbox.streams.Load()
		}
		if more || l.sync() {
			l.begin()
			return
		}
	}
	if len(l.deferred)+l.batch.Len()+len(l.closing) == 0 && !l.moreDue {
		l.inbox.Lock()
		if !l.inbox.waiting.Load() {
			timeout = l.timers.until(l.srv.now())
			l.inbox.asleep = true
		}
		l.inbox.Unlock()
	}
	l.driving.Unlock()
	l.events = l.poll.Wait(timeout)
	l.driving.Lock()
	if timeout != 0 {
		l.inbox.Lock()
		l.inbox.asleep = false
		l.inbox.Unlock()
	}
	l.begin()
}

// begin starts an iteration, which handles new clients first.
func (l *loop) begin() {
	l.iteration++
	l.written = 0
	l.runnable, l.deferred = l.deferred, l.runnable
	hungUp := len(l.events) >= epoll.MaxEvents-1 // the poller of hangups might be among the unreported events
	accept := false
	for ; len(l.events) > 0 && l.events[0].Index < 0; l.events = l.events[1:] {
		hungUp = hungUp || l.events[0].Index == epoll.Nested
		accept = accept || l.events[0].Index == epoll.Listeners
	}
	if hungUp {
		l.srv.hangups.take()
	}
	if accept {
		l.srv.acceptors.accept(l, maxAccepted)
	}
	if len(l.timers) > 0 {
		l.timers.take(l.srv.now(), l.list)
	}
	if l.srv.opt.Cluster != nil {
		l.endsFirst()
	}
}

// gather serves sockets until the batch is full.
func (l *loop) gather() {
	n := 0
	for ; n < len(l.runnable) && !l.limit.reached(l.batch, l.in); n++ {
		if s := l.runnable[n]; s.isIn(l) && !s.closing {
			s.listed = false
			l.serve(s, s.readiness(), true)
		}
	}
	l.runnable = slices.Delete(l.runnable, 0, n)
	for len(l.events) > 0 && !l.limit.reached(l.batch, l.in) {
		ev := l.events[0]
		l.events = l.events[1:]
		if s := l.clients.all[ev.Index]; s != nil && ev.Events != 0 && !l.later(s) {
			l.serve(s, ev.Events, false)
		}
	}
}

// list makes a socket runnable. A socket that was served in this iteration is deferred to
// the next one.
func (l *loop) list(s *socket) {
	switch {
	case s.listed || s.closing:
		return
	case s.iteration == l.iteration:
		l.deferred = append(l.deferred, s)
	default:
		l.runnable = append(l.runnable, s)
	}
	s.listed = true
}

// later reports whether an event must wait for the next iteration, in which the poller
// reports it again, because the socket was already served.
func (l *loop) later(s *socket) bool {
	return s.proxy == nil && !s.interest.Has(epoll.Once) && s.iteration == l.iteration
}

// serve acts on a socket that has events or is runnable.
func (l *loop) serve(s *socket, events epoll.Events, runnable bool) {
	s.iteration = l.iteration
	if s.proxy != nil {
		s.proxy.serve(events, runnable)
	} else {
		l.drive(s, events, runnable)
	}
	if s.buffer != nil {
		l.checkBuffer(s)
	}
}

// drive serves a socket with a local conversation.
func (l *loop) drive(s *socket, events epoll.Events, runnable bool) {
	switch s.State() {
	case conversation.Opening, conversation.Reading:
		l.input(s) // received input counts even after a deadline, because the process might have been stopped
	case conversation.Ready, conversation.Writing, conversation.Lingering: // after a reset, the write fails
	case conversation.Waiting:
		l.duringWait(s, events)
	default: // the conversation currently needs nothing from the socket
		if events.Has(epoll.Failed) {
			l.end(s, unix.ECONNRESET)
		} else if events != 0 {
			l.expect(s, 0)
		}
		if !runnable {
			return
		}
	}
	if runnable && s.State() != conversation.Executing {
		s.Advance(l.batch.Batch, l.now)
	}
	switch {
	case s.State() == conversation.Executing: // deliver will let it proceed
	case s.State() == conversation.Writing && l.written >= iterationOutput:
		l.list(s)
	default:
		l.proceed(s)
	}
}

// duringWait acts on the events of a client with a waiting reserve. Without TLS, input
// after the reserve stays in the kernel's buffer until the wait ends.
func (l *loop) duringWait(s *socket, events epoll.Events) {
	switch {
	case events == 0:
	case events.Has(epoll.Failed):
		l.end(s, unix.ECONNRESET)
	case events.Has(epoll.HalfClosed | epoll.HungUp):
		s.HangUp(l.batch.Batch)
		l.expect(s, 0)
	case s.isEncrypted() && !s.AheadIsFull(): // the input might be a close_notify
		l.readAhead(s)
	default:
		l.expect(s, epoll.HalfClosed)
	}
}

// readAhead reads input after a waiting reserve.
func (l *loop) readAhead(s *socket) {
	buf := l.scratch()
	switch n, err := s.fd.Read(buf); err {
	case nil:
		s.taken += uint64(n)
		s.Receive(l.batch.Batch, l.now, buf[:n])
	case epoll.ErrWouldBlock:
	case io.EOF:
		s.EndInput(l.batch.Batch)
		l.expect(s, 0)
	default:
		l.end(s, err)
	}
}

// input reads once, either into the batch's buffer or to the end of existing unread
// input.
func (l *loop) input(s *socket) {
	var n int
	var err error
	if s.Unread() {
		if n, err = s.fd.Read(s.Space()); err == nil {
			s.taken += uint64(n)
			s.Filled(l.now, n)
			s.Advance(l.batch.Batch, l.now)
		}
	} else {
		at := len(l.in)
		buf := l.in[at : at+readSize]
		n, err = s.fd.Read(buf)
		l.in = l.in[:at+n]
		if err == nil {
			s.taken += uint64(n)
			s.Receive(l.batch.Batch, l.now, buf[:n:n])
		}
	}
	switch err {
	case nil, epoll.ErrWouldBlock:
	case io.EOF:
		s.EndInput(l.batch.Batch)
	default:
		l.end(s, err)
	}
}

// proceed acts on the state of the conversation: it writes, defers the socket to the next
// iteration, waits for an event, or closes the socket.
func (l *loop) proceed(s *socket) {
	if s.State() == conversation.Writing {
		l.write(s)
	}
	if s.State() == conversation.Lingering {
		l.linger(s)
	}
	l.record(s)
	switch s.State() {
	case conversation.Ready:
		s.iteration = l.iteration
		l.list(s)
		return
	case conversation.Closed:
		l.remove(s)
		return
	case conversation.Writing:
		l.expect(s, epoll.Writable)
	case conversation.Reading, conversation.Lingering:
		l.expect(s, epoll.Readable|epoll.HalfClosed)
	case conversation.Waiting:
		if !s.interest.Has(epoll.HalfClosed) && !s.HasHungUp() {
			l.expect(s, epoll.Readable|epoll.HalfClosed)
		}
	}
	l.timers.set(s, s.Next())
}

// linger discards input until the client closes the connection.
func (l *loop) linger(s *socket) {
	n, err := s.fd.Read(l.discarded[:])
	if err == epoll.ErrWouldBlock {
		err = nil
	}
	if s.Drained(l.now, n, err) {
		s.fd.CloseWrite() // a read of a failed connection returns the error, too
	}
}

// write writes as much as the socket accepts, up to its share of the iteration.
func (l *loop) write(s *socket) {
	for range writesPerBatch {
		out := s.Output()
		out = out[:min(len(out), maxPiece)]
		n, err := s.fd.Write(out)
		if err != nil {
			l.end(s, err)
			return
		}
		l.written += n
		s.Wrote(l.now, n)
		if n < len(out) || s.State() != conversation.Writing || l.written >= iterationOutput {
			return
		}
	}
}

// expect sets the events that the poller reports for a socket.
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
