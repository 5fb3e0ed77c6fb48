package server

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A client is given the time to read that it is promised, and for ever if that is none.
func TestDeadAfter(t *testing.T) {
	for stall, want := range map[time.Duration]time.Duration{0: 2 * time.Minute, time.Second: 2 * time.Minute, time.Hour: time.Hour, -1: 0} {
		if got := start(t, Options{StallTimeout: stall}).deadAfter(); got != want {
			t.Errorf("a stall timeout of %v: %v, want %v", stall, got, want)
		}
	}
}

// A client with TLS has what other clients have, though its connection was accepted by package net.
func TestDeadAfterWithTLS(t *testing.T) {
	r := start(t, Options{})
	r.dialTLS(t)().do("use x\n", "USING x\n")
	if ms, err := unix.GetsockoptInt(int(kernelSocket(r.conn().fd)), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT); ms != 120_000 {
		t.Errorf("%d ms, %v", ms, err)
	}
}

// A worker's machine vanishes while it waits for a job. It is given the next one, which the kernel sends again and again, and
// does not keep it for the quarter of an hour that the kernel would go on. Machines are network namespaces; the test takes
// as long as the kernel sends.
func TestVanishedMachine(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for the kernel")
	}
	switch os.Getenv(vanishRole) {
	case "server":
		serveVanishing(t)
	case "client":
		vanish(t)
	default:
		if _, err := exec.LookPath("ip"); err != nil {
			t.Skip(err)
		}
		c := vanishAs("server")
		c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL,
			UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}, GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}}
		out, err := c.CombinedOutput()
		switch _, ended := err.(*exec.ExitError); {
		case strings.Contains(string(out), noNetwork), err != nil && !ended:
			t.Skipf("no network namespaces: %v\n%s", err, out)
		case err != nil:
			t.Errorf("%v\n%s", err, out)
		}
	}
}

const (
	vanishRole = "BEANPOLE_TEST_VANISH"
	noNetwork  = "cannot make a network"
)

func vanishAs(role string) *exec.Cmd {
	c := exec.Command(os.Args[0], "-test.run=^TestVanishedMachine$")
	c.Env = append(os.Environ(), vanishRole+"="+role)
	return c
}

// ip runs the command ip in the namespace of the process.
func ip(t *testing.T, args string) {
	t.Helper()
	if out, err := exec.Command("ip", strings.Fields(args)...).CombinedOutput(); err != nil {
		t.Fatalf("%s: ip %s: %v: %s", noNetwork, args, err, out)
	}
}

// serveVanishing is the server, in a namespace of its own. It starts the client.
func serveVanishing(t *testing.T) {
	deadAfter = 500 * time.Millisecond
	r := start(t, Options{StallTimeout: deadAfter})
	c := vanishAs("client")
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	c.Stderr = os.Stderr
	orders, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	said, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatalf("%s: %v", noNetwork, err)
	}
	defer c.Process.Kill()
	ip(t, "link add here type veth peer name there netns "+strconv.Itoa(c.Process.Pid))
	ip(t, "addr add 192.0.2.1/24 dev here")
	ip(t, "link set here up")
	l, err := net.Listen("tcp", "192.0.2.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.serve(l)
	producer := r.dial()
	fmt.Fprintln(orders, l.Addr())
	r.eventually("the worker waits", func() bool { return r.stats().Waiting == 1 })
	fmt.Fprintln(orders, "vanish")
	if line, err := bufio.NewReader(said).ReadString('\n'); line != "gone\n" {
		t.Fatalf("%q, %v", line, err)
	}
	producer.do("put 0 0 7200 1\nx\n", "INSERTED 1\n")
	if n := r.stats().Reserved; n != 1 {
		t.Fatalf("%d jobs are reserved: the worker has not vanished while it waits", n)
	}
	r.eventually("its job is ready again", func() bool { return r.stats().Ready == 1 })
}

// vanish is the worker, in another one.
func vanish(t *testing.T) {
	orders := bufio.NewScanner(os.Stdin)
	orders.Scan()
	ip(t, "addr add 192.0.2.2/24 dev there")
	ip(t, "link set there up")
	nc, err := net.Dial("tcp", orders.Text())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(nc, "reserve\r\n"); err != nil {
		t.Fatal(err)
	}
	orders.Scan()
	ip(t, "link set there down")
	fmt.Println("gone")
	orders.Scan() // until the server has ended
}
