package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/journal"
	"github.com/beanpole-mq/beanpole/internal/test/freeport"
	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// The cluster scripts of TestScript use the commands port, until, damage and plant.

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
	// Without a pause, repeated runs would take the processor from the program under
	// test.
	for pace := time.NewTicker(100 * time.Millisecond); ; <-pace.C {
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

// scriptDamage changes bytes in the newest log segment of a member that has records.
func scriptDamage(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 || args[1] != "middle" && args[1] != "end" {
		ts.Fatalf("usage: damage DIR middle|end")
	}
	segments, err := filepath.Glob(filepath.Join(ts.MkAbs(args[0]), "cluster", "log", "beanpole.*.wal"))
	ts.Check(err)
	for _, name := range slices.Backward(segments) { // in numerical order
		b, err := os.ReadFile(name)
		ts.Check(err)
		const header, changed = 128, 8 // a record can end with up to 7 unused bytes
		end := len(bytes.TrimRight(b, "\x00"))
		if end <= header {
			continue
		}
		at := end - changed
		if args[1] == "middle" {
			at = end / 2
		}
		for i := range changed {
			b[at+i] ^= 0xff
		}
		ts.Check(os.WriteFile(name, b, 0o600))
		return
	}
	ts.Fatalf("the log of %s has no records", args[0])
}

// scriptPlant deletes a job from the journal of a stopped member without an entry in the
// log, as a bug would.
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
