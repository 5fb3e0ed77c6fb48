// Package ratelog limits the lines per second of a log, so that clients or a slow disk
// cannot fill it. The next line contains the number of omitted lines.
package ratelog

import (
	"context"
	"log/slog"
	"sync/atomic"

	"golang.org/x/time/rate"
)

// A Logger logs lines. It is safe for concurrent use and never blocks.
type Logger struct {
	log    *slog.Logger
	limit  *rate.Limiter
	others atomic.Uint64 // number of lines omitted since the last logged line
}

// New returns a Logger that logs perSecond lines per second on average, and up to burst
// lines at once. Both must be at least 1.
func New(log *slog.Logger, perSecond, burst int) *Logger {
	return &Logger{log: log, limit: rate.NewLimiter(rate.Limit(perSecond), burst)}
}

// Warn logs a line at level WARN, or counts it. The count is the attribute "others" of
// the next line.
func (l *Logger) Warn(msg string, args ...any) { l.line(slog.LevelWarn, msg, args) }

// Info is Warn at level INFO. It reports whether the line was logged.
func (l *Logger) Info(msg string, args ...any) bool { return l.line(slog.LevelInfo, msg, args) }

func (l *Logger) line(level slog.Level, msg string, args []any) (logged bool) {
	if !l.limit.Allow() {
		l.others.Add(1)
		return false
	}
	if n := l.others.Swap(0); n > 0 {
		args = append(args, "others", n)
	}
	l.log.Log(context.Background(), level, msg, args...)
	return true
}
