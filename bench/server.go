package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/beanpole-mq/beanpole/bench/load"
	"github.com/beanpole-mq/beanpole/internal/test/freeport"
)

// A Server says how to start a server. In Command, {port} stands for a TCP port that
// is free on 127.0.0.1, where the server is to listen with SO_REUSEADDR, and {dir} for a
// new empty directory that is removed afterwards.
type Server struct {
	// Name is what tables call it. Empty means the program's name.
	Name string

	// Command is the program and its arguments, such as
	// {"beanstalkd", "-l", "127.0.0.1", "-p", "{port}"}. No shell is involved.
	Command []string
}

const (
	startTimeout = 2 * time.Minute // a server may read a large log before it listens
	startPoll    = 5 * time.Millisecond
	stopTimeout  = 5 * time.Second // from SIGTERM to SIGKILL
	quotedOutput = 2 << 10         // bytes of a server's output that an error quotes
)

// DisplayName is Name, or the program's name.
func (s *Server) DisplayName() string {
	if s.Name != "" || len(s.Command) == 0 {
		return s.Name
	}
	return filepath.Base(s.Command[0])
}

// A Process is a server that was started. One goroutine, which ends with the
// process, waits for it.
type Process struct {
	Addr string // as in load.Options
	PID  int
	Dir  string // for {dir}

	cancel context.CancelFunc // sends SIGTERM, later SIGKILL
	exited chan struct{}      // closed when the process has gone ...
	err    error              // ... with this
	log    *os.File           // what it has written to its standard output and error
}

// Start starts the server with a directory for {dir} and waits until it accepts
// connections. The process ends when Stop is called or ctx is done; Stop has to be called
// in any case.
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
	p := &Process{Addr: fillIn("127.0.0.1:{port}"), Dir: dir, exited: make(chan struct{})}
	if p.log, err = os.CreateTemp("", "beanpole-bench-"); err != nil {
		return nil, err
	}
	os.Remove(p.log.Name()) // the file goes when it is closed
	ctx, p.cancel = context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...) // #nosec G204 -- the command line of the user
	cmd.Stdout, cmd.Stderr = p.log, p.log
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopTimeout
	if err := cmd.Start(); err != nil {
		p.cancel()
		p.log.Close()
		return nil, fmt.Errorf("bench: start %s: %w", s.DisplayName(), err)
	}
	p.PID = cmd.Process.Pid
	go func() {
		p.err = cmd.Wait()
		close(p.exited)
	}()
	if err := p.awaitAccept(ctx); err != nil {
		defer p.Stop()
		return nil, fmt.Errorf("bench: %s: %w%s", strings.Join(argv, " "), err, p.quoted())
	}
	return p, nil
}

// awaitAccept returns when the server accepts a connection.
func (p *Process) awaitAccept(ctx context.Context) error {
	timeout := time.After(startTimeout)
	ticks := time.NewTicker(startPoll)
	defer ticks.Stop()
	for {
		d, err := load.Dial(ctx, p.Addr)
		if err == nil {
			return d.Close()
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-p.exited:
			return fmt.Errorf("did not start: %v", p.err)
		case <-timeout:
			return fmt.Errorf("does not accept connections at %s: %w", p.Addr, err)
		case <-ticks.C:
		}
	}
}

// Stop ends the process, and waits for that.
func (p *Process) Stop() {
	p.cancel()
	<-p.exited
	p.log.Close()
}

// Kill ends the process at once, as a crash does, and waits for that.
func (p *Process) Kill() error {
	err := syscall.Kill(p.PID, syscall.SIGKILL)
	<-p.exited
	return err
}

// quoted returns the end of the output, ready to end an error message.
func (p *Process) quoted() string {
	text, _ := io.ReadAll(io.NewSectionReader(p.log, 0, math.MaxInt64))
	text = bytes.TrimSpace(text)
	if len(text) == 0 {
		return ""
	}
	return fmt.Sprintf("; it said: %s", text[max(len(text)-quotedOutput, 0):])
}

// errDied is that of a server which has ended by itself.
var errDied = errors.New("the server is gone")

// deathTime is how long it may take until the end of a process is known, after that of
// its connections.
const deathTime = time.Second

// explain adds to an error that a server may have caused what the server died of, if it
// did.
func (p *Process) explain(err error) error {
	select {
	case <-p.exited:
		return errors.Join(err, fmt.Errorf("%w: %v%s", errDied, p.err, p.quoted()))
	case <-time.After(deathTime):
		return err
	}
}

// inheritFiles lets the servers that this process will start have as many files
// open as it may itself. When Go starts it raises its own limit, and hands the
// lower one on unless the limit is set again.
func inheritFiles() error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return os.NewSyscallError("getrlimit", err)
	}
	return os.NewSyscallError("setrlimit", syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
}
