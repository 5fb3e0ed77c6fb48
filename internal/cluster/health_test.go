package cluster

import (
	"testing"
	"time"
)

// stepDown selects the next leader if the leader's disk fails.
func TestStepDown(t *testing.T) {
	const now = int64(time.Hour)
	ago := func(d time.Duration) int64 { return now - int64(d) }
	active := candidacy{active: true, others: true, best: 2, unasked: 2}
	with := func(change func(c *candidacy)) candidacy {
		c := active
		change(&c)
		return c
	}
	inactive := with(func(c *candidacy) { c.active = false })
	for _, c := range []struct {
		name   string
		health health
		candidacy
		to     uint64
		silent bool
	}{
		{"all is well", health{}, active, 0, false},
		{"slow for a moment", health{slowSince: ago(900 * time.Millisecond)}, active, 0, false},
		{"slow", health{slowSince: ago(time.Second)}, active, 2, false},
		{"slow, and it serves nobody yet", health{slowSince: ago(time.Second)}, inactive, 0, false},
		{"slow, and another one is to lead", health{slowSince: ago(time.Second)}, with(func(c *candidacy) { c.transferring = true }), 0, false},
		{"slow, and nobody can be reached", health{slowSince: ago(time.Second)}, with(func(c *candidacy) { c.best, c.unasked = 0, 0 }), 0, false},
		{"slow again", health{slowSince: ago(time.Second), yieldedAt: ago(4 * time.Minute)}, active, 0, false},
		{"slow again, much later", health{slowSince: ago(time.Second), yieldedAt: ago(5 * time.Minute)}, active, 2, false},
		{"gone", health{slowSince: ago(3 * time.Second), yieldedAt: ago(time.Minute)}, active, 0, true},
		{"gone, and it serves nobody yet", health{slowSince: ago(3 * time.Second)}, inactive, 0, true},
		{"gone, and there is no other voter", health{slowSince: ago(3 * time.Second)}, candidacy{active: true}, 0, false},
		{"refuses for a moment", health{blockedSince: ago(900 * time.Millisecond)}, active, 0, false},
		{"refuses", health{blockedSince: ago(time.Second)}, active, 2, false},
		{"refuses, with room for moments", health{blockedSince: ago(2 * time.Second), unblockedSince: ago(900 * time.Millisecond)}, active, 2, false},
		{"has refused", health{blockedSince: ago(2 * time.Hour), unblockedSince: ago(time.Second)}, active, 0, false},
		{"refuses, and all were asked", health{blockedSince: ago(time.Minute)}, with(func(c *candidacy) { c.unasked = 0 }), 0, false},
		{"refuses, all were asked, and it cannot serve", health{blockedSince: ago(time.Minute)}, with(func(c *candidacy) { c.active, c.unasked = false, 0 }), 2, false},
		{"refuses, one was not asked, and it cannot serve", health{blockedSince: ago(time.Minute)}, with(func(c *candidacy) { c.active, c.unasked = false, 3 }), 3, false},
	} {
		if to, silent := c.health.stepDown(now, c.candidacy); to != c.to || silent != c.silent {
			t.Errorf("%s: %d is to lead, silent %v; want %d, %v", c.name, to, silent, c.to, c.silent)
		}
	}
}

// TestHealth checks the observations of the disk and the journal.
func TestHealth(t *testing.T) {
	const s = int64(time.Second)
	h, now := health{}, 100*s
	for _, c := range []struct {
		name          string
		observe       func()
		slow, refuses int64
	}{
		{"nothing", func() {}, 0, 0},
		{"a disk that works", func() { h.observeDisk(now, s, 0) }, s, 0},
		{"much that is written", func() { h.observeDisk(now, 3*s, 16<<20) }, s, 0},
		{"more than it may take", func() { h.observeDisk(now, s, 64<<20) }, 0, 0},
		{"a journal that refuses", func() { h.observeJournal(now, true); now += 5 * s }, 0, 5 * s},
		{"room for a moment", func() { h.observeJournal(now, false); now += s / 2 }, 0, 5 * s},
		{"none any more", func() { h.observeJournal(now, true) }, 0, 5*s + s/2},
		{"room", func() { h.observeJournal(now, false); now += s }, 0, 0},
		{"a journal that refuses again", func() { h.observeJournal(now, true) }, 0, 0},
		{"and still does", func() { now += s }, 0, s},
	} {
		c.observe()
		if slow, refuses := h.slow(now), h.blocked(now); slow != c.slow || refuses != c.refuses {
			t.Errorf("%s: slow for %d, refuses for %d; want %d, %d", c.name, slow, refuses, c.slow, c.refuses)
		}
	}
}
