package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

const (
	firstBuffer = 4 << 10  // bytes; enough for most replies
	keepBuffer  = 64 << 10 // bytes; larger buffers are freed after use
)

// forever is the wait of a reserve without a limit.
const forever time.Duration = 1<<63 - 1

// A stream is one network connection, on which replies arrive in the order of their
// commands. After an error, it is unusable.
//
// An exchange consists of a call to begin, any number of writes and reads, and a call to
// end.
type stream struct {
	nc      net.Conn
	timeout time.Duration // for a reply, in addition to the command's wait; 0 means none
	using   string        // the tube that the server considers in use
	caps    []string      // reply to caps; nil if not requested, empty if the server lacks caps

	look look // see stale

	out  []byte // pending output
	in   []byte // input; in[r:w] is not parsed yet
	r, w int    //

	reply wire.Reply // last reply of a batch

	// Times on the clock of now.
	born   time.Time
	expiry time.Duration // deadline of nc; 0 means none

	ctx context.Context // context of the current exchange

	// The interruption of an exchange. Registering a function with a context costs more
	// than the rest of an exchange, so the registration is kept for the next exchange
	// with the same context. Contexts are compared by their channels.
	mu struct {
		sync.Mutex
		watched     <-chan struct{} // Done channel of the context that calls interrupt when it ends; nil if there is none
		current     <-chan struct{} // Done channel of the current exchange's context; nil if the context cannot end or there is no exchange
		interrupted bool            // whether the exchange was interrupted
	}
	unwatch func() bool
}

func newStream(nc net.Conn, timeout time.Duration) *stream {
	return &stream{nc: nc, timeout: timeout, using: defaultTube, in: make([]byte, firstBuffer), born: time.Now()}
}

func (s *stream) close() {
	if s.unwatch != nil {
		s.unwatch()
	}
	s.nc.Close()
}

// begin starts an exchange whose replies the server can delay by wait. It ends early when
// ctx does.
func (s *stream) begin(ctx context.Context, wait time.Duration) error {
	if err := s.setDeadline(wait); err != nil {
		return lost(err)
	}
	s.ctx = ctx
	done := ctx.Done()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.current = done
	switch {
	case done == nil:
	case done != s.mu.watched:
		if s.unwatch != nil {
			s.unwatch()
		}
		s.mu.watched = done
		s.unwatch = context.AfterFunc(ctx, func() { s.interrupt(done) })
	case ctx.Err() != nil: // the context called interrupt between two exchanges
		s.expire()
	}
	return nil
}

// interrupt ends the current exchange if it has this context.
func (s *stream) interrupt(done <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.current == done {
		s.expire()
	}
}

// expire makes reads and writes fail. The caller holds mu.
func (s *stream) expire() {
	s.mu.interrupted = true
	s.nc.SetDeadline(time.Unix(1, 0))
}

// now returns the time since the connection was opened. Reading the clock is a large part
// of the cost of an exchange, and time.Now reads two clocks.
func (s *stream) now() time.Duration { return time.Since(s.born) }

// setDeadline sets the deadline of the network connection. A change costs as much as
// formatting a command, so a deadline that is slightly late is kept.
func (s *stream) setDeadline(wait time.Duration) error {
	if s.timeout <= 0 || wait == forever {
		if s.expiry == 0 {
			return nil
		}
		s.expiry = 0
		return s.nc.SetDeadline(time.Time{})
	}
	soonest := s.now() + wait + s.timeout
	latest := soonest + s.timeout/4
	if soonest <= s.expiry && s.expiry <= latest {
		return nil
	}
	s.expiry = latest
	return s.nc.SetDeadline(s.born.Add(latest))
}

// end finishes an exchange and explains its error, if any.
func (s *stream) end(err error) error {
	s.mu.Lock()
	interrupted := s.mu.interrupted
	s.mu.current, s.mu.interrupted = nil, false
	s.mu.Unlock()
	if interrupted {
		s.expiry = -1 // makes the next setDeadline set a deadline
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err = context.Cause(s.ctx)
		}
	}
	s.ctx = nil
	return err
}

// write writes out. It returns the number of bytes that the system accepted.
func (s *stream) write() (n int, err error) {
	n, err = s.nc.Write(s.out)
	if s.out = s.out[:0]; cap(s.out) > keepBuffer {
		s.out = nil
	}
	if err != nil {
		return n, lost(err)
	}
	return n, nil
}

// read reads one reply, whose slices are valid until the next read.
func (s *stream) read(r *wire.Reply) error {
	for {
		n, err := wire.ParseReply(s.in[s.r:s.w], r)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrProtocol, err)
		}
		if n > 0 {
			s.r += n
			return nil
		}
		if err := s.fill(); err != nil {
			return lost(err)
		}
	}
}

// fill reads more bytes, into a larger buffer if this one is full.
func (s *stream) fill() error {
	switch {
	case s.r == s.w:
		s.r, s.w = 0, 0
		if len(s.in) > keepBuffer {
			s.in = make([]byte, keepBuffer)
		}
	case s.w == len(s.in) && s.r > len(s.in)/2:
		s.w = copy(s.in, s.in[s.r:s.w])
		s.r = 0
	case s.w == len(s.in):
		in := make([]byte, 2*len(s.in))
		s.w = copy(in, s.in[s.r:s.w])
		s.in, s.r = in, 0
	}
	n, err := s.nc.Read(s.in[s.w:])
	s.w += n
	if n > 0 {
		return nil
	}
	return err
}

// exchange sends one command and reads its reply. sent reports whether the system
// accepted the complete command. If not, the server cannot have executed it.
func (s *stream) exchange(ctx context.Context, cmd *wire.Command, wait time.Duration, r *wire.Reply) (sent bool, err error) {
	if err := s.begin(ctx, wait); err != nil {
		return false, err
	}
	s.out = wire.AppendCommand(s.out[:0], cmd)
	size := len(s.out)
	n, err := s.write()
	if err == nil {
		err = s.read(r)
	}
	return n == size, s.end(err)
}

// lost wraps an error of the network in ErrDisconnected.
func lost(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("%w: %w", ErrDisconnected, errNoReply)
	}
	return fmt.Errorf("%w: %w", ErrDisconnected, err)
}

// errNoReply is os.ErrDeadlineExceeded with a clearer message.
var errNoReply = fmt.Errorf("the server did not answer in time: %w", os.ErrDeadlineExceeded)
