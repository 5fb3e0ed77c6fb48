package soak

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A server is a process of the program.
type server struct {
	cmd    *exec.Cmd
	log    tail
	exited chan struct{}
}

// start starts the program and waits until it is ready. It inherits the files, from
// descriptor 3 on.
func start(program string, args, env []string, files ...*os.File) (*server, error) {
	s := &server{cmd: exec.Command(program, args...), exited: make(chan struct{}), log: tail{ready: make(chan struct{})}}
	s.cmd.Stderr = &s.log
	s.cmd.ExtraFiles = files
	s.cmd.Env = append(os.Environ(), env...)
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		s.cmd.Wait()
		close(s.exited)
	}()
	select {
	case <-s.log.ready:
		return s, nil
	case <-s.exited:
		return s, fmt.Errorf("the server does not start: %v\n%s", s.cmd.ProcessState, s.log.end())
	case <-time.After(patience):
		return s, fmt.Errorf("the server is not ready after %v\n%s", patience, s.log.end())
	}
}

func (s *server) pid() int { return s.cmd.Process.Pid }

// alive reports whether the process has not ended.
func (s *server) alive() bool {
	select {
	case <-s.exited:
		return false
	default:
		return true
	}
}

// descriptors returns how many sockets the process has open, and how many descriptors in all.
func (s *server) descriptors() (sockets, all int) {
	dir := fmt.Sprintf("/proc/%d/fd", s.pid())
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if to, err := os.Readlink(filepath.Join(dir, e.Name())); err == nil {
			all++
			if strings.HasPrefix(to, "socket:") {
				sockets++
			}
		}
	}
	return sockets, all
}

// resident returns the memory of the process in bytes.
func (s *server) resident() int {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.pid()))
	_, after, _ := bytes.Cut(text, []byte("RssAnon:"))
	fields := strings.Fields(string(after))
	if len(fields) == 0 {
		return 0
	}
	kib, _ := strconv.Atoi(fields[0])
	return kib << 10
}

// A tail is the log of a server, so far as it is not for debugging: its end.
type tail struct {
	mu    sync.Mutex
	part  []byte // of a line
	lines []byte
	ready chan struct{} // closed when the log says that the server is ready
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.part = append(t.part, b...)
	for line := range bytes.Lines(t.part) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break
		}
		t.part = t.part[len(line):]
		if bytes.Contains(line, []byte("msg=ready ")) {
			close(t.ready)
		}
		if !bytes.Contains(line, []byte("level=DEBUG")) {
			t.lines = append(t.lines, line...)
		}
	}
	t.lines = t.lines[max(0, len(t.lines)-1<<20):]
	return len(b), nil
}

// says reports whether the log contains text.
func (t *tail) says(text string) bool { return strings.Contains(t.String(), text) }

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.lines) + string(t.part)
}

// end returns the last lines.
func (t *tail) end() string {
	text := t.String()
	return text[max(0, len(text)-4000):]
}
