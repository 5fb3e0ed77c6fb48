package queue

import (
	"context"

	"github.com/beanpole-mq/beanpole/client/admin"
)

// countsUsage explains the option where it tells more.
const countsUsage = "tell of bytes, ages, timeouts, releases and buries too,\nfrom the admin pages of a beanpole at `ADDR`"

// tubeCounts is what the API tells of a tube and the protocol does not: how large the bodies of its
// jobs are, for how many seconds the next one has been ready, and how often its jobs have
// come to this since the tube came to be.
type tubeCounts struct {
	BodyBytes uint64 `json:"body_bytes"`
	Oldest    int64  `json:"oldest_ready"`

	Timeouts uint64 `json:"timeouts"`
	Releases uint64 `json:"releases"`
	Buries   uint64 `json:"buries"`
}

// countsOf asks for those of all tubes.
func countsOf(ctx context.Context, a *admin.Client) (map[string]*tubeCounts, error) {
	counts := make(map[string]*tubeCounts)
	for in, more := (admin.ListTubes{Limit: 10_000}), true; more; more = in.Cursor != "" {
		page, err := a.ListTubes(ctx, &in)
		if err != nil {
			return nil, err
		}
		for i := range page.Tubes {
			t := &page.Tubes[i]
			counts[t.Name] = &tubeCounts{t.BodyBytes, t.OldestReady, t.Timeouts, t.Releases, t.Buries}
		}
		in.Cursor = page.Next
	}
	return counts, nil
}
