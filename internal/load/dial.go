package load

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sync/errgroup"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

const (
	dialTimeout = 10 * time.Second
	dialers     = 32 // connections being opened at a time

	defaultTube = "default" // what a new connection uses and watches
)

// dial makes the sessions and opens their connections. Each chooses its tube and
// says what it has to say before the load begins.
func (r *run) dial(ctx context.Context) error {
	sessions, tubes := newSessions(&r.opt)
	r.sessions = sessions
	return inParallel(ctx, len(sessions), func(ctx context.Context, i int) (err error) {
		s := sessions[i]
		s.run = r
		s.tally.pace = int64(r.opt.Pace)
		if r.opt.ByCommand {
			s.tally.byOp = make(map[wire.Op]*hdrhistogram.Histogram)
		}
		if s.conn, err = dialServer(ctx, r.opt.Addr); err != nil {
			return err
		}
		return within(ctx, s.conn, dialTimeout, func(d *Dialog) error {
			if err := d.chooseTube(tubes[i]); err != nil {
				return err
			}
			err := d.Send(s.out)
			s.out = s.out[:0]
			return err
		})
	})
}

// hangUp closes the connections that no loop has taken over.
func (r *run) hangUp() {
	for _, s := range r.sessions {
		if s.conn != nil {
			s.conn.Close()
		}
	}
}

// inParallel calls f with each number below n, several at a time, until one fails.
func inParallel(ctx context.Context, n int, f func(ctx context.Context, i int) error) error {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(dialers)
	for i := range n {
		g.Go(func() error {
			if gctx.Err() != nil {
				return nil // there is an error already
			}
			return f(gctx, i)
		})
	}
	err := g.Wait()
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

func dialServer(ctx context.Context, addr string) (net.Conn, error) {
	network := "tcp"
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		network, addr = "unix", path
	}
	d := net.Dialer{Timeout: dialTimeout, KeepAlive: -1}
	nc, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, fmt.Errorf("load: connect: %w", err)
	}
	return nc, nil
}

// within lets f use a connection for at most limit, and not after ctx is done.
func within(ctx context.Context, nc net.Conn, limit time.Duration, f func(*Dialog) error) error {
	if err := nc.SetDeadline(time.Now().Add(limit)); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { nc.SetDeadline(longAgo) })
	err := f(&Dialog{nc: nc})
	if !stop() {
		return context.Cause(ctx)
	}
	return cmp.Or(err, nc.SetDeadline(time.Time{}))
}

// withDialog is within on a connection of its own.
func withDialog(ctx context.Context, addr string, limit time.Duration, f func(*Dialog) error) error {
	nc, err := dialServer(ctx, addr)
	if err != nil {
		return err
	}
	defer nc.Close()
	return within(ctx, nc, limit, f)
}

// chooseTube uses and watches one tube only, in one round trip.
func (d *Dialog) chooseTube(tube string) error {
	out, n := wire.AppendUse(nil, tube), 2
	out = wire.AppendWatch(out, tube)
	if tube != defaultTube {
		out = wire.AppendIgnore(out, defaultTube)
		n++
	}
	if err := d.Exchange(out, n, nil, wire.Using, wire.Watching); err != nil {
		return fmt.Errorf("choose tube %q: %w", tube, err)
	}
	return nil
}
