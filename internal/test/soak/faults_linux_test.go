package soak

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

// A fault is something that happens to a server that runs. It returns when it is
// over.
type fault struct {
	name  string
	disk  bool // changes may be refused meanwhile
	does  func(f *mishap) error
	needs func(s *soak) bool // nil: nothing
}

// A mishap is what faults get.
type mishap struct {
	*soak
	rng  *rand.Rand
	srv  *server
	over <-chan struct{} // no more
}

var faults = []fault{
	{name: "stopped and continued", does: (*mishap).pause},
	{name: "SIGHUP", does: func(f *mishap) error { return f.srv.cmd.Process.Signal(syscall.SIGHUP) }},
	{name: "connections left half way", does: (*mishap).crowd},
	{name: "fdatasync fails", disk: true, needs: hasStrace, does: inject("fdatasync", "EIO")},
	{name: "pwrite fails", disk: true, needs: hasStrace, does: inject("pwrite64", "EIO")},
	{name: "pwrite has no room", disk: true, needs: hasStrace, does: inject("pwrite64", "ENOSPC")},
	{name: "openat fails", disk: true, needs: hasStrace, does: inject("openat", "EIO")},
	{name: "fallocate has no room", disk: true, needs: hasStrace, does: inject("fallocate", "ENOSPC")},
	{name: "unlink and rename fail", disk: true, needs: hasStrace, does: inject("unlinkat,renameat,renameat2", "EIO")},
	{name: "fsync fails", disk: true, needs: hasStrace, does: inject("fsync", "EIO")},
	{name: "a full disk", disk: true, needs: func(s *soak) bool { return s.tmpfs }, does: (*mishap).fill},
	{name: "no descriptors", disk: true, does: (*mishap).starve},
}

func hasStrace(*soak) bool {
	_, err := exec.LookPath("strace")
	return err == nil
}

// rest waits up to most, or until no more faults are to come.
func (f *mishap) rest(most time.Duration) {
	select {
	case <-f.over:
	case <-time.After(time.Duration(f.rng.Int64N(int64(most)))):
	}
}

func (f *mishap) pause() error {
	defer f.srv.cmd.Process.Signal(syscall.SIGCONT)
	err := f.srv.cmd.Process.Signal(syscall.SIGSTOP)
	f.rest(2 * time.Second)
	return err
}

// inject makes calls fail, all or from some on each so many.
func inject(calls, errno string) func(*mishap) error {
	return func(f *mishap) error {
		when := ""
		if f.rng.IntN(2) == 0 {
			when = fmt.Sprintf(":when=%d+%d", 1+f.rng.IntN(20), 1+f.rng.IntN(5))
		}
		cmd, letGo := tracer("-f", "-qq", "-o", "/dev/null", "-p", fmt.Sprint(f.srv.pid()),
			"-e", "trace="+calls, "-e", "inject="+calls+":error="+errno+when)
		if err := cmd.Start(); err != nil {
			return err
		}
		f.rest(4 * time.Second)
		letGo()
		return nil
	}
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

// fill leaves no room on the disk.
func (f *mishap) fill() error {
	empty, err := fillDisk(filepath.Join(f.dir, "..", "ballast"))
	if err != nil {
		return err
	}
	f.rest(4 * time.Second)
	empty()
	return nil
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

// starve leaves the server no descriptors but for a few.
func (f *mishap) starve() error {
	var old unix.Rlimit
	if err := unix.Prlimit(f.srv.pid(), unix.RLIMIT_NOFILE, nil, &old); err != nil {
		return err
	}
	_, have := f.srv.sockets()
	few := unix.Rlimit{Cur: uint64(have + f.rng.IntN(4)), Max: old.Max}
	if err := unix.Prlimit(f.srv.pid(), unix.RLIMIT_NOFILE, &few, nil); err != nil {
		return err
	}
	f.rest(3 * time.Second)
	return unix.Prlimit(f.srv.pid(), unix.RLIMIT_NOFILE, &old, nil)
}

// crowd makes connections that stop within a command, and drops them.
func (f *mishap) crowd() error {
	var all []net.Conn
	for range 200 {
		addr := f.srv.addrs[0]
		nc, err := net.Dial(addr.Network(), addr.String())
		if err != nil {
			break // too many
		}
		defer nc.Close()
		all = append(all, nc)
	}
	half := wire.AppendPut(nil, 0, 0, 9, make([]byte, largest))
	for _, nc := range all {
		nc.SetWriteDeadline(time.Now().Add(time.Second))
		nc.Write(half[:f.rng.IntN(len(half))])
	}
	f.rest(time.Second)
	return nil
}

// happen lets one fault after the other happen until the life is over.
func (f *mishap) happen(faults []fault, errs chan<- error) {
	for {
		f.rest(4 * time.Second)
		select {
		case <-f.over:
			return
		default:
		}
		what := faults[f.rng.IntN(len(faults))]
		if what.needs != nil && !what.needs(f.soak) {
			continue
		}
		if what.disk {
			f.account.mu.Lock()
			f.account.diskFails = true
			f.account.mu.Unlock()
		}
		f.count.add("fault: "+what.name, 1)
		f.note("fault: %s", what.name)
		err := what.does(f)
		f.note("over: %s", what.name)
		if err == nil && what.disk {
			err = f.heal()
		}
		if err != nil && f.srv.alive() && !hasEnded(err) {
			tell(wrong("%s: %w", what.name, err), errs)
			return
		}
	}
}

// hasEnded reports whether an error says that the process has ended. The server that it was counts as alive until all of its output is read.
func hasEnded(err error) bool {
	return errors.Is(err, os.ErrProcessDone) || errors.Is(err, syscall.ESRCH)
}

// heal waits until a put is taken again, also if no more faults are to come.
func (f *mishap) heal() error {
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		inserted, err := once(f.account, f.rng, f.srv)
		if errors.Is(err, errWrong) {
			return err
		}
		if inserted || !f.srv.alive() || f.account.isDraining() {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("no put is taken %v after it is over", patience)
		}
	}
}
