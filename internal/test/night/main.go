// Command night runs at length what make test runs in short, and what make test leaves
// out: make night calls it. It prints a line when a part ends, and a table in the end.
//
//	go run ./internal/test/night -hours 8              everything
//	go run ./internal/test/night -hours 1 -only journal   what a change of the journal can break
//
// First each part runs that has an end of its own, such as the race detector over all
// tests. Then the others share the time that is left, two at a time on two processors:
// simulations and soaks with seeds that are new each time, and fuzz targets. What a run
// printed is in build/night. The exit code is 1 if anything failed.
//
// Start reading at parts.go, the list of all parts.
package main

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"text/tabwriter"
	"time"
)

var (
	hours = flag.Float64("hours", 8, "how many `hours` it takes, or longer if the parts that run once take longer")
	only  = flag.String("only", "", "only parts whose area or name matches this regular `expression`")
	list  = flag.Bool("list", false, "name the parts, and run none")
	logs  = flag.String("logs", "build/night", "the `directory` for what the runs print")
)

var (
	counted   = regexp.MustCompile(`(?m)(?:seeds|rounds|execs|states): (\d+)|(\d+) states,|OK, passed (\d+) tests`)
	fuzzed    = regexp.MustCompile(`execs: (\d+)`)
	againWith = regexp.MustCompile(`again with: (.*)`)
)

// A night is the runs so far.
type night struct {
	mu      sync.Mutex
	results map[string]*result
	order   []string
}

// A result is what all runs of a part came to.
type result struct {
	runs, failed int
	counted      int // seeds, rounds, inputs or states
	took         time.Duration
	again        string // the command that repeats the first failure
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
	targets, err := fuzz()
	if err != nil {
		return err
	}
	first, then, finally := chosen(once, expression), chosen(slices.Concat(long, targets), expression), chosen(last, expression)
	if len(first)+len(then)+len(finally) == 0 {
		return fmt.Errorf("no part matches -only=%s; -list names them", *only)
	}
	if *list {
		for _, p := range slices.Concat(first, then, finally) {
			fmt.Println(p)
		}
		return nil
	}
	if err := os.MkdirAll(*logs, 0o755); err != nil {
		return err
	}

	end := time.Now().Add(time.Duration(*hours * float64(time.Hour)))
	n := &night{results: make(map[string]*result)}
	for _, p := range first {
		n.run(p, 0)
	}
	n.share(then, end)
	for _, p := range finally {
		n.run(p, 0)
	}
	return n.report()
}

// share runs parts until the end, as many at a time as there are processors. Each has the
// same time, in pieces of ten minutes at most.
func (n *night) share(parts []part, end time.Time) {
	lanes := runtime.NumCPU()
	for left := time.Until(end); len(parts) > 0 && left > 0; left = time.Until(end) {
		piece := max(10*time.Second, min(10*time.Minute, left*time.Duration(lanes)/time.Duration(len(parts))))
		queue := make(chan part)
		var wg sync.WaitGroup
		for range lanes {
			wg.Go(func() {
				for p := range queue {
					n.run(p, piece.Round(time.Second))
				}
			})
		}
		for _, p := range parts {
			queue <- p
		}
		close(queue)
		wg.Wait()
		if left < piece {
			return
		}
	}
}

// run runs a part, for so long if it goes on.
func (n *night) run(p part, d time.Duration) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), d+3*time.Hour)
	defer cancel()
	command := p.lasting(d)
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // and its children end with it
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	took := time.Since(began)

	n.mu.Lock()
	defer n.mu.Unlock()
	r := n.results[p.String()]
	if r == nil {
		r = &result{}
		n.results[p.String()], n.order = r, append(n.order, p.String())
	}
	r.runs++
	r.took += took
	r.counted += count(out.String())
	verdict := "ok"
	if err != nil {
		verdict = "FAILED: " + err.Error()
		r.failed++
		r.again = cmp.Or(r.again, p.again(d, out.String()))
	}
	name := fmt.Sprintf("%s-%d.log", regexp.MustCompile(`[^\w]+`).ReplaceAllString(p.String(), "-"), r.runs)
	if err := os.WriteFile(filepath.Join(*logs, name), out.Bytes(), 0o644); err != nil {
		verdict += "; " + err.Error()
	}
	fmt.Printf("%s  %7s  %s  %s\n", time.Now().Format("15:04:05"), took.Round(time.Second), p, verdict)
}

// count adds up how much a run says that it did. A fuzz target says that all the time.
func count(output string) (sum int) {
	if all := fuzzed.FindAllStringSubmatch(output, -1); all != nil {
		sum, _ = strconv.Atoi(all[len(all)-1][1])
		return sum
	}
	for _, m := range counted.FindAllStringSubmatch(output, -1) {
		n, _ := strconv.Atoi(strings.Join(m[1:], ""))
		sum += n
	}
	return sum
}

// report prints the table. It returns an error if anything failed.
func (n *night) report() error {
	failed := 0
	fmt.Println()
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PART\tRUNS\tSEEDS, ROUNDS, INPUTS\tSECONDS\tFAILED\tAGAIN WITH")
	for _, name := range n.order {
		r := n.results[name]
		counted := ""
		if r.counted > 0 {
			counted = strconv.Itoa(r.counted)
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%.0f\t%d\t%s\n", name, r.runs, counted, r.took.Seconds(), r.failed, r.again)
		if r.failed > 0 {
			failed++
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d parts failed", failed, len(n.order))
	}
	return nil
}
