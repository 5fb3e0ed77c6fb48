package daemon

import (
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine/histogram"
	"github.com/beanpole-mq/beanpole/internal/server/ratelog"
)

// Syncs observes the syncs of the journal's files: it counts how long they took, and logs
// slow ones, while they last and when they are over.
type syncs struct {
	took histogram.Shared // ns
	now  func() int64     // ns
	slow time.Duration    // 0: none is
	log  *slog.Logger
	over *ratelog.Logger // at most a line a second

	mu       sync.Mutex
	underWay []int64     // when those began that are under way, the oldest first
	timer    *time.Timer // goes off when the oldest is to be told of; nil: none is under way
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
		s.timer = time.AfterFunc(s.slow, s.tell)
	}
	return at
}

// SyncEnds implements vfs.Observer.
func (s *syncs) SyncEnds(at int64) {
	took := s.now() - at
	s.took.Record(took)
	s.mu.Lock()
	i := slices.Index(s.underWay, at)
	s.underWay = slices.Delete(s.underWay, i, i+1)
	s.mu.Unlock()
	if s.slow > 0 && took >= int64(s.slow) {
		s.over.Warn("a sync of the journal took long", "took", time.Duration(took))
	}
}

// lasted returns how long the oldest sync has been under way; 0: none is.
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

// tell logs the oldest sync if it is slow, and tells again when it has lasted twice as long.
// Most syncs are short: the timer is set once for all that begin until it goes off.
func (s *syncs) tell() {
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
