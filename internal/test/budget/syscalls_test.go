package budget

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

var serverCalls = []load{
	{name: "1-connection", jobs: 1000},
	{name: "50-connections", jobs: 1000, bench: []string{"--connections", "50"}},
	{name: "50-connections-with-all", jobs: 1000, bench: []string{"--connections", "50"}, policy: mild},
	{name: "batches-of-10", jobs: 5000, batch: 10},
	{name: "8-connections-64-in-flight", jobs: 10000, bench: []string{"--connections", "8", "--in-flight", "64"}},
	{name: "journal-1-connection", jobs: 500, journal: true},
	{name: "journal-8-connections-64-in-flight", jobs: 5000, bench: []string{"--connections", "8", "--in-flight", "64"}, journal: true},
}

// kinds maps the counted system calls to their purpose. Calls of the start are not
// counted, nor are clock calls of the runtime, such as nanosleep, whose number grows with
// the duration.
var kinds = map[string]string{
	"read": "read", "readv": "read", "recvfrom": "read", "recvmsg": "read",
	"write": "write", "writev": "write", "sendto": "write", "sendmsg": "write",
	"epoll_wait": "wait", "epoll_pwait": "wait", "epoll_pwait2": "wait", "poll": "wait", "ppoll": "wait", "select": "wait", "pselect6": "wait",
	"epoll_ctl": "control", "setsockopt": "control", "getsockopt": "control", "fcntl": "control", "ioctl": "control",
	"futex":    "futex",
	"pwrite64": "log", "pwritev": "log", "pwritev2": "log",
	"fdatasync": "sync", "fsync": "sync", "sync_file_range": "sync",
	"mmap": "memory", "munmap": "memory", "madvise": "memory", "mprotect": "memory",
}

// callsAbove returns the tolerance of new rows. The server determines the number of
// writes and syncs. The number of reads that find nothing also depends on timing. The
// number of waits varies most if many clients share a wait. There are few futex calls.
func callsAbove(name string) float64 {
	switch filepath.Base(name) {
	case "write", "log", "sync":
		return 0.10
	case "futex", "wait":
		return 3
	}
	return 0.50
}

// No command takes more system calls than its budget.
func TestSystemCalls(t *testing.T) {
	tab := begin(t, filepath.Join("testdata", "syscalls"), `# System calls per command, and the tolerance; see doc.go.
# By strace. Written by make budget UPDATE=1.
`, "strace")
	beanpole := build(t, "cmd/beanpole")
	for _, l := range serverCalls {
		t.Run(l.name, func(t *testing.T) {
			tab.hold(t, func(t *testing.T, times int) (int, counts) {
				summary := filepath.Join(t.TempDir(), "summary")
				commands, _ := l.run(t, []string{"strace", "-f", "-c", "-o", summary}, beanpole, times)
				text, err := os.ReadFile(summary)
				if err != nil {
					t.Fatal(err)
				}
				took := sumCalls(l.name, string(text))
				if l.journal {
					// During a long sync, the Go runtime calls futex if another goroutine
					// could run. The number of these calls varies by a factor of ten
					// between runs.
					delete(took, l.name+"/futex")
				}
				return commands, took
			}, callsAbove)
		})
	}
	tab.finish(t)
}

// sumCalls adds up a summary of strace -c by kinds. Its lines are
//
//	% time  seconds  usecs/call  calls  [errors]  syscall
func sumCalls(scenario, summary string) counts {
	all := make(counts)
	for _, kind := range kinds {
		all[scenario+"/"+kind] = 0
	}
	for line := range strings.Lines(summary) {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		if kind, ok := kinds[fields[len(fields)-1]]; ok {
			n, _ := strconv.ParseFloat(fields[3], 64)
			all[scenario+"/"+kind] += n
		}
	}
	return all
}

func TestSumCalls(t *testing.T) {
	got := sumCalls("x", `% time     seconds  usecs/call       calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 48.18    0.040573          13      3085        24 read
 10.00    0.000100           1         5           recvfrom
  1.00    0.000001           1         7           nanosleep
100.00    0.084212          12      3097        25 total
`)
	if got["x/read"] != 3090 || got["x/write"] != 0 || len(got) != 8 {
		t.Errorf("counted %v", got)
	}
}
