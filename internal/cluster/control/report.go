package control

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin/apitype"
)

// A reportStore holds the latest report of each member about itself. The settings of the
// leader apply to all clients, so all members should have the same settings. The leader
// compares them.
type reportStore struct {
	mu       sync.Mutex
	settings func() map[string]string // of this member; nil before Report
	health   map[uint64]apitype.MemberHealth
	differs  map[uint64][]string // by member: names of the settings that differ from settings
}

// add stores a member's report. It returns the names of the member's settings that
// differ.
func (s *reportStore) add(from uint64, h apitype.MemberHealth, settings map[string]string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.health == nil {
		s.health, s.differs = make(map[uint64]apitype.MemberHealth), make(map[uint64][]string)
	}
	s.health[from] = h
	if settings != nil && s.settings != nil {
		s.differs[from] = differing(s.settings(), settings)
	}
	return s.differs[from]
}

// of returns the latest report of a member.
func (s *reportStore) of(member uint64) (h apitype.MemberHealth, differs []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.health[member], s.differs[member]
}

// differing returns the names of the settings that differ. It ignores settings that only
// one member has, because that member has another version.
func differing(a, b map[string]string) []string {
	names := []string{}
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if value, ok := b[name]; ok && value != a[name] {
			names = append(names, name)
		}
	}
	return names
}

const (
	reportEvery    = time.Second
	settingsEvery  = 60 // reports; also the first report to each leader has the settings
	reportPatience = 5 * time.Second
)

// Report sends this member's health and settings to the leader until stop is closed. It
// logs the settings that differ from the leader's. A failed report is not repeated.
func (c *Control) Report(settings func() map[string]string, log *slog.Logger, stop <-chan struct{}) {
	c.reports.mu.Lock()
	c.reports.settings = settings
	c.reports.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	ticks := time.NewTicker(reportEvery)
	defer ticks.Stop()
	var compared uint64 // the last leader that has compared the settings
	var logged []string
	for n := 0; ctx.Err() == nil; n++ {
		h := c.Member.Health()
		c.reports.add(c.Directory.ID, h, nil)
		if lead := c.Member.Lead().Leader; lead != 0 && lead != c.Directory.ID {
			r := Request{Do: DoReport, Health: &h}
			if lead != compared || n%settingsEvery == 0 {
				r.Settings = settings()
			}
			names, err := c.sendReport(ctx, lead, r)
			if err == nil && r.Settings != nil {
				compared = lead
				if !slices.Equal(names, logged) {
					logged = names
					logSettings(log, lead, names)
				}
			}
		}
		select {
		case <-ticks.C:
		case <-ctx.Done():
		}
	}
}

func (c *Control) sendReport(ctx context.Context, leader uint64, r Request) (differs []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, reportPatience)
	defer cancel()
	reply, err := c.passOn(ctx, leader, r)
	if err != nil {
		return nil, err
	}
	err = json.Unmarshal(reply, &differs)
	return differs, err
}

func logSettings(log *slog.Logger, leader uint64, differs []string) {
	if len(differs) > 0 {
		log.Warn("settings differ from the leader's, which apply to all clients; give all members the same settings", "leader", leader, "settings", differs)
	} else {
		log.Info("settings match the leader's", "leader", leader)
	}
}
