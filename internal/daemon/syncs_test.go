package daemon

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A slow sync is logged during the sync, at increasing intervals, and at its end.
func TestCurrentSlowSyncIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		start := time.Now()
		s := newSyncs(func() int64 { return int64(time.Since(start)) }, time.Second, slog.New(slog.NewTextHandler(&log, nil)))
		for range 3 { // quick syncs
			at := s.SyncBegins()
			time.Sleep(400 * time.Millisecond)
			s.SyncEnds(at)
		}
		at := s.SyncBegins()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		const line = "a sync of the journal is under way"
		if n := strings.Count(log.String(), line); n < 3 || n > 5 || strings.Contains(log.String(), "was slow") {
			t.Errorf("during a sync the log has %d lines:\n%s", n, &log)
		}
		if lasted := s.lasted(); lasted != 10*time.Second {
			t.Errorf("the sync lasted %v", lasted)
		}
		s.SyncEnds(at)
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := strings.Count(log.String(), line); n > 5 || !strings.Contains(log.String(), "took=10s") || s.lasted() != 0 {
			t.Errorf("then:\n%s", &log)
		}
	})
}
