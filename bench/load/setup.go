package load

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// ErrTooSlow is wrapped by the error of a run when the server has taken longer than
// Options.SetupLimit for a step of the preparation.
var ErrTooSlow = errors.New("the server is too slow for this crowd")

const (
	defaultSetupLimit = 30 * time.Second
	dialers           = 32 // connections being opened at a time
	ownFiles          = 64 // that this process has open besides its connections
)

// prepare does a step of the preparation. The error of one that takes longer than the
// limit is ErrTooSlow, and says how far it came.
func (o *Options) prepare(ctx context.Context, step func(context.Context) error, progress func() string) error {
	limited, cancel := context.WithTimeout(ctx, o.SetupLimit)
	defer cancel()
	err := step(limited)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("load: %s in %v: %w", progress(), o.SetupLimit, ErrTooSlow)
	}
	return err
}

// prepareAll prepares n things, several at a time, until one fails. The error of a limit
// that is over says how many of them are what done says, such as "connections are open".
func (o *Options) prepareAll(ctx context.Context, n int, done string, one func(ctx context.Context, i int) error) error {
	var count atomic.Int64
	return o.prepare(ctx, func(ctx context.Context) error {
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

// files is the number of files that a run has open at a time.
func (o *Options) files() int { return o.Connections + o.Workers + o.Idle + ownFiles }

// checkFiles returns an error if this process may not have n files open. (It may
// have all that the system allows it: Go raises its limit when it starts.)
func checkFiles(n int) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return os.NewSyscallError("getrlimit", err)
	}
	if uint64(n) > uint64(limit.Cur) {
		return fmt.Errorf("load: %d open files are needed and %d are allowed (see: ulimit -Hn)", n, limit.Cur)
	}
	return nil
}
