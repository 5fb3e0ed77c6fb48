// Package ratelog logs only so many lines a second, for what clients or a slow disk
// could otherwise fill the log with. The next line that is logged says how many were
// not.
package ratelog

import (
	"context"
	"log/slog"
	"sync/atomic"

	"golang.org/x/time/rate"
)

// A Logger logs lines. Any goroutine may use it; it does not wait.
type Logger struct {
	log    *slog.Logger
	limit  *rate.Limiter
	others atomic.Uint64 // lines that were not logged since the last that was
}

// New returns a Logger of perSecond lines a second on average, and burst of them at
// once after a pause; both at least 1.
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
