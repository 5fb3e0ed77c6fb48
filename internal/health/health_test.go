package health

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func kinds(found []Finding) string {
	var all []string
	for _, f := range found {
		all = append(all, f.Severity+" "+f.Kind)
	}
	return strings.Join(all, ", ")
}

func TestTube(t *testing.T) {
	for _, test := range []struct {
		tube Tube
		want string
	}{
		{Tube{}, ""},
		{Tube{Ready: 1, Watching: 1, Waits: SlowAfter - 1, Used: 0.89}, ""},
		{Tube{Ready: 1, Waits: SlowAfter - 1}, "warning unwatched"},
		{Tube{Ready: 1, Waits: SlowAfter}, "bad unwatched"},
		{Tube{Ready: 1, PauseLeft: time.Second, Waits: time.Hour}, "warning paused"},
		{Tube{Ready: 1, Watching: 1, Waits: SlowAfter}, "warning slow"},
		{Tube{Buried: 3, Counted: Counts{Buried: -1}}, "warning buried"},
		{Tube{Buried: 3, Counted: Counts{Buried: 1, TimedOut: 2}}, "bad buried, bad timeouts"},
		{Tube{Used: 0.9}, "warning limited"},
		{Tube{Counted: Counts{Released: LoopFrom - 1}}, ""},
		{Tube{Counted: Counts{Released: LoopFrom, Deleted: LoopFrom}}, ""},
		{Tube{Counted: Counts{Released: LoopFrom, Deleted: LoopFrom - 1}}, "bad releases"},
		{Tube{Work: time.Second, Workers: &Workers{HeldFor: SlowAfter - 1}}, ""},
		{Tube{Work: time.Second, Workers: &Workers{HeldFor: SlowAfter}}, "warning held"},
		{Tube{Work: time.Second, WorkP95: 5 * time.Minute, Workers: &Workers{HeldFor: LongerByP95*5*time.Minute - 1}}, ""},
		{Tube{Work: time.Second, WorkP95: 5 * time.Minute, Workers: &Workers{HeldFor: LongerByP95 * 5 * time.Minute}}, "warning held"},
		{Tube{Work: time.Hour, Workers: &Workers{HeldFor: LongerBy*time.Hour - 1}}, ""},
		{Tube{Workers: &Workers{HeldFor: 24 * time.Hour}}, ""}, // the usual time is unknown
		{Tube{Used: 1}, "bad limited"},
	} {
		if got := kinds(test.tube.Findings(nil)); got != test.want {
			t.Errorf("%+v: %s, want %s", test.tube, got, test.want)
		}
	}
}

func TestServer(t *testing.T) {
	for _, test := range []struct {
		server Server
		want   string
	}{
		{Server{}, ""},
		{Server{Journal: "ok", Connections: 8, MaxConnections: 10, MemoryUsed: 8, MemoryLimit: 10}, ""},
		{Server{Journal: "the disk is full", Draining: true, Certificates: []string{"a.crt ends soon"}}, "bad journal, warning draining, bad certificate"},
		{Server{Connections: 9, MaxConnections: 10, MemoryUsed: 9, MemoryLimit: 10}, "warning connections, bad memory"},
		{Server{Full: true, Connections: 9, MaxConnections: 10, RefusedBy: []string{"max-memory", "max-tubes"}}, "bad connections, bad limit, warning limit"},
		{Server{Refused: 1}, "warning refused"},
	} {
		if got := kinds(test.server.Findings(nil)); got != test.want {
			t.Errorf("%+v: %s, want %s", test.server, got, test.want)
		}
	}
}

// The finding about a draining server explains findings about tubes, so it comes before
// them.
func TestCompare(t *testing.T) {
	found := (&Tube{Name: "mail", Ready: 9, Waits: SlowAfter}).Findings(nil)
	found = (&Tube{Name: "big", Ready: 90, Waits: SlowAfter}).Findings(found)
	found = (&Tube{Name: "later", PauseLeft: 1}).Findings(found)
	found = (&Tube{Name: "failing", Buried: 1, Counted: Counts{Buried: 1}}).Findings(found)
	found = (&Tube{Name: "failed", Buried: 5}).Findings(found)
	found = (&Server{Draining: true, Journal: "full"}).Findings(found)
	slices.SortFunc(found, func(a, b Finding) int { return Compare(&a, &b) })
	var got []string
	for _, f := range found {
		got = append(got, f.Kind+f.Tube)
	}
	if want := []string{"journal", "draining", "buriedfailing", "unwatchedbig", "unwatchedmail", "buriedfailed", "pausedlater"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
