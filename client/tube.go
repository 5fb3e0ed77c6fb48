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

// Use selects the tube of commands that name none. The server creates the tube
// if it does not exist.
func (c *Conn) Use(ctx context.Context, tube string) error {
	q := request{Command: wire.Command{Op: wire.Use, Tube: []byte(tube)}, want: wire.Using}
	return c.ask(ctx, &q, CheckTube(tube), func(*wire.Reply) error {
		c.used, c.stream.using = tube, tube
		return nil
	})
}

// Watch adds a tube to those that Reserve takes jobs from, and returns how many
// there are now. A new connection watches the tube "default".
func (c *Conn) Watch(ctx context.Context, tube string) (watched int, err error) {
	q := request{Command: wire.Command{Op: wire.Watch, Tube: []byte(tube)}, want: wire.Watching}
	err = c.ask(ctx, &q, CheckTube(tube), func(r *wire.Reply) error {
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
	err = c.ask(ctx, &q, CheckTube(tube), func(r *wire.Reply) error {
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
	err := c.attempts(ctx, "", true, new(retrier), func() error {
		refused, err := setTubes(ctx, c.stream, appendWatch(nil, c.watched, tubes))
		return c.check(cmp.Or(err, refused)) // what is watched after a refusal is not known
	})
	if refused, ok := errors.AsType[*Error](err); ok {
		refused.Addr = c.addr // it says which of the tubes
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

// Kick makes up to limit jobs of a tube ready, or [All], and returns how many it has made
// ready. If there are buried jobs it takes those, the ones buried longest first;
// otherwise it takes delayed jobs, those that are due soonest first. If the tube is
// empty, it is the one that the connection uses; with a [Pool] "default".
func (c *commands) Kick(ctx context.Context, tube string, limit int) (kicked int, err error) {
	q := request{Command: wire.Command{Op: wire.Kick}, want: wire.Kicked}
	q.Count, err = count(limit)
	return c.askNumber(ctx, &q, cmp.Or(err, q.in(tube)))
}

// PauseTube stops Reserve from taking jobs of the tube, for all clients, for d,
// rounded up to whole seconds. 0 ends a pause. The error is [ErrNotFound] if there is no
// such tube.
func (c *commands) PauseTube(ctx context.Context, tube string, d time.Duration) error {
	q := request{Command: wire.Command{Op: wire.PauseTube, Tube: []byte(tube)}, want: wire.Paused}
	var err error
	q.Delay, err = seconds("pause", d)
	if err = cmp.Or(err, CheckTube(tube)); err != nil {
		return c.fail(&q, err)
	}
	return c.call(ctx, &q)
}

// ListTubes returns the names of all tubes.
func (c *commands) ListTubes(ctx context.Context) ([]string, error) {
	return c.askList(ctx, wire.ListTubes)
}

// ListTubesWatched returns the names of the tubes that this connection watches,
// as the server knows them.
func (c *Conn) ListTubesWatched(ctx context.Context) ([]string, error) {
	return c.askList(ctx, wire.ListTubesWatched)
}

// ListTubeUsed returns the name of the tube in use, as the server knows it.
func (c *Conn) ListTubeUsed(ctx context.Context) (tube string, err error) {
	q := request{Command: wire.Command{Op: wire.ListTubeUsed}, want: wire.Using, tube: usedTube}
	err = c.ask(ctx, &q, nil, func(r *wire.Reply) error {
		tube = string(r.Tube)
		return nil
	})
	return tube, err
}

// Ping checks that the server answers commands.
func (c *commands) Ping(ctx context.Context) error {
	return c.call(ctx, &request{Command: wire.Command{Op: wire.ListTubeUsed}, want: wire.Using})
}
