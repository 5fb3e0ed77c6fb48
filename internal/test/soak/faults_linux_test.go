package soak

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

var serverFaults = []fault{
	{"stopped and continued", nil, func(c *group) {
		p := c.members[0].srv.Cmd.Process
		c.must(p.Signal(syscall.SIGSTOP))
		c.s.pause(2 * time.Second)
		c.must(p.Signal(syscall.SIGCONT))
	}},
	{"SIGHUP", nil, func(c *group) { c.must(c.members[0].srv.Cmd.Process.Signal(syscall.SIGHUP)) }},
	{"abandoned connections", nil, crowd},
	{"fdatasync fails", aTracer, injected(first, noMember, "fdatasync", "error=EIO")},
	{"pwrite fails", aTracer, injected(first, noMember, "pwrite64", "error=EIO")},
	{"pwrite has no room", aTracer, injected(first, noMember, "pwrite64", "error=ENOSPC")},
	{"openat fails", aTracer, injected(first, noMember, "openat", "error=EIO")},
	{"fallocate has no room", aTracer, injected(first, noMember, "fallocate", "error=ENOSPC")},
	{"unlink and rename fail", aTracer, injected(first, noMember, "unlinkat,renameat,renameat2", "error=EIO")},
	{"fsync fails", aTracer, injected(first, noMember, "fsync", "error=EIO")},
	{"a full disk", aSmallDisk, filled(first, noMember)},
	{"no descriptors", nil, starve},
}

func first(c *group) *process { return c.members[0] }

// starve leaves the server only a few descriptors.
func starve(c *group) {
	c.h.diskIsFull()
	srv := c.members[0].srv
	_, have := descriptors(srv.Cmd.Process.Pid)
	var old unix.Rlimit
	c.must(unix.Prlimit(srv.Cmd.Process.Pid, unix.RLIMIT_NOFILE, nil, &old))
	few := unix.Rlimit{Cur: uint64(have + c.s.rng.IntN(4)), Max: old.Max}
	c.must(unix.Prlimit(srv.Cmd.Process.Pid, unix.RLIMIT_NOFILE, &few, nil))
	c.s.pause(3 * time.Second)
	c.must(unix.Prlimit(srv.Cmd.Process.Pid, unix.RLIMIT_NOFILE, &old, nil))
}

// crowd opens connections, stops in the middle of a command, and closes them.
func crowd(c *group) {
	half := wire.AppendCommand(nil, &wire.Command{Op: wire.Put, TTR: 9, Body: make([]byte, 65_435)})
	for range 200 {
		nc := c.members[0].dial()
		defer nc.Close()
		nc.SetWriteDeadline(time.Now().Add(time.Second)) // the server might stop reading
		nc.Write(half[:c.s.rng.IntN(len(half))])
	}
	c.s.pause(time.Second)
}

// tracer returns a strace command, and a function that stops strace with SIGTERM, which
// detaches it. strace can ignore SIGINT. If the traced process was killed at the wrong
// time, strace waits forever for one of its threads, and a Wait for the process blocks
// until strace has ended.
func tracer(args ...string) (cmd *exec.Cmd, letGo func()) {
	ctx, cancel := context.WithCancel(context.Background())
	cmd = exec.CommandContext(ctx, "strace", args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	return cmd, func() { cancel(); cmd.Wait() }
}

// awaitAttached starts a tracer and waits until it traces.
func awaitAttached(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	attached, w := io.Pipe()
	cmd.Stderr = w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	says := make([]byte, 1000)
	n, err := attached.Read(says)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(says[:n], []byte("attached")) {
		t.Skipf("strace is not permitted to attach: %s", says[:n])
	}
	go io.Copy(io.Discard, attached)
}

// fillDisk creates a file that fills the disk, and returns a function that removes the
// file.
func fillDisk(name string) (empty func(), err error) {
	file, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	for size := int64(64 << 20); size >= 4096; size /= 2 {
		for at, _ := file.Seek(0, 2); unix.Fallocate(int(file.Fd()), 0, at, size) == nil; at, _ = file.Seek(0, 2) {
		}
	}
	return func() {
		os.Remove(name)
		file.Close()
	}, nil
}
