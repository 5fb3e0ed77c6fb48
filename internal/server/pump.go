package server

import (
	"cmp"
	"context"
	"net"
	"sync"
	"time"

	"github.com/beanpole-mq/beanpole/internal/server/epoll"
)

const (
	pumpWindow = 64 << 10 // number of bytes that a pump reads ahead of the loop, and writes behind it

	// pumpPiece is the maximum number of bytes that a pump reads or writes at a time. A
	// client makes progress if it reads a piece within StallTimeout.
	pumpPiece = 4 << 10

	// pumpLinger is the time after Close for which a client can read the remaining
	// replies.
	pumpLinger = time.Minute
)

// A pump turns a connection that no loop can poll into a Stream: on systems without
// epoll, and in tests. One goroutine reads ahead of the loop, and another writes behind
// it.
type pump struct {
	nc    net.Conn
	below net.Conn // nc or, with TLS, the connection below it

	mu      sync.Mutex
	changed sync.Cond
	notify  func()
	in      []byte // in[at:] was read from the connection, and has not been read from the pump
	at      int
	inErr   error  // error that ended reading
	out     []byte // bytes to write
	writing int    // number of bytes before out that are being written
	outErr  error  // error that ended writing
	shut    bool   // CloseWrite was called
	closed  bool   // Close was called
}

// newPump returns a pump, which owns the connection.
func (s *Server) newPump(nc net.Conn) *pump {
	p := &pump{nc: nc, below: nc, notify: func() {}}
	if t, ok := nc.(interface{ NetConn() net.Conn }); ok {
		p.below = t.NetConn()
	}
	p.changed.L = &p.mu
	// Closing below TLS writes no close_notify, which could block.
	stop := context.AfterFunc(s.aborting, func() { p.below.Close() })
	reads := make(chan struct{})
	go func() {
		defer close(reads)
		p.read()
	}()
	s.wg.Go(func() {
		p.write()
		<-reads
		stop()
	})
	return p
}

// tell unlocks mu and wakes the loop and the other goroutine.
func (p *pump) tell() {
	p.changed.Broadcast()
	f := p.notify
	p.mu.Unlock()
	f()
}

func (p *pump) read() {
	var buf [pumpPiece]byte
	for {
		p.mu.Lock()
		for p.unread() >= pumpWindow && !p.closed {
			p.changed.Wait()
		}
		p.mu.Unlock()
		n, err := p.nc.Read(buf[:])
		p.mu.Lock()
		if p.at > 0 {
			p.in, p.at = p.in[:copy(p.in, p.in[p.at:])], 0
		}
		if p.inErr = err; !p.closed {
			p.in = append(p.in, buf[:n]...)
		}
		p.tell()
		if err != nil {
			return
		}
	}
}

func (p *pump) write() {
	defer p.nc.Close()
	var buf [pumpPiece]byte
	for shut := false; ; {
		p.mu.Lock()
		for len(p.out) == 0 && p.shut == shut && !p.closed {
			p.changed.Wait()
		}
		p.writing = copy(buf[:], p.out)
		p.out = release(p.out[:copy(p.out, p.out[p.writing:])])
		piece, over := buf[:p.writing], p.closed
		p.mu.Unlock()
		if len(piece) > 0 {
			_, err := p.nc.Write(piece)
			p.mu.Lock()
			if p.writing = 0; err != nil {
				p.out, p.outErr = nil, err
			}
			p.tell()
			continue
		}
		if over {
			return
		}
		shut = true
		closeWrite(p.nc)
		if p.below != p.nc {
			closeWrite(p.below)
		}
	}
}

// closeWrite half-closes a connection if it supports that.
func closeWrite(nc net.Conn) {
	if half, ok := nc.(interface{ CloseWrite() error }); ok {
		half.CloseWrite() // a read of a failed connection returns the error, too
	}
}

// release returns b, or nil if b is large and empty.
func release(b []byte) []byte {
	if len(b) == 0 && cap(b) > pumpPiece {
		return nil
	}
	return b
}

// Notify implements Stream.
func (p *pump) Notify(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notify = f
}

// Ready implements Stream.
func (p *pump) Ready() (readable, writable, ended bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.unread() > 0 || p.inErr != nil, p.outErr != nil || p.room() > 0, p.inErr != nil
}

// Unread implements Stream.
func (p *pump) Unread() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.unread()
}

func (p *pump) unread() int { return len(p.in) - p.at }

func (p *pump) room() int { return pumpWindow - len(p.out) - p.writing }

// unwritten returns the number of bytes not yet written to the connection.
func (p *pump) unwritten() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.out) + p.writing
}

// Held implements Stream.
func (p *pump) Held() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return cap(p.in) + cap(p.out)
}

// TryRead implements Stream.
func (p *pump) TryRead(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.unread() > 0:
	case p.inErr != nil:
		return 0, p.inErr
	default:
		return 0, epoll.ErrWouldBlock
	}
	n := copy(b, p.in[p.at:])
	if p.at += n; p.at == len(p.in) {
		p.in, p.at = release(p.in[:0]), 0
	}
	p.changed.Broadcast()
	return n, nil
}

// TryWrite implements Stream.
func (p *pump) TryWrite(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.shut || p.outErr != nil {
		return 0, cmp.Or(p.outErr, net.ErrClosed)
	}
	n := min(len(b), p.room())
	p.out = append(p.out, b[:n]...)
	p.changed.Broadcast()
	return n, nil
}

// CloseWrite implements Stream.
func (p *pump) CloseWrite() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shut = true
	p.changed.Broadcast()
	return nil
}

// Close implements Stream. If the client reads in time, it still receives the written
// replies.
func (p *pump) Close() error {
	p.nc.SetWriteDeadline(time.Now().Add(pumpLinger))
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.changed.Broadcast()
	return nil
}
