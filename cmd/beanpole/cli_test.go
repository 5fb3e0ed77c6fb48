package main

import (
	"bytes"
	"encoding/json"
	"io"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/rogpeppe/go-internal/testscript"
)

func scriptHounded(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: hounded PROGRAM ARG...")
	}
	kills := 0
	for most := 20 * time.Millisecond; ; most += most / 4 {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir = ts.MkAbs(".")
		cmd.Env = append(cmd.Environ(), "BEANPOLE_ADDR="+ts.Getenv("BEANPOLE_ADDR"))
		var said strings.Builder
		cmd.Stderr = &said
		ts.Check(cmd.Start())
		hound := time.AfterFunc(rand.N(most), func() { cmd.Process.Kill() })
		err := cmd.Wait()
		if hound.Stop() || err == nil {
			ts.Logf("killed %d times", kills)
			if err != nil {
				ts.Fatalf("%v\n%s", err, said.String())
			}
			return
		}
		for line := range strings.Lines(said.String()) {
			if !strings.Contains(line, "the server has no list-jobs") { // which is a note
				ts.Fatalf("before it was killed it said: %s", line)
			}
		}
		kills++
	}
}

func scriptBodies(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: bodies FILE")
	}
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		var job struct{ Body string }
		ts.Check(json.Unmarshal([]byte(line), &job))
		ts.Stdout().Write([]byte(job.Body + "\n"))
	}
}

// A command that is no terminal program writes nothing to the terminal but its text.
func TestPlainTerminal(t *testing.T) {
	cmd := exec.Command("beanpole", "version")
	cmd.Env = append(cmd.Environ(), "TERM=xterm", "COLORFGBG=")
	terminal, err := pty.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	var text bytes.Buffer
	io.Copy(&text, terminal) // ends with an error where the program ends
	if err := cmd.Wait(); err != nil || !strings.HasPrefix(text.String(), "beanpole ") || strings.Contains(text.String(), "\x1b") {
		t.Errorf("%q, %v", text.String(), err)
	}
}
