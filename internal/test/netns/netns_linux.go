// Package netns provides a test with several simulated machines: network namespaces with
// separate addresses. It does not change the real machine, and the test does not need
// root.
package netns

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

const isolatedEnv = "TEST_IS_ISOLATED"

// Isolated reports whether the test runs in its own namespaces.
func Isolated() bool { return os.Getenv(isolatedEnv) != "" }

// Isolate runs the test again with additional arguments, as root in its own namespaces
// for users, networks and mounts. It first runs the shell commands try there, and returns
// an error if they fail.
func Isolate(t *testing.T, try string, args ...string) error {
	t.Helper()
	if out, err := root("sh", "-ec", "command -v nsenter; ip link set lo up\n"+try).CombinedOutput(); err != nil {
		return errors.Join(err, errors.New(string(out)))
	}
	cmd := root(os.Args[0], append(os.Args[1:len(os.Args):len(os.Args)], append(args, "-test.run=^"+t.Name()+"$", "-test.v", "-test.count=1", "-test.testlogfile=")...)...)
	cmd.Env = append(os.Environ(), isolatedEnv+"=1")
	out, w := io.Pipe()
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { w.CloseWithError(cmd.Wait()) }() // a nil error ends the reading normally
	lines := bufio.NewScanner(out)
	for lines.Buffer(nil, 1<<20); lines.Scan(); {
		t.Log(lines.Text())
	}
	if err := lines.Err(); err != nil {
		t.Error(err)
	}
	return nil
}

// root returns a command that runs as root in its own namespaces.
func root(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Unshareflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET | syscall.CLONE_NEWNS,
		Pdeathsig:    syscall.SIGKILL,
		UidMappings:  []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings:  []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	return cmd
}

// IP configures the network of the test.
func IP(t *testing.T, command string) {
	t.Helper()
	run(t, "ip", strings.Fields(command)...)
}

func run(t *testing.T, program string, args ...string) {
	t.Helper()
	if out, err := exec.Command(program, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %q: %v\n%s", program, args, err, out)
	}
}

// A Host is a simulated machine.
type Host struct {
	t      *testing.T
	Holder int // id of a process in its namespace
	Addr   string
}

// NewHost creates a machine that exists until the end of the test. Its device eth0 has
// the given address, with a network prefix of the given number of bits, and is linked to
// the test's device.
func NewHost(t *testing.T, device, addr string, bits int) *Host {
	t.Helper()
	holder := exec.Command("cat")
	holder.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNET}
	end, err := holder.StdinPipe()
	if err == nil {
		err = holder.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		end.Close()
		holder.Wait()
	})
	h := &Host{t: t, Holder: holder.Process.Pid, Addr: addr}
	IP(t, "link add name "+device+" type veth peer name eth0 netns "+strconv.Itoa(h.Holder))
	IP(t, "link set "+device+" up")
	h.IP("link set lo up")
	h.IP("addr add " + addr + "/" + strconv.Itoa(bits) + " dev eth0")
	h.IP("link set eth0 up")
	return h
}

// IP configures the network of the machine.
func (h *Host) IP(command string) {
	h.t.Helper()
	program, args := h.Command("ip", strings.Fields(command)...)
	run(h.t, program, args...)
}

// Command returns the command that runs a program on the machine. The command's process
// becomes the program's process.
func (h *Host) Command(program string, args ...string) (string, []string) {
	return "nsenter", append([]string{"-t", strconv.Itoa(h.Holder), "-n", "--", program}, args...)
}
