package daemon

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Policies apply to plain beanstalk clients and change on SIGHUP. Counters survive a
// restart, and a restart alone buries no job.
func TestPolicies(t *testing.T) {
	dir, path := t.TempDir(), filepath.Join(t.TempDir(), "beanpole.toml")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const policies = "port = 0\n[[policy]]\ntubes = ['mail*']\nmax-attempts = 3\n[[policy]]\ntubes = ['slow']\nretry-delay = 3600\n"
	write(policies)
	p := start(t, "--config", path, "-b", dir)
	addr := p.address()
	if got := talk(t, addr, "use mail", "put 0 0 60 1", "a", "watch mail", "reserve", "release 1 0 0", "reserve", "release 1 0 0"); strings.Count(got, "RELEASED") != 2 {
		t.Fatalf("%q", got)
	}
	held := connect(t, addr, "watch mail", "reserve")
	r := bufio.NewReader(held)
	for range 3 {
		if _, err := r.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.stop(); err != nil { // closes the connection of a worker that makes its last attempt
		t.Fatal(err)
	}

	p = start(t, "--config", path, "-b", dir)
	addr = p.address()
	got := talk(t, addr, "use mail", "peek-buried", "watch mail", "reserve", "release 1 0 0", "peek-buried", "stats-job 1")
	if !strings.Contains(got, "NOT_FOUND\nWATCHING 2\nRESERVED 1 1\na\nRELEASED\nFOUND 1 1\na\n") || !strings.Contains(got, "\nstate: buried\n") {
		t.Errorf("after a restart: %q", got)
	}
	p.await("job exhausted its attempts.* setting=max-attempts tube=mail job=1$")
	if got := talk(t, addr, "use slow", "put 0 0 60 1", "b", "watch slow", "reserve", "release 2 0 0", "stats-job 2", "stats"); !strings.Contains(got, "\nstate: delayed\n") ||
		!strings.Contains(got, "\npolicy-exhausted: 1\npolicy-retried: 1\npolicy-expired: 0\npolicy-skipped: 0\npolicy-deduplicated: 0\n") {
		t.Errorf("%q", got)
	}
	write("port = 0\n[[policy]]\ntubes = ['*']\nmax-attempts = -1")
	p.signals <- syscall.SIGHUP
	p.await("invalid configuration; keeping the previous one.*policy 1: max-attempts: want a whole number from 1 to 10000, or 0, not -1")
	write("port = 0")
	p.signals <- syscall.SIGHUP
	p.await("the configuration was read again")
	if got := talk(t, addr, "use mail", "kick 1", "watch mail", "reserve", "release 1 0 0", "kick-job 2", "watch slow", "reserve", "release 1 0 0", "reserve", "release 1 0 0", "reserve-job 2", "release 2 0 0", "peek 2", "peek-buried"); strings.Count(got, "RELEASED") != 4 ||
		!strings.HasSuffix(got, "NOT_FOUND\n") {
		t.Errorf("without policies: %q", got)
	}
}
