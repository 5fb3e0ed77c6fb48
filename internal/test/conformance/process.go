package conformance

import (
	"net"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/internal/test/exectest"
	"github.com/beanpole-mq/beanpole/internal/test/freeport"
)

// A Process starts a server program, each time on a free port of 127.0.0.1.
type Process struct {
	Path string   // path of the program, which supports the flags of beanstalkd
	Args []string // flags that precede the flags of a transcript
}

// Start implements [Server].
func (p Process) Start(tb testing.TB, args []string) Instance {
	tb.Helper()
	port, err := freeport.Reserve()
	if err != nil {
		tb.Fatal(err)
	}
	defer port.Release()
	argv := []string{"-l", "127.0.0.1", "-p", port.String()}
	argv = append(append(argv, p.Args...), args...)
	cmd, err := exectest.Start(exec.Command(p.Path, argv...)) // #nosec G204 -- the server under test
	if err != nil {
		tb.Fatal(err)
	}
	in := &processInstance{addr: net.JoinHostPort("127.0.0.1", port.String()), Process: cmd}
	tb.Cleanup(in.stop)
	for end := time.Now().Add(exectest.Patience); ; time.Sleep(10 * time.Millisecond) {
		if in.first, err = net.Dial("tcp", in.addr); err == nil {
			return in
		}
		if !in.Alive() || time.Now().After(end) {
			tb.Fatalf("%s does not accept connections: %v\n%s", p.Path, err, &in.Log)
		}
	}
}

// Beanstalkd starts the real server and returns its address. It skips the test if
// beanstalkd is not installed.
func Beanstalkd(tb testing.TB) (addr string) {
	tb.Helper()
	path, err := exec.LookPath("beanstalkd")
	if err != nil {
		tb.Skip("beanstalkd is not installed")
	}
	in := Process{Path: path}.Start(tb, nil).(*processInstance)
	in.first.Close()
	in.first = nil
	return in.addr
}

type processInstance struct {
	addr string
	*exectest.Process
	first net.Conn // the connection that proved that the server is running; the first Dial returns it
}

// The first Dial returns the connection of the start, so that total-connections counts
// only the transcript's connections.
func (in *processInstance) Dial() (net.Conn, error) {
	if nc := in.first; nc != nil {
		in.first = nil
		return nc, nil
	}
	return net.Dial("tcp", in.addr)
}

// Drain waits briefly, because a signal has no reply.
func (in *processInstance) Drain() error {
	err := in.Cmd.Process.Signal(syscall.SIGUSR1)
	time.Sleep(200 * time.Millisecond)
	return err
}

func (in *processInstance) stop() {
	if in.first != nil {
		in.first.Close()
	}
	in.Kill()
}
