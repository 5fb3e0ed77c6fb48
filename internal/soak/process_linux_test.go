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

// start starts the program and waits until it is ready.
func start(program string, args, env []string) (*server, error) {
	s := &server{cmd: exec.Command(program, args...), exited: make(chan struct{}), ready: make(chan struct{})}
	s.log = &tail{ready: s.ready}
	s.cmd.Stderr = s.log
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

// A tail keeps the beginning of a log and its end.
type tail struct {
	mu    sync.Mutex
	head  []byte
	end   []byte
	ready chan struct{} // closed when the log says that the server is ready
	is    bool
}

const tailSize = 32 << 10

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if room := tailSize - len(t.head); room > 0 {
		t.head = append(t.head, b[:min(room, len(b))]...)
	}
	if t.end = append(t.end, b...); len(t.end) > 2*tailSize {
		t.end = append(t.end[:0], t.end[len(t.end)-tailSize:]...)
	}
	if !t.is && bytes.Contains(t.head, readyLine) {
		t.is = true
		close(t.ready)
	}
	return len(b), nil
}

// String returns the log, without its middle if it is long.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.head) < tailSize {
		return string(t.head)
	}
	return string(t.head) + "\n...\n" + string(t.end)
}
