package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

// WatchOnly makes Reserve use exactly these tubes, at least one. It takes one round trip.
// A new connection watches the tube "default".
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
	err := c.attempts(ctx, "", true, func() error {
		refused, err := setTubes(ctx, c.stream, watchCommands(c.watched, tubes))
		return c.check(cmp.Or(err, refused)) // the watched tubes are unknown after a refusal
	})
	if refused, ok := errors.AsType[*Error](err); ok {
		refused.Addr = c.addr // identifies the server
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

// All is a limit that means all jobs.
const All = math.MaxInt

// Kick makes up to limit jobs of a tube, or [All], ready and returns their number. If the
// tube has buried jobs, it kicks those, the first buried first; otherwise delayed jobs,
// the first due first. An empty tube name means "default".
func (c *commands) Kick(ctx context.Context, tube string, limit int) (kicked int, err error) {
	q := request{Command: wire.Command{Op: wire.Kick}, want: wire.Kicked}
	q.Count, err = count(limit)
	return c.askNumber(ctx, &q, cmp.Or(err, q.in(tube)))
}

// FlushTube deletes up to limit jobs of a tube in one state, or [All], and returns their
// number. The state must be [StateReady], [StateDelayed] or [StateBuried]. Jobs that are
// put during the call stay. The server replies at the end: set a limit if the deletion
// can take longer than [Options].Timeout.
//
// Only beanpole has this command. With other servers, the error is [ErrUnknownCommand].
func (c *commands) FlushTube(ctx context.Context, tube string, state State, limit int) (flushed int, err error) {
	q := request{Command: wire.Command{Op: wire.FlushTube, Tube: []byte(tube)}, want: wire.Flushed}
	var ok bool
	if q.State, ok = wire.ParseState(string(state)); !ok || state == StateReserved {
		return 0, c.fail(&q, fmt.Errorf("%w: state %q", ErrInvalid, state))
	}
	q.Count, err = count(limit)
	return c.askNumber(ctx, &q, cmp.Or(err, CheckTube(tube)))
}

// PauseTube prevents all clients from reserving jobs of the tube for d, rounded up to
// whole seconds. 0 ends a pause. The error is [ErrNotFound] if the tube does not exist.
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

// Ping checks that the server answers commands.
func (c *commands) Ping(ctx context.Context) error {
	return c.call(ctx, &request{Command: wire.Command{Op: wire.ListTubeUsed}, want: wire.Using})
}
