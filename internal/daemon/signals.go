package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/beanpole-mq/beanpole/internal/cli/kit"
)

// signalQueue receives the signals that the server handles.
type signalQueue chan os.Signal

// catchSignals makes the signals that must never kill harmless. Those that end
// the server keep their default action until catchTermination: whatever the
// start does, killing it half-way does no damage.
func catchSignals() signalQueue {
	q := make(signalQueue, 8)
	signal.Ignore(syscall.SIGPIPE)
	signal.Notify(q, syscall.SIGUSR1, syscall.SIGHUP)
	return q
}

func (q signalQueue) catchTermination() { signal.Notify(q, syscall.SIGTERM, syscall.SIGINT) }

func (q signalQueue) release() { signal.Stop(q) }

// wait handles signals until one of them, or ctx, ends the server, and then gives that
// one its default action back, so that a second one kills at once. It returns
// early, with an error, when a listener has ended by itself, or the member of a
// cluster has stopped.
func (q signalQueue) wait(ctx context.Context, log *slog.Logger, drain, reload func(), ended, stopped <-chan error) error {
	for {
		select {
		case sig := <-q:
			switch sig {
			case syscall.SIGUSR1:
				drain()
			case syscall.SIGHUP:
				reload()
			default:
				signal.Reset(syscall.SIGTERM, syscall.SIGINT)
				log.Info("stopping; a second signal stops at once", "signal", sig)
				return nil
			}
		case <-ctx.Done():
			log.Info("stopping", "why", context.Cause(ctx))
			return nil
		case err := <-ended:
			return kit.WithCode(kit.ExitSocket, fmt.Errorf("a listening socket has failed: %w", err))
		case err := <-stopped:
			return kit.WithCode(kit.ExitJournal, err)
		}
	}
}
