//go:build !linux

package load

import (
	"context"
	"errors"
	"net"
)

// A loop needs epoll.
type loop struct{}

func newLoop() (*loop, error) {
	return nil, errors.New("load: the load generator runs on Linux only")
}

func (*loop) connect(net.Conn, peer) error           { return errors.ErrUnsupported }
func (*loop) listen(net.Listener, func() peer) error { return errors.ErrUnsupported }
func (*loop) run(context.Context) error              { return errors.ErrUnsupported }
func (*loop) close()                                 {}
