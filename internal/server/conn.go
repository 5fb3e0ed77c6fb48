package server

import (
	"errors"
	"net"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

const (
	// maxBatch is how many commands of one connection a turn executes at most, so
	// that a client that floods the server does not keep the others waiting.
	maxBatch = 128

	// maxOut is how many bytes of replies a turn may leave with a connection,
	// give or take one reply; then they are written before it goes on.
	maxOut = 256 << 10

	// maxAhead is how many bytes a client may send behind a reserve that waits
	// before the connection stops reading them.
	maxAhead = 64 << 10
)

// A conn is one client as the protocol sees it: what it has sent is parsed, what
// it wants of the engine is done within a turn, and the replies are in out. How
// the bytes come and go is the business of what embeds it: a socket, which
// shares a loop with others, or a stream, which has a goroutine of its own.
//
// It is owned by that, and lent to the turn while that runs.
type conn struct {
	srv    *Server
	peer   string        // the client's address, if it is going to be logged
	waiter engine.Waiter // what embeds the conn
	sess   *engine.Session
	parser wire.Parser

	out    []byte   // replies not yet written
	rest   *listing // of the reply at the end of out; nil if that is whole
	logged []span   // replies in out that promise something is in the log
	kick   *kick    // that goes on in the next turn; nil: none

	waiting bool // in a reserve
	quit    bool // the client said so
	eof     bool // the client sends nothing more
}

func newConn(s *Server, nc net.Conn, w engine.Waiter) conn {
	return conn{srv: s, peer: s.peerName(nc), waiter: w, parser: s.newParser()}
}

// An action is what the next turn is to do for a connection.
type action uint8

const (
	execute   action = iota // commands
	open                    // make a session
	halfClose               // the client sends nothing more
	leave                   // end the session
)

// Why a connection ends, besides the errors of its socket.
var (
	errQuit    = errors.New("quit")
	errStopped = errors.New("the server stops")
	errIdle    = errors.New("silent for longer than the idle timeout")
	errStalled = errors.New("stopped in the middle of a command for longer than the stall timeout")
)

// A parsed command and where in the input it ends.
type parsed struct {
	wire.Command
	end int
}

// parse appends the commands that are whole at the front of buf, maxBatch of them
// at most, and returns how many bytes it has dealt with. The commands refer to buf.
func (c *conn) parse(buf []byte, cmds []parsed) (_ []parsed, n int) {
	for range maxBatch {
		if n == len(buf) {
			break
		}
		cmds = append(cmds, parsed{})
		cmd := &cmds[len(cmds)-1]
		size, ok := c.parser.Next(buf[n:], &cmd.Command)
		n += size
		if !ok {
			cmds = cmds[:len(cmds)-1]
			break
		}
		cmd.end = n
		if cmd.Fault == wire.FaultHTTP {
			c.srv.warnHTTP()
		}
		if c.srv.opt.Trace {
			c.srv.log.Debug("command", "client", c.peer, "verb", cmd.Op)
		}
	}
	return cmds, n
}

// reparse makes the parser forget what it has seen behind a command: that input
// will be parsed again.
func (c *conn) reparse() { c.parser = c.srv.newParser() }

func (s *Server) newParser() wire.Parser {
	return wire.Parser{MaxBody: s.opt.MaxJobSize, Compat: s.opt.Compat}
}

// silence returns how long the client may now send nothing, not positive if for
// ever, and what is wrong then. Empty says that none of its input is unread.
func (c *conn) silence(empty bool) (time.Duration, error) {
	if empty && !c.parser.Discarding() {
		return c.srv.opt.IdleTimeout, errIdle
	}
	return c.srv.opt.StallTimeout, errStalled
}

// traceReplies logs that replies are being written.
func (c *conn) traceReplies() {
	if c.srv.opt.Trace {
		c.srv.log.Debug("replies", "client", c.peer, "bytes", len(c.out))
	}
}
