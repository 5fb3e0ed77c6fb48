package budget

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/client"
)

const (
	// patience ends what hangs.
	patience = 2 * time.Minute

	// listeners is how many sockets a server has without clients. They are not counted when
	// it says that it is ready: it is just then replacing the descriptor of this one.
	listeners = 1
)

// build builds one of our programs and returns its path. How is fixed: the
// instructions of another build would be others.
func build(t *testing.T, pkg string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), filepath.Base(pkg))
	cmd := exec.Command("go", "build", "-trimpath", "-o", path, "github.com/beanpole-mq/beanpole/"+pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOAMD64=v1", "GOFLAGS=", "GOEXPERIMENT=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", pkg, err, out)
	}
	return path
}

// quiet is the environment of what is counted: one processor, no garbage collection, which
// would fall into some runs and not into others, and goroutines are
// not interrupted by a clock, which would be other places in each run. Valgrind
// tells programs of RDTSCP also on processors where it cannot execute that.
func quiet() []string {
	return append(os.Environ(), "GOMAXPROCS=1", "GOGC=off", "GODEBUG=asyncpreemptoff=1,cpu.rdtscp=off")
}

// A load is a server, and what beanpole bench puts on it, or batches.
type load struct {
	name    string
	bench   []string // arguments of the load generator
	jobs    int      // that it puts in a run
	journal bool
	policy  string // settings of all tubes; each is in a line
	batch   int    // jobs that are reserved together; 0: bench makes the load
}

// mild is every policy, and none acts.
const mild = `max-attempts = 10
max-timeouts = 10
max-releases = 10
retry-delay = "1s"
ttl = "1000h"
keep-buried = "1000h"
max-reserved = 1000
rate = "100000/s"
burst = 10000`

// run runs a server within a tool, whose command line comes before the server's,
// puts the load on it, and returns the number of commands and what the server
// and the tool wrote on their standard error.
func (l *load) run(t *testing.T, tool []string, beanpole string, times int) (commands int, log string) {
	t.Helper()
	args := slices.Concat(tool, []string{beanpole, "serve", "-l", "127.0.0.1:0", "--log-format", "json"})
	if l.journal {
		args = append(args, "-b", t.TempDir())
	}
	if l.policy != "" {
		file := filepath.Join(t.TempDir(), "policy.toml")
		if err := os.WriteFile(file, []byte("[[policy]]\ntubes = [\"*\"]\n"+l.policy), 0o666); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--config", file)
	}
	s := start(t, args)
	s.greet(t)
	if l.batch > 0 {
		return s.batches(t, times*l.jobs, l.batch), s.stop(t)
	}
	commands = s.bench(t, beanpole, append(l.bench, "--ops", strconv.Itoa(times*l.jobs)))
	return commands, s.stop(t)
}

// batches puts jobs, and reserves and deletes n at a time. It returns three commands for each job,
// as bench does.
func (s *server) batches(t *testing.T, jobs, n int) (commands int) {
	t.Helper()
	c, err := client.Dial(t.Context(), s.addr, nil)
	for range jobs / n {
		put := slices.Repeat([]client.NewJob{{Body: make([]byte, 64), TTR: patience}}, n)
		var ids []uint64
		if err == nil {
			ids, err = c.PutMany(t.Context(), put)
		}
		if err == nil {
			_, err = c.ReserveBatch(t.Context(), n, 0)
		}
		if err == nil {
			_, err = c.DeleteBatch(t.Context(), ids)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	c.Close()
	s.awaitNobody(t)
	return 3 * jobs
}

// A server is a process that serves, in a tool that watches it.
type server struct {
	cmd  *exec.Cmd
	addr string
	pid  int // of the server, which the tool's may not be
	log  bytes.Buffer
	done chan struct{} // closed when log is complete
}

// start starts a server and waits until it serves.
func start(t *testing.T, args []string) *server {
	t.Helper()
	s := &server{cmd: exec.Command(args[0], args[1:]...), done: make(chan struct{})}
	s.cmd.Env = quiet()
	stderr, err := s.cmd.StderrPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	ready := make(chan bool, 1)
	go func() {
		defer close(s.done)
		ready <- s.awaitReady(io.TeeReader(stderr, &s.log))
		io.Copy(&s.log, stderr)
	}()
	t.Cleanup(s.kill)
	select {
	case ok := <-ready:
		if !ok {
			<-s.done
			t.Fatalf("%v ended before it served:\n%s", args, &s.log)
		}
	case <-time.After(patience):
		t.Fatalf("%v does not serve", args)
	}
	return s
}

// awaitReady reads the log until the server says that it is ready.
func (s *server) awaitReady(log io.Reader) bool {
	for lines := bufio.NewScanner(log); lines.Scan(); {
		var line struct {
			Msg, Address string
			PID          int
		}
		if json.Unmarshal(lines.Bytes(), &line) != nil {
			continue // the tool's
		}
		if line.Msg == "listening" {
			s.addr = line.Address
		}
		if line.Msg == "ready" {
			s.pid = line.PID
			return true
		}
	}
	return false
}

// greet waits until the server has answered a client. It says that it is ready before it waits for its clients: those that come at
// once cost calls of their own, and in one run there are more of them than in another.
func (s *server) greet(t *testing.T) {
	t.Helper()
	nc, err := net.DialTimeout("tcp", s.addr, patience)
	if err == nil {
		nc.SetDeadline(time.Now().Add(patience))
		_, err = nc.Write([]byte("list-tube-used\r\n"))
	}
	if err == nil {
		_, err = bufio.NewReader(nc).ReadString('\n')
	}
	if err != nil {
		t.Fatal(err)
	}
	nc.Close()
	s.awaitNobody(t)
}

// bench puts a load on the server and returns how many commands that were.
func (s *server) bench(t *testing.T, beanpole string, args []string) (commands int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, beanpole, append([]string{"bench", "--json", "--addr", s.addr}, args...)...)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", strings.Join(cmd.Args, " "), err)
	}
	var result struct{ Jobs int }
	if err := json.Unmarshal(out, &result); err != nil || result.Jobs == 0 {
		t.Fatalf("bench: %v in %s", err, out)
	}
	s.awaitNobody(t) // else it is stopped while it closes them, in one run sooner than in another
	return 3 * result.Jobs
}

// awaitNobody waits until the server has closed all connections.
func (s *server) awaitNobody(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(patience); s.sockets(t) > listeners; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the server does not close the connections of its clients")
		}
	}
}

// sockets returns how many the server has.
func (s *server) sockets(t *testing.T) (n int) {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", s.pid))
	if err != nil || len(files) == 0 {
		t.Fatalf("the files of process %d: %v", s.pid, err)
	}
	for _, f := range files {
		if to, _ := os.Readlink(f); strings.HasPrefix(to, "socket:") { // an error: it was closed meanwhile
			n++
		}
	}
	return n
}

// stop ends the server as a service manager would, and returns its log.
func (s *server) stop(t *testing.T) string {
	t.Helper()
	if err := syscall.Kill(s.pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.done:
	case <-time.After(patience):
		t.Fatal("the server does not stop")
	}
	if err := s.cmd.Wait(); err != nil {
		t.Fatalf("the server: %v\n%s", err, &s.log)
	}
	return s.log.String()
}

// kill ends what a test that failed has left.
func (s *server) kill() {
	if s.cmd.ProcessState != nil {
		return
	}
	if s.pid != 0 {
		syscall.Kill(s.pid, syscall.SIGKILL) // strace would leave it running
	}
	s.cmd.Process.Kill()
	s.cmd.Wait()
}
