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

func (*loop) join(net.Conn, peer)       {}
func (*loop) run(context.Context) error { return errors.ErrUnsupported }
