package soak

import (
	"net"
	"strings"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

// However many clients connect, the journal has the descriptors that it needs.
func TestDescriptors(t *testing.T) {
	s := newSoak(t, *soakSeed)
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
	c := &client{ledger: s.ledger, rng: s.draw(), nc: nc, using: "default"}
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
