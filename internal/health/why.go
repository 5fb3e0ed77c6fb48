package health

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Why says in one sentence, without its full stop, why jobs of the tube wait or what becomes of them, and how
// bad that is: empty, Warning or Bad. What is not known is left out of it.
func (t *Tube) Why() (text, severity string) {
	text, severity = t.why()
	switch {
	case t.Refuses != "":
		return text + "; the server refuses puts: " + t.Refuses, Bad
	case t.Used >= 1:
		return text + "; the tube refuses puts: it is at its limit", Bad
	}
	return text, severity
}

func (t *Tube) why() (text, severity string) {
	ready := count(t.Ready, "job is ready", "jobs are ready")
	waits := ready
	if t.Waits >= time.Second {
		waits += ", the next for " + words(t.Waits)
		if t.Waits >= SlowAfter {
			severity = Warning
		}
	}
	switch {
	case t.PauseLeft > 0:
		text = "paused" + t.pausedHow()
		if t.Ready > 0 {
			text += ": " + ready
		}
		return text, Warning
	case t.Ready == 0:
		return t.quiet(), ""
	case t.Watching == 0:
		return "no workers: " + waits, Bad
	case t.Gate < 0:
		return fmt.Sprintf("at the max-reserved of its policy: %s; %s", count(t.Reserved, "job is reserved", "jobs are reserved"), waits), severity
	case t.Gate > 0:
		return fmt.Sprintf("at the rate of its policy: the next job may go in %s; %s", words(max(t.Gate, time.Second)), waits), severity
	case t.Waiting > 0:
		return fmt.Sprintf("%s, and %s what is ready; %s", t.workers(), count(t.Waiting, "of them takes", "of them take"), ready), ""
	}
	return t.held() + "; " + waits, severity
}

// Endless is how long a pause without end is said to be left.
const Endless = math.MaxUint32 * time.Second

// pausedHow says until when the tube is paused, and by whom.
func (t *Tube) pausedHow() (text string) {
	if until := t.PausedUntil.UTC(); t.PauseLeft >= Endless {
		text = " without end"
	} else if t.PausedUntil.IsZero() {
		text = " for another " + words(t.PauseLeft)
	} else if begin := until.Add(-t.PauseLeft); begin.YearDay() == until.YearDay() && t.PauseLeft < 24*time.Hour {
		text = until.Format(" until 15:04 UTC")
	} else {
		text = until.Format(" until 2006-01-02 15:04 UTC")
	}
	if t.PausedBy != "" {
		text += " by " + t.PausedBy
	}
	return text
}

// quiet says what there is while no job is ready.
func (t *Tube) quiet() string {
	var parts []string
	for _, s := range []struct {
		n    uint64
		name string
	}{{t.Reserved, "reserved"}, {t.Delayed, "delayed"}, {t.Buried, "buried"}} {
		if s.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", s.n, s.name))
		}
	}
	switch {
	case len(parts) > 0:
		return "no job is ready: " + strings.Join(parts, ", ")
	case t.Waiting > 0:
		return "no jobs: " + count(t.Waiting, "worker waits for one", "workers wait for one")
	}
	return "no jobs"
}

func (t *Tube) workers() string { return count(t.Watching, "worker", "workers") }

// held says what the workers do that do not wait for a job.
func (t *Tube) held() string {
	longest := ""
	if t.HeldFor > 0 {
		longest = " for " + words(t.HeldFor)
		if t.Holder > 0 {
			longest += fmt.Sprintf(" (connection %d)", t.Holder)
		}
	}
	idle := fmt.Sprintf("%s and none reserves", count(t.Watching, "worker watches", "workers watch"))
	switch {
	case !t.Looked && t.Reserved > 0:
		return fmt.Sprintf("%s, and %s", t.workers(), count(t.Reserved, "job is reserved", "jobs are reserved"))
	case t.Busy == 0:
		return idle
	case t.Busy < t.Watching:
		return fmt.Sprintf("%s, %s%s, and the others do not reserve", t.workers(), count(t.Busy, "of them holds jobs", "of them hold jobs"), longest)
	case t.Busy == 1:
		return "1 worker, which holds a job" + longest
	case t.Busy == 2:
		return "2 workers, both hold jobs, the older" + longest
	}
	return t.workers() + ", all hold jobs, the oldest" + longest
}

func count(n uint64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	digits := strconv.FormatUint(n, 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits + " " + many
}

// words says how long something is in its largest unit.
func words(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", d/time.Hour)
	}
	return fmt.Sprintf("%d days", d/(24*time.Hour))
}
