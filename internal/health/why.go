package health

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Why returns a sentence, without its full stop, about the state of the tube and all of
// its findings. It also returns the worst severity, which is empty if there are no
// findings.
func (t *Tube) Why() (text, severity string) {
	text = t.why()
	for _, f := range t.Findings(nil) {
		if !strings.Contains(text, f.Text) {
			text += "; " + f.Text
		}
		if severity != Bad {
			severity = f.Severity
		}
	}
	if t.Refuses != "" {
		return text + "; the server refuses puts: " + t.Refuses, Bad
	}
	return text, severity
}

// Explain sets the text of a finding that Terse returned.
func (t *Tube) Explain(f *Finding) {
	if f.Text != "" {
		return
	}
	c := &t.Counted
	switch f.Kind {
	case "buried":
		f.Text = count(t.Buried, "buried job", "buried jobs")
		if c.Buried > 0 && c.Over > 0 {
			f.Text += fmt.Sprintf(", %s more than %s ago", digits(uint64(c.Buried)), words(c.Over))
		}
		if !t.Unwatched() { // otherwise, this finding contains the advice
			f.Text += t.redrive()
		}
	case "timeouts":
		f.Text = t.lately(c.TimedOut, "reservation timed out", "reservations timed out")
		if c.TimedOut >= c.Deleted {
			f.Text += ": the TTR is too short, or workers hang"
		}
	case "releases":
		f.Text = t.lately(c.Released, "job was released", "jobs were released")
	case "held":
		f.Text = fmt.Sprintf("a job has been reserved%s, but jobs take %s on average", t.Workers.longest("for"), words(max(t.Work.Round(time.Second), time.Second)))
		if n := t.Workers.Touches; n > 0 {
			f.Text += "; its worker has touched it " + count(uint64(n), "time", "times")
		}
	case "limited":
		f.Text = "the tube is at its limit: new jobs are refused"
		if t.Used < 1 {
			f.Text = fmt.Sprintf("the tube has reached %.0f %% of its limit", 100*t.Used)
		}
	default:
		f.Text = t.why()
	}
}

// lately describes a recent count in comparison with the deletes.
func (t *Tube) lately(n uint64, one, many string) (text string) {
	if t.Counted.Over > 0 {
		text = "in the last " + words(t.Counted.Over) + " "
	}
	if text += count(n, one, many); t.Counted.Deleted == 0 {
		return text + " and no job was deleted"
	}
	return text + " and " + count(t.Counted.Deleted, "job was deleted", "jobs were deleted")
}

// redrive returns the advice for a dead tube.
func (t *Tube) redrive() string {
	if !t.Dead {
		return ""
	}
	return "; 'beanpole redrive " + t.Name + "' returns jobs to their tubes"
}

// why returns a sentence about the state of the tube.
func (t *Tube) why() (text string) {
	ready := count(t.Ready, "job is ready", "jobs are ready")
	waits := ready
	if t.Waits >= time.Second {
		waits += ", the next for " + words(t.Waits)
	}
	switch {
	case t.PauseLeft > 0:
		text = "paused" + t.pausedHow()
		if t.Ready > 0 {
			text += ": " + ready
		}
		return text
	case t.Ready == 0:
		return t.quiet()
	case t.Watching == 0:
		return "no workers: " + waits + t.redrive()
	case t.Gate < 0:
		return fmt.Sprintf("at the max-reserved of its policy: %s; %s", count(t.Reserved, "job is reserved", "jobs are reserved"), waits)
	case t.Gate > 0 && t.GateByLog:
		return "the journal has no space to record the attempts that its policy counts: " + waits
	case t.Gate > 0:
		return fmt.Sprintf("at the rate of its policy: the next job can be reserved in %s; %s", words(max(t.Gate, time.Second)), waits)
	case t.Waiting > 0:
		return fmt.Sprintf("%s, and %s ready jobs; %s", t.workers(), count(t.Waiting, "of them takes", "of them take"), ready)
	}
	return t.busy() + "; " + waits
}

// Endless is the time left of a pause without end.
const Endless = math.MaxUint32 * time.Second

// pausedHow returns the end of the pause.
func (t *Tube) pausedHow() string {
	if t.PauseLeft >= Endless {
		return " without end"
	}
	return time.Now().Add(t.PauseLeft + time.Second).UTC().Format(" until 2006-01-02 15:04 UTC") // the time left is rounded down
}

// quiet describes a tube without ready jobs. Its buried jobs are a finding.
func (t *Tube) quiet() string {
	var parts []string
	for _, s := range []struct {
		n    uint64
		name string
	}{{t.Reserved, "reserved"}, {t.Delayed, "delayed"}} {
		if s.n > 0 {
			parts = append(parts, fmt.Sprintf("%s %s", digits(s.n), s.name))
		}
	}
	switch {
	case len(parts) > 0:
		return "no job is ready: " + strings.Join(parts, ", ")
	case t.Buried > 0:
		return "no job is ready"
	case t.Waiting > 0:
		return "no jobs: " + count(t.Waiting, "worker waits for one", "workers wait for one")
	}
	return "no jobs"
}

func (t *Tube) workers() string { return count(t.Watching, "worker", "workers") }

// busy describes the workers of a tube with ready jobs if no worker waits for a job.
func (t *Tube) busy() string {
	w := t.Workers
	var parts []string
	switch {
	case w == nil && t.Reserved > 0:
		return fmt.Sprintf("%s, and %s", t.workers(), count(t.Reserved, "job is reserved", "jobs are reserved"))
	case w == nil:
		w = &Workers{}
	}
	if w.Busy > 0 {
		parts = append(parts, count(w.Busy, "holds a job", "hold jobs")+w.longest("for up to"))
	}
	if w.Elsewhere > 0 {
		parts = append(parts, count(w.Elsewhere, "is busy with ", "are busy with ")+cmp.Or(w.With, "other tubes"))
	}
	switch {
	case len(parts) > 0:
	case t.Counted.Reserved > 0:
		parts = append(parts, fmt.Sprintf("%s in the last %s", count(t.Counted.Reserved, "job was reserved", "jobs were reserved"), words(t.Counted.Over)))
	default:
		parts = append(parts, "none is waiting for or holding a job")
	}
	return t.workers() + ": " + strings.Join(parts, ", ")
}

// longest returns the duration of the longest reservation with its holder.
func (w *Workers) longest(preposition string) (text string) {
	if w.HeldFor > 0 {
		text = " " + preposition + " " + words(w.HeldFor)
		if w.Holder > 0 {
			text += fmt.Sprintf(" (connection %d)", w.Holder)
		}
	}
	return text
}

func count(n uint64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return digits(n) + " " + many
}

// digits returns a number with commas.
func digits(n uint64) string {
	text := strconv.FormatUint(n, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// words returns a time in its largest unit.
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
