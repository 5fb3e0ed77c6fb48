package server

import (
	"crypto/tls"
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
	"github.com/beanpole-mq/beanpole/internal/conversation"
	"github.com/beanpole-mq/beanpole/internal/engine"
)

const (
	// streamWrite is how many bytes of replies a stream writes at a time: the
	// client makes progress when it has taken them.
	streamWrite = 64 << 10

	// streamIn is how many bytes a stream reads at a time when nothing is unread.
	streamIn = 4 << 10

	// streamOut is how many bytes of replies to small commands a stream has
	// room for.
	streamOut = 16 << 10
)

// A stream is a conversation with a goroutine of its own, on whatever net.Conn
// there is: it is how clients are served where there is no loop.
type stream struct {
	conversation.Conversation

	// Static after newStream.
	srv    *Server
	nc     net.Conn
	raw    syscall.RawConn // of nc; nil if that is no socket
	caller *broker.Caller

	// Owned by the goroutine.
	buf   [streamIn]byte      // input; the commands of the batch may refer to it
	batch *conversation.Batch // lent to the turn; nil while there is nothing to do

	// Deadlines that are set on nc, ns as Server.now; 0: none.
	readBy, writeBy int64

	dismissed chan struct{} // has one when a manager has closed the connection

	answered atomic.Bool // a reserve has been answered, and Answered does not know
	stopped  atomic.Bool // Shutdown wants the connection to end
}

func newStream(s *Server, nc net.Conn) *stream {
	c := &stream{srv: s, nc: nc, dismissed: make(chan struct{}, 1)}
	c.Conversation = conversation.New(&s.shared, c, s.nameOf(nc.RemoteAddr()))
	c.caller = s.broker.NewCaller(c)
	under := nc
	if t, ok := nc.(*tls.Conn); ok {
		under = t.NetConn()
	}
	if sc, ok := under.(syscall.Conn); ok {
		c.raw, _ = sc.SyscallConn() // an error is that of a closed connection, which reading will tell
	}
	return c
}

// batches are for streams that have something to do. There may be many that have
// not.
var batches = sync.Pool{New: func() any { return conversation.NewBatch(streamOut) }}

func (c *stream) takeBatch() {
	if c.batch == nil {
		c.batch = batches.Get().(*conversation.Batch)
	}
}

func (c *stream) freeBatch() {
	if c.batch != nil {
		c.batch.Reset()
		batches.Put(c.batch)
		c.batch = nil
	}
}

// serve is the life of the connection.
func (c *stream) serve() {
	c.srv.log.Debug("connected", "client", c.Client())
	c.takeBatch()
	c.Open(c.batch, c.srv.now())
	c.turn()
	err := c.converse()
	c.freeBatch()
	c.takeBatch()
	c.End(c.batch)
	c.turn()
	c.freeBatch()
	c.nc.Close()
	c.srv.disconnected(c.Client(), err)
}

// converse does what the conversation wants until it is done, and returns why.
func (c *stream) converse() (err error) {
	for err == nil {
		switch c.State() {
		case conversation.Reading:
			err = c.read()
		case conversation.Ready:
			c.freeBatch() // its replies are written
			c.takeBatch()
			c.Advance(c.batch, c.srv.now())
		case conversation.Throttled:
			err = c.waitForToken()
		case conversation.Executing:
			c.turn()
		case conversation.Writing:
			err = c.write()
		case conversation.Waiting:
			err = c.await()
		case conversation.Done:
			return c.Reason()
		}
	}
	return err
}

// waitForToken waits until the conversation may go on.
func (c *stream) waitForToken() error {
	c.freeBatch()
	end, reason := c.Deadline() // of one that must prove who it is
	at := min(c.Resume(), end)
	select {
	case <-c.srv.stopped:
		return errStopped
	case <-c.dismissed:
		return errDismissed
	case <-time.After(time.Duration(at - c.srv.now())):
	}
	if at < c.Resume() {
		return reason
	}
	c.takeBatch()
	c.Advance(c.batch, c.srv.now())
	return nil
}

// turn runs one turn of the broker for the batch.
func (c *stream) turn() {
	err := c.caller.Do()
	c.batch.TurnOver()
	c.batch.Settle(err)
}

// Apply implements broker.Request.
func (c *stream) Apply(e *engine.Engine, now int64) (later int64) { return c.batch.Apply(e, now) }

// read waits for more input.
func (c *stream) read() error {
	if c.stopped.Load() {
		return errStopped
	}
	c.freeBatch()
	at, _ := c.Deadline()
	c.limitRead(at)
	if c.Unread() {
		n, err := c.nc.Read(c.Space())
		if n == 0 {
			return c.readError(err)
		}
		c.Filled(c.srv.now(), n)
		return nil
	}
	return c.receive()
}

// receive reads into the stream's own buffer.
func (c *stream) receive() error {
	n, err := c.nc.Read(c.buf[:])
	if n == 0 {
		return c.readError(err)
	}
	c.takeBatch()
	c.Receive(c.batch, c.srv.now(), c.buf[:n])
	return nil // an error that lasts comes back with the next read
}

// readError deals with the error of a read. A time that is up does not end the
// connection if it is not the client's: it may have been an old one, or wake.
func (c *stream) readError(err error) error {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		at, reason := c.Deadline()
		if c.stopped.Load() {
			return errStopped
		}
		if at <= c.srv.now() {
			return reason
		}
		c.setReadDeadline(0)
	case errors.Is(err, io.EOF):
		c.endInput()
	default:
		return err
	}
	return nil
}

// endInput tells the conversation that the client will send nothing more.
func (c *stream) endInput() {
	c.takeBatch()
	c.EndInput(c.batch)
	if c.batch.Len() > 0 {
		c.turn()
	}
}

// limitRead lets reads end by a time. It leaves a deadline that is up to a
// quarter sooner: then reading goes on.
func (c *stream) limitRead(at int64) {
	if at == engine.Never {
		return
	}
	if left := at - c.srv.now(); c.readBy > at || c.readBy < at-left/4 {
		c.setReadDeadline(at)
	}
}

// setReadDeadline sets the time when reads end; 0: never.
func (c *stream) setReadDeadline(at int64) {
	c.readBy = at
	c.nc.SetReadDeadline(c.srv.moment(at))
	if c.stopped.Load() || c.answered.Load() {
		c.wake() // these may have come between
	}
}

// write writes replies. A client that reads slowly gets the longest reply whole.
func (c *stream) write() error {
	out := c.Output()
	out = out[:min(len(out), streamWrite)]
	if at, _ := c.Deadline(); at != engine.Never && c.writeBy < at-(at-c.srv.now())/4 {
		c.writeBy = at
		c.nc.SetWriteDeadline(c.srv.moment(at))
	}
	n, err := c.nc.Write(out)
	c.Wrote(c.srv.now(), n)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		at, reason := c.Deadline()
		if at <= c.srv.now() {
			return reason
		}
		return nil
	}
	if c.State() != conversation.Writing {
		// Let others run: when this goroutine's turn comes again, the client's
		// next command may be here, which saves waiting for it.
		runtime.Gosched()
	}
	return err
}

// WaitOver implements engine.Waiter: within some turn the wait has ended.
func (c *stream) WaitOver(job engine.Job, outcome engine.Outcome) {
	c.Answer(job, outcome)
	c.srv.broker.Await(c)
}

// Settled implements broker.Settler: the turn that ended the wait is settled.
func (c *stream) Settled(error) {
	c.answered.Store(true)
	c.wake()
}

// await waits for the answer of a reserve, and watches the client meanwhile:
// when that goes, or will send nothing more, the wait ends.
func (c *stream) await() error {
	c.freeBatch()
	for !c.answered.Swap(false) {
		var err error
		if c.AheadIsFull() {
			err = c.watchHangUp()
		} else {
			err = c.receive()
		}
		if err != nil {
			return err
		}
	}
	c.Answered(c.srv.now())
	return nil
}

// watchHangUp waits until the client hangs up, which is when the kernel has
// received all that it sent before, or a reset.
func (c *stream) watchHangUp() error {
	if c.raw == nil {
		return errors.New("too much input behind a waiting reserve")
	}
	gone := false
	err := c.raw.Read(func(fd uintptr) bool {
		gone = hungUp(int(fd))
		return gone
	})
	if !gone {
		return c.readError(err)
	}
	c.takeBatch()
	if c.HangUp(c.batch); c.batch.Len() > 0 {
		c.turn()
	}
	return nil
}

// wake makes a read of the connection return at once.
func (c *stream) wake() { c.nc.SetReadDeadline(time.Unix(1, 0)) }

// stop asks the connection to end when it has finished what it is about.
func (c *stream) stop() {
	c.stopped.Store(true)
	c.wake()
}
