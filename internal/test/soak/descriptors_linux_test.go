package soak

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

// However many clients connect, the journal has the descriptors that it needs.
func TestDescriptors(t *testing.T) {
	t.Parallel()
	s := newSoak(t)
	limited := []string{"-c", `ulimit -n 64; exec "$0" "$@"`, s.program}
	srv, err := start("sh", append(limited, "-l", "127.0.0.1:0", "-b", s.dir, "-s", "200000"), nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, srv.log)
	}
	defer func() {
		srv.cmd.Process.Kill()
		<-srv.exited
	}()
	addr := srv.addrs[0]
	nc, err := net.Dial(addr.Network(), addr.String())
	if err != nil {
		t.Fatal(err)
	}
	c := &client{account: s.account, rng: s.draw(), nc: nc, using: "default"}
	defer c.close()
	for range 200 {
		other, err := net.Dial(addr.Network(), addr.String())
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
	}
	for range 10 { // half a MB each time
		var puts []*command
		c.mu.Lock()
		for range 400 {
			puts = append(puts, c.put())
		}
		c.mu.Unlock()
		if err := c.talk(puts); err != nil {
			t.Fatalf("%v\n%s", err, srv.log)
		}
	}
	c.mu.Lock()
	stats := c.plain("stats", wire.OK)
	c.mu.Unlock()
	stats.then = func(r *wire.Reply) error {
		if !strings.Contains(string(r.Body), "journal-health: \"ok\"") {
			t.Errorf("%s", r.Body)
		}
		return nil
	}
	if err := c.talk([]*command{stats}); err != nil {
		t.Error(err)
	}
}

// What clients made the server hold is given back when they have gone.
func TestMemoryComesBack(t *testing.T) {
	t.Parallel()
	s := newSoak(t)
	srv, err := start(s.program, []string{"-l", "127.0.0.1:0", "--stall-timeout", "1h"}, nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, srv.log)
	}
	defer func() {
		srv.cmd.Process.Kill()
		<-srv.exited
	}()
	addr := srv.addrs[0]
	half := wire.AppendPut(nil, 0, 0, 9, make([]byte, largest))
	half = half[:len(half)-100]
	var all []net.Conn
	for range 1500 {
		nc, err := net.Dial(addr.Network(), addr.String())
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		all = append(all, nc)
		if _, err := nc.Write(half); err != nil {
			t.Fatal(err)
		}
	}
	const much = 60 << 20
	wait := func(what string, done func() bool) {
		for end := time.Now().Add(patience); !done(); time.Sleep(100 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: %d MB after %v", what, srv.resident()>>20, patience)
			}
		}
	}
	wait("half puts", func() bool { return srv.resident() > much })
	// The server gives memory back every few seconds. What it holds now must not
	// be what it expects to hold.
	time.Sleep(6 * time.Second)
	for _, nc := range all {
		nc.Close()
	}
	wait("when all have gone", func() bool { return srv.resident() < much/2 })
}
