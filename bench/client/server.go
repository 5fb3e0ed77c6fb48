package main

import (
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/beanpole-mq/beanpole/internal/test/freeport"
)

// A server is a process that was started to be measured.
type server struct {
	name, addr string
	cmd        *exec.Cmd
}

// startServer starts a program that takes beanstalkd's flags on a free port.
func startServer(program string) (*server, error) {
	port, err := freeport.Reserve()
	if err != nil {
		return nil, err
	}
	defer port.Release()
	addr := net.JoinHostPort("127.0.0.1", port.String())
	s := &server{filepath.Base(program), addr, exec.Command(program, "-l", "127.0.0.1", "-p", port.String())}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	for range 500 {
		if nc, err := net.Dial("tcp", addr); err == nil {
			nc.Close()
			return s, nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	s.stop()
	return nil, fmt.Errorf("does not listen on %s", addr)
}

func (s *server) stop() {
	s.cmd.Process.Kill()
	s.cmd.Wait()
}
