package main

import (
	"log/slog"
	"time"

	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/ratelog"
)

// logSlowTurns returns what logs turns that took so long, or nil if none are to be logged.
func logSlowTurns(after time.Duration, log *slog.Logger) func(broker.Turn) {
	if after == 0 {
		return nil
	}
	lines := ratelog.New(log, 1, 1)
	return func(t broker.Turn) {
		lines.Warn("a turn took long", "took", t.Took, "requests", t.Requests, "commands", t.Commands,
			"executing", t.Executing, "writing", t.Writing, "housekeeping", t.Housekeeping)
	}
}
