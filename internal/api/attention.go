package api

import (
	"fmt"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/health"
	"github.com/beanpole-mq/beanpole/internal/history"
	"github.com/beanpole-mq/beanpole/internal/server"
)

// getAttention returns the findings, the worst first.
func (r *request) getAttention(in *admin.GetAttention) (page admin.Attention, err error) {
	var found []health.Finding
	if r.caller.Identity.Meets(statsEverywhere) {
		s, err := r.serverHealth()
		if err != nil {
			return page, err
		}
		found = append(s.Findings(nil), r.api.clusterFindings()...)
	}
	schedules, err := r.listSchedules(nil)
	if err != nil {
		return page, err
	}
	for _, s := range schedules.Schedules {
		found = health.ScheduleFindings(found, s.Name, s.Problem, s.Behind)
	}
	return r.tubes().Attention(in, found)
}

// serverHealth returns the health of the server.
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

// HealthOf returns the health of a server, given its engine in a turn, its counts, and
// the health of its journal.
func HealthOf(e *engine.Engine, now int64, counts server.Counts, journal string) health.Server {
	s := health.Server{
		Journal: journal, Draining: e.IsDraining(), Connections: e.Stats().Sessions, MaxConnections: uint64(counts.MaxConnections), Full: counts.Full,
		RefusedBy: e.RefusedSince(now - int64(health.Lately)),
	}
	s.MemoryUsed, s.MemoryLimit = e.LimitedMemory()
	return s
}

// lately returns the number of commands that were refused in the last ten minutes.
func (h *recorder) lately() (refused uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.server.sum[history.Refused]
}

// clusterFindings returns the findings about the cluster, as this member sees it.
func (a *API) clusterFindings() (found []health.Finding) {
	if a.opt.Cluster == nil {
		return nil
	}
	c, err := a.opt.Cluster()
	if err != nil {
		return []health.Finding{{Kind: "cluster", Severity: health.Bad, Text: fmt.Sprintf("this member cannot get the state of the cluster: %v", err)}}
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

// addCounts adds the tube's counts of the last ten minutes, or since its first sample if
// that is later.
func (h *recorder) addCounts(t *health.Tube) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if th := h.tubes[t.Name]; th != nil {
		t.Counted = health.Counts{
			Over: time.Duration(len(th.kept)-1) * tubeStep * time.Second, Buried: th.growth(),
			Reserved: th.sum[history.Reserves], Deleted: th.sum[history.Done], Released: th.sum[history.Retried], TimedOut: th.sum[history.Timeouts],
		}
	}
}
