// Package apitype has the types of the admin API that the server itself uses: the state
// of a cluster, and findings. It depends on no transport. Package admin has the same
// types.
package apitype

// A Finding is a condition that needs attention.
type Finding struct {
	Kind     string `json:"kind" enum:"cluster,journal,draining,connections,memory,limit,certificate,schedule,refused,unwatched,buried,timeouts,releases,held,slow,limited,paused"`
	Severity string `json:"severity" enum:"bad,warning"`
	Tube     string `json:"tube,omitempty" as:"TubeName"`
	// For a finding of several tubes: the pattern of their names, with `*` for each
	// number. Absent if the names have no common pattern; the text then contains the
	// first name.
	Like  string `json:"like,omitempty"`
	Tubes int    `json:"tubes,omitempty" min:"4"` // Number of tubes.
	Count uint64 `json:"count,omitempty"`         // Number of jobs, connections or commands.
	// Time that the next ready job has been ready, or remaining time of a pause.
	Seconds int64 `json:"seconds,omitempty"`
	// Increase of buried jobs over ten minutes, or since the first sample of the tube.
	More int64  `json:"more,omitempty" min:"-"`
	Over int64  `json:"over,omitempty" min:"1"` // Seconds of that increase; only with `more`.
	Text string `json:"text" minlen:"1"`
}
