package cluster

import (
	"time"

	"golang.org/x/sys/unix"
)

// systemClock returns a clock, in nanoseconds, that continues while the machine sleeps.
func systemClock() func() int64 {
	return func() int64 {
		var t unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
			panic("cluster: the system has no CLOCK_BOOTTIME: " + err.Error()) // Linux has had it since 2.6.39
		}
		return t.Nano() + int64(time.Second) // never 0, which means no lease
	}
}
