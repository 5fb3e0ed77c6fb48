// Package health defines the conditions that need an operator's attention, and their
// texts. The JSON API, the console, the commands attention, tubes and top, and /readyz
// all present the findings of this package. A test compares the alerts of
// contrib/prometheus with them.
//
//	found := (&health.Tube{Ready: 3}).Findings(nil)
//
// The caller sets the fields whose values are available; a zero value causes no finding.
package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin/apitype"
)

// A Finding is a condition that needs attention.
type Finding = apitype.Finding

// Bad means that jobs are unavailable, refused or processed twice. Warning means that
// this can happen.
const (
	Bad     = "bad"
	Warning = "warning"
)

const (
	// SlowAfter is the time after which a ready job, or a reservation, counts as long.
	SlowAfter = 10 * time.Minute

	// LongerBy is the factor by which a reservation must exceed its tube's average to
	// count as long.
	LongerBy = 10

	// LongerByP95 is the factor by which it must also exceed its tube's 95th percentile,
	// if that is known.
	LongerByP95 = 3

	// LoopFrom is the minimum number of releases that count as a loop.
	LoopFrom = 10

	// NearlyFull is the share of a limit at which it counts as nearly reached.
	NearlyFull = 0.9

	// Lately is the period over which events and refusals are counted.
	Lately = 10 * time.Minute
)

// Compare sorts the worst findings first. Findings about the server precede findings
// about tubes, because they can be the cause of these.
func Compare(a, b *Finding) int {
	return cmp.Or(cmp.Compare(Rank(a), Rank(b)), cmp.Compare(b.Tubes, a.Tubes), cmp.Compare(b.Count, a.Count), cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(a.Tube, b.Tube))
}

// Rank returns a smaller number for a worse finding, regardless of its counts. Failing
// jobs precede waiting jobs.
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

// A Tube describes a tube.
type Tube struct {
	Name                             string
	Jobs                             uint64        // maximum number of jobs in any state
	Ready, Reserved, Delayed, Buried uint64        // jobs
	Watching, Waiting                uint64        // sessions
	Waits                            time.Duration // time since the next job became ready
	Work                             time.Duration // average duration of past reservations; zero if there are none
	WorkP95                          time.Duration // 95th percentile of these; zero if unknown
	PauseLeft                        time.Duration
	Gate                             time.Duration // time until the policy permits a reserve; negative means until a reservation ends
	GateByLog                        bool          // whether Gate is shut because the journal has no space for a record of the policy
	Used                             float64       // share of its limits
	Dead                             bool          // whether the next ready or buried job came from another tube
	Refuses                          string        // reason why the server refuses puts; empty if it accepts them

	Counted Counts
	Workers *Workers // nil if the connections are unknown
}

// Counts contains the recent counts of a tube.
type Counts struct {
	Over                                  time.Duration // length of the period, at most Lately; zero means that nothing was counted
	Buried                                int64         // current number of buried jobs, minus the number at the start
	Reserved, Deleted, Released, TimedOut uint64
}

// Workers describes the connections that work on a tube.
type Workers struct {
	Busy      uint64        // number of connections that watch the tube and hold a job of it
	Elsewhere uint64        // number of connections that watch the tube and hold only jobs of other tubes
	With      string        // tube of those jobs; empty if there are several, or if the client must not see it
	HeldFor   time.Duration // duration of the tube's longest reservation
	Touches   uint32        // number of touches of its job
	Holder    uint64        // connection that holds its job; zero if the client must not see it
}

// Unwatched reports whether the tube has ready jobs that no connection can reserve.
func (t *Tube) Unwatched() bool { return t.Ready > 0 && t.Watching == 0 && t.PauseLeft <= 0 }

// loops reports whether jobs are released repeatedly.
func (t *Tube) loops() bool {
	return t.Counted.Released >= LoopFrom && t.Counted.Released > t.Counted.Deleted
}

// hangs reports whether a job has been reserved for unusually long.
func (t *Tube) hangs() bool {
	return t.Workers != nil && t.Work > 0 && t.Workers.HeldFor >= max(SlowAfter, LongerBy*t.Work, LongerByP95*t.WorkP95)
}

// Findings appends the findings of the tube.
func (t *Tube) Findings(found []Finding) []Finding {
	before := len(found)
	found = t.Terse(found)
	for i := range found[before:] {
		t.Explain(&found[before+i])
	}
	return found
}

// Terse appends the findings of the tube without their texts. Only a few of thousands are
// displayed.
func (t *Tube) Terse(found []Finding) []Finding {
	add := func(kind, severity string, f Finding) {
		f.Kind, f.Severity, f.Tube = kind, severity, t.Name
		found = append(found, f)
	}
	c := &t.Counted
	slow := t.Ready > 0 && t.Waits >= SlowAfter && t.PauseLeft <= 0
	switch {
	case t.Unwatched() && slow:
		add("unwatched", Bad, Finding{Count: t.Ready, Seconds: seconds(t.Waits)})
	case t.Unwatched(): // workers can still connect, for example after a restart
		add("unwatched", Warning, Finding{Count: t.Ready, Seconds: seconds(t.Waits)})
	case slow:
		add("slow", Warning, Finding{Count: t.Ready, Seconds: seconds(t.Waits)})
	}
	if c.Buried > 0 {
		add("buried", Bad, Finding{Count: t.Buried, More: c.Buried, Over: seconds(c.Over)})
	} else if t.Buried > 0 {
		add("buried", Warning, Finding{Count: t.Buried})
	}
	if c.TimedOut > 0 {
		add("timeouts", Bad, Finding{Count: c.TimedOut})
	}
	if t.loops() {
		add("releases", Bad, Finding{Count: c.Released})
	}
	if t.hangs() {
		add("held", Warning, Finding{Seconds: seconds(t.Workers.HeldFor)})
	}
	if t.Used >= 1 {
		add("limited", Bad, Finding{Count: t.Jobs})
	} else if t.Used >= NearlyFull {
		add("limited", Warning, Finding{Count: t.Jobs})
	}
	if t.PauseLeft > 0 {
		add("paused", Warning, Finding{Count: t.Ready, Seconds: seconds(t.PauseLeft)})
	}
	return found
}

func seconds(d time.Duration) int64 { return int64(d / time.Second) }

// A Server describes a server.
type Server struct {
	Journal                     string // problem of the journal; empty or "ok" if there is none
	Draining                    bool
	Connections, MaxConnections uint64
	Full                        bool // whether the server closes new connections
	MemoryUsed, MemoryLimit     int64
	Certificates                []string // problems of certificates

	RefusedBy []string // settings whose limits have recently refused commands
	Refused   uint64   // number of commands that they have recently refused
}

// Refuses returns the reason why the server refuses puts. It returns "" if the server
// accepts them.
func (s *Server) Refuses() string {
	switch {
	case s.Draining:
		return "it is draining"
	case slices.Contains(s.RefusedBy, "max-memory") && Share(s.MemoryUsed, s.MemoryLimit) >= NearlyFull:
		return "memory (max-memory)"
	case s.Journal != "" && s.Journal != "ok":
		return "the journal: " + s.Journal
	}
	return ""
}

// Findings appends the findings of the server.
func (s *Server) Findings(found []Finding) []Finding {
	add := func(kind, severity string, count uint64, format string, args ...any) {
		found = append(found, Finding{Kind: kind, Severity: severity, Count: count, Text: fmt.Sprintf(format, args...)})
	}
	if s.Journal != "" && s.Journal != "ok" {
		add("journal", Bad, 0, "the journal: %s", s.Journal)
	}
	if s.Draining {
		add("draining", Warning, 0, "the server is draining and rejects new jobs")
	}
	switch {
	case s.Full:
		add("connections", Bad, s.Connections, "too many connections: new clients wait (max-connections %d)", s.MaxConnections)
	case Share(int64(s.Connections), int64(s.MaxConnections)) >= NearlyFull:
		add("connections", Warning, s.Connections, "%d of %d connections are in use (max-connections)", s.Connections, s.MaxConnections)
	}
	if used := Share(s.MemoryUsed, s.MemoryLimit); used >= NearlyFull {
		add("memory", Bad, 0, "jobs and tubes take %.0f %% of max-memory: at the limit, the server refuses new jobs", 100*used)
	}
	for _, limit := range s.RefusedBy {
		severity := Bad
		if strings.HasPrefix(limit, "[[limit]]") || limit == "max-tubes" || limit == "max-watched" {
			severity = Warning // such a limit can be intended to slow down clients
		}
		add("limit", severity, 0, "a limit refused commands in the last 10 min: %s", limit)
	}
	for _, text := range s.Certificates {
		add("certificate", Bad, 0, "%s", text)
	}
	if s.Refused > 0 {
		add("refused", Warning, s.Refused, "%s refused in the last 10 min", count(s.Refused, "command was", "commands were"))
	}
	return found
}

// pilesUpAfter is the number of consecutive runs that find the previous job of their
// schedule ready, delayed or reserved, from which the jobs count as piling up.
const pilesUpAfter = 5

// ScheduleFindings appends the findings of a schedule. problem is the reason why it
// cannot put its job, or empty. behind is the number of last runs that found the previous
// job ready, delayed or reserved.
func ScheduleFindings(found []Finding, name, problem string, behind uint64) []Finding {
	switch {
	case problem != "":
		found = append(found, Finding{Kind: "schedule", Severity: Bad, Text: fmt.Sprintf("schedule %s cannot put its job: %s", name, problem)})
	case behind >= pilesUpAfter:
		found = append(found, Finding{Kind: "schedule", Severity: Warning, Count: behind,
			Text: fmt.Sprintf("the jobs of schedule %s pile up: the last %d runs found the previous job ready, delayed or reserved", name, behind)})
	}
	return found
}

// Share returns the used share of a limit. It is zero if there is no limit.
func Share(used, limit int64) float64 {
	if limit <= 0 {
		return 0
	}
	return float64(used) / float64(limit)
}
