package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

// usedTube stands in a request for the tube that is in use when the command's
// turn has come. It is not the name of a tube.
const usedTube = "-"

// Use selects the tube for puts that name no tube, for [Conn.Kick], and for
// [Conn.PeekReady], [Conn.PeekDelayed] and [Conn.PeekBuried]. The server creates the tube
// if it does not exist.
func (c *Conn) Use(ctx context.Context, tube string) error {
	q := request{Command: wire.Command{Op: wire.Use, Tube: []byte(tube)}, want: wire.Using}
	return c.hold(ctx, &q, CheckTube(tube), func(*wire.Reply) error {
		c.used, c.stream.using = tube, tube
		return nil
	})
}

// Watch adds a tube to those that Reserve takes jobs from, and returns how many
// there are now. A new connection watches the tube "default".
func (c *Conn) Watch(ctx context.Context, tube string) (watched int, err error) {
	q := request{Command: wire.Command{Op: wire.Watch, Tube: []byte(tube)}, want: wire.Watching}
	err = c.hold(ctx, &q, CheckTube(tube), func(r *wire.Reply) error {
		if !slices.Contains(c.watched, tube) {
			c.watched = append(c.watched, tube)
		}
		watched = int(r.N)
		return nil
	})
	return watched, err
}

// Ignore takes a tube from those that Reserve takes jobs from, and returns how
// many are left. The last one cannot be ignored: the error is [ErrNotIgnored].
func (c *Conn) Ignore(ctx context.Context, tube string) (watched int, err error) {
	q := request{Command: wire.Command{Op: wire.Ignore, Tube: []byte(tube)}, want: wire.Watching}
	err = c.hold(ctx, &q, CheckTube(tube), func(r *wire.Reply) error {
		c.watched = slices.DeleteFunc(c.watched, func(t string) bool { return t == tube })
		watched = int(r.N)
		return nil
	})
	return watched, err
}

// WatchOnly watches these tubes, at least one, and no others, in one round trip.
func (c *Conn) WatchOnly(ctx context.Context, tubes ...string) error {
	q := request{Command: wire.Command{Op: wire.Watch}}
	if len(tubes) == 0 {
		return c.fail(&q, fmt.Errorf("%w: no tube to watch", ErrInvalid))
	}
	for _, tube := range tubes {
		if err := CheckTube(tube); err != nil {
			return c.fail(&q, err)
		}
	}
	if err := c.acquire(ctx); err != nil {
		return c.fail(&q, err)
	}
	defer c.release()
	return c.watchOnly(ctx, tubes)
}

// watchOnly is WatchOnly of valid names, with the turn.
func (c *Conn) watchOnly(ctx context.Context, tubes []string) error {
	q := request{Command: wire.Command{Op: wire.Watch}}
	err := c.attempts(ctx, "", true, new(retrier), func() error {
		refused, err := setTubes(ctx, c.stream, appendWatch(nil, c.watched, tubes))
		return c.check(cmp.Or(err, refused)) // what is watched after a refusal is not known
	})
	if refused, ok := errors.AsType[*Error](err); ok {
		refused.Addr = c.addr.text // it says which of the tubes
		return refused
	}
	if err != nil {
		return c.fail(&q, err)
	}
	c.watched = c.watched[:0]
	for _, tube := range tubes {
		if !slices.Contains(c.watched, tube) {
			c.watched = append(c.watched, tube)
		}
	}
	return nil
}

// Kick makes up to limit jobs of the tube in use ready, or [All], and returns how many
// it has made ready. If there are buried jobs it takes those, the ones buried longest
// first; otherwise it takes delayed jobs, those that are due soonest first.
func (c *Conn) Kick(ctx context.Context, limit int) (kicked int, err error) {
	q := request{Command: wire.Command{Op: wire.Kick}, want: wire.Kicked, tube: usedTube}
	q.Count, err = count(limit)
	return c.number(ctx, &q, err)
}

// PauseTube stops Reserve from taking jobs of the tube, for all clients, for d,
// rounded up to whole seconds. 0 ends a pause. The error is [ErrNotFound] if there is no
// such tube.
func (c *Conn) PauseTube(ctx context.Context, tube string, d time.Duration) error {
	q := request{Command: wire.Command{Op: wire.PauseTube, Tube: []byte(tube)}, want: wire.Paused}
	var err error
	q.Delay, err = seconds("pause", d)
	return c.hold(ctx, &q, cmp.Or(err, CheckTube(tube)), nil)
}

// ListTubes returns the names of all tubes.
func (c *Conn) ListTubes(ctx context.Context) ([]string, error) {
	return c.list(ctx, wire.ListTubes)
}

// ListTubesWatched returns the names of the tubes that this connection watches,
// as the server knows them.
func (c *Conn) ListTubesWatched(ctx context.Context) ([]string, error) {
	return c.list(ctx, wire.ListTubesWatched)
}

func (c *Conn) list(ctx context.Context, op wire.Op) (tubes []string, err error) {
	q := request{Command: wire.Command{Op: op}, want: wire.OK}
	err = c.hold(ctx, &q, nil, func(r *wire.Reply) error {
		tubes, err = wire.ParseList(r.Body)
		return err
	})
	return tubes, err
}

// ListTubeUsed returns the name of the tube in use, as the server knows it.
func (c *Conn) ListTubeUsed(ctx context.Context) (tube string, err error) {
	q := request{Command: wire.Command{Op: wire.ListTubeUsed}, want: wire.Using, tube: usedTube}
	err = c.hold(ctx, &q, nil, func(r *wire.Reply) error {
		tube = string(r.Tube)
		return nil
	})
	return tube, err
}

// Ping checks that the server answers commands.
func (c *Conn) Ping(ctx context.Context) error {
	_, err := c.ListTubeUsed(ctx)
	return err
}

// number is hold for a command that is answered with a number.
func (c *Conn) number(ctx context.Context, q *request, err error) (n int, _ error) {
	err = c.hold(ctx, q, err, func(r *wire.Reply) error {
		n = int(r.N)
		return nil
	})
	return n, err
}

// hold sends a command and hands the reply to read, if it is not nil, while it
// has the turn. It sends nothing if err is an error.
func (c *Conn) hold(ctx context.Context, q *request, err error, read func(*wire.Reply) error) error {
	if err != nil {
		return c.fail(q, err)
	}
	if err := c.acquire(ctx); err != nil {
		return c.fail(q, err)
	}
	defer c.release()
	if q.tube == usedTube {
		q.tube = c.used
	}
	r, err := c.do(ctx, q)
	if err != nil || read == nil {
		return err
	}
	if err := read(&r); err != nil {
		c.drop(err)
		return c.fail(q, fmt.Errorf("%w: %w", ErrProtocol, err))
	}
	return nil
}
