package config

import (
	"fmt"
	"io"
	"log/slog"

	"github.com/beanpole-mq/beanpole/internal/server"
	"github.com/beanpole-mq/beanpole/internal/wal"
)

// Logger returns a logger and its level, which can be changed. For journald, each line
// has a priority.
func (opt *Options) Logger(w io.Writer, journald bool) (*slog.Logger, *slog.LevelVar) {
	level := &slog.LevelVar{}
	level.Set(opt.LogLevel())
	o := &slog.HandlerOptions{Level: level}
	if journald {
		w = prioritizer{w}
	}
	if opt.logFormat == "json" {
		o.ReplaceAttr = named
		return slog.New(slog.NewJSONHandler(w, o)), level
	}
	return slog.New(slog.NewTextHandler(w, o)), level
}

// named replaces values that have a String method with their text, because JSON would
// contain a number.
func named(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() != slog.KindAny {
		return a
	}
	if s, ok := a.Value.Any().(fmt.Stringer); ok {
		a.Value = slog.StringValue(s.String())
	}
	return a
}

// LogLevel returns info, or debug with -V.
func (opt *Options) LogLevel() slog.Level {
	if opt.Verbose > 0 {
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

// LogNotices logs options that have no effect.
func (opt *Options) LogNotices(log *slog.Logger) {
	if opt.compaction {
		log.Warn("options -c and -n have no effect: the journal is always compacted")
	}
	j := &opt.Journal
	if j.asked < wal.MinSegmentSize || j.asked > wal.MaxSegmentSize {
		log.Warn("option -s is out of range; using the nearest size", "asked", j.asked, "bytes", j.SegmentSize())
	}
	if opt.MaxJobSize > server.MaxJobSizeLimit {
		log.Warn("option -z is too large: the largest job is smaller", "asked", opt.MaxJobSize, "bytes", server.MaxJobSizeLimit)
	}
}
