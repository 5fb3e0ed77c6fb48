package api

import (
	"fmt"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/health"
	"github.com/beanpole-mq/beanpole/internal/server"
)

// getAttention looks for what an operator should look at, the worst first.
func (r *request) getAttention(in *admin.GetAttention) (page admin.Attention, err error) {
	var found []health.Finding
	look := r.seen()
	if r.caller.Identity.Meets(statsEverywhere) {
		look.Pausers = r.api.changes.Pausers()
		s, err := r.serverHealth()
		if err != nil {
			return page, err
		}
		found = append(s.Findings(nil), r.api.clusterFindings()...)
	}
	return look.Attention(in, found)
}

// serverHealth returns what is known of the server now.
func (r *request) serverHealth() (s health.Server, err error) {
	err = r.turn(func(e *engine.Engine, now int64) error {
		health := ""
		if r.api.opt.Journal != nil {
			health = r.api.opt.Journal().Health
		}
		s = HealthOf(e, now, r.api.opt.Server.Counts(), health)
		return nil
	})
	if r.api.opt.CertificateWarnings != nil {
		s.Certificates = r.api.opt.CertificateWarnings()
	}
	s.Refused = r.api.history.lately()
	return s, err
}

// HealthOf returns what an engine, in a turn, the counts of its server and the health of its journal say.
func HealthOf(e *engine.Engine, now int64, counts server.Counts, journal string) health.Server {
	s := health.Server{
		Journal: journal, Draining: e.IsDraining(), Connections: e.Stats().Sessions, MaxConnections: uint64(counts.MaxConnections), Full: counts.Full,
		RefusedBy: e.RefusedSince(now - int64(health.Lately)),
	}
	s.MemoryUsed, s.MemoryLimit = e.LimitedMemory()
	return s
}

// lately returns the number of commands that were refused in the last minutes.
func (h *history) lately() (refused uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	const minutes = int(health.Lately / time.Minute)
	all := h.minutes.last(h.now, minutes)
	for i := range minutes {
		if n := all[seriesRefused][i]; n != nil {
			refused += *n
		}
	}
	return refused
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

// addGrowth adds what has become more since ten minutes ago, or since the first sample if that is later.
func (h *history) addGrowth(t *health.Tube) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if th := h.tubes[t.Name]; th != nil {
		last := len(th.samples) - 1
		t.MoreBuried, t.MoreTimeouts = th.growth(), more(th.samples[0].timeouts, th.samples[last].timeouts)
		t.Since = time.Duration(last) * tubeStep * time.Second
	}
}
