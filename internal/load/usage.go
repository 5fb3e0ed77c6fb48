package load

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// usage is what /proc tells of a process.
type usage struct {
	ok        bool
	cpu       time.Duration
	rss, peak int64 // bytes
}

// clockTick is the unit of processor time in /proc: USER_HZ is 100 wherever Go
// runs on Linux.
const clockTick = time.Second / 100

// readUsage returns a usage that is not ok if there is no such process, no
// /proc, or pid is 0.
func readUsage(pid int) usage {
	if pid == 0 {
		return usage{}
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return usage{}
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return usage{}
	}
	cpu, ok := parseStat(stat)
	return usage{
		ok:   ok,
		cpu:  cpu,
		rss:  statusBytes(status, "VmRSS:"),
		peak: statusBytes(status, "VmHWM:"),
	}
}

// UsageOf returns what a process has used since it started, and false if that
// cannot be read. CPUPerCommand is 0.
func UsageOf(pid int) (ServerUsage, bool) {
	u := readUsage(pid)
	return ServerUsage{PID: pid, CPU: u.cpu, RSS: u.rss, PeakRSS: u.peak}, u.ok
}

// parseStat returns utime+stime, fields 14 and 15 of proc_pid_stat(5). Field 2
// is the program's name in parentheses, which may itself contain anything.
func parseStat(stat []byte) (time.Duration, bool) {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const utime, stime = 14 - 3, 15 - 3 // field 3 comes first
	if len(fields) <= stime {
		return 0, false
	}
	u, err1 := strconv.ParseInt(string(fields[utime]), 10, 64)
	s, err2 := strconv.ParseInt(string(fields[stime]), 10, 64)
	return time.Duration(u+s) * clockTick, err1 == nil && err2 == nil
}

// statusBytes returns the value of a line "Key:   123 kB", or 0.
func statusBytes(status []byte, key string) int64 {
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, key); ok {
			n, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return n << 10
		}
	}
	return 0
}

// clientCPU is the processor time that this process has taken.
func clientCPU() time.Duration {
	var ru unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &ru) != nil {
		return 0
	}
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}
