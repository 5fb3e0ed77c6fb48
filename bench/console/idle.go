package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// idle measures what servers do that nobody uses, with the console and without.
func (opt *options) idle(ctx context.Context, w io.Writer, beanpole string) error {
	fmt.Fprint(w, "| nobody looks, no clients | wake-ups of threads, 1/s | processor, us/s |\n|---|--:|--:|\n")
	for _, one := range []struct {
		name string
		args []string
	}{{"console", nil}, {"`--console=false`", []string{"--console=false"}}} {
		s, err := opt.start(ctx, beanpole, one.args...)
		if err != nil {
			return err
		}
		woken, used, err := rest(s.PID, 3*opt.lasts)
		s.stop()
		if err != nil {
			return err
		}
		seconds := 3 * opt.lasts.Seconds()
		fmt.Fprintf(w, "| %s | %.1f | %.0f |\n", one.name, float64(woken)/seconds, float64(used.Microseconds())/seconds)
	}
	fmt.Fprintln(w)
	return nil
}

// rest returns how often the threads of a process have been woken within a while, and how long they have had a
// processor. The process has some seconds before that, to end what it has begun.
func rest(pid int, lasts time.Duration) (woken uint64, used time.Duration, err error) {
	time.Sleep(min(lasts, 5*time.Second))
	woken, used, err = scheduled(pid)
	if err != nil {
		return 0, 0, err
	}
	time.Sleep(lasts)
	wokenAfter, usedAfter, err := scheduled(pid)
	return wokenAfter - woken, usedAfter - used, err
}

// scheduled returns how often the threads of a process have waited for something until now, and how long they have
// had a processor.
func scheduled(pid int) (waits uint64, used time.Duration, err error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	if err != nil || len(threads) == 0 {
		return 0, 0, fmt.Errorf("process %d has no threads: %w", pid, os.ErrNotExist)
	}
	for _, dir := range threads {
		status, err := os.ReadFile(filepath.Join(dir, "status"))
		if err != nil {
			return 0, 0, err
		}
		for line := range strings.Lines(string(status)) {
			if value, ok := strings.CutPrefix(line, "voluntary_ctxt_switches:"); ok {
				n, err := strconv.ParseUint(strings.TrimSpace(value), 10, 64)
				if err != nil {
					return 0, 0, err
				}
				waits += n
			}
		}
		times, err := os.ReadFile(filepath.Join(dir, "schedstat"))
		if err != nil {
			return 0, 0, err
		}
		ns, err := strconv.ParseInt(strings.Fields(string(times))[0], 10, 64)
		if err != nil {
			return 0, 0, err
		}
		used += time.Duration(ns)
	}
	return waits, used, nil
}
