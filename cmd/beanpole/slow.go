package main

import (
	"log/slog"
	"time"

	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/ratelog"
)

// slowOptions say what is slow enough for a line in the log; 0: nothing is.
type slowOptions struct {
	turn, sync time.Duration
}

// turns returns what logs slow turns, or nil.
func (opt slowOptions) turns(log *slog.Logger) func(broker.Turn) {
	if opt.turn == 0 {
		return nil
	}
	lines := ratelog.New(log, 1, 1)
	return func(t broker.Turn) {
		lines.Warn("a turn took long", "took", t.Took, "requests", t.Requests, "commands", t.Commands,
			"executing", t.Executing, "writing", t.Writing, "housekeeping", t.Housekeeping)
	}
}

// syncs returns what logs slow syncs, which take so many ns.
func (opt slowOptions) syncs(log *slog.Logger) func(took int64) {
	if opt.sync == 0 {
		return func(int64) {}
	}
	lines := ratelog.New(log, 1, 1)
	return func(took int64) {
		if took := time.Duration(took); took >= opt.sync {
			lines.Warn("a sync of the journal took long", "took", took)
		}
	}
}
