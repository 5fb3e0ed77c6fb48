package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/beanpole-mq/beanpole/internal/exit"
)

// signalQueue receives the signals that the server handles.
type signalQueue chan os.Signal

// catchSignals catches the signals that must never kill the process. Signals that stop
// the server keep their default action until catchTermination, since a start can be
// killed at any point without damage.
func catchSignals() signalQueue {
	q := make(signalQueue, 8)
	signal.Ignore(syscall.SIGPIPE)
	signal.Notify(q, syscall.SIGUSR1, syscall.SIGHUP)
	return q
}

func (q signalQueue) catchTermination() { signal.Notify(q, syscall.SIGTERM, syscall.SIGINT) }

func (q signalQueue) release() { signal.Stop(q) }

// wait handles signals until one of them stops the server or ctx is canceled. It restores
// the default action of that signal, so that a second one kills the process at once. It
// returns an error if a listener fails or the member of a cluster stops.
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
			return exit.WithCode(exit.Socket, fmt.Errorf("a listening socket has failed: %w", err))
		case err := <-stopped:
			return exit.WithCode(exit.Journal, err)
		}
	}
}
