package main

import (
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"time"
)

// A server is a process that was started to be measured.
type server struct {
	name, addr string
	cmd        *exec.Cmd
}

// startServer starts a program that takes beanstalkd's flags on a free port.
func startServer(program string) (*server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	addr := l.Addr().String()
	l.Close()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	s := &server{filepath.Base(program), addr, exec.Command(program, "-l", host, "-p", port)}
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
