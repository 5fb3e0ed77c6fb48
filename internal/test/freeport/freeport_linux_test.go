package freeport

import (
	"errors"
	"net"
	"syscall"
	"testing"
)

// No process gets a reserved port until a server binds it, and the server can bind it at
// once.
func TestReserve(t *testing.T) {
	p, err := Reserve()
	if err != nil {
		t.Fatal(err)
	}
	addr := net.JoinHostPort("127.0.0.1", p.String())
	if nc, err := net.Dial("tcp", addr); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("connection %v, error %v before a server listens", nc, err)
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p.Release()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	nc.Close()
}

// A socket that is bound to any free port does not get a reserved one.
func TestReservedPortsAreNotAssigned(t *testing.T) {
	const n = 400 // the kernel, with 28,000 ports, would choose one of them
	reserved := make(map[string]bool)
	for range n {
		p, err := Reserve()
		if err != nil {
			t.Fatal(err)
		}
		defer p.Release()
		reserved[p.String()] = true
	}
	if len(reserved) != n {
		t.Errorf("%d ports are reserved, want %d", len(reserved), n)
	}
	for range 2 * n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if _, port, _ := net.SplitHostPort(l.Addr().String()); reserved[port] {
			t.Fatalf("the kernel chose port %s, which is reserved", port)
		}
	}
}
