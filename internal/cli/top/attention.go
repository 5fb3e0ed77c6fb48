package top

import (
	"cmp"
	"math"
	"slices"

	"github.com/beanpole-mq/beanpole/internal/health"
)

// look notes what a person should see of the tube, the worst first.
func (t *Tube) look() {
	one := health.Tube{
		Name: t.Name, Ready: t.JobsReady, Buried: t.JobsBuried, Watching: t.Watching, Waits: t.Waits, PauseLeft: t.PauseLeft,
		MoreBuried: t.buriedMore, MoreTimeouts: t.timeoutsMore,
	}
	t.found = one.Findings(nil)
	slices.SortFunc(t.found, func(a, b health.Finding) int { return health.Compare(&a, &b) })
}

// alarming reports whether a person is needed.
func (t *Tube) alarming() bool { return len(t.found) > 0 && t.found[0].Severity == health.Bad }

// mark is what stands before the name of a tube.
func (t *Tube) mark() string {
	if t.alarming() {
		return "!"
	}
	return ""
}

// worseFirst orders by what is wrong, and then by what waits.
func worseFirst(a, b *Tube) int {
	rank := func(t *Tube) int {
		if len(t.found) == 0 {
			return math.MaxInt
		}
		return health.Rank(&t.found[0])
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(b.JobsReady, a.JobsReady))
}
