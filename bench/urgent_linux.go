package bench

import (
	"errors"
	"os"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"
)

// urgentPriority is that of an urgent process, of 1 to 99.
const urgentPriority = 10

// startUrgent starts a process with real-time priority, or without it if this process may not give it. A process
// inherits it from the thread that starts it.
func startUrgent(cmd *exec.Cmd) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		return os.NewSyscallError("sched_getattr", err)
	}
	if err := unix.SchedSetAttr(0, &unix.SchedAttr{Policy: unix.SCHED_RR, Priority: urgentPriority}, 0); err != nil {
		return cmd.Start()
	}
	return errors.Join(cmd.Start(), os.NewSyscallError("sched_setattr", unix.SchedSetAttr(0, before, 0)))
}

// urgent reports whether this process has real-time priority.
func urgent() bool {
	attr, err := unix.SchedGetAttr(0, 0)
	return err == nil && attr.Policy == unix.SCHED_RR
}
