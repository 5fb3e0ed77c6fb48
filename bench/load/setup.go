package load

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// ErrTooSlow is wrapped by the error of a run if the server takes longer than setupLimit
// for a step of the preparation: connections, Occupied or Idle.
var ErrTooSlow = errors.New("the server is too slow for this crowd")

const (
	setupLimit = 30 * time.Second
	dialers    = 32 // maximum number of connections being opened at a time
)

// prepare executes a step of the preparation. If the step exceeds the limit, the error is
// ErrTooSlow and reports the progress.
func prepare(ctx context.Context, step func(context.Context) error, progress func() string) error {
	limited, cancel := context.WithTimeout(ctx, setupLimit)
	defer cancel()
	err := step(limited)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("load: %s in %v: %w", progress(), setupLimit, ErrTooSlow)
	}
	return err
}

// prepareAll prepares n things, several at a time, until one fails. If the limit is
// exceeded, the error contains the number of completed preparations. done describes them,
// as in "connections are open".
func prepareAll(ctx context.Context, n int, done string, one func(ctx context.Context, i int) error) error {
	var count atomic.Int64
	return prepare(ctx, func(ctx context.Context) error {
		g, ctx := errgroup.WithContext(ctx)
		g.SetLimit(dialers)
		for i := range n {
			g.Go(func() error {
				err := one(ctx, i)
				if err == nil {
					count.Add(1)
				}
				return err
			})
		}
		return g.Wait()
	}, func() string { return fmt.Sprintf("%d of %d %s", count.Load(), n, done) })
}
