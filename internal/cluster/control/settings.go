package control

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"
)

// What a client may do, and how much, is decided by the leader. So members should have
// the same settings, or a change of the leader changes them. Each member tells the leader
// its own, and both say which differ.

// settingsDesk has what the members have told the leader.
type settingsDesk struct {
	mu      sync.Mutex
	own     func() map[string]string // nil: not known yet
	differs map[uint64][]string      // by member: names of settings that are not as here
}

// take compares the settings of a member with those here.
func (d *settingsDesk) take(from uint64, settings map[string]string) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.own == nil {
		return nil
	}
	if d.differs == nil {
		d.differs = make(map[uint64][]string)
	}
	d.differs[from] = differing(d.own(), settings)
	return d.differs[from]
}

// differing returns the names of the settings that differ. What only one of them knows is
// of another version.
func differing(a, b map[string]string) []string {
	names := []string{}
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if value, ok := b[name]; ok && value != a[name] {
			names = append(names, name)
		}
	}
	return names
}

// of returns which settings of a member differ.
func (d *settingsDesk) of(member uint64) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.differs[member]
}

const (
	compareEvery    = time.Minute
	compareAgain    = 2 * time.Second // after a leader that did not answer
	comparePatience = 10 * time.Second
)

// CompareSettings tells each leader the settings of this member, by their names, and says
// in the log which differ, until a channel is closed.
func (c *Control) CompareSettings(own func() map[string]string, log *slog.Logger, stop <-chan struct{}) {
	c.settings.mu.Lock()
	c.settings.own = own
	c.settings.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	var said []string
	for {
		changed := c.Member.Watch()
		pause := compareEvery
		if lead := c.Member.Lead().Leader; lead != 0 && lead != c.Directory.ID {
			names, err := c.tellSettings(ctx, lead, own())
			switch {
			case err != nil:
				log.Debug("the settings could not be compared with the leader's", "leader", lead, "err", err)
				pause = compareAgain
			case !slices.Equal(names, said) && len(names) > 0:
				log.Warn("settings differ from those of the leader, which count for all clients: give all members the same", "leader", lead, "settings", names)
				said = names
			case !slices.Equal(names, said):
				log.Info("the settings are those of the leader", "leader", lead)
				said = names
			}
		}
		select {
		case <-changed:
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

// tellSettings tells the leader the settings of this member, and returns the names of
// those that differ.
func (c *Control) tellSettings(ctx context.Context, leader uint64, own map[string]string) (names []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, comparePatience)
	defer cancel()
	text, err := c.passOn(ctx, leader, Request{Do: DoSettings, Settings: own})
	if err != nil {
		return nil, err
	}
	return names, json.Unmarshal(text, &names)
}
