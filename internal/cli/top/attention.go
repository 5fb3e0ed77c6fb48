package top

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
	"github.com/beanpole-mq/beanpole/internal/health"
)

// look sets the findings of a tube, worst first, if the server does not report findings.
// It uses the counts since the view started.
func (t *Tube) look(over time.Duration) {
	one := HealthOf(&t.Tube)
	one.Counted = health.Counts{Over: over, Buried: t.buriedMore}
	t.found = one.Findings(nil)
	slices.SortFunc(t.found, func(a, b health.Finding) int { return health.Compare(&a, &b) })
}

// HealthOf returns the health of a tube, from values that are available through the
// protocol.
func HealthOf(t *admin.Tube) health.Tube {
	return health.Tube{
		Name: t.Name, Ready: t.Jobs.Ready, Reserved: t.Jobs.Reserved, Delayed: t.Jobs.Delayed, Buried: t.Jobs.Buried,
		Watching: t.Watching, Waiting: t.Waiting, PauseLeft: cliutil.OfSeconds(t.PauseLeft),
	}
}

// sortFindings moves the findings that the server reported to their tubes. Findings about
// the server remain in s.
func (s *Snapshot) sortFindings() {
	tubes := byName(s.Tubes)
	for _, f := range s.Found {
		if t := tubes[f.Tube]; t != nil {
			t.found = append(t.found, f)
		} else {
			s.found = append(s.found, f)
		}
	}
}

// alarming reports whether the worst finding of the tube is bad.
func (t *Tube) alarming() bool { return len(t.found) > 0 && t.found[0].Severity == health.Bad }

// mark returns the mark in front of the tube's name.
func (t *Tube) mark() string {
	if t.alarming() {
		return "!"
	}
	return ""
}

// worseFirst orders tubes by their worst finding, then by their number of ready jobs.
func worseFirst(a, b *Tube) int {
	rank := func(t *Tube) int {
		if len(t.found) == 0 {
			return math.MaxInt
		}
		return health.Rank(&t.found[0])
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(b.Jobs.Ready, a.Jobs.Ready))
}
