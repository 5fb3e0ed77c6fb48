package main

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A server whose log is not read serves its clients, and stops on request. When the
// reader continues, the log has the number of missing lines and the last lines.
func TestLogIsNotRead(t *testing.T) {
	t.Parallel()
	for _, read := range []bool{false, true} {
		t.Run(map[bool]string{false: "never", true: "later"}[read], func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			reader, fifo := newFifo(t, filepath.Join(dir, "log"))
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
			var log bytes.Buffer
			ended := make(chan struct{})
			if read {
				told := make(chan struct{})
				go func() {
					defer close(ended)
					lines := bufio.NewReader(reader)
					for {
						line, err := lines.ReadString('\n')
						if err != nil {
							return
						}
						if log.WriteString(line); strings.Contains(line, "dropped log lines") {
							close(told)
						}
					}
				}()
				<-told
			}
			if err := server.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if err := server.Wait(); err != nil {
				t.Error(err)
			}
			fifo.Close() // the last open write end
			if read {
				<-ended
				if text := log.String(); !strings.HasSuffix(text, "msg=stopped\n") {
					t.Errorf("the log ends with %q", text[max(0, len(text)-200):])
				}
			}
		})
	}
}

// A server whose start fails exits, even if its log is not read.
func TestRefusalIsNotRead(t *testing.T) {
	t.Parallel()
	_, fifo := newFifo(t, filepath.Join(t.TempDir(), "log"))
	fd := int(fifo.Fd())
	if err := syscall.SetNonblock(fd, true); err != nil {
		t.Fatal(err)
	}
	for { // until it is full
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

// newFifo returns both ends of a small pipe.
func newFifo(t *testing.T, path string) (reader, writer *os.File) {
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
	reader = open(os.O_RDONLY | syscall.O_NONBLOCK)
	return reader, open(os.O_WRONLY)
}
