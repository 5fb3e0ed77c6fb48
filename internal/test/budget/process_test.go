package budget

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
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

	"github.com/beanpole-mq/beanpole/internal/test/exectest"
)

const (
	// patience limits the run time of a process that hangs.
	patience = 2 * time.Minute

	// listeners is the number of sockets of a server without clients. The test does not
	// count the sockets at the ready message, because the server is replacing the
	// listener's descriptor at that time.
	listeners = 1
)

// build builds one of our programs and returns its path. The build flags are fixed,
// because other flags change the number of instructions.
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

// quiet returns the environment of measured processes. They have one processor. Garbage
// collection is off, because it would add to some runs only. Asynchronous preemption is
// off, because it would interrupt each run at another point. RDTSCP is off, because
// valgrind also reports it on processors on which it cannot execute it.
func quiet() []string {
	return append(os.Environ(), "GOMAXPROCS=1", "GOGC=off", "GODEBUG=asyncpreemptoff=1,cpu.rdtscp=off")
}

// A load is a server and the commands that beanpole bench, or batches, sends to it.
type load struct {
	name    string
	bench   []string // arguments of the load generator
	jobs    int      // number of jobs that bench puts in a run
	journal bool
	policy  string // settings of all tubes, one per line
	batch   int    // number of jobs per reserve of batches; 0 means that bench sends the load
}

// mild sets every policy to a value that has no effect.
const mild = `max-attempts = 10
max-timeouts = 10
max-releases = 10
retry-delay = "1s"
ttl = "1000h"
keep-buried = "1000h"
max-reserved = 1000
rate = "100000/s"
burst = 10000`

// run runs a server under a tool, whose command line precedes the server's, and sends the
// load to it. It returns the number of commands, and the standard error of the server and
// the tool.
func (l *load) run(t *testing.T, tool []string, beanpole string, times int) (commands int, log string) {
	t.Helper()
	args := slices.Concat(tool, []string{beanpole, "serve", "-l", "127.0.0.1:0", "--admin-socket", "none", "--log-format", "json"})
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

// batches puts jobs, and reserves and deletes n at a time. It counts three commands for
// each job, like bench.
func (s *server) batches(t *testing.T, jobs, n int) (commands int) {
	t.Helper()
	nc, err := net.DialTimeout("tcp", s.addr, patience)
	if err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(nc)
	command := func(text string, lines int) (last string) {
		if _, err = nc.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		for range lines {
			if last, err = r.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
		return last
	}
	puts := strings.Repeat(fmt.Sprintf("put 0 0 120 64\r\n%064d\r\n", 0), n)
	ids := ""
	for id := range jobs {
		if ids += fmt.Sprint(" ", id+1); (id+1)%n == 0 {
			command(puts, n)
			command(fmt.Sprintf("reserve-batch %d 0\r\n", n), 1+2*n)
			if got, want := command("delete-batch"+ids+"\r\n", 1), fmt.Sprintf("DELETED_BATCH %d 0\r\n", n); got != want {
				t.Fatalf("%q, want %q", got, want)
			}
			ids = ""
		}
	}
	nc.Close()
	s.awaitNobody(t)
	return 3 * jobs
}

// A server is a server process under a measuring tool.
type server struct {
	*exectest.Process
	addr string
	pid  int // id of the server process; the tool can have another one
}

// start starts a server and waits until it serves.
func start(t *testing.T, args []string) *server {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = quiet()
	p, err := exectest.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	s := &server{Process: p}
	t.Cleanup(s.kill)
	m, err := p.Await(`"msg":"listening".*"address":"([^"]+)"[^$]*"msg":"ready".*"pid":(\d+)`)
	if err != nil {
		t.Fatal(err)
	}
	s.addr = m[1]
	s.pid, err = strconv.Atoi(m[2])
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// greet waits until the server has answered a client. The ready message is too early:
// clients that connect before the server waits for them cost additional calls, whose
// number varies.
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

// bench sends a load to the server and returns the number of commands.
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
	s.awaitNobody(t) // otherwise it would stop at a random point while it closes them
	return 3 * result.Jobs
}

// awaitNobody waits until the server has closed all client connections.
func (s *server) awaitNobody(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(patience); s.sockets(t) > listeners; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the server does not close the connections of its clients")
		}
	}
}

func (s *server) sockets(t *testing.T) (n int) {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", s.pid))
	if err != nil || len(files) == 0 {
		t.Fatalf("the files of process %d: %v", s.pid, err)
	}
	for _, f := range files {
		if to, _ := os.Readlink(f); strings.HasPrefix(to, "socket:") { // fails if it was just closed
			n++
		}
	}
	return n
}

// stop stops the server with SIGTERM, and returns its log.
func (s *server) stop(t *testing.T) string {
	t.Helper()
	if err := syscall.Kill(s.pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := s.Wait(); err != nil {
		t.Fatal(err)
	}
	return s.Log.String()
}

// kill kills processes that a failed test left running.
func (s *server) kill() {
	if s.Alive() && s.pid != 0 {
		syscall.Kill(s.pid, syscall.SIGKILL) // strace would leave it running
	}
	s.Kill()
}
