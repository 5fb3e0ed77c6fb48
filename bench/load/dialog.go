package load

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

const (
	dialTimeout = 10 * time.Second

	// pipelined is how many commands Pipeline sends at a time: with the bodies of a
	// benchmark they and their replies fit into the buffers of sockets.
	pipelined = 100

	defaultTube = "default" // what a new connection uses and watches
)

// A Dialog is a connection for what is not a load: to prepare a server, to ask
// it something, to look whether a job is there. It blocks; one goroutine at a
// time may use it. It is closed when the context that it was opened with is done:
// then whatever it is blocked in fails.
type Dialog struct {
	nc     net.Conn
	detach func() bool // from the context
	in     input
	reply  wire.Reply
}

// Dial opens a connection to the server at an address, as in Options.
func Dial(ctx context.Context, addr string) (*Dialog, error) {
	network := "tcp"
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		network, addr = "unix", path
	}
	dialer := net.Dialer{Timeout: dialTimeout, KeepAlive: -1}
	nc, err := dialer.DialContext(ctx, network, addr)
	if err != nil {
		return nil, fmt.Errorf("load: connect: %w", err)
	}
	d := &Dialog{nc: nc}
	d.attach(ctx)
	return d, nil
}

// attach closes the connection when ctx is done, unless detach is called before.
func (d *Dialog) attach(ctx context.Context) {
	d.detach = context.AfterFunc(ctx, func() { d.nc.Close() })
}

// Close closes the connection.
func (d *Dialog) Close() error {
	d.detach()
	return d.nc.Close()
}

// ChooseTube uses and watches one tube only, in one round trip.
func (d *Dialog) ChooseTube(tube string) error {
	out, n := wire.AppendUse(nil, tube), 2
	out = wire.AppendWatch(out, tube)
	if tube != defaultTube {
		out = wire.AppendIgnore(out, defaultTube)
		n++
	}
	if err := d.exchange(out, n, nil, wire.Using, wire.Watching); err != nil {
		return fmt.Errorf("choose tube %q: %w", tube, err)
	}
	return nil
}

// Do sends one command and returns its reply, which must be of the kind wanted.
// It is valid until the next reply is received.
func (d *Dialog) Do(command []byte, want wire.ReplyKind) (*wire.Reply, error) {
	if err := d.Send(command); err != nil {
		return nil, err
	}
	return d.Receive(want)
}

// Stats asks for statistics, and returns them by their names.
func (d *Dialog) Stats(command []byte) (map[string]string, error) {
	r, err := d.Do(command, wire.OK)
	if err != nil {
		return nil, err
	}
	return wire.ParseDict(r.Body)
}

// Pipeline sends n commands, of which command appends the i-th, many at a time. The
// replies must be of kinds wanted. Each is given to f, unless that is nil.
func (d *Dialog) Pipeline(n int, command func(out []byte, i int) []byte, f func(*wire.Reply), want ...wire.ReplyKind) error {
	var out []byte
	for first := 0; first < n; first += pipelined {
		size := min(pipelined, n-first)
		out = out[:0]
		for i := range size {
			out = command(out, first+i)
		}
		if err := d.exchange(out, size, f, want...); err != nil {
			return err
		}
	}
	return nil
}

// Repeat sends the same command n times.
func (d *Dialog) Repeat(n int, command []byte, want wire.ReplyKind) error {
	return d.Pipeline(n, func(out []byte, _ int) []byte { return append(out, command...) }, nil, want)
}

func (d *Dialog) exchange(commands []byte, n int, f func(*wire.Reply), want ...wire.ReplyKind) error {
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
		in := d.in.unparsed()
		n, err := wire.ParseReply(in, &d.reply)
		switch {
		case err != nil:
			return nil, fmt.Errorf("load: not a reply: %s: %w", firstLine(in), err)
		case n > 0 && !slices.Contains(want, d.reply.Kind):
			return nil, fmt.Errorf("load: unexpected reply: %s", firstLine(in))
		case n > 0:
			d.in.parsed += n
			return &d.reply, nil
		}
		n, err = d.nc.Read(d.in.space())
		d.in.add(n)
		if n == 0 && err != nil {
			return nil, fmt.Errorf("load: wait for a reply: %w", err)
		}
	}
}
