package soak

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// isolatedEnv is set in the process of a test that runs in namespaces of its own.
const isolatedEnv = "SOAK_IS_ISOLATED"

func isIsolated() bool { return os.Getenv(isolatedEnv) != "" }

// isolate runs the test again in namespaces of its own for users, networks and mounts. There it may part the members and give
// them small disks, also if it is not root, and nothing of the machine is changed. It returns false if that is not
// possible, or if this is the process that runs so.
func isolate(t *testing.T) bool {
	if isIsolated() {
		return false
	}
	if err := canIsolate(); err != nil {
		t.Logf("no network is parted, and no disk is full: %v", err)
		return false
	}
	program := *soakProgram
	if program == "" {
		var err error
		if program, err = build(); err != nil {
			t.Fatal(err)
		}
	}
	args := append(os.Args[1:len(os.Args):len(os.Args)], "-test.run=^"+t.Name()+"$", "-test.v", "-test.count=1", "-test.testlogfile=", "-soak.program="+program)
	cmd := inNamespaces(os.Args[0], args...)
	cmd.Env = append(os.Environ(), isolatedEnv+"=1")
	out, w := io.Pipe()
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var end error
	go func() {
		end = cmd.Wait()
		w.Close()
	}()
	lines := bufio.NewScanner(out)
	for lines.Buffer(nil, 1<<20); lines.Scan(); {
		t.Log(lines.Text())
	}
	if err := errors.Join(lines.Err(), end); err != nil {
		t.Error(err)
	}
	return true
}

// inNamespaces returns a command that is root in namespaces of its own.
func inNamespaces(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Unshareflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNET | unix.CLONE_NEWNS,
		UidMappings:  []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings:  []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	return cmd
}

// canIsolate tries what a test does there.
func canIsolate() error {
	for _, program := range []string{"ip", "nsenter"} {
		if _, err := exec.LookPath(program); err != nil {
			return err
		}
	}
	out, err := inNamespaces("sh", "-ec", `
		echo 1 > /proc/sys/net/ipv4/ip_forward
		ip link add name here type veth peer name there
		ip rule add blackhole from 10.0.0.1 to 10.0.0.2
		mount -t tmpfs tmpfs /mnt`).CombinedOutput()
	if err != nil {
		return fmt.Errorf("no namespaces for users, networks and mounts: %w: %s", err, out)
	}
	return nil
}

// A network gives each member a machine of its own, as far as the network knows: a namespace with one address, whose only
// way out is a router. That is the namespace of the test, which can so reach each member at all times.
type network struct {
	t     *testing.T
	hosts int
	cuts  []string // rules of the router
}

func newNetwork(t *testing.T) *network {
	n := &network{t: t}
	n.ip("link set lo up")
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o600); err != nil {
		t.Fatal(err)
	}
	return n
}

// ip configures the network with the program of that name.
func (n *network) ip(command string) { n.run("ip", strings.Fields(command)...) }

func (n *network) run(program string, args ...string) {
	n.t.Helper()
	if out, err := exec.Command(program, args...).CombinedOutput(); err != nil {
		n.t.Fatalf("%s %q: %v\n%s", program, args, err, out)
	}
}

// A host is a machine of a network.
type host struct {
	ip     string
	holder *exec.Cmd // a process whose namespace it is
}

// add adds a machine. It stays, whatever runs on it.
func (n *network) add() *host {
	n.hosts++
	h := &host{ip: fmt.Sprintf("10.77.%d.2", n.hosts), holder: exec.Command("cat")}
	h.holder.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNET}
	end, err := h.holder.StdinPipe()
	if err == nil {
		err = h.holder.Start()
	}
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() {
		end.Close()
		h.holder.Wait()
	})
	device, router := fmt.Sprintf("host%d", n.hosts), fmt.Sprintf("10.77.%d.1", n.hosts)
	n.ip(fmt.Sprintf("link add name %s type veth peer name eth0 netns %d", device, h.holder.Process.Pid))
	n.ip("addr add " + router + "/24 dev " + device)
	n.ip("link set " + device + " up")
	for _, command := range []string{"link set lo up", "addr add " + h.ip + "/24 dev eth0", "link set eth0 up", "route add default via " + router} {
		program, args := h.command("ip", strings.Fields(command)...)
		n.run(program, args...)
	}
	return h
}

// command returns how a program is run on the machine. The process is that of the program.
func (h *host) command(program string, args ...string) (string, []string) {
	return "nsenter", append([]string{"-t", strconv.Itoa(h.holder.Process.Pid), "-n", "--", program}, args...)
}

// cut lets nothing more through from one machine to another. Nobody is told.
func (n *network) cut(from, to *host) {
	rule := "blackhole from " + from.ip + " to " + to.ip
	n.cuts = append(n.cuts, rule)
	n.ip("rule add " + rule)
}

// heal lets everything through.
func (n *network) heal() {
	for _, rule := range n.cuts {
		n.ip("rule del " + rule)
	}
	n.cuts = nil
}
