// Package health says what an operator should look at. There is no other definition of that: the
// JSON API, and so the console, lists its findings, beanpole top shows them, /readyz warns of those of the
// server, and a test holds the alerts of contrib/prometheus against it.
//
//	found := (&health.Tube{Ready: 3}).Findings(nil)
//
// Who asks fills in what it knows: zero values raise nothing. What has happened since some time is since ten minutes ago,
// or since the asker began.
package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
)

// A Finding is something that an operator should look at.
type Finding = admin.Finding

// The severities. Bad: jobs are lost from sight, refused or done again. Warning: it may come to that.
const (
	Bad     = "bad"
	Warning = "warning"
)

const (
	// SlowAfter is how long a job that is ready waits until it is worth a look.
	SlowAfter = 10 * time.Minute

	// NearlyFull is how much of a limit is used until that is worth a look.
	NearlyFull = 0.9

	// Lately is how long ago what was refused is over.
	Lately = 10 * time.Minute
)

// Compare puts the worst first: the trouble of the server itself before that of tubes, which it may explain.
func Compare(a, b *Finding) int {
	return cmp.Or(cmp.Compare(Rank(a), Rank(b)), cmp.Compare(b.Tubes, a.Tubes), cmp.Compare(b.Count, a.Count), cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(a.Tube, b.Tube))
}

// Rank returns a smaller number for a worse finding, whatever its counts are: failing jobs come before waiting jobs.
func Rank(f *Finding) int {
	rank := slices.Index([]string{"buried", "timeouts", "unwatched", f.Kind}, f.Kind)
	if f.Severity == Warning {
		rank += 10
	}
	if f.Tube != "" || f.Tubes > 0 {
		rank += 100
	}
	return rank
}

// A Tube is what is known of a tube.
type Tube struct {
	Name                    string
	Jobs                    uint64 // in any state
	Ready, Buried, Watching uint64
	Waits                   time.Duration // the next job has been ready
	PauseLeft               time.Duration
	Used                    float64 // of its limits, from 0 to 1

	// What only Why tells.
	Reserved, Delayed, Waiting uint64        // jobs, and sessions in a reserve
	PausedUntil                time.Time     // zero: not known
	PausedBy                   string        // who has paused it
	Gate                       time.Duration // until its policy lets a job be reserved; negative: when a reservation ends
	Looked                     bool          // at the sessions that watch it, for the next three
	Busy                       uint64        // those that hold jobs
	HeldFor                    time.Duration // by one of them, the longest
	Holder                     uint64        // the id of its connection
	Refuses                    string        // why the server refuses puts

	MoreBuried   int64         // than then
	MoreTimeouts uint64        // since then
	Since        time.Duration // then; 0: nobody knows
}

// Unwatched reports whether jobs are ready that nobody will take.
func (t *Tube) Unwatched() bool { return t.Ready > 0 && t.Watching == 0 && t.PauseLeft <= 0 }

// Findings appends those of the tube.
func (t *Tube) Findings(found []Finding) []Finding {
	before := len(found)
	found = t.Terse(found)
	for i := range found[before:] {
		t.Explain(&found[before+i])
	}
	return found
}

// Explain adds the text that Terse has left out.
func (t *Tube) Explain(f *Finding) {
	if f.Text == "" {
		f.Text, _ = t.why()
	}
}

// Terse appends the findings of the tube without the texts that are to be composed: of thousands, few are shown.
func (t *Tube) Terse(found []Finding) []Finding {
	add := func(f Finding) {
		f.Tube = t.Name
		found = append(found, f)
	}
	if t.Unwatched() {
		add(Finding{Kind: "unwatched", Severity: Bad, Count: t.Ready, Seconds: seconds(t.Waits)})
	} else if t.Ready > 0 && t.Waits >= SlowAfter && t.PauseLeft <= 0 {
		add(Finding{Kind: "slow", Severity: Warning, Count: t.Ready, Seconds: seconds(t.Waits)})
	}
	switch {
	case t.MoreBuried > 0:
		add(Finding{Kind: "buried", Severity: Bad, Count: t.Buried, More: t.MoreBuried, Over: seconds(t.Since), Text: "buried jobs"})
	case t.Buried > 0:
		add(Finding{Kind: "buried", Severity: Warning, Count: t.Buried, Text: "buried jobs"})
	}
	if t.MoreTimeouts > 0 {
		add(Finding{Kind: "timeouts", Severity: Bad, Count: t.MoreTimeouts, Text: "jobs have run out of time, and are done again"})
	}
	switch {
	case t.Used >= 1:
		add(Finding{Kind: "limited", Severity: Bad, Count: t.Jobs, Text: "the tube is at its limit: new jobs are refused"})
	case t.Used >= NearlyFull:
		add(Finding{Kind: "limited", Severity: Warning, Count: t.Jobs, Text: "the tube is nearly at its limit: beyond it, new jobs are refused"})
	}
	if t.PauseLeft > 0 {
		add(Finding{Kind: "paused", Severity: Warning, Count: t.Ready, Seconds: seconds(t.PauseLeft)})
	}
	return found
}

func seconds(d time.Duration) int64 { return int64(d / time.Second) }

// A Server is what is known of a server.
type Server struct {
	Journal                     string // what is wrong with it; empty, or "ok": nothing
	Draining                    bool
	Connections, MaxConnections uint64
	Full                        bool // new connections are closed
	MemoryUsed, MemoryLimit     int64
	Certificates                []string // what is wrong with them

	RefusedBy []string // settings whose limits have refused something since then
	Refused   uint64   // commands, since then
}

// Refuses says why the server refuses puts; empty: it does not.
func (s *Server) Refuses() string {
	switch {
	case s.Draining:
		return "it drains"
	case slices.Contains(s.RefusedBy, "max-memory") && Share(s.MemoryUsed, s.MemoryLimit) >= NearlyFull:
		return "memory (max-memory)"
	case s.Journal != "" && s.Journal != "ok":
		return "the journal: " + s.Journal
	}
	return ""
}

// Findings appends those of the server.
func (s *Server) Findings(found []Finding) []Finding {
	add := func(kind, severity string, count uint64, format string, args ...any) {
		found = append(found, Finding{Kind: kind, Severity: severity, Count: count, Text: fmt.Sprintf(format, args...)})
	}
	if s.Journal != "" && s.Journal != "ok" {
		add("journal", Bad, 0, "the journal: %s", s.Journal)
	}
	if s.Draining {
		add("draining", Warning, 0, "the server drains: new jobs are refused")
	}
	switch {
	case s.Full:
		add("connections", Bad, s.Connections, "too many connections: new ones wait (max-connections %d)", s.MaxConnections)
	case Share(int64(s.Connections), int64(s.MaxConnections)) >= NearlyFull:
		add("connections", Warning, s.Connections, "%d of %d connections are in use (max-connections)", s.Connections, s.MaxConnections)
	}
	if used := Share(s.MemoryUsed, s.MemoryLimit); used >= NearlyFull {
		add("memory", Bad, 0, "jobs take %.0f %% of their memory (max-memory): beyond it, new ones are refused", 100*used)
	}
	for _, limit := range s.RefusedBy {
		severity := Bad
		if strings.HasPrefix(limit, "[[limit]]") || limit == "max-tubes" || limit == "max-watched" {
			severity = Warning // it may be there to slow somebody down
		}
		add("limit", severity, 0, "a limit has refused what clients asked for lately: %s", limit)
	}
	for _, text := range s.Certificates {
		add("certificate", Bad, 0, "%s", text)
	}
	if s.Refused > 0 {
		add("refused", Warning, s.Refused, "commands were refused in the last ten minutes")
	}
	return found
}

// Share returns how much is used of a limit; 0: there is none.
func Share(used, limit int64) float64 {
	if limit <= 0 {
		return 0
	}
	return float64(used) / float64(limit)
}
