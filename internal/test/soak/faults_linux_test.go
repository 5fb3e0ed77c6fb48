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

// serverFaults are what happens to a single server.
var serverFaults = []fault{
	{"stopped and continued", nil, func(c *group) {
		p := c.members[0].srv.Cmd.Process
		c.must(p.Signal(syscall.SIGSTOP))
		c.s.pause(2 * time.Second)
		c.must(p.Signal(syscall.SIGCONT))
	}},
	{"SIGHUP", nil, func(c *group) { c.must(c.members[0].srv.Cmd.Process.Signal(syscall.SIGHUP)) }},
	{"connections left half way", nil, crowd},
	{"fdatasync fails", aTracer, injected(first, nobody, "fdatasync", "error=EIO")},
	{"pwrite fails", aTracer, injected(first, nobody, "pwrite64", "error=EIO")},
	{"pwrite has no room", aTracer, injected(first, nobody, "pwrite64", "error=ENOSPC")},
	{"openat fails", aTracer, injected(first, nobody, "openat", "error=EIO")},
	{"fallocate has no room", aTracer, injected(first, nobody, "fallocate", "error=ENOSPC")},
	{"unlink and rename fail", aTracer, injected(first, nobody, "unlinkat,renameat,renameat2", "error=EIO")},
	{"fsync fails", aTracer, injected(first, nobody, "fsync", "error=EIO")},
	{"a full disk", aSmallDisk, filled(first, nobody)},
	{"no descriptors", nil, starve},
}

func first(c *group) *process { return c.members[0] }

// starve leaves the server no descriptors but for a few.
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

// crowd makes connections that stop within a command, and drops them.
func crowd(c *group) {
	half := wire.AppendCommand(nil, &wire.Command{Op: wire.Put, TTR: 9, Body: make([]byte, 65_435)})
	for range 200 {
		nc := c.members[0].dial()
		defer nc.Close()
		nc.SetWriteDeadline(time.Now().Add(time.Second)) // the server may have enough
		nc.Write(half[:c.s.rng.IntN(len(half))])
	}
	c.s.pause(time.Second)
}

// tracer returns a strace, and a function that makes it let the process go. strace does
// so at SIGTERM; SIGINT may be ignored. If the process was killed at the wrong moment
// strace waits for one of its threads for ever, and the process cannot be waited for as
// long as strace is there.
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
		t.Skipf("strace may not attach: %s", says[:n])
	}
	go io.Copy(io.Discard, attached)
}

// fillDisk makes a file that takes all the room of its disk, and returns what removes it.
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
