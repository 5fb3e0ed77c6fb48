package config

import (
	"io"
	"log/slog"

	"github.com/beanpole-mq/beanpole/internal/server"
	"github.com/beanpole-mq/beanpole/internal/wal"
)

// Logger returns the log that the options ask for, and its level, which can be
// changed.
func (opt *Options) Logger(w io.Writer) (*slog.Logger, *slog.LevelVar) {
	level := &slog.LevelVar{}
	level.Set(opt.LogLevel())
	h := &slog.HandlerOptions{Level: level}
	if opt.jsonLog {
		return slog.New(slog.NewJSONHandler(w, h)), level
	}
	return slog.New(slog.NewTextHandler(w, h)), level
}

// LogLevel is info, with -V debug.
func (opt *Options) LogLevel() slog.Level {
	if opt.Verbose > 0 {
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

// LogNotices warns of options that do not do what they say.
func (opt *Options) LogNotices(log *slog.Logger) {
	for _, o := range []struct {
		given  bool
		letter string
	}{{opt.compact, "-c"}, {opt.noCompact, "-n"}} {
		if o.given {
			log.Warn("option " + o.letter + " has no effect: the journal is always compacted")
		}
	}
	j := &opt.Journal
	if j.asked < wal.MinSegmentSize || j.asked > wal.MaxSegmentSize {
		log.Warn("option -s is out of bounds: the nearest size is taken", "asked", j.asked, "bytes", j.SegmentSize())
	}
	if opt.MaxJobSize > server.MaxJobSizeLimit {
		log.Warn("option -z is too large: the largest job is smaller", "asked", opt.MaxJobSize, "bytes", server.MaxJobSizeLimit)
	}
}
