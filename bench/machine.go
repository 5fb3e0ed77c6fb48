package bench

import (
	"fmt"
	"runtime"

	"github.com/prometheus/procfs"
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
