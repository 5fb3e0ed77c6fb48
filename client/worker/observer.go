package worker

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/beanpole-mq/beanpole/client"
)

// An observer calls the hooks and the logger.
type observer struct {
	*Hooks
	log *slog.Logger

	mu   sync.Mutex
	down map[string]bool // servers without a connection
}

// connection is called when a connection is opened, lost, or cannot be opened.
func (t *observer) connection(addr string, err error) {
	t.mu.Lock()
	news := t.down[addr] != (err != nil)
	t.down[addr] = err != nil
	t.mu.Unlock()
	if !news {
		return
	}
	if err != nil {
		t.log.Warn("no connection to the server; trying again", "server", addr, "error", err)
	} else {
		t.log.Info("connected to the server again", "server", addr)
	}
	if t.Server != nil {
		t.Server(addr, err)
	}
}

// noJobs is called with the error of a reserve.
func (t *observer) noJobs(err error) {
	if !errors.Is(err, client.ErrDisconnected) { // connection has logged it
		t.log.Warn("cannot reserve jobs; retrying", "error", err)
	}
	if t.Error != nil {
		t.Error(err)
	}
}

// finished is called at the end of each try.
func (t *observer) finished(ctx context.Context, job *Job, o Outcome) {
	level, text := slog.LevelWarn, "a job has failed"
	switch o.Action {
	case Deleted:
		level, text = slog.LevelDebug, "a job is done"
	case Lost:
		text = "a job is lost to this worker"
	}
	if t.log.Enabled(ctx, level) {
		attrs := []slog.Attr{slog.Uint64("job", job.ID), slog.String("server", job.Server), slog.String("action", string(o.Action)), slog.Duration("took", o.Took)}
		if o.Err != nil {
			attrs = append(attrs, slog.Int("tries", o.Tries), slog.Duration("delay", o.Delay), slog.Any("error", o.Err))
		}
		t.log.LogAttrs(ctx, level, text, attrs...)
	}
	if t.Finish != nil {
		t.Finish(ctx, job, o)
	}
}
