package server

import (
	"errors"
	"time"

	"github.com/beanpole-mq/beanpole/internal/server/epoll"
)

// A Socket is a connection, as used by a loop. Its methods do not block; see
// [epoll.Socket], the implementation outside simulations.
type Socket interface {
	Read(buf []byte) (int, error)
	Write(buf []byte) (int, error)
	Unacknowledged() int
	CloseWrite() error
	Close() error
}

// A Poller waits for the sockets of a loop; see [epoll.Poller].
type Poller interface {
	Add(s Socket, index int, events epoll.Events) error
	Modify(s Socket, index int, events epoll.Events) error
	Remove(s Socket) error
	Wait(timeout time.Duration) []epoll.Event
	Wake()
	Close()
}

// A wakeup is the Poller of a loop without kernel sockets. Its streams wake it.
type wakeup chan struct{}

func newWakeup() (Poller, error) { return make(wakeup, 1), nil }

func (wakeup) Add(Socket, int, epoll.Events) error    { return errors.ErrUnsupported }
func (wakeup) Modify(Socket, int, epoll.Events) error { return errors.ErrUnsupported }
func (wakeup) Remove(Socket) error                    { return errors.ErrUnsupported }
func (wakeup) Close()                                 {}

func (b wakeup) Wait(timeout time.Duration) []epoll.Event {
	var over <-chan time.Time
	switch {
	case timeout == 0:
		select {
		case <-b:
		default:
		}
		return nil
	case timeout > 0:
		timer := time.NewTimer(timeout)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-b:
	case <-over:
	}
	return nil
}

func (b wakeup) Wake() {
	select {
	case b <- struct{}{}:
	default: // the loop is already awake
	}
}

// clients contains the sockets of an event loop by index. The poller reports sockets by
// this index.
type clients struct {
	all  []*socket // a free index contains nil
	free []int
}

// add adds a client and returns its index.
func (c *clients) add(s *socket) int {
	n := len(c.free)
	if n == 0 {
		c.all = append(c.all, s)
		return len(c.all) - 1
	}
	index := c.free[n-1]
	c.free = c.free[:n-1]
	c.all[index] = s
	return index
}

// remove frees the index of a client.
func (c *clients) remove(index int) {
	c.all[index] = nil
	c.free = append(c.free, index)
}

// taken returns the number of clients.
func (c *clients) taken() int { return len(c.all) - len(c.free) }
