package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/freeport"
	"github.com/beanpole-mq/beanpole/internal/journal"
	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// The stories of clusters also use the commands port, until and plant; see TestScript.

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

// scriptPlant deletes a job from the journal of a member that does not run, as a defect would: the log knows
// nothing of it.
func scriptPlant(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: plant DIR JOB")
	}
	job, err := strconv.ParseUint(args[1], 10, 64)
	ts.Check(err)
	j := journal.New(journal.Options{Member: true, Sync: time.Second})
	_, err = j.Open(vfs.OS, ts.MkAbs(args[0]), engine.New(engine.Options{Logged: true}))
	ts.Check(err)
	ts.Check(j.AppendCommitted([]engine.Change{{Kind: engine.JobDeleted, ID: job}}, j.Applied()))
	_, err = j.Flush()
	ts.Check(errors.Join(err, j.Sync(), j.Close()))
}
