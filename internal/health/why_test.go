package health

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestWhy(t *testing.T) { synctest.Test(t, testWhy) } // the clock stands still

func testWhy(t *testing.T) {
	until := time.Now().Add(13*time.Hour + time.Second).UTC().Format("2006-01-02 15:04 UTC")
	none := &Workers{}
	for _, test := range []struct {
		tube           Tube
		severity, want string
	}{
		{Tube{}, "", "no jobs"},
		{Tube{Watching: 3, Waiting: 2}, "", "no jobs: 2 workers wait for one"},
		{Tube{Reserved: 1, Delayed: 5, Buried: 2}, Warning, "no job is ready: 1 reserved, 5 delayed; 2 buried jobs"},
		{Tube{Ready: 1}, Warning, "no workers: 1 job is ready"},
		{Tube{Ready: 12345, Waits: 3 * time.Minute}, Warning, "no workers: 12,345 jobs are ready, the next for 3 min"},
		{Tube{Ready: 2, PauseLeft: 13 * time.Hour}, Warning, "paused until " + until + ": 2 jobs are ready"},
		{Tube{PauseLeft: 13 * time.Hour}, Warning, "paused until " + until},
		{Tube{Ready: 2, Watching: 3, Waiting: 1, Workers: none}, "", "3 workers, and 1 of them takes ready jobs; 2 jobs are ready"},
		{Tube{Ready: 2, Watching: 1, Workers: &Workers{Busy: 1, HeldFor: 5 * time.Second}}, "", "1 worker: 1 holds a job for up to 5 s; 2 jobs are ready"},
		{
			Tube{Ready: 9, Waits: time.Hour, Watching: 2, Workers: &Workers{Busy: 2, HeldFor: 58*time.Minute + 59*time.Second, Holder: 75}}, Warning,
			"2 workers: 2 hold jobs for up to 58 min (connection 75); 9 jobs are ready, the next for 60 min",
		},
		{Tube{Ready: 1, Watching: 1, Reserved: 4}, "", "1 worker, and 4 jobs are reserved; 1 job is ready"}, // the holders of the jobs are unknown
		{Tube{Ready: 1, Watching: 2, Waiting: 2, Reserved: 5, Gate: -1}, "", "at the max-reserved of its policy: 5 jobs are reserved; 1 job is ready"},
		{Tube{Ready: 1, Watching: 2, Waiting: 2, Gate: 1, GateByLog: true}, "", "the journal has no space to record the attempts that its policy counts: 1 job is ready"},
		{Tube{Ready: 1, Watching: 2, Waiting: 2, Gate: 1}, "", "at the rate of its policy: the next job can be reserved in 1 s; 1 job is ready"},
		{Tube{Refuses: "memory (max-memory)"}, Bad, "no jobs; the server refuses puts: memory (max-memory)"},
		{Tube{Buried: 9, Used: 1}, Bad, "no job is ready; 9 buried jobs; the tube is at its limit: new jobs are refused"},

		// Workers that neither wait nor hold a job can have reserved some.
		{Tube{Ready: 1, Watching: 2}, "", "2 workers: none is waiting for or holding a job; 1 job is ready"},
		{Tube{Ready: 1, Watching: 1, Workers: none, Counted: Counts{Over: Lately, Reserved: 530}}, "", "1 worker: 530 jobs were reserved in the last 10 min; 1 job is ready"},
		{
			Tube{Ready: 1, Watching: 1, Workers: none, Counted: Counts{Over: 4 * time.Minute, Reserved: 12_530, Released: 12_530}}, Bad,
			"1 worker: 12,530 jobs were reserved in the last 4 min; 1 job is ready; in the last 4 min 12,530 jobs were released and no job was deleted",
		},
		{
			Tube{Ready: 283, Watching: 4, Workers: &Workers{Busy: 4, HeldFor: time.Second}, Counted: Counts{Over: Lately, Reserved: 96, TimedOut: 96, Deleted: 3}}, Bad,
			"4 workers: 4 hold jobs for up to 1 s; 283 jobs are ready; in the last 10 min 96 reservations timed out and 3 jobs were deleted: the TTR is too short, or workers hang",
		},

		// The workers serve several tubes.
		{Tube{Ready: 1, Watching: 3, Workers: &Workers{Elsewhere: 2, With: "telemetry"}}, "", "3 workers: 2 are busy with telemetry; 1 job is ready"},
		{Tube{Ready: 1, Watching: 3, Workers: &Workers{Elsewhere: 1, Busy: 2, HeldFor: time.Second}}, "", "3 workers: 2 hold jobs for up to 1 s, 1 is busy with other tubes; 1 job is ready"},

		// One worker of many is stuck, with and without ready jobs.
		{
			Tube{Ready: 2, Watching: 9, Waiting: 3, Work: 5 * time.Second, Workers: &Workers{Busy: 6, HeldFor: 23 * time.Minute, Holder: 94}}, Warning,
			"9 workers, and 3 of them take ready jobs; 2 jobs are ready; a job has been reserved for 23 min (connection 94), but jobs take 5 s on average",
		},
		{
			Tube{Reserved: 1, Watching: 9, Waiting: 3, Work: time.Millisecond, Workers: &Workers{Busy: 1, HeldFor: 23 * time.Minute}}, Warning,
			"no job is ready: 1 reserved; a job has been reserved for 23 min, but jobs take 1 s on average",
		},
		{Tube{Reserved: 1, Watching: 9, Work: 5 * time.Minute, Workers: &Workers{Busy: 1, HeldFor: 23 * time.Minute}}, "", "no job is ready: 1 reserved"},

		// This is a dead tube.
		{Tube{Name: "mail.dead", Ready: 1, Dead: true}, Warning, "no workers: 1 job is ready; 'beanpole redrive mail.dead' returns jobs to their tubes"},
		{
			Tube{Name: "mail.dead", Buried: 7, Dead: true, Counted: Counts{Over: Lately, Buried: 3}}, Bad,
			"no job is ready; 7 buried jobs, 3 more than 10 min ago; 'beanpole redrive mail.dead' returns jobs to their tubes",
		},
	} {
		if text, severity := test.tube.Why(); text != test.want || severity != test.severity {
			t.Errorf("%+v:\n%s %q, want\n%s %q", test.tube, severity, text, test.severity, test.want)
		}
	}
}

func TestRefuses(t *testing.T) {
	for _, test := range []struct {
		server Server
		want   string
	}{
		{Server{}, ""},
		{Server{RefusedBy: []string{"max-memory"}, MemoryUsed: 1, MemoryLimit: 10}, ""}, // it has space again
		{Server{RefusedBy: []string{"max-memory"}, MemoryUsed: 9, MemoryLimit: 10}, "memory (max-memory)"},
		{Server{Journal: "no space left on device"}, "the journal: no space left on device"},
		{Server{Journal: "ok", Draining: true}, "it is draining"},
	} {
		if got := test.server.Refuses(); got != test.want {
			t.Errorf("%+v: %q, want %q", test.server, got, test.want)
		}
	}
}

// Four or more findings that differ only in a number form a group, and so do the
// remaining ones. The worst tube is named first.
func TestGroups(t *testing.T) {
	var all []Finding
	var groups Groups
	add := func(f Finding) {
		if !groups.Add(&Tube{}, &f) {
			all = append(all, f)
		}
	}
	for i := range 10_000 {
		one := Tube{Name: fmt.Sprintf("tube-%d", i), Ready: 2, Waits: SlowAfter}
		for _, f := range one.Findings(nil) {
			add(f)
		}
	}
	for i := range 5 {
		one := Tube{Name: fmt.Sprintf("old-%d.log", i), Buried: 1}
		add(one.Findings(nil)[0])
	}
	add(Finding{Kind: "unwatched", Severity: Bad, Tube: "mail", Count: 9, Text: "no workers"})
	add(Finding{Kind: "draining", Severity: Warning, Text: "the server drains"})
	for i, name := range []string{"a", "b2", "c", "d", "e1", "e2"} {
		add(Finding{Kind: "timeouts", Severity: Bad, Tube: name, Count: uint64(1 + i%5), Text: "jobs have run out of time"})
	}
	groups.Each(func(f Finding) { all = append(all, f) })
	slices.SortFunc(all, func(a, b Finding) int { return Compare(&a, &b) })
	var got []string
	for _, f := range all {
		got = append(got, f.Tube+f.Like+" "+f.Text)
	}
	want := []string{
		" the server drains", " 6 tubes with timeouts: 16 reservations timed out (e1, d, c and 3 more)", "tube-* 10,000 tubes without workers: 20,000 jobs are ready", "mail no workers",
		"old-*.log 5 tubes with 5 buried jobs",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}
