package api

import (
	"cmp"
	"fmt"
	"slices"
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
	More     int64  `json:"more,omitempty"` // than ten minutes ago
	Text     string `json:"text"`
}

// Attention is what an operator should look at.
type Attention struct {
	Findings []Finding `json:"findings"`
	Total    int       `json:"total"`
}

const (
	bad     = "bad"
	warning = "warning"

	slowAfter    = 60 * time.Second // a ready job that waits so long is worth a look
	maxFindings  = 1000
	nearlyFullPC = 90 // per cent of a limit
)

// getAttention looks for what an operator should look at, the worst first.
func getAttention(r *request) (reply, error) {
	query, err := r.query("limit")
	if err != nil {
		return reply{}, err
	}
	n, err := limit(query, maxFindings)
	if err != nil {
		return reply{}, err
	}
	var found []Finding
	if r.who.Meets(statsEverywhere) {
		if found, err = r.serverFindings(); err != nil {
			return reply{}, err
		}
	}
	err = r.survey(func(t *surveyedTube) { found = appendTubeFindings(found, t) })
	if err != nil {
		return reply{}, err
	}
	slices.SortStableFunc(found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Severity, b.Severity), cmp.Compare(a.rank(), b.rank()), cmp.Compare(b.Count, a.Count),
			cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(a.Tube, b.Tube))
	})
	page := Attention{Findings: append([]Finding{}, found[:min(n, len(found))]...), Total: len(found)}
	for i := range page.Findings {
		page.Findings[i].addGrowth(r.api.history)
	}
	return reply{body: page}, nil
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
				found = append(found, Finding{Kind: "journal", Severity: bad, Text: "the journal cannot be written: " + j.Health})
			}
		}
		if e.IsDraining() {
			found = append(found, Finding{Kind: "draining", Severity: warning, Text: "the server drains: new jobs are refused"})
		}
		now, most := e.Stats().Sessions, r.api.opt.Server.Counts().MaxConnections
		if most > 0 && now*100 >= uint64(most)*nearlyFullPC {
			found = append(found, Finding{Kind: "connections", Severity: warning, Count: now, Text: fmt.Sprintf("%d of %d connections are in use", now, most)})
		}
		return nil
	})
	return found, err
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
	if t.Pause > 0 {
		found = append(found, Finding{Kind: "paused", Severity: warning, Tube: t.name, Count: t.Ready, Seconds: t.PauseLeft,
			Text: "the tube is paused"})
	}
	return found
}

// addGrowth says how many more buried jobs there are than ten minutes ago.
func (f *Finding) addGrowth(h *history) {
	if f.Kind != "buried" {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if recent := h.recent(f.Tube); recent != nil {
		f.More = recent.BuriedMore
	}
}
