package soak

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A server is a process of the program.
type server struct {
	cmd    *exec.Cmd
	addrs  []net.Addr
	log    *tail
	exited chan struct{}
	ready  chan struct{}
}

// start starts the program and waits until it is ready. It inherits the files, from
// descriptor 3 on.
func start(program string, args, env []string, files ...*os.File) (*server, error) {
	s := &server{cmd: exec.Command(program, args...), exited: make(chan struct{}), ready: make(chan struct{})}
	s.log = &tail{ready: s.ready}
	s.cmd.Stderr = s.log
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
	case <-s.ready:
	case <-s.exited:
		return s, fmt.Errorf("the server does not start: %v", s.cmd.ProcessState)
	case <-time.After(patience):
		return s, fmt.Errorf("the server is not ready after %v", patience)
	}
	for _, m := range listening.FindAllStringSubmatch(s.log.String(), -1) {
		if path, ok := strings.CutPrefix(m[1], "unix:"); ok {
			s.addrs = append(s.addrs, &net.UnixAddr{Name: path, Net: "unix"})
		} else if a, err := net.ResolveTCPAddr("tcp", m[1]); err == nil {
			s.addrs = append(s.addrs, a)
		}
	}
	return s, nil
}

var (
	listening = regexp.MustCompile(`msg=listening address=(\S+)`)
	readyLine = []byte("msg=ready ")
)

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

// sockets returns how many sockets the process has open, and descriptors all how
// many descriptors.
func (s *server) sockets() (sockets, all int) {
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

// A tail keeps of a log what is not for debugging, and the last lines.
type tail struct {
	mu    sync.Mutex
	part  []byte // of a line
	told  []byte // all lines that are not of level debug
	last  []byte
	ready chan struct{} // closed when the log says that the server is ready
}

const tailSize = 32 << 10

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.part = append(t.part, b...)
	for {
		line, rest, ok := bytes.Cut(t.part, []byte("\n"))
		if !ok {
			return len(b), nil
		}
		t.add(append(bytes.Clone(line), '\n'))
		t.part = rest
	}
}

func (t *tail) add(line []byte) {
	if t.last = append(t.last, line...); len(t.last) > 2*tailSize {
		t.last = append(t.last[:0], t.last[len(t.last)-tailSize:]...)
	}
	if bytes.Contains(line, []byte("level=DEBUG")) {
		return
	}
	if bytes.Contains(line, readyLine) {
		close(t.ready)
	}
	if len(t.told) < 64*tailSize {
		t.told = append(t.told, line...)
	}
}

// says reports whether a line that is not of level debug contains text.
func (t *tail) says(text string) bool { return strings.Contains(t.String(), text) }

// String returns the lines that are not of level debug.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.told) + string(t.part)
}

// end returns the last lines of all.
func (t *tail) end() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.last[max(0, len(t.last)-4000):])
}
