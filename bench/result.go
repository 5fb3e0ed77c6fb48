package bench

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/prometheus/procfs"
)

// WriteConfiguration writes the lines that precede Go benchmark results.
func WriteConfiguration(w io.Writer) {
	model := ""
	if fs, err := procfs.NewDefaultFS(); err == nil {
		if cpus, err := fs.CPUInfo(); err == nil && len(cpus) > 0 {
			model = cpus[0].ModelName
		}
	}
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	fmt.Fprintf(w, "goos: linux\ngoarch: %s\ncpu: %d x %s\nkernel: %s\ngo: %s\nUnit cmds/s better=higher\nUnit puts/s better=higher\n",
		runtime.GOARCH, runtime.NumCPU(), model, bytes.TrimSpace(kernel), runtime.Version())
}

// WriteResult writes the measurements of a trial as a Go benchmark result for benchstat.
func WriteResult(w io.Writer, name string, all []Measurement) {
	fmt.Fprintf(w, "Benchmark%s 1", strings.ReplaceAll(name, " ", "_"))
	for _, m := range all {
		fmt.Fprintf(w, "\t%.4g %s", m.Value, m.Unit)
	}
	fmt.Fprintln(w)
}
