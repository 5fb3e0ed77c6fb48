package load

import (
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// usage is what a process has used since it started, as /proc tells.
type usage struct {
	ok        bool
	cpu       time.Duration // user and system, in steps of 10 ms
	rss, peak int64         // bytes
}

// readUsage returns a usage that is not ok if there is no such process or no /proc, or
// if pid is 0.
func readUsage(pid int) usage {
	if pid == 0 {
		return usage{}
	}
	p, err := procfs.NewProc(pid)
	if err != nil {
		return usage{}
	}
	stat, err := p.Stat()
	if err != nil {
		return usage{}
	}
	status, err := p.NewStatus()
	if err != nil {
		return usage{}
	}
	return usage{
		ok:   true,
		cpu:  time.Duration(stat.UTime+stat.STime) * clockTick,
		rss:  int64(status.VmRSS),
		peak: int64(status.VmHWM),
	}
}

// clockTick is the unit of processor time in /proc: USER_HZ is 100 wherever Go runs on
// Linux.
const clockTick = time.Second / 100

// UsageOf returns what a process has used since it started, and false if that cannot be
// read. CPUPerCommand is 0.
func UsageOf(pid int) (ServerUsage, bool) {
	u := readUsage(pid)
	return ServerUsage{PID: pid, CPU: u.cpu, RSS: u.rss, PeakRSS: u.peak}, u.ok
}

// clientCPU returns the processor time that this process has taken.
func clientCPU() time.Duration {
	var ru unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &ru) != nil {
		return 0
	}
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}
