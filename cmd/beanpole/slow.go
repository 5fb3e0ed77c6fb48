package main

import (
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/beanpole-mq/beanpole/internal/broker"
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
	lines := newSeldom(log)
	return func(t broker.Turn) {
		lines.warn("a turn took long", "took", t.Took, "requests", t.Requests, "commands", t.Commands,
			"executing", t.Executing, "writing", t.Writing, "housekeeping", t.Housekeeping)
	}
}

// syncs returns what logs slow syncs, which take so many ns.
func (opt slowOptions) syncs(log *slog.Logger) func(took int64) {
	if opt.sync == 0 {
		return func(int64) {}
	}
	lines := newSeldom(log)
	return func(took int64) {
		if took := time.Duration(took); took >= opt.sync {
			lines.warn("a sync of the journal took long", "took", took)
		}
	}
}

// A seldom logs a line a second at most, and says how many others there were.
type seldom struct {
	log    *slog.Logger
	limit  *rate.Limiter
	others atomic.Uint64
}

func newSeldom(log *slog.Logger) *seldom {
	return &seldom{log: log, limit: rate.NewLimiter(1, 1)}
}

func (s *seldom) warn(msg string, args ...any) {
	if !s.limit.Allow() {
		s.others.Add(1)
		return
	}
	if n := s.others.Swap(0); n > 0 {
		args = append(args, "others", n)
	}
	s.log.Warn(msg, args...)
}
