package interop

import (
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/internal/test/exectest"
	"github.com/beanpole-mq/beanpole/internal/test/freeport"
)

var (
	all      = flag.Bool("interop.all", false, "talk to clients of all languages, which must be installed; otherwise to those of Go only")
	follower = flag.Bool("interop.follower", false, "let clients talk to a member of a cluster of three that does not lead, and not to a single server")
)

// patience is the timeout for expected events.
const patience = time.Minute

// need skips the test if it needs a program other than Go, unless -interop.all is set.
func need(t *testing.T, program string) {
	t.Helper()
	if !*all && program != "go" {
		t.Skip(program, "is for -interop.all")
	}
	if _, err := exec.LookPath(program); err != nil {
		t.Fatal(err)
	}
}

// A server is a beanpole process.
type server struct {
	addrs []string     // in the order of its listeners
	log   exectest.Log // with -interop.follower, includes the logs of the other members
}

// serve starts a server with a configuration. The server runs until the end of the test.
func serve(t *testing.T, config string) *server {
	t.Helper()
	program, err := exectest.Program()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "beanpole.toml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	s := new(server)
	args := []string{"--config", file}
	if *follower {
		args = append(args, "-b", s.joinCluster(t, program, args))
	}
	own := s.run(t, program, args)
	for _, m := range regexp.MustCompile(`msg=listening address=(\S+)`).FindAllStringSubmatch(own, -1) {
		s.addrs = append(s.addrs, m[1])
	}
	return s
}

// run starts a process, waits until it is ready, and returns its log.
func (s *server) run(t *testing.T, program string, args []string) string {
	t.Helper()
	p := background(t, &s.log, program, args...)
	if _, err := p.Await(`msg=ready`); err != nil {
		t.Fatal(err)
	}
	return p.Log.String()
}

// joinCluster starts two members of a cluster with the same arguments, and returns the
// directory of a third member.
func (s *server) joinCluster(t *testing.T, program string, args []string) (dir string) {
	t.Helper()
	command := func(args ...string) []byte {
		var text []byte
		for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) { // there might be no leader yet
			var err error
			if text, err = exec.Command(program, append([]string{"cluster"}, args...)...).Output(); err == nil {
				return text
			}
			if time.Now().After(end) {
				t.Fatalf("%q: %v", args, err)
			}
		}
	}
	listen := func() string {
		port, err := freeport.Reserve()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(port.Release)
		return "127.0.0.1:" + port.String()
	}
	home, leader := t.TempDir(), listen()
	first, token := filepath.Join(home, "0"), filepath.Join(home, "token")
	command("init", first, "--listen", leader)
	s.run(t, program, append(args, "-b", first))
	for i := range 2 {
		if dir != "" {
			s.run(t, program, append(args, "-b", dir))
		}
		if err := os.WriteFile(token, command("join-token", first), 0o600); err != nil {
			t.Fatal(err)
		}
		dir = filepath.Join(home, fmt.Sprint(i+1))
		command("status", first)
		command("join", dir, leader, "--join-token-file", token, "--listen", listen())
	}
	return dir
}

// background runs a program until the end of the test. Its output also goes to the shared
// log.
func background(t *testing.T, all io.Writer, program string, args ...string) *exectest.Process {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Stderr = all
	p, err := exectest.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("[log of %s]\n%s", filepath.Base(program), &p.Log)
		}
	})
	return p
}

func TestMain(m *testing.M) {
	flag.Set("test.parallel", "8") // most tests wait; the command line overrides it
	os.Exit(exectest.Main(m))
}
