//go:build !linux

package cluster

import "time"

// systemClock returns a clock in nanoseconds. Go's stops while the machine sleeps on some
// systems: there a member that was suspended may answer a reserve although another one
// leads.
func systemClock() func() int64 {
	start := time.Now()
	return func() int64 { return int64(time.Since(start) + time.Second) }
}
