package worker

import (
	"context"
	"errors"
	"log/slog"

	"github.com/beanpole-mq/beanpole/client"
)

// connection is called when a connection is opened or lost, or cannot be opened.
func (w *Worker) connection(addr string, err error) {
	w.mu.Lock()
	news := w.down[addr] != (err != nil)
	w.down[addr] = err != nil
	w.mu.Unlock()
	if !news {
		return
	}
	if err != nil {
		w.opt.Logger.Warn("no connection to the server; trying again", "server", addr, "error", err)
	} else {
		w.opt.Logger.Info("connected to the server again", "server", addr)
	}
	if hook := w.opt.Hooks.Server; hook != nil {
		hook(addr, err)
	}
}

// noJobs is called with the error of a reserve.
func (w *Worker) noJobs(err error) {
	if !errors.Is(err, client.ErrDisconnected) { // connection has logged it
		w.opt.Logger.Warn("cannot reserve jobs; retrying", "error", err)
	}
	if hook := w.opt.Hooks.Error; hook != nil {
		hook(err)
	}
}

// finished is called at the end of each try.
func (w *Worker) finished(ctx context.Context, job *Job, o Outcome) {
	level, text := slog.LevelWarn, "a job has failed"
	switch o.Action {
	case Deleted:
		level, text = slog.LevelDebug, "a job is done"
	case Lost:
		text = "a job is lost to this worker"
	}
	if w.opt.Logger.Enabled(ctx, level) {
		attrs := []slog.Attr{slog.Uint64("job", job.ID), slog.String("server", job.Server), slog.String("action", string(o.Action)), slog.Duration("took", o.Took)}
		if o.Err != nil {
			attrs = append(attrs, slog.Int("tries", o.Tries), slog.Duration("delay", o.Delay), slog.Any("error", o.Err))
		}
		w.opt.Logger.LogAttrs(ctx, level, text, attrs...)
	}
	if hook := w.opt.Hooks.Finish; hook != nil {
		hook(ctx, job, o)
	}
}
