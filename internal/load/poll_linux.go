package load

import (
	"io"
	"os"
	"time"

	"github.com/beanpole-mq/beanpole/internal/epoll"
)

// idleWait bounds a wait, so that a loop without events sees a change of phase.
const idleWait = 10 * time.Millisecond

// A sock is a socket of a loop. Its methods read and write once, and register it
// anew only when the peer does not read.
type sock struct {
	epoll.Socket
	index  int // as the poller calls it
	closed bool
	full   bool // took only a part of the last write
}

func (k *sock) close() {
	if !k.closed {
		k.Socket.Close()
		k.closed = true
	}
}

// read returns 0, nil when nothing was there, and errHungUp at the end.
func (k *sock) read(buf []byte) (int, error) {
	n, err := k.Socket.Read(buf)
	switch err {
	case epoll.ErrWouldBlock:
		return 0, nil
	case io.EOF:
		return 0, errHungUp
	}
	return n, os.NewSyscallError("read", err)
}

// write returns how much of out the socket took. When that is not all, the
// poller will report it as writable.
func (k *sock) write(p *epoll.Poller, out []byte) (n int, err error) {
	if len(out) > 0 {
		if n, err = k.Socket.Write(out); err != nil {
			return 0, os.NewSyscallError("write", err)
		}
	}
	if full := n < len(out); full != k.full {
		k.full = full
		events := epoll.Readable
		if full {
			events |= epoll.Writable
		}
		return n, p.Modify(k.Socket, k.index, events)
	}
	return n, nil
}
