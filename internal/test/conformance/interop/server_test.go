package interop

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/internal/test/conformance"
	"github.com/beanpole-mq/beanpole/internal/test/freeport"
	"github.com/beanpole-mq/beanpole/internal/test/parallel"
)

var (
	all      = flag.Bool("interop.all", false, "talk to clients of all languages, which must be installed; otherwise to those of Go only")
	follower = flag.Bool("interop.follower", false, "let clients talk to a member of a cluster of three that does not lead, and not to a single server")
)

// patience is how long anything may take that must happen.
const patience = time.Minute

// need skips the test if it needs more than Go, unless -interop.all is given.
func need(t *testing.T, program string) {
	t.Helper()
	if !*all && program != "go" {
		t.Skip(program, "is for -interop.all")
	}
	if _, err := exec.LookPath(program); err != nil {
		t.Fatal(err)
	}
}

// A server is a process of beanpole.
type server struct {
	addrs []string // in the order of its listeners
	log   *log     // with -interop.follower also that of the other members
}

// serve starts a server with a configuration for the length of the test.
func serve(t *testing.T, config string) *server {
	t.Helper()
	program, err := build()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "beanpole.toml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &server{log: newLog()}
	args := []string{"--config", file}
	if *follower {
		args = append(args, "-b", joinCluster(t, s.log, program, args))
	}
	own := s.run(t, program, args)
	for _, m := range regexp.MustCompile(`msg=listening address=(\S+)`).FindAllStringSubmatch(own.String(), -1) {
		s.addrs = append(s.addrs, m[1])
	}
	return s
}

// run starts a process until it is ready, and returns its own log.
func (s *server) run(t *testing.T, program string, args []string) *log {
	t.Helper()
	own := newLog()
	own.all = s.log
	background(t, own, program, args...)
	own.await(t, regexp.MustCompile(`msg=ready`))
	return own
}

// joinCluster starts two members of a cluster with the same arguments, and returns the directory of a third one.
func joinCluster(t *testing.T, all *log, program string, args []string) (dir string) {
	t.Helper()
	command := func(args ...string) []byte {
		var text []byte
		for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) { // there may be no leader yet
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
	s := &server{log: all}
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

// background runs a program until the end of the test. What it says is added to its log.
func background(t *testing.T, l *log, program string, args ...string) {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = l, l
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan struct{})
	go func() {
		cmd.Wait()
		close(exited)
	}()
	t.Cleanup(func() {
		cmd.Process.Kill()
		<-exited
		if t.Failed() {
			t.Logf("[log of %s]\n%s", filepath.Base(program), l)
		}
	})
}

// A log is what a process has written so far.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{} // closed and replaced when there is more
	all  *log          // nil, or one that gets the same
}

func newLog() *log { return &log{more: make(chan struct{})} }

func (l *log) Write(b []byte) (int, error) {
	if l.all != nil {
		l.all.Write(b)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.more)
	l.more = make(chan struct{})
	return l.text.Write(b)
}

func (l *log) String() string {
	text, _ := l.look()
	return text
}

func (l *log) look() (string, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String(), l.more
}

// await waits until the log matches, and returns the match.
func (l *log) await(t *testing.T, re *regexp.Regexp) []string {
	t.Helper()
	timeout := time.After(patience)
	for {
		text, more := l.look()
		if m := re.FindStringSubmatch(text); m != nil {
			return m
		}
		select {
		case <-more:
		case <-timeout:
			t.Fatalf("nothing in the log matches %v:\n%s", re, strings.TrimSpace(text))
		}
	}
}

// buildDir holds the binary that build made; TestMain removes it.
var buildDir string

var build = sync.OnceValues(func() (path string, err error) {
	if buildDir, err = os.MkdirTemp("", "beanpole"); err != nil {
		return "", err
	}
	path = filepath.Join(buildDir, "beanpole")
	return path, conformance.Build(path)
})

func TestMain(m *testing.M) {
	code := parallel.M{M: m, Most: 8}.Run()
	os.RemoveAll(buildDir)
	os.Exit(code)
}
