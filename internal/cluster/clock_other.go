//go:build !linux

package cluster

import "time"

// systemClock returns a clock in nanoseconds. On some systems, Go's clock stops while the
// machine sleeps. On these systems, a member that was suspended can answer a reserve
// after another member has become the leader.
func systemClock() func() int64 {
	start := time.Now()
	return func() int64 { return int64(time.Since(start) + time.Second) }
}
