package server

import (
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// errHungUp says that the client will send nothing more than what is unread.
var errHungUp = errors.New("hung up with input unread")

// A wait is how far the waiting reserve of a connection has come. The turn that
// ends it may be another connection's, and come while this one still writes
// what was before; so the answer has a buffer of its own.
//
// Whoever leads that turn writes the answer if the connection has nothing else
// to write and its socket takes it: the worker has its job one switch of
// goroutines sooner. The connection goes on reading, and finds out with what
// the client sends next, unless that is here already: then it is interrupted, as
// it is to write what the socket did not take.
type wait struct {
	mu     sync.Mutex
	parked bool   // serve only reads; the socket is not being written
	behind bool   // there is input behind the reserve
	over   bool   // the answer is here, and durable
	answer []byte // what of it is to be written; owned by the turn until over
}

// WaitOver implements engine.Waiter: within some turn the wait has ended.
func (c *stream) WaitOver(job engine.Job, outcome engine.Outcome) {
	c.wait.answer = appendReserved(c.wait.answer, job, outcome)
	c.srv.broker.Await(c)
}

// Settled implements broker.Settler: the turn that ended the wait is settled.
func (c *stream) Settled(error) {
	w := &c.wait
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	if w.parked && (!c.sendAnswer() || w.behind) {
		c.interrupt()
	}
}

// sendAnswer writes what the socket takes at once, and reports whether that was
// all. Who is silent after that is still within a wait, in which the idle
// timeout does not count: then the connection has to know.
func (c *stream) sendAnswer() bool {
	if c.raw == nil || c.srv.opt.IdleTimeout > 0 {
		return false
	}
	if c.raw.Write(c.writeOnce) != nil || len(c.wait.answer) > 0 {
		return false
	}
	if c.srv.opt.Trace {
		c.srv.log.Debug("answered a wait", "client", c.peer)
	}
	return true
}

// writeAnswer is sendAnswer's one system call.
func (c *stream) writeAnswer(fd uintptr) bool {
	n, err := syscall.Write(int(fd), c.wait.answer)
	if err == nil {
		c.wait.answer = c.wait.answer[:copy(c.wait.answer, c.wait.answer[n:])]
	}
	return true // whatever came of it, do not wait for the socket
}

// park lets Settled write to the socket; over tells that the wait is over.
func (w *wait) park(behind bool) (over bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.parked, w.behind = true, behind
	return w.over
}

// await waits for the answer of a reserve, and watches the client meanwhile:
// when that goes, or will send nothing more, the wait ends.
func (c *stream) await() error {
	for !c.wait.park(!c.in.empty()) {
		err := c.readAhead()
		switch {
		case err == nil:
		case errors.Is(err, os.ErrDeadlineExceeded):
			if c.stopped.Load() {
				return errStopped
			}
			c.moveReadDeadline(time.Time{}) // it was Settled, or a timeout that does not count here
		case errors.Is(err, io.EOF), errors.Is(err, errHungUp):
			c.eof = errors.Is(err, io.EOF)
			c.turn(halfClose) // after which it is over
		default:
			return err
		}
	}
	c.waiting = false
	c.out = c.wait.take(c.out)
	return nil
}

// take ends the wait. It returns what is still to be written, in exchange for
// an empty buffer.
func (w *wait) take(empty []byte) (rest []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	rest = w.answer
	w.parked, w.over, w.answer = false, false, empty
	if cap(rest) > keptOut && len(rest) == 0 {
		rest = nil
	}
	return rest
}

// readAhead reads what the client pipelines, without looking at it. When that
// is too much it only watches for the hang-up, which comes when the kernel has
// received all that the client sent before, or a reset.
func (c *stream) readAhead() error {
	if c.in.len() < maxAhead {
		return c.in.fill(c.nc, 0)
	}
	if c.raw == nil {
		return errors.New("too much input behind a waiting reserve")
	}
	gone := false
	err := c.raw.Read(func(fd uintptr) bool {
		gone = hungUp(int(fd))
		return gone
	})
	if gone {
		return errHungUp
	}
	return err
}
