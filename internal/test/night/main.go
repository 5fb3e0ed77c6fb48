// Command night runs the long form of all tests, and the checks that "make test" leaves
// out. "make night" calls it.
//
//	go run ./internal/test/night -hours 8                 all parts
//	go run ./internal/test/night -hours 1 -only journal   tests that a change of the journal can break
//
// Parts with a fixed length run first. The others (simulations and soak tests with new
// seeds, and fuzz targets) share the remaining time, one per CPU at a time. build/night
// contains the output of each run. The exit code is 1 if a run has failed.
//
// Start reading at parts.go, the list of all parts.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

var (
	hours = flag.Float64("hours", 8, "duration in `hours`; parts with a fixed length can exceed it")
	only  = flag.String("only", "", "run only parts whose area or name matches this regular `expression`")
)

// logs is the directory for the output of the runs.
const logs = "build/night"

var notWord = regexp.MustCompile(`\W+`)

// A night runs parts.
type night struct {
	mu     sync.Mutex
	failed []string // logs of the parts that failed
}

func main() {
	flag.Parse()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "night:", err)
		os.Exit(1)
	}
}

func run() error {
	expression, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	targets, err := fuzzTargets()
	if err != nil {
		return err
	}
	unwanted := func(p part) bool { return !expression.MatchString(p.String()) }
	first := slices.DeleteFunc(once, unwanted)
	shared := slices.DeleteFunc(append(long, targets...), unwanted)
	finally := slices.DeleteFunc(last, unwanted)
	if len(first)+len(shared)+len(finally) == 0 {
		return fmt.Errorf("no part matches -only=%s; internal/test/night/parts.go lists the parts", *only)
	}
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return err
	}
	end := time.Now().Add(time.Duration(*hours * float64(time.Hour)))
	n := new(night)
	for _, p := range first {
		n.run(p, 0)
	}
	n.share(shared, end)
	for _, p := range finally {
		n.run(p, 0)
	}
	if len(n.failed) > 0 {
		return fmt.Errorf("%d parts failed: %q", len(n.failed), n.failed)
	}
	return nil
}

// share runs parts until the time end, one per CPU at a time. Each part gets the same
// time.
func (n *night) share(parts []part, end time.Time) {
	if len(parts) == 0 {
		return
	}
	var lanes errgroup.Group
	lanes.SetLimit(runtime.NumCPU())
	each := max(10*time.Second, time.Until(end)*time.Duration(runtime.NumCPU())/time.Duration(len(parts)))
	for _, p := range parts {
		lanes.Go(func() error {
			n.run(p, each.Round(time.Second))
			return nil
		})
	}
	lanes.Wait()
}

// run runs a part. d is the duration of a part without a fixed length.
func (n *night) run(p part, d time.Duration) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), d+3*time.Hour)
	defer cancel()
	command := p.lasting(d)
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the part's children end with it
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	var out bytes.Buffer
	fmt.Fprintf(&out, "%q\n", command)
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()

	n.mu.Lock()
	defer n.mu.Unlock()
	log := filepath.Join(logs, notWord.ReplaceAllString(p.String(), "-")+".log")
	verdict := "ok"
	if err != nil {
		verdict = fmt.Sprintf("FAILED: %v; see %s", err, log)
		n.failed = append(n.failed, log)
	}
	if err := os.WriteFile(log, out.Bytes(), 0o644); err != nil {
		verdict += "; " + err.Error()
	}
	fmt.Printf("%s  %7s  %s  %s\n", time.Now().Format("15:04:05"), time.Since(began).Round(time.Second), p, verdict)
}
