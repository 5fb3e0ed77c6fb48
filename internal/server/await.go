package server

import (
	"errors"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

// maxAhead is how many bytes a client may send behind a reserve that waits
// before the connection stops reading them.
const maxAhead = 64 << 10

// errHungUp says that the client will send nothing more than what is unread.
var errHungUp = errors.New("hung up with input unread")

// WaitOver implements engine.Waiter: within some turn the wait has ended. The
// turn may be another connection's, while this one still writes what is in out.
func (c *conn) WaitOver(job engine.Job, outcome engine.Outcome) {
	c.answer = appendReserved(c.answer, job, outcome)
	c.srv.broker.Wake(c)
}

// Wake implements broker.Waker: the turn that ended the wait is durable.
func (c *conn) Wake() {
	c.answered.Store(true)
	c.interrupt()
}

// await waits for the answer of a reserve, and watches the client meanwhile:
// when that goes, or will send nothing more, the wait ends.
func (c *conn) await() error {
	for !c.answered.Load() {
		err := c.readAhead()
		switch {
		case err == nil:
		case c.answered.Load():
			if errors.Is(err, os.ErrDeadlineExceeded) {
				c.moveReadDeadline(time.Time{}) // it was Wake; spare the next read the echo
			}
		case errors.Is(err, os.ErrDeadlineExceeded):
			if c.stopped.Load() {
				return errStopped
			}
			c.moveReadDeadline(time.Time{}) // no timeout counts while it waits
		case errors.Is(err, io.EOF), errors.Is(err, errHungUp):
			c.eof = errors.Is(err, io.EOF)
			c.turn(halfClose)
			c.answered.Store(true)
		default:
			return err
		}
	}
	c.answered.Store(false)
	c.waiting = false
	c.out, c.answer = c.answer, c.out
	return nil
}

// readAhead reads what the client pipelines, without looking at it. When that
// is too much it only watches for the hang-up, which comes when the kernel has
// received all that the client sent before, or a reset.
func (c *conn) readAhead() error {
	if c.in.len() < maxAhead {
		return c.in.fill(c.nc, 0, c.batch != nil)
	}
	sc, ok := c.nc.(syscall.Conn)
	if !ok {
		return errors.New("too much input behind a waiting reserve")
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return err
	}
	gone := false
	err = raw.Read(func(fd uintptr) bool {
		gone = hungUp(int(fd))
		return gone
	})
	if gone {
		return errHungUp
	}
	return err
}

// appendReserved appends the reply of a reserve.
func appendReserved(dst []byte, job engine.Job, outcome engine.Outcome) []byte {
	if outcome == engine.OK {
		return wire.AppendReserved(dst, job.ID, job.Body)
	}
	return wire.AppendWord(dst, outcomeWords[outcome])
}
