package server

import (
	"log/slog"
	"strings"
	"testing"
)

// A server that stops does not warn that all connections are in use.
func TestNoSlotWhileStopping(t *testing.T) {
	var log strings.Builder
	s := &slots{reports: newReports(slog.New(slog.NewTextHandler(&log, nil))), limit: 1}
	if !s.take(nil) {
		t.Fatal("the first slot is not free")
	}
	s.closed, s.taken = true, 0
	if s.take(nil) || log.Len() > 0 {
		t.Errorf("while it stops: %s", &log)
	}
	s.closed, s.taken = false, 1
	if s.take(nil) || !strings.Contains(log.String(), "maximum number of connections") {
		t.Errorf("while all slots are in use: %s", &log)
	}
}
