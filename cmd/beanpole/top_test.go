package main

import (
	"errors"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/hinshun/vt10x"
)

// TestTop runs top in a terminal, against beanpole and against the real beanstalkd.
// Package top tests the contents of its screens.
func TestTop(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"beanpole", "beanstalkd"} {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(program); err != nil {
				t.Skip(err)
			}
			addr := "unix:" + filepath.Join(t.TempDir(), "s")
			startServer(t, program, addr)
			runBeanpole(t, "put", "--addr", addr, "--tube", "mail", "hello")
			runBeanpole(t, "put", "--addr", addr, "--tube", "mail", "--delay", "1h", "later")
			runBeanpole(t, "put", "--addr", addr, "--tube", "old", "bad")
			runBeanpole(t, "reserve", "--addr", addr, "old", "--bury")

			terminal := startTop(t, addr, "100ms", 100, 14)
			// TUBE READY [AGE] RESERVED WAITING WATCHING BURIED PUT/s DEL/s DELAYED [PAUSED]
			terminal.wait(`(?m)^. mail +1( +\d+s)? +0 +0 +0 +0 +0 +0 +1$`)
			terminal.wait(`(?m)^. old +0 +0 +0 +0 +1 +0 +0 +0$`)
			runBeanpole(t, "put", "--addr", addr, "--tube", "old", "worse")
			runBeanpole(t, "reserve", "--addr", addr, "old", "--bury")
			terminal.wait(`(?m)^.!old +0 +0 +0 +0 +2 `)

			terminal.press("g") // the worst tubes come first
			terminal.wait(`(?m)^>!old `)
			terminal.press("j")
			terminal.wait(`(?m)^> mail `)
			terminal.press("\r")
			terminal.wait(`hello`)
			terminal.press("\t")
			terminal.wait(`later`)
			terminal.press("x") // goes back
			terminal.wait(`TUBE`)
			terminal.press("K")
			terminal.wait(`make 1 of the 1 delayed jobs of mail ready\? y/n`)
			terminal.press("y")
			terminal.wait(`jobs of mail that were made ready: 1`)
			terminal.press("p")
			terminal.wait(`pause mail for 1h0m\? Workers get no jobs from it\. y/n`)
			terminal.press("y")
			terminal.wait(`(?m)^>.mail +2 .* (1h0m|59m\d+s)$`)
			terminal.press("q")
			if err := terminal.cmd.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
}

// With --admin, top shows the findings that the server reports.
func TestTopAdmin(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	addr, admin := "unix:"+filepath.Join(dir, "s"), "unix:"+filepath.Join(dir, "admin")
	startServer(t, "beanpole", addr, "--admin", admin)
	terminal := startTop(t, addr, "100ms", 120, 14, "--admin", admin)
	terminal.wait(`(?m) in 1 tubes$`)
	runBeanpole(t, "drain", "--admin", admin)
	terminal.wait(`in 1 tubes, 1 finding`)
}

func startServer(t *testing.T, program, addr string, options ...string) {
	t.Helper()
	startCommand(t, exec.Command(program, append(options, "-l", addr)...), addr)
}

// startCommand starts a server, and waits until clients can connect to its Unix socket.
func startCommand(t *testing.T, cmd *exec.Cmd, addr string) {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		c, err := net.Dial("unix", strings.TrimPrefix(addr, "unix:"))
		if err == nil {
			c.Close()
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

func runBeanpole(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("beanpole", args...).CombinedOutput(); err != nil {
		t.Fatalf("beanpole %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

type topTerminal struct {
	t    *testing.T
	cmd  *exec.Cmd
	keys io.Writer
	term vt10x.Terminal
}

func startTop(t *testing.T, addr, every string, width, height int, options ...string) *topTerminal {
	t.Helper()
	cmd := exec.Command("beanpole", append([]string{"top", "--addr", addr, "--every", every}, options...)...)
	cmd.Env = append(cmd.Environ(), "TERM=xterm")
	ptmx, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: uint16(width), Rows: uint16(height)})
	if errors.Is(err, syscall.ENOENT) {
		t.Skip("no pseudo-terminal: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	s := &topTerminal{t: t, cmd: cmd, keys: ptmx, term: vt10x.New(vt10x.WithSize(width, height))}
	done := make(chan struct{})
	go func() {
		defer close(done)
		io.Copy(s.term, ptmx) // returns an error when the program ends
	}()
	t.Cleanup(func() {
		cmd.Process.Kill()
		<-done
		ptmx.Close()
	})
	return s
}

func (s *topTerminal) press(keys string) {
	s.t.Helper()
	if _, err := io.WriteString(s.keys, keys); err != nil {
		s.t.Fatal(err)
	}
}

// text returns the screen, without trailing blanks.
func (s *topTerminal) text() string {
	var lines []string
	for line := range strings.Lines(s.term.String()) {
		lines = append(lines, strings.TrimRight(line, " \n"))
	}
	return strings.Join(lines, "\n") + "\n"
}

func (s *topTerminal) wait(pattern string) {
	s.t.Helper()
	re := regexp.MustCompile(pattern)
	for deadline := time.Now().Add(30 * time.Second); !re.MatchString(s.text()); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("the screen never matches %q:\n%s", pattern, s.text())
		}
	}
}
