package api

import (
	"fmt"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/api/list"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/health"
)

// getAttention looks for what an operator should look at, the worst first.
func (r *request) getAttention(in *admin.GetAttention) (page admin.Attention, err error) {
	var room []health.Finding // for those of a tube: each may have some
	if r.other == nil && r.caller.Identity.Meets(statsEverywhere) {
		if room, err = r.serverFindings(); err != nil {
			return page, err
		}
		room = append(room, r.api.clusterFindings()...)
	}
	page = admin.Attention{Findings: []admin.Finding{}, Kinds: make(map[string]int)}
	worst := list.First[health.Finding]{N: in.Limit, Compare: func(a, b health.Finding) int { return health.Compare(&a, &b) }}
	show := func(found []health.Finding) {
		page.Total += len(found)
		for _, f := range found {
			page.Kinds[f.Kind]++
			worst.Show(f)
		}
	}
	show(room)
	err = r.survey(func(t *surveyedTube) {
		room = r.tubeFindings(room[:0], t)
		show(room)
	})
	if err != nil {
		return page, err
	}
	for _, f := range worst.Sorted() {
		page.Findings = append(page.Findings, admin.Finding(f))
	}
	return page, nil
}

// serverFindings are those of the whole server.
func (r *request) serverFindings() ([]health.Finding, error) {
	var s health.Server
	err := r.turn(func(e *engine.Engine, now int64) error {
		if r.api.opt.Journal != nil {
			s.Journal = r.api.opt.Journal().Health
		}
		counts := r.api.opt.Server.Counts()
		s.Draining, s.Connections, s.MaxConnections, s.Full = e.IsDraining(), e.Stats().Sessions, uint64(counts.MaxConnections), counts.Full
		s.MemoryUsed, s.MemoryLimit = e.LimitedMemory()
		s.RefusedBy = e.RefusedSince(now - int64(health.Lately))
		return nil
	})
	if r.api.opt.CertificateWarnings != nil {
		s.Certificates = r.api.opt.CertificateWarnings()
	}
	s.Refused, s.Throttled = r.api.history.lately()
	return s.Findings(nil), err
}

// lately returns how much was refused, and throttled.
func (h *history) lately() (refused, throttled uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	const minutes = int(health.Lately / time.Minute)
	all := h.minutes.last(h.now, minutes)
	for i := range minutes {
		if n := all[seriesRefused][i]; n != nil {
			refused, throttled = refused+*n, throttled+*all[seriesThrottled][i]
		}
	}
	return refused, throttled
}

// clusterFindings are those of the cluster, as this member knows it.
func (a *API) clusterFindings() (found []health.Finding) {
	if a.opt.Cluster == nil {
		return nil
	}
	c, err := a.opt.Cluster()
	if err != nil {
		return []health.Finding{{Kind: "cluster", Severity: health.Bad, Text: fmt.Sprintf("this member does not know how the cluster is: %v", err)}}
	}
	for _, p := range c.Problems() {
		f := health.Finding{Kind: "cluster", Severity: health.Warning, Text: p.Text}
		if p.Bad {
			f.Severity = health.Bad
		}
		found = append(found, f)
	}
	return found
}

// tubeFindings appends those of a tube.
func (r *request) tubeFindings(found []health.Finding, t *surveyedTube) []health.Finding {
	one := t.health()
	if r.other == nil && (t.Buried > 0 || t.Timeouts > 0) { // another server's tubes may have the same names
		r.api.history.addGrowth(&one)
	}
	return one.Findings(found)
}

// health returns what is known of the tube now.
func (t *surveyedTube) health() health.Tube {
	return health.Tube{
		Name: t.name, Jobs: t.jobs(), Ready: t.Ready, Buried: t.Buried, Watching: t.Watching,
		Waits: time.Duration(t.OldestReady), PauseLeft: pauseOf(t.Pause, t.PauseLeft),
		Used: max(health.Share(int64(t.jobs()), t.most.Jobs), health.Share(int64(t.Bytes), t.most.Bytes)),
	}
}

// pauseOf returns how long a pause lasts, which is not over in its last second.
func pauseOf(pause, left int64) time.Duration {
	return time.Duration(max(left, min(pause, 1))) * time.Second
}

// addGrowth adds what has become more since ten minutes ago, or since the first sample if that is later.
func (h *history) addGrowth(t *health.Tube) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if th := h.tubes[t.Name]; th != nil {
		kept := min(th.n, tubeSamples)
		first, last := &th.samples[(th.n-kept)%tubeSamples], &th.samples[(th.n-1)%tubeSamples]
		t.MoreBuried = int64(last.buried) - int64(first.buried)
		t.MoreTimeouts = more(first.timeouts, last.timeouts)
		t.Since = time.Duration(kept-1) * tubeStep * time.Second
	}
}
