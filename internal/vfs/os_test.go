//go:build unix

package vfs_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/test/vfstest"
	"github.com/beanpole-mq/beanpole/internal/vfs"
)

func TestContract(t *testing.T) {
	vfstest.Run(t, func(t *testing.T) (vfs.FS, string) { return vfs.OS, t.TempDir() })
}

// TestMain lets the test binary act as a program that locks a file and waits until its
// input is closed, for TestLockProcesses.
func TestMain(m *testing.M) {
	if name := os.Getenv("VFS_TEST_LOCK"); name != "" {
		lock, err := vfs.OS.Lock(name)
		fmt.Println(err == nil, err)
		io.Copy(io.Discard, os.Stdin)
		runtime.KeepAlive(lock)
		return
	}
	os.Exit(m.Run())
}

// lockInChild runs a process that tries to lock the file, and returns its output. The
// process ends with the test or by stop.
func lockInChild(t *testing.T, name string) (says string, stop func()) {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), "VFS_TEST_LOCK="+name)
	stdin, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	stop = func() {
		stdin.Close()
		child.Wait()
	}
	t.Cleanup(stop)
	says, err = bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return says, stop
}

// The lock excludes other processes. A second attempt within the process fails and keeps
// the lock.
func TestLockProcesses(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	lock, err := vfs.OS.Lock(name)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(name); err != nil || info.Mode() != 0o600 {
		t.Errorf("lock file: %v, %v; want mode 0600", info.Mode(), err)
	}
	if _, err := vfs.OS.Lock(name); !errors.Is(err, vfs.ErrLocked) {
		t.Errorf("second lock in this process: %v", err)
	}
	says, stop := lockInChild(t, name)
	if want := fmt.Sprintf("locked by process %d", os.Getpid()); !strings.Contains(says, want) {
		t.Errorf("the other process printed %q, want it to contain %q", says, want)
	}
	stop()

	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	says, stop = lockInChild(t, name)
	if !strings.HasPrefix(says, "true") {
		t.Fatalf("after the lock was closed, another process printed %q", says)
	}
	if _, err := vfs.OS.Lock(name); !errors.Is(err, vfs.ErrLocked) {
		t.Errorf("lock while another process has it: %v", err)
	}
	stop()
	if lock, err = vfs.OS.Lock(name); err != nil {
		t.Fatalf("lock after the other process ended: %v", err)
	}
	lock.Close()
}

// beanstalkd and vfs exclude each other.
func TestLockBeanstalkd(t *testing.T) {
	beanstalkd, err := exec.LookPath("beanstalkd")
	if err != nil {
		t.Skip("beanstalkd is not installed")
	}
	dir := t.TempDir()
	lock, err := vfs.OS.Lock(filepath.Join(dir, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	socket := filepath.Join(dir, "s")
	out, err := exec.Command(beanstalkd, "-l", "unix:"+socket, "-b", dir).CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 10 {
		t.Errorf("beanstalkd on a locked directory: %v, want exit status 10\n%s", err, out)
	}
}

// Preallocated space is allocated on the disk.
func TestPreallocateBlocks(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a")
	f, err := vfs.OS.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const size = 1 << 20
	want := func(size int64) {
		t.Helper()
		if err := f.Preallocate(size); err != nil {
			t.Fatal(err)
		}
		var st syscall.Stat_t
		if err := syscall.Stat(name, &st); err != nil {
			t.Fatal(err)
		}
		if got := int64(st.Blocks) * 512; got < size {
			t.Errorf("%d bytes on the disk, want %d", got, size)
		}
	}
	want(size)
	if runtime.GOOS != "linux" {
		return
	}
	if err := f.Truncate(2 * size); err != nil { // makes a hole
		t.Fatal(err)
	}
	want(2 * size)
}

// Opening a special file does not block, and a link to a regular file counts as a regular
// file.
func TestNotRegular(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	if err := syscall.Mkfifo(in("fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	socket, err := net.Listen("unix", in("socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	for _, name := range []string{"fifo", "socket"} {
		if _, err := vfs.OS.Open(in(name)); err == nil {
			t.Errorf("open of a %s succeeded", name)
		}
		if _, err := vfs.OS.OpenWrite(in(name)); err == nil {
			t.Errorf("open of a %s for writing succeeded", name)
		}
		if _, err := vfs.OS.Lock(in(name)); err == nil {
			t.Errorf("lock of a %s succeeded", name)
		}
	}
	if _, err := vfs.OS.Open(in("fifo")); !errors.Is(err, vfs.ErrNotRegular) {
		t.Errorf("open of a FIFO: %v", err)
	}
	for link, to := range map[string]string{"link": "file", "loop": "loop"} {
		if err := os.Symlink(to, in(link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(in("file"), []byte("abc"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := vfs.OS.Open(in("link"))
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if _, err := vfs.OS.Open(in("loop")); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("open of a link to itself: %v", err)
	}
}

// Lock refuses a symbolic link and does not create its target: the owner of a directory
// must not make root create files.
func TestLockIsLink(t *testing.T) {
	dir := t.TempDir()
	name, target := filepath.Join(dir, "lock"), filepath.Join(dir, "target")
	if err := os.Symlink(target, name); err != nil {
		t.Fatal(err)
	}
	if _, err := vfs.OS.Lock(name); !errors.Is(err, vfs.ErrNotRegular) {
		t.Errorf("a lock file that is a dangling link: %v", err)
	}
	if _, err := os.Lstat(target); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the target of the link was created (%v)", err)
	}
	if err := os.WriteFile(target, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := vfs.OS.Lock(name); !errors.Is(err, vfs.ErrNotRegular) {
		t.Errorf("a lock file that is a link: %v", err)
	}
}
