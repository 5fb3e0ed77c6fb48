package top

import "cmp"

// An attention is what a person should see of a tube first. The larger is the worse.
type attention int

const (
	fine      attention = iota
	hasBuried           // jobs that have failed before the view began
	deserted            // ready jobs, and nobody who would take them
	timingOut           // workers lose their jobs
	burying             // jobs are given up
)

// attention returns the worst of a tube.
func (t *Tube) attention() attention {
	switch {
	case t.BuriedMore > 0:
		return burying
	case t.TimeoutsMore > 0:
		return timingOut
	case t.Ready > 0 && t.Watching == 0 && t.PauseLeft == 0:
		return deserted
	case t.Buried > 0:
		return hasBuried
	}
	return fine
}

// alarming reports whether a person is needed.
func (a attention) alarming() bool { return a > hasBuried }

// mark is what stands before the name of a tube.
func (a attention) mark() string {
	if a.alarming() {
		return "!"
	}
	return ""
}

// words say what is wrong.
func (a attention) words() string {
	switch a {
	case burying:
		return "more jobs are buried than when this began"
	case timingOut:
		return "workers have run out of time since this began"
	case deserted:
		return "jobs are ready, and nobody watches the tube"
	case hasBuried:
		return "jobs are buried"
	}
	return ""
}

// worseFirst orders by attention, and then by what waits.
func worseFirst(a, b *Tube) int {
	return cmp.Or(cmp.Compare(b.attention(), a.attention()), cmp.Compare(b.Ready, a.Ready))
}
