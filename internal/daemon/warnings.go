package daemon

import (
	"log/slog"
	"time"

	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/server/ratelog"
)

// logSlowTurns returns a function that logs turns longer than after, or nil if after is
// zero.
func logSlowTurns(after time.Duration, log *slog.Logger) func(broker.Turn) {
	if after == 0 {
		return nil
	}
	lines := ratelog.New(log, 1, 1)
	return func(t broker.Turn) {
		lines.Warn("a turn was slow", "took", t.Took, "requests", t.Requests, "commands", t.Commands,
			"executing", t.Executing, "writing", t.Writing, "housekeeping", t.Housekeeping)
	}
}

// logPolicies returns a function that logs jobs that a policy ended or failed to end. The
// number of lines per setting is limited; a line describes the first of several jobs.
func logPolicies(log *slog.Logger) func(engine.PolicyAct) {
	lines := make(map[engine.PolicyEvent]*ratelog.Logger)
	return func(act engine.PolicyAct) { // called within turns
		v := act.Event
		if v == engine.Retried {
			return
		}
		if lines[v] == nil {
			lines[v] = ratelog.New(log, 1, 5)
		}
		about := []any{"setting", v.String(), "tube", act.Tube}
		if act.Job > 0 {
			about = append(about, "job", act.Job)
		}
		if act.To != "" {
			about = append(about, "to", act.To)
		}
		switch v {
		case engine.PolicySkipped:
			lines[v].Warn("no journal space for a policy's change", about[2:]...)
		case engine.DeadTubeFull:
			lines[v].Warn("dead tube refused exhausted job; buried in its own tube", about[2:]...)
		case engine.Expired, engine.BuriedTooLong:
			lines[v].Info("job expired", about...)
		case engine.Deduplicated:
			lines[v].Info("a duplicate job was not put", about...)
		case engine.WithoutKey:
			lines[v].Warn("a job without a unique key was put", "setting", "unique", "tube", act.Tube)
		default:
			lines[v].Warn("job exhausted its attempts", about...)
		}
	}
}

// logLimits returns a function that logs refusals by a limit. The number of lines is
// limited for each limit separately, so that all limits appear.
func logLimits(log *slog.Logger) func(engine.Limit, string) {
	lines := make(map[engine.Limit]*ratelog.Logger)
	return func(l engine.Limit, tube string) { // called within turns
		if lines[l] == nil {
			lines[l] = ratelog.New(log, 1, 5)
		}
		lines[l].Warn("refusing commands; a limit is reached", "limit", l.String(), "tube", tube)
	}
}
