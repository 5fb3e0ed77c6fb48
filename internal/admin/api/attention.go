package api

import (
	"cmp"
	"fmt"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// A Finding is something that an operator should look at.
type Finding struct {
	Kind     string `json:"kind"`
	Severity string `json:"severity"` // bad, or warning
	Tube     string `json:"tube,omitempty"`
	Count    uint64 `json:"count,omitempty"`
	Seconds  int64  `json:"seconds,omitempty"`
	More     int64  `json:"more,omitempty"` // than Over seconds ago
	Over     int64  `json:"over,omitempty"` // s; 0: not known
	Text     string `json:"text"`
}

// Attention is what an operator should look at.
type Attention struct {
	Findings []Finding      `json:"findings"`
	Total    int            `json:"total"`
	Kinds    map[string]int `json:"kinds"` // how many there are of each, also of those that are not on the page
}

const (
	bad     = "bad"
	warning = "warning"

	slowAfter   = 60 * time.Second // a ready job that waits so long is worth a look
	maxFindings = 1000
	nearlyFull  = 0.9 // of a limit
	lately      = 10  // min; what was refused before is over
)

// getAttention looks for what an operator should look at, the worst first.
func getAttention(r *request) (reply, error) {
	n, err := r.limit(maxFindings)
	if err != nil {
		return reply{}, err
	}
	var room []Finding // for those of a tube: each may have some
	if r.other == nil && r.who.Meets(statsEverywhere) {
		if room, err = r.serverFindings(); err != nil {
			return reply{}, err
		}
		room = append(room, r.api.clusterFindings()...)
		room = append(room, r.api.certificateFindings()...)
		room = append(room, r.api.history.refusalFindings()...)
	}
	page := Attention{Findings: []Finding{}, Kinds: make(map[string]int)}
	worst := firstOf[Finding]{n: n, compare: compareFindings}
	show := func(found []Finding) {
		page.Total += len(found)
		for _, f := range found {
			page.Kinds[f.Kind]++
			worst.show(f)
		}
	}
	show(room)
	err = r.survey(func(t *surveyedTube) {
		room = appendTubeFindings(room[:0], t)
		show(room)
	})
	if err != nil {
		return reply{}, err
	}
	page.Findings = append(page.Findings, worst.sorted()...)
	if r.other == nil {
		for i := range page.Findings {
			page.Findings[i].addGrowth(r.api.history)
		}
	}
	return reply{body: page}, nil
}

// compareFindings puts the worst first.
func compareFindings(a, b Finding) int {
	return cmp.Or(cmp.Compare(a.Severity, b.Severity), cmp.Compare(a.rank(), b.rank()), cmp.Compare(b.Count, a.Count),
		cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(a.Tube, b.Tube))
}

// rank puts what concerns the server before what concerns a tube.
func (f *Finding) rank() int {
	if f.Tube == "" {
		return 0
	}
	return 1
}

// serverFindings are those of the whole server.
func (r *request) serverFindings() (found []Finding, err error) {
	err = r.turn(func(e *engine.Engine, _ int64) error {
		if r.api.opt.Journal != nil {
			if j := r.api.opt.Journal(); j.Health != "ok" {
				found = append(found, Finding{Kind: "journal", Severity: bad, Text: "the journal: " + j.Health})
			}
		}
		if e.IsDraining() {
			found = append(found, Finding{Kind: "draining", Severity: warning, Text: "the server drains: new jobs are refused"})
		}
		now, most := e.Stats().Sessions, r.api.opt.Server.Counts().MaxConnections
		if nearly(int64(now), int64(most)) {
			found = append(found, Finding{Kind: "connections", Severity: warning, Count: now, Text: fmt.Sprintf("%d of %d connections are in use", now, most)})
		}
		if used, most := e.LimitedMemory(); nearly(used, most) {
			found = append(found, Finding{Kind: "memory", Severity: bad, Text: fmt.Sprintf("jobs take %.0f %% of their memory: beyond it, new ones are refused", 100*float64(used)/float64(most))})
		}
		return nil
	})
	return found, err
}

// certificateFindings say which certificates have ended or end soon.
func (a *API) certificateFindings() (found []Finding) {
	if a.opt.CertificateWarnings == nil {
		return nil
	}
	for _, text := range a.opt.CertificateWarnings() {
		found = append(found, Finding{Kind: "certificate", Severity: bad, Text: text})
	}
	return found
}

// refusalFindings say whether commands were refused lately, or clients had to wait because of their rate.
func (h *history) refusalFindings() (found []Finding) {
	refused, throttled := h.lately()
	if refused > 0 {
		found = append(found, Finding{Kind: "refused", Severity: warning, Count: refused, Text: "commands were refused in the last ten minutes"})
	}
	if throttled > 0 {
		found = append(found, Finding{Kind: "throttled", Severity: warning, Count: throttled, Text: "commands had to wait in the last ten minutes: clients send more than they may"})
	}
	return found
}

// lately returns how much was refused, and throttled.
func (h *history) lately() (refused, throttled uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := h.minutes.last(h.now, lately)
	for i := range lately {
		if n := all[seriesRefused][i]; n != nil {
			refused, throttled = refused+*n, throttled+*all[seriesThrottled][i]
		}
	}
	return refused, throttled
}

// clusterFindings are those of the cluster, as this member knows it.
func (a *API) clusterFindings() (found []Finding) {
	if a.opt.Cluster == nil {
		return nil
	}
	c, err := a.opt.Cluster()
	if err != nil {
		return []Finding{{Kind: "cluster", Severity: bad, Text: fmt.Sprintf("this member does not know how the cluster is: %v", err)}}
	}
	for _, p := range c.Problems() {
		f := Finding{Kind: "cluster", Severity: warning, Text: p.Text}
		if p.Bad {
			f.Severity = bad
		}
		found = append(found, f)
	}
	return found
}

// appendTubeFindings appends those of a tube.
func appendTubeFindings(found []Finding, t *surveyedTube) []Finding {
	oldest := seconds(t.OldestReady)
	switch {
	case t.Ready == 0:
	case t.Watching == 0:
		found = append(found, Finding{Kind: "unwatched", Severity: bad, Tube: t.name, Count: t.Ready, Seconds: oldest,
			Text: "ready jobs, and no connection watches the tube"})
	case t.OldestReady >= int64(slowAfter) && t.Pause == 0:
		found = append(found, Finding{Kind: "slow", Severity: warning, Tube: t.name, Count: t.Ready, Seconds: oldest,
			Text: "the next job has been ready for long: the workers do not keep up"})
	}
	if t.Buried > 0 {
		found = append(found, Finding{Kind: "buried", Severity: bad, Tube: t.name, Count: t.Buried, Text: "buried jobs"})
	}
	if t.isNearLimit() {
		f := Finding{Kind: "limited", Severity: warning, Tube: t.name, Count: t.jobs(), Text: "the tube is nearly at its limit: beyond it, new jobs are refused"}
		if t.isAtLimit() {
			f.Severity, f.Text = bad, "the tube is at its limit: new jobs are refused"
		}
		found = append(found, f)
	}
	if t.Pause > 0 {
		found = append(found, Finding{Kind: "paused", Severity: warning, Tube: t.name, Count: t.Ready, Seconds: t.PauseLeft,
			Text: "the tube is paused"})
	}
	return found
}

// addGrowth says how many more buried jobs there are than ten minutes ago, or than at the first sample if that is later.
func (f *Finding) addGrowth(h *history) {
	if f.Kind != "buried" {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if recent := h.recent(f.Tube); recent != nil {
		if f.More = recent.BuriedMore; f.More != 0 {
			f.Over = int64(len(recent.Ready)-1) * recent.Step
		}
	}
}
