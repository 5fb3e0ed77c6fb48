package ratelog

import (
	"log/slog"
	"strings"
	"testing"

	"golang.org/x/time/rate"
)

// The first lines are logged and the next are counted. The line after them contains the
// count.
func TestWarn(t *testing.T) {
	var text strings.Builder
	l := New(slog.New(slog.NewTextHandler(&text, nil)), 1, 2)
	l.limit.SetLimit(0) // however much time passes here, no further line is logged
	for i := range 5 {
		l.Warn("slow", "n", i)
	}
	l.limit.SetLimit(rate.Inf)
	l.Warn("slow", "n", 5)
	l.Warn("slow", "n", 6)
	var got []string
	for line := range strings.Lines(text.String()) {
		_, line, _ = strings.Cut(line, "level=")
		got = append(got, strings.TrimSpace(line))
	}
	want := []string{"WARN msg=slow n=0", "WARN msg=slow n=1", "WARN msg=slow n=5 others=3", "WARN msg=slow n=6"}
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("log %q, want %q", got, want)
	}
}
