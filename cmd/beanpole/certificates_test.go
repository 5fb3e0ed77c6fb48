package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/internal/certs"
)

// The log hears of a certificate that ends: not early, once a day, and when it has ended.
func TestCertificateLog(t *testing.T) {
	begin := time.Unix(1e9, 0)
	day := 24 * time.Hour
	all := []certs.Expiry{
		{File: "quarter.crt", Begin: begin, End: begin.Add(90 * day)},
		{File: "week.crt", Begin: begin.Add(80 * day), End: begin.Add(87 * day)},
	}
	var log bytes.Buffer
	l := certificateLog{slog.New(slog.NewTextHandler(&log, nil)), make(map[string]time.Time)}
	for _, step := range []struct {
		after time.Duration
		want  []string
	}{
		{75 * day, nil},
		{77 * day, []string{"quarter.crt ends soon, on 2001-12-08"}},
		{77*day + time.Hour, nil},
		{78 * day, []string{"quarter.crt ends soon"}},
		{86 * day, []string{"quarter.crt ends soon", "week.crt ends soon"}},
		{87*day - time.Hour, nil},
		{87 * day, []string{"quarter.crt ends soon", "week.crt has ended"}},
		{90 * day, []string{"quarter.crt has ended", "week.crt has ended"}},
	} {
		log.Reset()
		l.look(all, begin.Add(step.after))
		lines := strings.Split(strings.TrimSuffix(log.String(), "\n"), "\n")
		if log.Len() == 0 {
			lines = nil
		}
		if len(lines) != len(step.want) {
			t.Errorf("after %v: %q, want %q", step.after, lines, step.want)
			continue
		}
		for i, want := range step.want {
			if !strings.Contains(lines[i], "level=WARN") || !strings.Contains(lines[i], want) {
				t.Errorf("after %v: %s, want %s", step.after, lines[i], want)
			}
		}
	}
}
