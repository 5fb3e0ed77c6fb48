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

// WaitOver implements engine.Waiter: within some turn the wait has ended.
func (c *conn) WaitOver(job engine.Job, outcome engine.Outcome) {
	c.appendReserved(job, outcome)
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
		case err == nil, c.answered.Load():
		case errors.Is(err, os.ErrDeadlineExceeded):
			if c.stopped.Load() {
				return errStopped
			}
			c.moveReadDeadline(time.Time{}) // no timeout counts while it waits
		case errors.Is(err, io.EOF):
			c.eof = true
			c.turn(halfClose)
			c.answered.Store(true)
		default:
			return err
		}
	}
	c.answered.Store(false)
	c.waiting = false
	return nil
}

// readAhead reads what the client pipelines, without looking at it. When that
// is too much it only watches for the hang-up.
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
		return io.EOF
	}
	return err
}

// appendReserved appends the reply of a reserve.
func (c *conn) appendReserved(job engine.Job, outcome engine.Outcome) {
	switch outcome {
	case engine.OK:
		c.out = wire.AppendReserved(c.out, job.ID, job.Body)
	case engine.DeadlineSoon:
		c.word(wire.DeadlineSoon)
	default:
		c.word(wire.TimedOut)
	}
}
