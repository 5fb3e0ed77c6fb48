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
	// netConnWrite is how many bytes of replies a netConn writes at a time.
	netConnWrite = 64 << 10

	// netConnIn is how many bytes a netConn reads at a time when nothing is unread.
	netConnIn = 4 << 10

	// netConnOut is how many bytes of replies to small commands a netConn has
	// room for.
	netConnOut = 16 << 10
)

// A netConn drives a conversation on a net.Conn of any kind from a goroutine of its own:
// so clients are served where there is no loop, and those with TLS.
type netConn struct {
	conversation.Conversation

	// Static after newNetConn.
	srv    *Server
	nc     net.Conn
	kernel *kernelConn // nc, or what is below its TLS
	caller *broker.Caller

	// Owned by the goroutine.
	buf        [netConnIn]byte     // input; the commands of the batch may refer to it
	batch      *conversation.Batch // lent to the turn; nil while there is nothing to do
	readBy     int64               // ns as Server.now, the deadline that is set; 0: none
	halfClosed bool                // it lingers
	ahead      []byte              // input that was read before serve
	visitor    *visitor            // whose client it is; nil: this server's
	moved      bool                // a loop drives the connection now

	// What other goroutines want. They call wake after it.
	answered  atomic.Bool           // a reserve has been answered, and Answered does not know
	waitErr   error                 // what Settled was told of that; set before answered
	stopped   atomic.Bool           // Shutdown wants the connection to end
	dismissed atomic.Pointer[error] // why the connection was closed
	woken     chan struct{}

	place   place                    // Server.mu guards it
	stream  atomic.Pointer[net.Conn] // to the leader, which ends with the connection
	lingers atomic.Bool              // the leader has ended it
}

func newNetConn(s *Server, nc net.Conn, tlsConfig *tls.Config) *netConn {
	c := &netConn{srv: s, woken: make(chan struct{}, 1)}
	c.kernel = newKernelConn(nc, c)
	c.kernel.control(func(fd int) { setDeadAfter(fd, s.deadAfter()) })
	c.nc = c.kernel
	if tlsConfig != nil {
		c.nc = tls.Server(c.kernel, tlsConfig)
	}
	c.Conversation = conversation.New(&s.shared, c, s.nameOf(nc.RemoteAddr()))
	c.caller = s.broker.NewCaller(c)
	return c
}

// batches are for connections that have something to do. There may be many that have
// not.
var batches = sync.Pool{New: func() any { return conversation.NewBatch(netConnOut) }}

// newBatch gives the conversation an empty batch. The replies in the last one must be
// written.
func (c *netConn) newBatch() *conversation.Batch {
	c.freeBatch()
	c.batch = batches.Get().(*conversation.Batch)
	return c.batch
}

func (c *netConn) freeBatch() {
	if c.batch != nil {
		c.batch.Reset()
		batches.Put(c.batch)
		c.batch = nil
	}
}

// serve is the life of the connection.
func (c *netConn) serve() {
	c.srv.log.Debug("connected", "client", c.Client())
	c.Open(c.newBatch(), c.srv.now())
	c.turn()
	for c.State() != conversation.Closed {
		c.heed()
		err := c.step()
		if reason := c.dismissed.Load(); reason != nil {
			err = *reason
		}
		if err != nil && c.State() != conversation.Leaving {
			c.End(c.newBatch(), err)
		}
	}
	c.freeBatch()
	c.nc.Close()
	c.srv.disconnected(c.Client(), c.Reason())
}

// heed stops the conversation if Shutdown wants that.
func (c *netConn) heed() {
	if !c.stopped.Swap(false) {
		return
	}
	switch c.State() {
	case conversation.Reading, conversation.Throttled, conversation.Waiting:
		c.newBatch() // for the end; other states have no use for a batch
	}
	c.Stop(c.batch)
}

// step does what the conversation wants next. After an error it has to end.
func (c *netConn) step() error {
	switch c.State() {
	case conversation.Reading:
		return c.read()
	case conversation.Ready:
		c.Advance(c.newBatch(), c.srv.now())
	case conversation.Throttled:
		c.pause()
	case conversation.Executing, conversation.Leaving:
		c.turn()
	case conversation.Writing:
		return c.write()
	case conversation.Waiting:
		return c.await()
	case conversation.Lingering:
		return c.linger()
	}
	return nil
}

// turn runs one turn of the broker for the batch.
func (c *netConn) turn() {
	err := c.caller.Do()
	c.batch.TurnOver()
	c.batch.Settle(err)
}

// Apply implements broker.Request.
func (c *netConn) Apply(e *engine.Engine, now int64) (later int64) { return c.batch.Apply(e, now) }

// pause waits until the conversation wants to be looked at.
func (c *netConn) pause() {
	c.freeBatch()
	timer := time.NewTimer(time.Duration(c.Next() - c.srv.now()))
	defer timer.Stop()
	select {
	case <-c.woken:
	case <-timer.C:
		c.Advance(c.newBatch(), c.srv.now())
	}
}

// read waits for more input.
func (c *netConn) read() error {
	c.freeBatch()
	c.limitRead(c.Next())
	if !c.Unread() {
		return c.receive()
	}
	if len(c.ahead) > 0 {
		n := copy(c.Space(), c.ahead)
		c.ahead = c.ahead[n:]
		c.Filled(c.srv.now(), n)
		return nil
	}
	n, err := c.input(c.Space())
	if n == 0 {
		return c.readError(err)
	}
	c.Filled(c.srv.now(), n)
	return nil
}

// receive reads into the buffer of the connection.
func (c *netConn) receive() error {
	if len(c.ahead) > 0 {
		n := copy(c.buf[:], c.ahead)
		c.ahead = c.ahead[n:]
		c.Receive(c.newBatch(), c.srv.now(), c.buf[:n])
		return nil
	}
	n, err := c.input(c.buf[:])
	if n == 0 {
		return c.readError(err)
	}
	c.Receive(c.newBatch(), c.srv.now(), c.buf[:n])
	return nil // an error that lasts comes back with the next read
}

// lastRead is how long a read may take when the time is over: what has come may be a part of a record of TLS.
const lastRead = time.Second

// input reads, and once more if input is there when the time is over: the process may have stood still while it came.
func (c *netConn) input(buf []byte) (int, error) {
	n, err := c.nc.Read(buf)
	if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		return n, err
	}
	if now := c.srv.now(); c.readBy != 0 && c.readBy <= now && c.kernel.unread() > 0 {
		c.setReadDeadline(now + int64(lastRead))
		return c.nc.Read(buf)
	}
	return n, err
}

// readError deals with the error of a read. It may be that something is due, or that
// somebody has called wake.
func (c *netConn) readError(err error) error {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		c.setReadDeadline(0)
		c.Advance(c.newBatch(), c.srv.now())
	case errors.Is(err, io.EOF):
		if c.EndInput(c.newBatch()); c.batch.Len() > 0 {
			c.turn()
		}
	default:
		return err
	}
	return nil
}

// limitRead lets reads end by a time. It leaves a deadline that is up to a
// quarter sooner: then reading goes on.
func (c *netConn) limitRead(at int64) {
	if at == engine.Never {
		return
	}
	if left := at - c.srv.now(); c.readBy > at || c.readBy < at-left/4 {
		c.setReadDeadline(at)
	}
}

// setReadDeadline sets the time when reads end; 0: never.
func (c *netConn) setReadDeadline(at int64) {
	c.readBy = at
	c.readUntil(c.srv.moment(at))
}

// readUntil lets reads end at a time, or at once if somebody has called wake for good; the zero time is never.
func (c *netConn) readUntil(at time.Time) error {
	err := c.nc.SetReadDeadline(at)
	if c.stopped.Load() || c.answered.Load() {
		c.wake() // these may have come between
	}
	return err
}

// write writes replies, as slowly as the client takes them.
func (c *netConn) write() error {
	out := c.Output()
	n, err := c.nc.Write(out[:min(len(out), netConnWrite)])
	if c.State() != conversation.Writing {
		return nil // the client has taken too long
	}
	c.Wrote(c.srv.now(), n)
	if c.State() != conversation.Writing {
		// Let others run: when this goroutine's turn comes again, the client's
		// next command may be here, which saves waiting for it.
		runtime.Gosched()
	}
	return err
}

// Unacknowledged implements conversation.Owner.
func (c *netConn) Unacknowledged() int { return c.kernel.unacknowledged() }

// WaitOver implements engine.Waiter: within some turn the wait has ended.
func (c *netConn) WaitOver(job engine.Job, outcome engine.Outcome) {
	c.Answer(job, outcome)
	c.srv.broker.Await(c)
}

// Settled implements broker.Settler: the turn that ended the wait is settled.
func (c *netConn) Settled(err error) {
	c.waitErr = err
	c.answered.Store(true)
	c.wake()
}

// await waits for the answer of a reserve, and watches the client meanwhile:
// when that goes, or will send nothing more, the wait ends.
func (c *netConn) await() error {
	c.freeBatch()
	switch {
	case c.answered.Swap(false):
		c.Answered(c.srv.now(), c.waitErr)
		return nil
	case !c.AheadIsFull():
		return c.receive()
	}
	gone, err := c.kernel.waitForHangUp()
	if err != nil {
		return c.readError(err)
	}
	if gone {
		c.HangUp(c.newBatch())
		c.turn()
	}
	return nil
}

// linger throws input away until the client closes the connection.
func (c *netConn) linger() error {
	if !c.halfClosed {
		c.freeBatch()
		if c.halfClosed = c.Drained(c.srv.now(), c.kernel.unread(), nil); c.halfClosed {
			c.closeWrite()
		}
		return nil
	}
	c.limitRead(c.Next())
	n, err := c.nc.Read(c.buf[:])
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.setReadDeadline(0)
		if c.Advance(nil, c.srv.now()); c.State() != conversation.Lingering {
			return nil
		}
		n, err = c.kernel.unread(), nil
	}
	c.Drained(c.srv.now(), n, err)
	return nil
}

// closeWrite tells the client that there will be no more replies.
func (c *netConn) closeWrite() {
	if t, ok := c.nc.(*tls.Conn); ok {
		t.CloseWrite() // without it the client would have to think that replies were cut off
	}
	if under, ok := c.kernel.Conn.(interface{ CloseWrite() error }); ok {
		under.CloseWrite() // an error is that of a connection that has failed, which reading will tell
	}
}

// wake makes a read of the connection, or a pause, return at once.
func (c *netConn) wake() {
	select {
	case c.woken <- struct{}{}:
	default: // for the second time
	}
	c.nc.SetReadDeadline(time.Unix(1, 0))
}

// stop asks the connection to end when it has finished what it is about.
func (c *netConn) stop() {
	c.stopped.Store(true)
	c.wake()
}

// close closes the connection under the hands of its goroutine, and without the farewell
// of TLS, which might have to wait.
func (c *netConn) close() {
	c.kernel.Close()
	if stream := c.stream.Load(); stream != nil {
		(*stream).Close()
	}
}

// Dismiss implements conversation.Owner.
func (c *netConn) Dismiss(reason error) {
	c.dismissed.Store(&reason)
	c.wake()
	c.close()
}

// address implements connected.
func (c *netConn) address() string { return addressText(c.nc.RemoteAddr()) }

// visits implements connected.
func (c *netConn) visits() *visitor { return c.visitor }

// A kernelConn is the connection that the kernel knows, below TLS if there is TLS. The
// deadlines of writes are set here, because a tls.Conn is broken once one has passed.
type kernelConn struct {
	net.Conn
	owner   *netConn
	raw     syscall.RawConn // nil if the kernel does not know it
	writeBy int64           // ns as Server.now; 0: never
}

func newKernelConn(nc net.Conn, owner *netConn) *kernelConn {
	k := &kernelConn{Conn: nc, owner: owner}
	if sc, ok := nc.(syscall.Conn); ok {
		k.raw, _ = sc.SyscallConn() // an error is that of a closed connection, which reading will tell
	}
	return k
}

// Write implements io.Writer. It goes on as long as the client makes progress. If it does
// not, the conversation ends, and Write returns an error.
func (k *kernelConn) Write(b []byte) (n int, err error) {
	for {
		k.limitWrite()
		var m int
		m, err = k.Conn.Write(b[n:])
		if n += m; m > 0 {
			k.owner.Taken(k.owner.srv.now())
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) || !k.owner.goesOn() {
			return n, err
		}
	}
}

// limitWrite lets a write end when the conversation wants to be looked at, or a little
// sooner. Other writes than that of replies are those of TLS.
func (k *kernelConn) limitWrite() {
	srv := k.owner.srv
	now, stall := srv.now(), int64(srv.opt.StallTimeout)
	switch {
	case stall <= 0, k.owner.State() == conversation.Closed: // the farewell of TLS, which has its own deadline
	case k.owner.State() != conversation.Writing:
		k.setWriteDeadline(now + stall)
	case k.writeBy < now+stall/8:
		k.setWriteDeadline(k.owner.Next())
	}
}

func (k *kernelConn) setWriteDeadline(at int64) {
	k.writeBy = at
	k.SetWriteDeadline(k.owner.srv.moment(at))
}

// goesOn looks at a conversation whose client has taken no reply for some time, and
// reports whether it goes on.
func (c *netConn) goesOn() bool {
	if c.State() != conversation.Writing {
		return false
	}
	b := batches.Get().(*conversation.Batch)
	if c.Advance(b, c.srv.now()); b.Len() == 0 {
		batches.Put(b)
		return c.State() == conversation.Writing
	}
	c.freeBatch() // with replies that are given up
	c.batch = b
	return false
}

// control calls f with the file descriptor, if there is one.
func (k *kernelConn) control(f func(fd int)) {
	if k.raw != nil {
		k.raw.Control(func(fd uintptr) { f(int(fd)) }) // an error is that of a closed connection
	}
}

// unacknowledged returns how many bytes that were written the client's kernel has not
// acknowledged; -1 if that cannot be told.
func (k *kernelConn) unacknowledged() int {
	n := -1
	k.control(func(fd int) { n = unacknowledged(fd) })
	return n
}

// unread returns how many bytes have arrived and were not read.
func (k *kernelConn) unread() (n int) {
	if u, ok := k.Conn.(interface{ Unread() int }); ok {
		return u.Unread()
	}
	k.control(func(fd int) { n = unread(fd) })
	return n
}

// waitForHangUp waits until the client hangs up, which is when the kernel has received all
// that it sent before, or a reset. It does not read.
func (k *kernelConn) waitForHangUp() (gone bool, err error) {
	if k.raw == nil {
		return false, errors.New("too much input after a waiting reserve")
	}
	err = k.raw.Read(func(fd uintptr) bool {
		gone = hungUp(int(fd))
		return gone
	})
	if gone {
		err = nil
	}
	return gone, err
}
