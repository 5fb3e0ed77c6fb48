package main

import (
	"bufio"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A server whose log is not read serves its clients, and stops on request.
func TestLogIsNotRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fifo := newFifo(t, filepath.Join(dir, "log"))
	socket := filepath.Join(dir, "socket")
	server := exec.Command("beanpole", "-VV", "-l", "unix:"+socket)
	server.Stderr = fifo
	startCommand(t, server, "unix:"+socket)
	nc, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	// About 4 MB of lines, more than the pipe and the queue can hold.
	const commands = 20000
	go io.WriteString(nc, strings.Repeat("use a\r\n", commands))
	replies := bufio.NewReader(nc)
	for range commands {
		if line, err := replies.ReadString('\n'); line != "USING a\r\n" {
			t.Fatalf("reply %q, %v", line, err)
		}
	}
	nc.Close()
	if err := server.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := server.Wait(); err != nil {
		t.Error(err)
	}
}

// A server whose start fails exits, even if its log is not read.
func TestRefusalIsNotRead(t *testing.T) {
	t.Parallel()
	fifo := newFifo(t, filepath.Join(t.TempDir(), "log"))
	fd := int(fifo.Fd())
	if err := syscall.SetNonblock(fd, true); err != nil {
		t.Fatal(err)
	}
	for { // until the pipe is full
		if _, err := syscall.Write(fd, make([]byte, 4096)); err != nil {
			break
		}
	}
	if err := syscall.SetNonblock(fd, false); err != nil {
		t.Fatal(err)
	}
	server := exec.Command("beanpole", "-p", "0", "-b", filepath.Join(t.TempDir(), "nowhere"))
	server.Stderr = fifo
	if server.Run(); server.ProcessState.ExitCode() != 10 {
		t.Errorf("ended with %v, want exit code 10", server.ProcessState)
	}
}

// newFifo returns the end of a small pipe that nothing reads.
func newFifo(t *testing.T, path string) *os.File {
	t.Helper()
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	open := func(flag int) *os.File {
		f, err := os.OpenFile(path, flag, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	open(os.O_RDONLY | syscall.O_NONBLOCK)
	return open(os.O_WRONLY)
}
