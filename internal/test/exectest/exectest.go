// Package exectest builds the server for tests, runs programs and waits for their output.
package exectest

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"sync"
	"syscall"
	"time"
)

// Patience is the time limit for any expected event. It allows for a busy machine.
const Patience = 2 * time.Minute

// A Process is a started program.
type Process struct {
	Cmd    *exec.Cmd
	Log    Log           // the program's standard output and standard error
	Exited chan struct{} // closed when the program has ended and Log is complete
}

// Start starts a program. Its output goes to Log, and to the writers already set in cmd.
// Unless cmd has an environment, a beanpole server serves no local admin socket, because
// the socket would remain in /run after a kill.
func Start(cmd *exec.Cmd) (*Process, error) {
	if cmd.Env == nil {
		cmd.Env = append(os.Environ(), "BEANPOLE_ADMIN_SOCKET=none")
	}
	p := &Process{Cmd: cmd, Exited: make(chan struct{})}
	for _, w := range []*io.Writer{&cmd.Stdout, &cmd.Stderr} {
		if *w == nil {
			*w = &p.Log
		} else {
			*w = io.MultiWriter(&p.Log, *w)
		}
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		cmd.Wait()
		close(p.Exited)
	}()
	return p, nil
}

// Alive reports whether the program is still running.
func (p *Process) Alive() bool {
	select {
	case <-p.Exited:
		return false
	default:
		return true
	}
}

// Await waits until the log matches, and returns the first match with its groups.
func (p *Process) Await(expr string) ([]string, error) {
	m, err := p.Log.await(expr, p.Exited)
	if err != nil {
		err = fmt.Errorf("%s (%v): %w", p.Cmd, p.Cmd.ProcessState, err)
	}
	return m, err
}

// Wait waits until the program has ended. After Patience it returns an error with the
// stacks of the program's goroutines.
func (p *Process) Wait() error {
	select {
	case <-p.Exited:
	case <-time.After(Patience):
		p.Cmd.Process.Signal(syscall.SIGQUIT)
		<-p.Exited
		return fmt.Errorf("%s did not exit\n%s", p.Cmd, p.Log.End())
	}
	if !p.Cmd.ProcessState.Success() {
		return fmt.Errorf("%s has ended with %v\n%s", p.Cmd, p.Cmd.ProcessState, p.Log.End())
	}
	return nil
}

// Stop asks the program to stop, as a service manager does, and waits until it has ended.
func (p *Process) Stop() error {
	p.Cmd.Process.Signal(syscall.SIGTERM)
	return p.Wait()
}

// Kill kills the program and waits until it has ended.
func (p *Process) Kill() {
	p.Cmd.Process.Kill()
	<-p.Exited
}

// A Log contains the last megabyte of the output of programs.
type Log struct {
	mu   sync.Mutex
	text []byte // complete lines
	part []byte // an incomplete line
	drop string
	more chan struct{} // closed when there is more output; can be nil
}

func (l *Log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.part = append(l.part, b...)
	for end := bytes.IndexByte(l.part, '\n') + 1; end > 0; end = bytes.IndexByte(l.part, '\n') + 1 {
		if line := l.part[:end]; l.drop == "" || !bytes.Contains(line, []byte(l.drop)) {
			l.text = append(l.text, line...)
		}
		l.part = l.part[end:]
	}
	l.text = l.text[max(0, len(l.text)-1<<20):]
	if l.more != nil {
		close(l.more)
		l.more = nil
	}
	return len(b), nil
}

// Drop removes future lines that contain text.
func (l *Log) Drop(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop = text
}

func (l *Log) String() string {
	text, _ := l.look()
	return text
}

// End returns the last lines.
func (l *Log) End() string {
	text := l.String()
	return text[max(0, len(text)-4000):]
}

func (l *Log) look() (text string, more <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.more == nil {
		l.more = make(chan struct{})
	}
	return string(l.text) + string(l.part), l.more
}

// Await is Process.Await for a log without a process.
func (l *Log) Await(expr string) ([]string, error) { return l.await(expr, nil) }

func (l *Log) await(expr string, exited <-chan struct{}) ([]string, error) {
	re := regexp.MustCompile(expr)
	for timeout := time.After(Patience); ; {
		text, more := l.look()
		if m := re.FindStringSubmatch(text); m != nil {
			return m, nil
		}
		select {
		case <-more:
		case <-exited:
			if exited = nil; l.String() == text {
				return nil, fmt.Errorf("has ended without writing %s\n%s", expr, l.End())
			}
		case <-timeout:
			return nil, fmt.Errorf("has not written %s\n%s", expr, l.End())
		}
	}
}
