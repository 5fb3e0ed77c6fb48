package bench

import (
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/prometheus/procfs"

	"github.com/beanpole-mq/beanpole/bench/load"
)

// A Machine describes the machine of a measurement.
type Machine struct {
	CPUs   int    `json:"cpus"`
	Model  string `json:"model"` // of the processor; empty if unknown
	Kernel string `json:"kernel"`
	Arch   string `json:"arch"`
	Go     string `json:"go"`
}

// ThisMachine describes the machine that it runs on.
func ThisMachine() Machine {
	m := Machine{CPUs: runtime.NumCPU(), Arch: runtime.GOARCH, Go: runtime.Version()}
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel = "Linux " + strings.TrimSpace(string(release))
	}
	if fs, err := procfs.NewDefaultFS(); err == nil {
		if cpus, err := fs.CPUInfo(); err == nil && len(cpus) > 0 {
			m.Model = cpus[0].ModelName
		}
	}
	return m
}

// String is one line for the head of a table.
func (m Machine) String() string {
	model := ""
	if m.Model != "" {
		model = " of " + m.Model
	}
	return fmt.Sprintf("%s%s, %s %s, %s", load.Plural(m.CPUs, "core"), model, m.Kernel, m.Arch, m.Go)
}
