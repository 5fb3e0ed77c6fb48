package conformance

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/internal/test/exectest"
	"github.com/beanpole-mq/beanpole/internal/test/freeport"
)

// A Process starts a server program, each time on a free port of 127.0.0.1.
type Process struct {
	Path string   // of the program; it takes the flags of beanstalkd
	Args []string // put before those that a transcript asks for
}

// Start implements [Server].
func (p Process) Start(tb testing.TB, args []string) Instance {
	tb.Helper()
	// Where a port cannot be reserved, another program may take it before the server
	// binds it; then the server exits and the next port is tried.
	var err error
	for range 5 {
		var in *processInstance
		if in, err = p.start(args); err == nil {
			tb.Cleanup(in.stop)
			return in
		}
	}
	tb.Fatal(err)
	return nil
}

// Beanstalkd starts the real server and returns its address. The test is skipped where there is none.
func Beanstalkd(tb testing.TB) (addr string) {
	tb.Helper()
	path, err := exec.LookPath("beanstalkd")
	if err != nil {
		tb.Skip("there is no beanstalkd here")
	}
	in := Process{Path: path}.Start(tb, nil).(*processInstance)
	in.first.Close()
	in.first = nil
	return in.addr
}

// A server has two minutes to start, on a machine that is busy with other things.
const (
	startPoll  = 10 * time.Millisecond
	startPolls = 12_000
)

type processInstance struct {
	addr string
	*exectest.Process
	first  net.Conn      // the connection that proved the server up, until Dial hands it out
	before time.Duration // what the threads had waited for a processor when it was up
}

func (p Process) start(args []string) (*processInstance, error) {
	port, err := freeport.Reserve()
	if err != nil {
		return nil, err
	}
	defer port.Release()
	argv := []string{"-l", "127.0.0.1", "-p", port.String()}
	argv = append(append(argv, p.Args...), args...)
	cmd, err := exectest.Start(exec.Command(p.Path, argv...)) // #nosec G204 -- the server under test
	if err != nil {
		return nil, err
	}
	in := &processInstance{addr: net.JoinHostPort("127.0.0.1", port.String()), Process: cmd}
	for range startPolls {
		if in.first, err = net.Dial("tcp", in.addr); err == nil {
			in.before = in.waited()
			return in, nil
		}
		select {
		case <-in.Exited:
			return nil, fmt.Errorf("%s exited: %v\n%s", p.Path, in.Cmd.ProcessState, &in.Log)
		case <-time.After(startPoll):
		}
	}
	in.stop()
	return nil, fmt.Errorf("%s does not accept connections\n%s", p.Path, &in.Log)
}

// Dial hands out the connection of start first, so that total-connections
// counts the transcript's connections only.
func (in *processInstance) Dial() (net.Conn, error) {
	if nc := in.first; nc != nil {
		in.first = nil
		return nc, nil
	}
	return net.Dial("tcp", in.addr)
}

// Drain waits a little, as a signal has no answer.
func (in *processInstance) Drain() error {
	err := in.Cmd.Process.Signal(syscall.SIGUSR1)
	time.Sleep(200 * time.Millisecond)
	return err
}

// delayed is how long the threads of the server together have waited for a processor since it was up, as far as
// the kernel tells.
func (in *processInstance) delayed() time.Duration { return in.waited() - in.before }

// waited adds up the second number of schedstat (Documentation/scheduler/sched-stats.rst), in ns. A thread may end meanwhile.
func (in *processInstance) waited() (sum time.Duration) {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", in.Cmd.Process.Pid))
	for _, path := range threads {
		var ran, waited time.Duration
		if text, err := os.ReadFile(path); err == nil {
			fmt.Sscan(string(text), &ran, &waited)
		}
		sum += waited
	}
	return sum
}

func (in *processInstance) stop() {
	if in.first != nil {
		in.first.Close()
	}
	in.Kill()
}
