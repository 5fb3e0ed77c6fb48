package server

import (
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

const (
	// maxOut is how many bytes of replies a turn may leave with a connection,
	// give or take one reply; then they are written before it goes on.
	maxOut = 256 << 10

	// keptOut is the largest reply buffer that a connection keeps.
	keptOut = 16 << 10
)

// A conn is one client.
type conn struct {
	// Static after newConn.
	srv       *Server
	nc        net.Conn
	raw       syscall.RawConn       // of nc; nil if that is no socket
	writeOnce func(fd uintptr) bool // writeAnswer, made once
	caller    *broker.Caller

	// Owned by serve, and lent to the turn while caller.Do runs.
	in      input
	parser  wire.Parser
	batch   *batch // parsed and not yet executed; nil when there is none
	out     []byte // replies not yet written
	logged  []span // replies in out that promise something is in the log
	sess    *engine.Session
	act     action
	waiting bool // in a reserve
	quit    bool // the client said so
	eof     bool // the client sends nothing more

	// Deadlines that are set on nc; owned by serve. Zero: none.
	readBy  time.Time
	writeBy time.Time

	wait wait // shared with the turn that ends it

	stopped atomic.Bool // Shutdown wants the connection to end
}

// An action is what the next turn is to do for a connection.
type action uint8

const (
	execute   action = iota // the batch
	open                    // make a session
	halfClose               // the client sends nothing more
	leave                   // end the session
)

func newConn(s *Server, nc net.Conn) *conn {
	c := &conn{srv: s, nc: nc}
	c.parser.MaxBody = s.opt.MaxJobSize
	c.caller = s.broker.NewCaller(c)
	if sc, ok := nc.(syscall.Conn); ok {
		c.raw, _ = sc.SyscallConn() // an error is that of a closed connection, which reading will tell
	}
	c.writeOnce = c.writeAnswer
	return c
}

// serve is the life of the connection.
func (c *conn) serve() {
	c.srv.log.Debug("connected", "client", c.nc.RemoteAddr())
	c.turn(open)
	err := c.converse()
	c.turn(leave)
	c.nc.Close()
	c.batch.put()
	c.srv.log.Debug("disconnected", "client", c.nc.RemoteAddr(), "reason", err)
}

// converse executes commands until the client has gone, and returns why.
func (c *conn) converse() error {
	for {
		switch {
		case c.batch != nil || c.parse():
			c.turn(execute)
			if len(c.out) < maxOut && !c.waiting && !c.quit {
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

var (
	errQuit    = errors.New("quit")
	errStopped = errors.New("the server stops")
	errIdle    = errors.New("silent for longer than the idle timeout")
	errStalled = errors.New("stopped in the middle of a command for longer than the stall timeout")
)

// turn runs one turn of the broker with the given action.
func (c *conn) turn(a action) {
	c.act = a
	c.caller.Do()
}

// parse takes whole commands out of the buffer and reports whether there are any.
func (c *conn) parse() bool {
	if c.in.empty() {
		return false
	}
	b := getBatch()
	for b.n < len(b.cmds) {
		n, ok := c.parser.Next(c.in.unread(), &b.cmds[b.n])
		c.in.take(n)
		if !ok {
			break
		}
		b.n++
	}
	if b.n == 0 {
		b.put()
		return false
	}
	c.batch = b
	if c.srv.opt.Trace {
		for i := range b.n {
			c.srv.log.Debug("command", "client", c.nc.RemoteAddr(), "verb", b.cmds[i].Op)
		}
	}
	return true
}

// read waits for more input.
func (c *conn) read() error {
	if c.stopped.Load() {
		return errStopped
	}
	c.limitSilence()
	err := c.in.fill(c.nc, c.parser.Need(), false)
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

// silence returns how long the client may now send nothing, not positive if for ever.
func (c *conn) silence() (time.Duration, error) {
	if c.in.empty() && !c.parser.Discarding() {
		return c.srv.opt.IdleTimeout, errIdle
	}
	return c.srv.opt.StallTimeout, errStalled
}

// limitSilence sets the read deadline. It is not moved on each read: a quarter
// less is near enough. One that is no longer needed stays until it passes.
func (c *conn) limitSilence() {
	limit, _ := c.silence()
	if limit <= 0 {
		return
	}
	now := time.Now()
	if left := c.readBy.Sub(now); left < limit*3/4 || left > limit {
		c.moveReadDeadline(now.Add(limit))
	}
}

func (c *conn) moveReadDeadline(t time.Time) {
	c.readBy = t
	c.nc.SetReadDeadline(t)
	if c.stopped.Load() {
		c.interrupt() // stop may have come between
	}
}

// readTimeout decides what a read that timed out means: the client's silence,
// the end of the server, an old deadline, or the late echo of a wake-up.
func (c *conn) readTimeout() error {
	if c.stopped.Load() {
		return errStopped
	}
	limit, err := c.silence()
	if limit > 0 && !c.readBy.IsZero() && !time.Now().Before(c.readBy) {
		return err
	}
	c.moveReadDeadline(time.Time{})
	return nil
}

// flush writes the replies. The time limit is for each piece of maxOut bytes:
// who reads slowly, but reads, gets the longest reply whole.
func (c *conn) flush() error {
	if c.srv.opt.Trace {
		c.srv.log.Debug("replies", "client", c.nc.RemoteAddr(), "bytes", len(c.out))
	}
	for out := c.out; len(out) > 0; {
		c.limitWrite()
		n, err := c.nc.Write(out[:min(len(out), maxOut)])
		if err != nil {
			return err
		}
		out = out[n:]
	}
	if cap(c.out) > keptOut {
		c.out = nil
	}
	c.out = c.out[:0]
	return nil
}

// limitWrite sets the write deadline, as limitSilence does that for reads.
func (c *conn) limitWrite() {
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
func (c *conn) interrupt() { c.nc.SetReadDeadline(time.Unix(1, 0)) }

// stop asks the connection to end when it has finished what it is about.
func (c *conn) stop() {
	c.stopped.Store(true)
	c.interrupt()
}
