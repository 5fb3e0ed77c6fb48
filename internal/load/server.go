package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A Server says how to start a server. In Command and Addr, {port} stands for
// a TCP port that is free on 127.0.0.1, and {dir} for a new empty directory that is
// removed afterwards.
type Server struct {
	// Name is what tables call it. Empty means the program's name.
	Name string `json:"name"`

	// Command is the program and its arguments, such as
	// {"beanstalkd", "-l", "127.0.0.1", "-p", "{port}"}. No shell is involved.
	Command []string `json:"command"`

	// Addr is where it will listen, as in Options. Empty means 127.0.0.1:{port}.
	Addr string `json:"addr,omitempty"`
}

const (
	startTimeout = 10 * time.Second
	startPoll    = 5 * time.Millisecond
	stopTimeout  = 5 * time.Second // from SIGTERM to SIGKILL
	startTries   = 3               // another process may take the port between our look and the server's bind
	keptOutput   = 2 << 10
)

var errNotStarted = errors.New("did not start")

func (s *Server) name() string {
	if s.Name != "" || len(s.Command) == 0 {
		return s.Name
	}
	return s.Command[0][strings.LastIndexByte(s.Command[0], os.PathSeparator)+1:]
}

// A process is a server that was started. One goroutine, which ends with the
// process, waits for it.
type process struct {
	addr string
	pid  int

	dir    string             // removed by stop; empty: none
	cancel context.CancelFunc // sends SIGTERM, later SIGKILL
	exited chan struct{}      // closed when the process has gone ...
	err    error              // ... with this
	output tail
}

// start starts the server and waits until it accepts connections. The process
// ends when stop is called or ctx is done.
func (s *Server) start(ctx context.Context) (*process, error) {
	dir, err := os.MkdirTemp("", "beanpole-bench-")
	if err != nil {
		return nil, err
	}
	p, err := s.startIn(ctx, dir)
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	p.dir = dir
	return p, nil
}

// startIn is start with a directory for {dir} that stop leaves alone.
func (s *Server) startIn(ctx context.Context, dir string) (p *process, err error) {
	if len(s.Command) == 0 {
		return nil, errors.New("load: a server without a command")
	}
	for range startTries {
		p, err = s.startOnce(ctx, dir)
		if !errors.Is(err, errNotStarted) || ctx.Err() != nil {
			break
		}
	}
	return p, err
}

func (s *Server) startOnce(ctx context.Context, dir string) (*process, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	fillIn := strings.NewReplacer("{port}", strconv.Itoa(port), "{dir}", dir).Replace
	argv := make([]string, len(s.Command))
	for i, arg := range s.Command {
		argv[i] = fillIn(arg)
	}
	p := &process{addr: fillIn(s.Addr), exited: make(chan struct{})}
	if p.addr == "" {
		p.addr = fillIn("127.0.0.1:{port}")
	}
	ctx, p.cancel = context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = &p.output, &p.output
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopTimeout
	if err := cmd.Start(); err != nil {
		p.cancel()
		return nil, fmt.Errorf("load: start %s: %w", s.name(), err)
	}
	p.pid = cmd.Process.Pid
	go func() {
		p.err = cmd.Wait()
		close(p.exited)
	}()
	if err := p.awaitAccept(ctx); err != nil {
		p.stop()
		return nil, fmt.Errorf("load: %s: %w%s", strings.Join(argv, " "), err, p.output.quoted())
	}
	return p, nil
}

// awaitAccept returns when the server accepts a connection.
func (p *process) awaitAccept(ctx context.Context) error {
	timeout := time.After(startTimeout)
	ticks := time.NewTicker(startPoll)
	defer ticks.Stop()
	for {
		nc, err := dialServer(ctx, p.addr)
		if err == nil {
			return nc.Close()
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-p.exited:
			return fmt.Errorf("%w: %v", errNotStarted, p.err)
		case <-timeout:
			return fmt.Errorf("does not accept connections at %s: %w", p.addr, err)
		case <-ticks.C:
		}
	}
}

// stop ends the process, waits for that, and removes its directory.
func (p *process) stop() {
	p.cancel()
	<-p.exited
	if p.dir != "" {
		os.RemoveAll(p.dir)
	}
}

// kill ends the process at once, as a crash does.
func (p *process) kill() error {
	err := syscall.Kill(p.pid, syscall.SIGKILL)
	p.stop()
	return err
}

// freePort returns a port that was free a moment ago.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("load: look for a free port: %w", err)
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// A tail keeps the last bytes written to it, for error messages.
type tail struct {
	mu   sync.Mutex
	kept []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, b...)
	if over := len(t.kept) - keptOutput; over > 0 {
		t.kept = t.kept[over:]
	}
	return len(b), nil
}

// quoted returns what was kept, ready to end an error message.
func (t *tail) quoted() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if text := bytes.TrimSpace(t.kept); len(text) > 0 {
		return fmt.Sprintf("; it said: %s", text)
	}
	return ""
}
