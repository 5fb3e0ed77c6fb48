package load

import (
	"context"
	"fmt"
	"net"
	"slices"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

// A Dialog is a connection for what is not a load: to prepare a server, to ask
// it something, to look whether a job is there. It blocks; one goroutine at a
// time may use it. When the context that it was opened with is done, whatever
// it is blocked in fails.
type Dialog struct {
	nc     net.Conn
	detach func() bool // from the context

	in    []byte // in[r:] has been read and not parsed
	r     int
	reply wire.Reply
}

// Dial opens a connection to the server at an address, as in Options.
func Dial(ctx context.Context, addr string) (*Dialog, error) {
	nc, err := dialServer(ctx, addr)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { nc.SetDeadline(longAgo) })
	return &Dialog{nc: nc, detach: stop}, nil
}

// Close closes the connection.
func (d *Dialog) Close() error {
	d.detach()
	return d.nc.Close()
}

// Do sends one command and returns its reply, which must be of a kind wanted.
// It is valid until the next reply is received.
func (d *Dialog) Do(command []byte, want ...wire.ReplyKind) (*wire.Reply, error) {
	if err := d.Send(command); err != nil {
		return nil, err
	}
	return d.Receive(want...)
}

// Exchange sends commands and receives n replies of kinds wanted. Each is given to
// f, unless that is nil.
func (d *Dialog) Exchange(commands []byte, n int, f func(*wire.Reply), want ...wire.ReplyKind) error {
	if err := d.Send(commands); err != nil {
		return err
	}
	for range n {
		r, err := d.Receive(want...)
		if err != nil {
			return err
		}
		if f != nil {
			f(r)
		}
	}
	return nil
}

// Send sends any number of commands. As nothing is received meanwhile, the
// commands and the replies to them must fit into the sockets' buffers: a few
// dozen KiB at a time do.
func (d *Dialog) Send(commands []byte) error {
	if _, err := d.nc.Write(commands); err != nil {
		return fmt.Errorf("load: send: %w", err)
	}
	return nil
}

// Receive returns the next reply, which must be of a kind wanted. It is valid
// until the next call.
func (d *Dialog) Receive(want ...wire.ReplyKind) (*wire.Reply, error) {
	for {
		n, err := wire.ParseReply(d.in[d.r:], &d.reply)
		if err != nil {
			return nil, fmt.Errorf("load: not a reply: %s: %w", firstLine(d.in[d.r:]), err)
		}
		if n > 0 {
			if !slices.Contains(want, d.reply.Kind) {
				return nil, fmt.Errorf("load: unexpected reply: %s", firstLine(d.in[d.r:]))
			}
			d.r += n
			return &d.reply, nil
		}
		if err := d.read(); err != nil {
			return nil, fmt.Errorf("load: wait for a reply: %w", err)
		}
	}
}

// read reads what is there, at least a byte, behind what is not parsed yet.
func (d *Dialog) read() error {
	if d.r > 0 {
		d.in = d.in[:copy(d.in, d.in[d.r:])]
		d.r = 0
	}
	d.in = slices.Grow(d.in, max(minSpace, len(d.in))) // a reply of megabytes in few steps
	n, err := d.nc.Read(d.in[len(d.in):cap(d.in)])
	d.in = d.in[:len(d.in)+n]
	if n > 0 {
		return nil
	}
	return err
}
