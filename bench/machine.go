package bench

import (
	"fmt"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

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
	m := Machine{
		CPUs:   runtime.NumCPU(),
		Kernel: runtime.GOOS,
		Arch:   runtime.GOARCH,
		Go:     runtime.Version(),
	}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		m.Kernel = unix.ByteSliceToString(u.Sysname[:]) + " " + unix.ByteSliceToString(u.Release[:])
	}
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		m.Model = processorModel(string(info))
	}
	return m
}

// processorModel returns the value of the first line "model name : ...".
func processorModel(cpuinfo string) string {
	for line := range strings.Lines(cpuinfo) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// String is one line for the head of a table.
func (m Machine) String() string {
	model := ""
	if m.Model != "" {
		model = " of " + m.Model
	}
	return fmt.Sprintf("%s%s, %s %s, %s", load.Plural(m.CPUs, "core"), model, m.Kernel, m.Arch, m.Go)
}
