package config

import (
	"context"
	"io"
	"log/slog"
)

// priorities are handlers that write the priority of a line before it, as
// sd-daemon(3) says: one for each.
type priorities [4]slog.Handler

// newPriorities returns handlers, each of which make makes for the lines of a priority.
func newPriorities(w io.Writer, make func(io.Writer) slog.Handler) priorities {
	var p priorities
	for i, prefix := range [len(p)]string{"<7>", "<6>", "<4>", "<3>"} { // of debug, info, warning, error
		p[i] = make(prefixer{prefix, w})
	}
	return p
}

func (p priorities) of(level slog.Level) slog.Handler {
	switch {
	case level < slog.LevelInfo:
		return p[0]
	case level < slog.LevelWarn:
		return p[1]
	case level < slog.LevelError:
		return p[2]
	}
	return p[3]
}

// Enabled implements slog.Handler.
func (p priorities) Enabled(ctx context.Context, level slog.Level) bool {
	return p.of(level).Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (p priorities) Handle(ctx context.Context, r slog.Record) error {
	return p.of(r.Level).Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (p priorities) WithAttrs(attrs []slog.Attr) slog.Handler {
	for i, h := range p {
		p[i] = h.WithAttrs(attrs)
	}
	return p
}

// WithGroup implements slog.Handler.
func (p priorities) WithGroup(name string) slog.Handler {
	for i, h := range p {
		p[i] = h.WithGroup(name)
	}
	return p
}

// A prefixer writes a prefix before each line that it is given.
type prefixer struct {
	prefix string
	w      io.Writer
}

// Write implements io.Writer.
func (p prefixer) Write(line []byte) (int, error) {
	n, err := p.w.Write(append([]byte(p.prefix), line...))
	return max(n-len(p.prefix), 0), err
}
