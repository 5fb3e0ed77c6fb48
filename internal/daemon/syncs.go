package daemon

import (
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine/histogram"
	"github.com/beanpole-mq/beanpole/internal/server/ratelog"
)

// syncs observes the syncs of the journal's files. It records their duration, and logs
// slow ones while they run and when they end.
type syncs struct {
	now  func() int64  // ns
	slow time.Duration // zero if no sync counts as slow
	log  *slog.Logger
	over *ratelog.Logger // logs at most one line per second

	mu       sync.Mutex
	took     histogram.Histogram // ns
	underWay []int64             // start times of running syncs, oldest first
	timer    *time.Timer         // fires when the oldest sync becomes slow; nil if none is running
}

func newSyncs(now func() int64, slow time.Duration, log *slog.Logger) *syncs {
	return &syncs{now: now, slow: slow, log: log, over: ratelog.New(log, 1, 1)}
}

// SyncBegins implements vfs.Observer.
func (s *syncs) SyncBegins() (at int64) {
	at = s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.underWay = append(s.underWay, at)
	if s.slow > 0 && s.timer == nil {
		s.timer = time.AfterFunc(s.slow, s.report)
	}
	return at
}

// SyncEnds implements vfs.Observer.
func (s *syncs) SyncEnds(at int64) {
	took := s.now() - at
	s.mu.Lock()
	s.took.Record(took)
	i := slices.Index(s.underWay, at)
	s.underWay = slices.Delete(s.underWay, i, i+1)
	s.mu.Unlock()
	if s.slow > 0 && took >= int64(s.slow) {
		s.over.Warn("a sync of the journal was slow", "took", time.Duration(took))
	}
}

// durations returns the durations of all syncs, in ns.
func (s *syncs) durations() histogram.Histogram {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.took
}

// lasted returns the time since the oldest running sync started, or zero if none is
// running.
func (s *syncs) lasted() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lastedLocked()
}

func (s *syncs) lastedLocked() time.Duration {
	if len(s.underWay) == 0 {
		return 0
	}
	return time.Duration(s.now() - s.underWay[0])
}

// report logs the oldest sync if it is slow, and again when it has taken twice as long.
// Most syncs are short, so a single timer serves all syncs that start before it fires.
func (s *syncs) report() {
	s.mu.Lock()
	defer s.mu.Unlock()
	lasted := s.lastedLocked()
	next := lasted
	switch {
	case lasted == 0:
		s.timer = nil
		return
	case lasted < s.slow:
		next = s.slow - lasted
	default:
		s.log.Warn("a sync of the journal is under way: clients wait for their replies", "for", lasted)
	}
	s.timer.Reset(next)
}
