package control

import (
	"context"
	"sync"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
)

// A healthDesk has the members' last reports about themselves.
type healthDesk struct {
	mu      sync.Mutex
	reports map[uint64]admin.MemberHealth
}

func (d *healthDesk) take(from uint64, h admin.MemberHealth) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.reports == nil {
		d.reports = make(map[uint64]admin.MemberHealth)
	}
	d.reports[from] = h
}

func (d *healthDesk) of(member uint64) admin.MemberHealth {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.reports[member]
}

const (
	healthEvery    = time.Second
	healthPatience = 5 * time.Second
)

// ReportHealth sends the health of this member to the leader, until a channel is closed. A
// leader that cannot be reached gets the next report.
func (c *Control) ReportHealth(stop <-chan struct{}) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	ticks := time.NewTicker(healthEvery)
	defer ticks.Stop()
	for ctx.Err() == nil {
		h := c.Member.Health()
		c.health.take(c.Directory.ID, h)
		if lead := c.Member.Lead().Leader; lead != 0 && lead != c.Directory.ID {
			patience, done := context.WithTimeout(ctx, healthPatience)
			_, _ = c.passOn(patience, lead, Request{Do: DoHealth, Health: &h}) // the leader may be of an earlier version
			done()
		}
		select {
		case <-ticks.C:
		case <-ctx.Done():
		}
	}
}
