package main

import (
	"encoding/json"
	"math/rand/v2"
	"os/exec"
	"strings"
	"time"

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
		if said.Len() > 0 {
			ts.Fatalf("before it was killed it said: %s", said.String())
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
