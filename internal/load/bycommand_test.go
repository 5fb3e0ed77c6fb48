package load

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestByCommand(t *testing.T) {
	addr := startResponder(t, (*responder).serve)
	for _, client := range clients() {
		for mix, want := range map[Mix]string{PutReserveDelete: "delete put reserve", Wake: "reserve"} { // Wake times no other
			r, err := Run(t.Context(), Options{Addr: addr, Client: client, Mix: mix, Connections: 3, Ops: 30, ByCommand: true})
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(slices.Sorted(maps.Keys(r.ByCommand)), " "); got != want {
				t.Errorf("%s, %s: commands %q, want %q", client, mix, got, want)
			}
			total := int64(0)
			for _, l := range r.ByCommand {
				total += l.Count
			}
			if total != r.Latency.Count {
				t.Errorf("%s, %s: %d commands timed by themselves, %d in all", client, mix, total, r.Latency.Count)
			}
		}
		r, err := Run(t.Context(), Options{Addr: addr, Client: client, Ops: 3})
		if err != nil || r.ByCommand != nil {
			t.Errorf("%s: %v, %v without being asked", client, r.ByCommand, err)
		}
	}
}
