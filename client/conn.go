package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

// defaultTube is the tube that a new connection uses and watches.
const defaultTube = "default"

// A Conn is a connection to one server. It watches a set of tubes and holds reserved
// jobs. Its methods are safe for concurrent use, but run one at a time: a waiting Reserve
// delays the others. Use a [Pool] to avoid that.
//
// If the connection is lost, the next command opens a new one; so does the current
// command, if it can be repeated without harm. The new connection watches the same
// tubes. Jobs that the lost connection had reserved are no longer reserved: the
// server makes them ready again.
//
// If the context of a command ends before the reply arrives, the connection is closed,
// because a sent command cannot be canceled. So a job that a canceled reserve would have
// returned is not lost: it is or becomes ready again.
type Conn struct {
	commands

	// Constant after Dial.
	addr    string // without a token
	addrs   []address
	current *atomic.Uint32 // index in addrs, modulo its length, of the server that answered last
	opt     Options
	done    chan struct{} // closed by Close

	// turn contains a token while a goroutine has the turn. Only that goroutine uses the
	// following fields.
	turn chan struct{}

	stream       *stream       // nil if there is no connection
	cause        error         // reason why there is no connection; nil before the first
	watched      []string      // in the order of Watch
	lasted       time.Duration // duration of the last connection; 0 if it could not be opened
	facts        wire.JobStats // facts of the last job that was sent with facts
	batchReserve batchReserve  // reused by DeleteAndReserve

	// The state that Close needs while another goroutine has the turn.
	mu struct {
		sync.Mutex
		closed bool
		nc     net.Conn // the network connection of stream, even while it is being set up
	}
}

// Dial connects to the server at addr: HOST:PORT, HOST, [IPv6]:PORT, unix:PATH, or a URL
// ([ParseURL]), whose settings override opt. The default port is [DefaultPort], the
// default host 127.0.0.1. The address of a cluster lists its members:
// "host1:11300,host2:11300,host3:11300". Each new connection tries them in turn, starting
// with the last one that answered. opt can be nil. Dial does not retry.
func Dial(ctx context.Context, addr string, opt *Options) (*Conn, error) {
	c, err := newConn(addr, opt)
	if err != nil {
		return nil, connectError(addr, err)
	}
	c.turn <- struct{}{}
	defer c.release()
	err = c.connect(ctx)
	c.notifyState(err)
	if err != nil {
		return nil, connectError(addr, err)
	}
	return c, nil
}

// newConn returns a Conn that connects when its first command is sent.
func newConn(addr string, opt *Options) (*Conn, error) {
	text, addrs, o, err := parseServer(addr, opt)
	if err != nil {
		return nil, err
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	c := &Conn{
		addr:    text,
		addrs:   addrs,
		current: new(atomic.Uint32),
		opt:     o,
		done:    make(chan struct{}),
		turn:    make(chan struct{}, 1),
		watched: []string{defaultTube},
	}
	c.commands = commands{c}
	c.batchReserve.conn = c
	c.batchReserve.append, c.batchReserve.reply = c.batchReserve.appendCommand, c.batchReserve.takeReply
	return c, nil
}

// Addr returns the address passed to [Dial], without the token and the options of a URL.
func (c *Conn) Addr() string { return c.addr }

// Close closes the connection. The server makes the jobs that it has reserved ready
// again. Current and later commands fail with [ErrClosed]. The error is always nil.
func (c *Conn) Close() error {
	c.mu.Lock()
	if !c.mu.closed {
		c.mu.closed = true
		close(c.done)
		if c.mu.nc != nil {
			c.mu.nc.Close() // ends the current command
		}
	}
	c.mu.Unlock()
	c.closeStream()
	return nil
}

// closeStream releases the stream of a closed connection. Both Close and release call it;
// only the later call has an effect.
func (c *Conn) closeStream() {
	select {
	case c.turn <- struct{}{}:
		if c.stream != nil {
			c.drop(ErrClosed)
		}
		<-c.turn
	default:
	}
}

// acquire waits for this goroutine's turn.
func (c *Conn) acquire(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case c.turn <- struct{}{}:
	default:
		select {
		case c.turn <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-c.done:
			return ErrClosed
		}
	}
	return nil
}

func (c *Conn) release() {
	<-c.turn
	if c.closedOr(nil) != nil {
		c.closeStream()
	}
}

func (c *Conn) checkOut(ctx context.Context, _ string) (*Conn, error) { return c, c.acquire(ctx) }

func (c *Conn) checkIn(*Conn) { c.release() }

// resetForIdle prepares a connection for its next user, and returns the tube in use. ok
// reports whether the connection is open and not in use by another goroutine.
func (c *Conn) resetForIdle() (using string, ok bool) {
	select {
	case c.turn <- struct{}{}:
		defer c.release()
	default:
		return "", false
	}
	if c.stream == nil || c.closedOr(nil) != nil {
		return "", false
	}
	return c.stream.using, true
}

// A request is a command with the data that a Conn needs to send it.
type request struct {
	wire.Command
	want wire.Word     // the reply that means success
	tube string        // the tube that must be in use; empty means any
	wait time.Duration // time that the server can delay the reply; see stream.begin
}

// do sends a command and returns the reply, whose slices are valid until the next
// command. The caller must have the turn.
func (c *Conn) do(ctx context.Context, q *request) (wire.Reply, error) {
	var r wire.Reply
	end := q.end()
	maybe := false // whether an earlier attempt might have deleted the job
	err := c.attempts(ctx, q.tube, q.Op.Repeatable(), func() error {
		q.waitUntil(end)
		sent, err := c.stream.exchange(ctx, &q.Command, q.wait, &r)
		if err = c.check(err); err != nil && sent && !q.Op.Repeatable() {
			if q.Op != wire.Delete {
				return unknown(err)
			}
			maybe = true
		}
		return err
	})
	if err == nil && r.Kind != q.want {
		if err = replyError(&r); outOfStep(q.Op, err) {
			c.drop(err)
		}
	}
	if err != nil && maybe {
		err = unknown(err)
	}
	if err != nil {
		return r, c.fail(q, err)
	}
	return r, nil
}

// attempts calls f with a connection that uses the tube, until f succeeds or must not be
// called again. It checks the connection after each error of f.
func (c *Conn) attempts(ctx context.Context, tube string, repeatable bool, f func() error) error {
	var retry retrier
	for {
		err := c.ready(ctx, tube, repeatable)
		if err == nil {
			err = f()
		}
		if err == nil {
			return nil
		}
		if err = retry.next(ctx, c, err); err != nil {
			return err
		}
	}
}

// ready makes sure that there is a connection and that it uses the command's tube.
func (c *Conn) ready(ctx context.Context, tube string, repeatable bool) error {
	if c.stream != nil && !repeatable && c.stream.stale() {
		c.drop(ErrDisconnected)
	}
	if c.stream == nil {
		if c.cause != nil && c.opt.Reconnect == 0 {
			return c.closedOr(c.cause)
		}
		err := c.connect(ctx)
		c.notifyState(err)
		if err != nil {
			return err
		}
	}
	if tube == "" || tube == c.stream.using {
		return nil
	}
	// Wait for this reply before sending the command: if the server refused to use the
	// tube, a put would go to another tube.
	refused, err := setTubes(ctx, c.stream, []wire.Command{{Op: wire.Use, Tube: []byte(tube)}})
	if err := c.check(err); err != nil {
		return err
	}
	if refused == nil {
		c.stream.using = tube
	}
	return refused
}

// check closes the connection after an error, because the start of the next reply is
// unknown.
func (c *Conn) check(err error) error {
	if err != nil {
		c.drop(err)
		c.notifyState(c.closedOr(err))
		return c.closedOr(err)
	}
	return nil
}

// notifyState calls Options.ConnState when a connection is opened, is lost, or cannot be
// opened.
func (c *Conn) notifyState(err error) {
	if c.opt.ConnState == nil || err != nil && !connectionLost(err) {
		return
	}
	c.opt.ConnState(c.addr, err)
}

// connectionLost reports whether the connection, or a server that refuses it, caused an
// error, rather than a context or Close.
func connectionLost(err error) bool {
	return errors.Is(err, ErrDisconnected) || errors.Is(err, ErrProtocol) ||
		errors.Is(err, ErrUnauthorized) || errors.Is(err, ErrUnknownCommand)
}

func (c *Conn) drop(cause error) {
	c.lasted = max(c.stream.now(), 1)
	c.stream.close()
	c.stream, c.cause = nil, cause
	c.mu.Lock()
	c.mu.nc = nil
	c.mu.Unlock()
}

// closedOr returns ErrClosed if a call of Close caused err, and otherwise err.
func (c *Conn) closedOr(err error) error {
	select {
	case <-c.done:
		return ErrClosed
	default:
		return err
	}
}

// unknown wraps an error after which the server might have executed the command.
func unknown(err error) error { return fmt.Errorf("%w: %w", ErrOutcomeUnknown, err) }

// outOfStep reports whether, after this reply, the server might parse the rest of a body
// as commands, or might not answer commands at all.
func outOfStep(op wire.Op, err error) bool {
	return errors.Is(err, ErrProtocol) || op == wire.Put && errors.Is(err, ErrBadFormat)
}
