package control

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin/apitype"
)

// A report is a member's report about itself. It includes the member's settings: the
// leader's settings apply to all clients, so all members should have the same settings.
type report struct {
	health   apitype.MemberHealth
	settings map[string]string
}

// A reportStore holds the latest report of each member, and this member's own.
type reportStore struct {
	mu      sync.Mutex
	reports map[uint64]report
}

func (s *reportStore) add(from uint64, r report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reports == nil {
		s.reports = make(map[uint64]report)
	}
	s.reports[from] = r
}

// of returns the latest health of a member, and the names of its settings that differ
// from this member's settings.
func (s *reportStore) of(member, self uint64) (h apitype.MemberHealth, differs []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.reports[member]
	return r.health, differing(s.reports[self].settings, r.settings)
}

// differing returns the names of the settings that differ. It ignores settings that only
// one member has, because that member runs another version.
func differing(a, b map[string]string) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if value, ok := b[name]; ok && value != a[name] {
			names = append(names, name)
		}
	}
	return names
}

const (
	reportEvery    = time.Second
	reportPatience = 5 * time.Second
)

// Report sends this member's health and settings to the leader until stop is closed. It
// does not repeat a failed report.
func (c *Control) Report(settings func() map[string]string, stop <-chan struct{}) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-stop
		cancel()
	}()
	for ctx.Err() == nil {
		r := report{c.Member.Health(), settings()}
		c.reports.add(c.Directory.ID, r)
		if lead := c.Member.Lead().Leader; lead != 0 && lead != c.Directory.ID {
			c.sendReport(ctx, lead, r)
		}
		select {
		case <-time.After(reportEvery):
		case <-ctx.Done():
		}
	}
}

func (c *Control) sendReport(ctx context.Context, leader uint64, r report) {
	ctx, cancel := context.WithTimeout(ctx, reportPatience)
	defer cancel()
	_, _ = c.passOn(ctx, leader, Request{Do: DoReport, Health: &r.health, Settings: r.settings})
}
