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

// waitForSignal handles signals until one of them stops the server or ctx is canceled. It
// restores the default action of that signal, so that a second signal kills the process
// at once. It returns an error if a listener fails or the cluster member stops.
func waitForSignal(ctx context.Context, signals <-chan os.Signal, log *slog.Logger, drain, reload func(), ended, stopped <-chan error) error {
	for {
		select {
		case sig := <-signals:
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
