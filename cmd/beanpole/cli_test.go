package main

import (
	"bytes"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
)

// A command that has no terminal interface writes only its text to the terminal.
func TestPlainTerminal(t *testing.T) {
	cmd := exec.Command("beanpole", "version")
	cmd.Env = append(cmd.Environ(), "TERM=xterm", "COLORFGBG=")
	terminal, err := pty.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	var text bytes.Buffer
	io.Copy(&text, terminal) // returns an error when the program ends
	if err := cmd.Wait(); err != nil || !strings.HasPrefix(text.String(), "beanpole ") || strings.Contains(text.String(), "\x1b") {
		t.Errorf("%q, %v", text.String(), err)
	}
}

// Ctrl-C ends a command that waits for input.
func TestInterruptedAtTerminal(t *testing.T) {
	dir := t.TempDir()
	addr, admin := "unix:"+filepath.Join(dir, "s"), "unix:"+filepath.Join(dir, "admin")
	startServer(t, "beanpole", addr, "--admin", admin)
	t.Setenv("BEANPOLE_ADDR", addr)
	t.Setenv("BEANPOLE_ADMIN_ADDR", admin)
	runBeanpole(t, "put", "--addr", addr, "--tube", "mail", "hello")
	for asks, args := range map[string][]string{
		"reading from the terminal":           {"put"},
		"reading from the terminal until":     {"import"},
		"Delete 1 ready job of 1 tube? [y/N]": {"clear", "mail", "--state", "ready"},
	} {
		cmd := exec.Command("beanpole", args...)
		terminal, err := pty.Start(cmd)
		if err != nil {
			t.Skip("no pseudo-terminal: ", err)
		}
		defer terminal.Close()
		stuck := time.AfterFunc(30*time.Second, func() { cmd.Process.Kill() })
		var text strings.Builder
		for b := make([]byte, 1); !strings.Contains(text.String(), asks); {
			if _, err := terminal.Read(b); err != nil {
				t.Fatalf("%q: it printed %q and exited", args, text.String())
			}
			text.Write(b)
		}
		if _, err := terminal.WriteString("\x03"); err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, terminal)
		cmd.Wait()
		stuck.Stop()
		if code := cmd.ProcessState.ExitCode(); code != 130 {
			t.Errorf("%q ended with %v, want code 130", args, cmd.ProcessState)
		}
	}
	out, err := exec.Command("beanpole", "tubes", "mail", "--json", "--addr", addr).Output()
	if err != nil || !strings.Contains(string(out), `"ready":1,`) {
		t.Errorf("after all that: %s, %v", out, err)
	}
}
