package server

import (
	"time"

	"github.com/beanpole-mq/beanpole/internal/server/epoll"
)

// A Socket is what a loop needs of a connection. Its methods do not block; they
// are described at [epoll.Socket], which is the one that is not simulated.
type Socket interface {
	Read(buf []byte) (int, error)
	Write(buf []byte) (int, error)
	Unacknowledged() int
	CloseWrite() error
	Close() error
}

// A Poller is what a loop needs to wait for its sockets; see [epoll.Poller].
type Poller interface {
	Add(s Socket, index int, events epoll.Events) error
	Modify(s Socket, index int, events epoll.Events) error
	Wait(timeout time.Duration) []epoll.Event
	Wake()
	Close()
}

// systemPoller is the Poller for the kernel's sockets.
type systemPoller struct{ *epoll.Poller }

func newSystemPoller() (Poller, error) {
	p, err := epoll.New()
	return systemPoller{p}, err
}

func (p systemPoller) Add(s Socket, index int, events epoll.Events) error {
	return p.Poller.Add(s.(epoll.Socket), index, events)
}

func (p systemPoller) Modify(s Socket, index int, events epoll.Events) error {
	return p.Poller.Modify(s.(epoll.Socket), index, events)
}
