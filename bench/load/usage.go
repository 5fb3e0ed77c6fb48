package load

import (
	"time"

	"github.com/prometheus/procfs"
)

// Usage contains the kernel's statistics of a process. The zero value means unknown.
type Usage struct {
	CPU     time.Duration // user and system time since the start of the process, in steps of 10 ms
	RSS     int64         // current value in bytes
	PeakRSS int64         // peak in bytes since the process started
}

// UsageOf returns the usage of a process. It is zero if the process does not exist, there
// is no /proc, or pid is 0.
func UsageOf(pid int) Usage {
	if pid == 0 {
		return Usage{}
	}
	p, err := procfs.NewProc(pid)
	if err != nil {
		return Usage{}
	}
	stat, err := p.Stat()
	if err != nil {
		return Usage{}
	}
	status, err := p.NewStatus()
	if err != nil {
		return Usage{}
	}
	return Usage{
		CPU:     time.Duration(stat.UTime+stat.STime) * clockTick,
		RSS:     int64(status.VmRSS),
		PeakRSS: int64(status.VmHWM),
	}
}

// clockTick is the unit of CPU time in /proc. USER_HZ is 100 on all Linux platforms that
// Go supports.
const clockTick = time.Second / 100
