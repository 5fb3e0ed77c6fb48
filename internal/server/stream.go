package server

import (
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/engine"
)

// keptOut is the largest reply buffer that a stream keeps, in bytes.
const keptOut = 16 << 10

// A stream is a connection with a goroutine of its own, on whatever net.Conn
// there is: it is how clients are served where there is no loop.
type stream struct {
	conn

	// Static after newStream.
	nc        net.Conn
	raw       syscall.RawConn       // of nc; nil if that is no socket
	writeOnce func(fd uintptr) bool // writeAnswer, made once
	caller    *broker.Caller

	// Owned by serve, and lent to the turn while caller.Do runs.
	in       input
	what     action   // for the turn
	batch    []parsed // for the turn to execute
	executed int      // how many of them it has

	// Deadlines that are set on nc; owned by serve. Zero: none.
	readBy  time.Time
	writeBy time.Time

	wait wait // shared with the turn that ends it

	stopped atomic.Bool // Shutdown wants the connection to end
}

func newStream(s *Server, nc net.Conn) *stream {
	c := &stream{nc: nc}
	c.conn = newConn(s, nc, c)
	c.caller = s.broker.NewCaller(c)
	if sc, ok := nc.(syscall.Conn); ok {
		c.raw, _ = sc.SyscallConn() // an error is that of a closed connection, which reading will tell
	}
	c.writeOnce = c.writeAnswer
	return c
}

// serve is the life of the connection.
func (c *stream) serve() {
	c.srv.log.Debug("connected", "client", c.peer)
	c.turn(open)
	err := c.converse()
	c.turn(leave)
	c.nc.Close()
	c.srv.log.Debug("disconnected", "client", c.peer, "reason", err)
}

// converse executes commands until the client has gone, and returns why.
func (c *stream) converse() error {
	for {
		switch {
		case c.executeBatch():
			if len(c.out) < maxOut && c.ready() {
				continue // there may be more in the buffer: write it all at once
			}
			if err := c.flush(); err != nil {
				return err
			}
			if c.quit {
				return errQuit
			}
			if c.waiting {
				if err := c.await(); err != nil {
					return err
				}
			}
		case len(c.out) > 0:
			if err := c.flush(); err != nil {
				return err
			}
			// Let others run: when this goroutine's turn comes again, the
			// client's next command may be here, which saves waiting for it.
			runtime.Gosched()
		case c.eof:
			return io.EOF
		default:
			if err := c.read(); err != nil {
				return err
			}
		}
	}
}

// batches are for commands between being parsed and executed. A connection has
// one only meanwhile, for there may be many idle connections.
var batches = sync.Pool{New: func() any { return new([maxBatch]parsed) }}

// executeBatch executes commands that are whole, and reports whether there were any.
func (c *stream) executeBatch() bool {
	if c.in.empty() {
		return false
	}
	room := batches.Get().(*[maxBatch]parsed)
	defer batches.Put(room)
	cmds, n := c.parse(c.in.unread(), room[:0])
	if len(cmds) == 0 {
		c.in.take(n)
		return false
	}
	defer clear(cmds) // the pool must not keep input buffers alive
	c.batch = cmds
	c.turn(execute)
	if c.executed < len(cmds) {
		n = cmds[c.executed-1].end
		c.reparse()
	}
	c.in.take(n)
	for c.batch = nil; c.kick != nil; {
		c.turn(execute)
	}
	return true
}

// turn runs one turn of the broker with the given action.
func (c *stream) turn(a action) {
	c.what = a
	if c.caller.Do() != nil {
		c.failed()
	}
}

// Apply implements broker.Request.
func (c *stream) Apply(e *engine.Engine, now int64) (later int64) {
	c.executed, later = c.act(e, now, c.what, c.batch)
	return later
}

// read waits for more input.
func (c *stream) read() error {
	if c.stopped.Load() {
		return errStopped
	}
	c.limitSilence()
	err := c.in.fill(c.nc, c.parser.Need())
	switch {
	case err == nil:
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return c.readTimeout()
	case errors.Is(err, io.EOF):
		c.eof = true
		return nil // a command that is not whole is dropped
	}
	return err
}

// limitSilence sets the read deadline. It is not moved on each read: a quarter
// less is near enough. One that is no longer needed stays until it passes.
func (c *stream) limitSilence() {
	limit, _ := c.silence(c.in.empty())
	if limit <= 0 {
		return
	}
	now := time.Now()
	if left := c.readBy.Sub(now); left < limit*3/4 || left > limit {
		c.moveReadDeadline(now.Add(limit))
	}
}

func (c *stream) moveReadDeadline(t time.Time) {
	c.readBy = t
	c.nc.SetReadDeadline(t)
	if c.stopped.Load() {
		c.interrupt() // stop may have come between
	}
}

// readTimeout decides what a read that timed out means: the client's silence,
// the end of the server, an old deadline, or the late echo of a wake-up.
func (c *stream) readTimeout() error {
	if c.stopped.Load() {
		return errStopped
	}
	limit, err := c.silence(c.in.empty())
	if limit > 0 && !c.readBy.IsZero() && !time.Now().Before(c.readBy) {
		return err
	}
	c.moveReadDeadline(time.Time{})
	return nil
}

// flush writes the replies. The time limit is for each piece of maxOut bytes:
// who reads slowly, but reads, gets the longest reply whole.
func (c *stream) flush() error {
	c.traceReplies()
	for out := c.out; len(out) > 0; {
		c.limitWrite()
		n, err := c.nc.Write(out[:min(len(out), maxOut)])
		if err != nil {
			return err
		}
		if out = out[n:]; len(out) == 0 && c.rest != nil {
			c.out = c.out[:0]
			c.formatRest()
			out = c.out
		}
	}
	if cap(c.out) > keptOut {
		c.out = nil
	}
	c.out = c.out[:0]
	return nil
}

// limitWrite sets the write deadline, as limitSilence does that for reads.
func (c *stream) limitWrite() {
	limit := c.srv.opt.StallTimeout
	if limit <= 0 {
		return
	}
	if now := time.Now(); c.writeBy.Sub(now) < limit*3/4 {
		c.writeBy = now.Add(limit)
		c.nc.SetWriteDeadline(c.writeBy)
	}
}

// interrupt makes a read of the connection return at once.
func (c *stream) interrupt() { c.nc.SetReadDeadline(time.Unix(1, 0)) }

// stop asks the connection to end when it has finished what it is about.
func (c *stream) stop() {
	c.stopped.Store(true)
	c.interrupt()
}
