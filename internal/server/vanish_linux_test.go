package server

import (
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/beanpole-mq/beanpole/internal/test/netns"
)

// A client has the stall timeout, but at least two minutes, to acknowledge data. A
// negative stall timeout means no limit.
func TestDeadAfter(t *testing.T) {
	for stall, want := range map[time.Duration]time.Duration{0: 2 * time.Minute, time.Second: 2 * time.Minute, time.Hour: time.Hour, -1: 0} {
		if got := start(t, Options{StallTimeout: stall}).opt.deadAfter(); got != want {
			t.Errorf("a stall timeout of %v: %v, want %v", stall, got, want)
		}
	}
}

// A TLS client has the same limit, even though package net accepted its connection.
func TestDeadAfterWithTLS(t *testing.T) {
	r := start(t, Options{})
	r.dialTLS(t)().do("use x\n", "USING x\n")
	if ms, err := unix.GetsockoptInt(int(kernelSocket(r.conn().fd)), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT); ms != 120_000 {
		t.Errorf("%d ms, %v", ms, err)
	}
}

// A worker's machine disappears while the worker waits for a job. The server sends it the
// next job, which the kernel retransmits, and gives up long before the kernel's limit of
// a quarter of an hour. The machines are network namespaces, and the test takes as long
// as the kernel retransmits.
func TestVanishedMachine(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for the kernel")
	}
	if !netns.Isolated() {
		if err := netns.Isolate(t, "ip link add name here type veth peer name there"); err != nil {
			t.Skip("no network namespaces: ", err)
		}
		return
	}
	deadAfter = 500 * time.Millisecond
	r := start(t, Options{StallTimeout: deadAfter})
	h := netns.NewHost(t, "worker", "192.0.2.2", 24)
	netns.IP(t, "addr add 192.0.2.1/24 dev worker")
	l, err := net.Listen("tcp", "192.0.2.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.serve(l)
	producer := r.dial()
	worker := dialOn(t, h, l.Addr().String())
	defer worker.Close()
	if _, err := io.WriteString(worker, "reserve\r\n"); err != nil {
		t.Fatal(err)
	}
	r.eventually("the worker waits", func() bool { return r.stats().Waiting == 1 })
	h.IP("link set eth0 down")
	producer.do("put 0 0 7200 1\nx\n", "INSERTED 1\n")
	if n := r.stats().Reserved; n != 1 {
		t.Fatalf("%d jobs are reserved: the worker did not disappear while it waited", n)
	}
	r.eventually("its job is ready again", func() bool { return r.stats().Ready == 1 })
}

// dialOn connects from a machine. Its thread stays in the machine's namespace and ends
// with its goroutine.
func dialOn(t *testing.T, h *netns.Host, addr string) (nc net.Conn) {
	t.Helper()
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		var ns *os.File
		if ns, err = os.Open(fmt.Sprintf("/proc/%d/ns/net", h.Holder)); err != nil {
			return
		}
		defer ns.Close()
		if err = unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err == nil {
			nc, err = net.Dial("tcp", addr)
		}
	}()
	if <-done; err != nil {
		t.Fatal(err)
	}
	return nc
}
