package main

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"regexp"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/beanpole-mq/beanpole/internal/freeport"
)

// The stories of clusters also use the commands port and until; see TestScript.

func scriptPort(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: port NAME")
	}
	p, err := freeport.Reserve()
	ts.Check(err)
	ts.Defer(p.Release)
	ts.Setenv(args[0], p.String())
}

func scriptUntil(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: until REGEXP PROGRAM [ARG...]")
	}
	re, err := regexp.Compile(`(?m)` + args[0])
	ts.Check(err)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		cmd := exec.CommandContext(ctx, args[1], args[2:]...)
		cmd.Dir, cmd.Env = ts.MkAbs("."), environment(ts)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		stdout, _ := cmd.Output()
		if re.Match(stdout) {
			fmt.Fprintf(ts.Stdout(), "%s", stdout)
			return
		}
		if ctx.Err() != nil {
			ts.Fatalf("%s\n%s\nno match of %s in time", stdout, stderr.String(), args[0])
		}
	}
}
