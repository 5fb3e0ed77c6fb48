package budget

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/cpu"
)

// These are the tolerances of new rows. Two counts of the driver differ by up to 0.02.
// Two counts of a server differ by up to 0.05, because the arrival times of input vary.
// If a journal write takes long on a busy machine, the Go scheduler runs another thread,
// which adds up to 0.10.
const (
	driverAbove  = 0.05
	journalAbove = 0.12
	serverAbove  = 0.10
)

var serverInstructions = []load{
	{name: "server-1-connection", jobs: 1000},
	{name: "server-50-connections", jobs: 2000, bench: []string{"--connections", "50"}},
	{name: "server-50-connections-with-all", jobs: 2000, bench: []string{"--connections", "50"}, policy: mild},
	{name: "server-50-connections-with-unique", jobs: 2000, bench: []string{"--connections", "50"}, policy: `unique = "body"`},
	{name: "server-batches-of-10", jobs: 5000, batch: 10},
	{name: "server-8-connections-64-in-flight", jobs: 20000, bench: []string{"--connections", "8", "--in-flight", "64"}},
	{name: "server-journal-50-connections", jobs: 2000, bench: []string{"--connections", "50"}, journal: true},
}

// No command executes more instructions than its budget.
func TestInstructions(t *testing.T) {
	release := goRelease(runtime.Version())
	path := filepath.Join("testdata", "instructions-"+release+"-"+runtime.GOARCH)
	tab := begin(t, path, `# Instructions per command (replay: per job), and the tolerance; see doc.go.
# `+release+" on "+runtime.GOARCH+", by valgrind. Written by make budget UPDATE=1.\n", "valgrind")
	switch {
	case runtime.GOARCH == "amd64" && !cpu.X86.HasAVX2:
		t.Skip("the budgets need a processor with AVX2")
	case len(tab.rows) == 0 && !*update:
		t.Skipf("%s does not exist; make budget UPDATE=1 creates the budgets for %s", path, release)
	}
	driver, beanpole := build(t, "internal/test/budget/driver"), build(t, "cmd/beanpole")
	// Other work does not change the number of instructions of a driver.
	t.Run("driver", func(t *testing.T) {
		for _, name := range scenarios(t, driver) {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				tab.hold(t, driverRun(driver, name), func(name string) float64 {
					if strings.HasPrefix(name, "journal-") {
						return journalAbove
					}
					return driverAbove
				})
			})
		}
	})
	for _, l := range serverInstructions {
		t.Run(l.name, func(t *testing.T) {
			tab.hold(t, func(t *testing.T, times int) (int, counts) {
				commands, log := l.run(t, valgrind, beanpole, times)
				return commands, counts{l.name: instructions(t, log)}
			}, func(string) float64 { return serverAbove })
		})
	}
	tab.finish(t)
}

// goRelease returns the release of a Go version, for example go1.26 for go1.26.8.
func goRelease(version string) string {
	version, _, _ = strings.Cut(version, " ")
	if parts := strings.Split(version, "."); len(parts) > 2 {
		return parts[0] + "." + parts[1]
	}
	return version
}

// scenarios returns the names of the driver's scenarios.
func scenarios(t *testing.T, driver string) []string {
	t.Helper()
	out, err := exec.Command(driver, "-list").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(out))
}

var valgrind = []string{"valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"}

// driverRun counts the instructions of the driver.
func driverRun(driver, scenario string) run {
	return func(t *testing.T, times int) (int, counts) {
		args := append(valgrind[1:], driver, "-scenario", scenario, "-times", strconv.Itoa(times), "-dir", memoryDir(t))
		cmd := exec.CommandContext(t.Context(), valgrind[0], args...)
		cmd.Env = quiet()
		var log bytes.Buffer
		cmd.Stderr = &log
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v\n%s", err, &log)
		}
		commands, err := strconv.Atoi(strings.TrimSpace(string(out)))
		if err != nil {
			t.Fatal(err)
		}
		return commands, counts{scenario: instructions(t, log.String())}
	}
}

// memoryDir returns a directory in memory, if the system has one, so that no write waits
// for a busy disk.
func memoryDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "budget")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

var refs = regexp.MustCompile(`I\s+refs:\s+([0-9,]+)`)

// instructions reads valgrind's instruction count from its log.
func instructions(t *testing.T, log string) float64 {
	t.Helper()
	m := refs.FindStringSubmatch(log)
	if m == nil {
		t.Fatalf("valgrind reported no count:\n%s", log)
	}
	n, err := strconv.ParseFloat(strings.ReplaceAll(m[1], ",", ""), 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
