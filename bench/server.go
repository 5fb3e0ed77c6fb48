package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/beanpole-mq/beanpole/internal/test/exectest"
	"github.com/beanpole-mq/beanpole/internal/test/freeport"
)

// A Server specifies the start of a server. In Command, {port} is replaced by a free TCP
// port on 127.0.0.1, on which the server must listen with SO_REUSEADDR. {dir} is replaced
// by a new empty directory, which is removed afterwards.
type Server struct {
	Name string // name in tables; empty means the program's name

	// Command is the program and its arguments, such as {"beanstalkd", "-l", "127.0.0.1",
	// "-p", "{port}"}. It is not passed to a shell.
	Command []string
}

const (
	startTimeout = 2 * time.Minute // a server can read a large log before it listens
	startPoll    = 5 * time.Millisecond
)

// DisplayName returns Name, or the program's name if it is empty.
func (s *Server) DisplayName() string {
	if s.Name != "" || len(s.Command) == 0 {
		return s.Name
	}
	return filepath.Base(s.Command[0])
}

// A Process is a running server.
type Process struct {
	*exectest.Process
	Addr string // as in load.Options
	PID  int
}

// Start starts the server with dir as {dir} and waits until it accepts connections. The
// caller must call Kill.
func (s *Server) Start(ctx context.Context, dir string) (*Process, error) {
	if len(s.Command) == 0 {
		return nil, errors.New("bench: a server without a command")
	}
	port, err := freeport.Reserve()
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	defer port.Release()
	fillIn := strings.NewReplacer("{port}", port.String(), "{dir}", dir).Replace
	argv := make([]string, len(s.Command))
	for i, arg := range s.Command {
		argv[i] = fillIn(arg)
	}
	p := &Process{Addr: fillIn("127.0.0.1:{port}")}
	if p.Process, err = exectest.Start(exec.Command(argv[0], argv[1:]...)); err != nil { // #nosec G204 -- the command line of the user
		return nil, fmt.Errorf("bench: start %s: %w", s.DisplayName(), err)
	}
	p.PID = p.Cmd.Process.Pid
	if err := p.awaitAccept(ctx); err != nil {
		p.Kill()
		return nil, fmt.Errorf("bench: %s: %w; its output: %s", strings.Join(argv, " "), err, p.Log.End())
	}
	return p, nil
}

// awaitAccept waits until the server accepts a connection.
func (p *Process) awaitAccept(ctx context.Context) error {
	timeout := time.After(startTimeout)
	for {
		nc, err := net.Dial("tcp", p.Addr)
		if err == nil {
			return nc.Close()
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-p.Exited:
			return fmt.Errorf("did not start: %v", p.Cmd.ProcessState)
		case <-timeout:
			return fmt.Errorf("does not accept connections at %s: %w", p.Addr, err)
		case <-time.After(startPoll):
		}
	}
}

// deathTime is the maximum time between the end of a process's connections and the report
// that the process has ended.
const deathTime = time.Second

// If the server has ended, explain adds the cause to an error.
func (p *Process) explain(err error) error {
	select {
	case <-p.Exited:
		return errors.Join(err, fmt.Errorf("the server has exited: %v; its output: %s", p.Cmd.ProcessState, p.Log.End()))
	case <-time.After(deathTime):
		return err
	}
}

// inheritFiles lets servers open as many files as this process can. Go raises its own
// limit at the start, but child processes inherit the original limit unless the new limit
// is set explicitly.
func inheritFiles() error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return os.NewSyscallError("getrlimit", err)
	}
	return os.NewSyscallError("setrlimit", syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
}
