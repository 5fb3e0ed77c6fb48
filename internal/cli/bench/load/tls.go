package load

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

// dial opens a connection to the server of a load, encrypted if that is asked for, on
// which Hello has been answered.
func (o *Options) dial(ctx context.Context) (*Dialog, error) {
	d, err := Dial(ctx, o.Addr)
	if err != nil {
		return nil, err
	}
	if o.TLS != nil {
		err = d.encrypt(ctx, o.TLS)
	}
	if err == nil && len(o.Hello) > 0 {
		if err = d.Send(o.Hello); err == nil {
			_, err = d.Receive(wire.Authenticated, wire.OK, wire.Inserted)
		}
	}
	if err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// encrypt puts TLS in the place of a plain connection. A loop wants sockets, so goroutines
// move the bytes between TLS and a pair of them.
func (d *Dialog) encrypt(ctx context.Context, config *tls.Config) error {
	conn := tls.Client(d.nc, config)
	if err := conn.HandshakeContext(ctx); err != nil {
		return fmt.Errorf("load: TLS: %w", err)
	}
	ours, theirs, err := socketPair()
	if err != nil {
		return errors.Join(fmt.Errorf("load: TLS: %w", err), conn.Close())
	}
	join(theirs, conn)
	d.detach()
	d.nc = ours
	d.attach(ctx)
	return nil
}

// join moves bytes between two connections, both ways, until one of them ends.
func join(a, b net.Conn) {
	for _, way := range [][2]net.Conn{{a, b}, {b, a}} {
		go func() {
			io.Copy(way[0], way[1])
			a.Close()
			b.Close()
		}()
	}
}

// socketPair returns two sockets that are connected.
func socketPair() (a, b net.Conn, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	var conns [2]net.Conn
	var errs [2]error
	for i, fd := range fds {
		unix.CloseOnExec(fd)
		f := os.NewFile(uintptr(fd), "")
		conns[i], errs[i] = net.FileConn(f) // it has a descriptor of its own
		f.Close()
	}
	if err := errors.Join(errs[:]...); err != nil {
		for _, c := range conns {
			if c != nil {
				c.Close()
			}
		}
		return nil, nil, err
	}
	return conns[0], conns[1], nil
}
