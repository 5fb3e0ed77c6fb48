package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/beanpole-mq/beanpole/bench/load"
)

// A holding is what memory a server has, in bytes, before it has the jobs and with them.
type holding struct{ before, with float64 }

// holders are those that have all jobs.
var holders = []string{"single server", "leader of three", "follower"}

// measureMemory has new servers keep the jobs again and again, and prints their memory.
func (opt *options) measureMemory(ctx context.Context, w io.Writer, dir string) error {
	rounds := make([][]holding, len(holders))
	for i := range opt.memory {
		held, err := opt.hold(ctx, filepath.Join(dir, fmt.Sprint("memory", i)))
		if err != nil {
			return err
		}
		for k := range holders {
			rounds[k] = append(rounds[k], held[k])
		}
	}
	opt.printMemory(w, rounds)
	return nil
}

// printMemory prints the table. The first of the holders is the one that the others are compared with.
func (opt *options) printMemory(w io.Writer, rounds [][]holding) {
	fmt.Fprintf(w, "Resident memory with %d jobs of %d bytes and a journal, medians of %d rounds with new processes. The ratio is that of what the jobs have added in the same round, to the single server: its median, smallest and largest.\n\n",
		opt.jobs, opt.body, len(rounds[0]))
	fmt.Fprint(w, "| | before | with the jobs | added for a job | ratio |\n|---|--:|--:|--:|--:|\n")
	for k, name := range holders {
		held := rounds[k]
		before, with := spread(held, func(_ int, h holding) float64 { return h.before }), spread(held, func(_ int, h holding) float64 { return h.with })
		each := spread(held, func(_ int, h holding) float64 { return (h.with - h.before) / float64(opt.jobs) })
		ratio := spread(held, func(i int, h holding) float64 { return (h.with - h.before) / (rounds[0][i].with - rounds[0][i].before) })
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s |\n", name, load.Bytes.Format(before.Median), load.Bytes.Format(with.Median),
			load.Bytes.Format(each.Median), ratio.Ratio())
	}
	fmt.Fprintln(w)
}

// hold measures all holders once. One server has the jobs at a time.
func (opt *options) hold(ctx context.Context, dir string) (held []holding, err error) {
	defer os.RemoveAll(dir)
	alone, err := startSingle(ctx, opt.program, filepath.Join(dir, "single"))
	if err != nil {
		return nil, err
	}
	defer alone.stop()
	if held, err = opt.fillAndWeigh(ctx, alone.Addr, []int{alone.PID}, func() error { return nil }); err != nil {
		return nil, err
	}
	alone.stop()
	c, err := startCluster(ctx, opt.program, filepath.Join(dir, "cluster"))
	if err != nil {
		return nil, err
	}
	defer c.stop()
	leader, _ := c.look(ctx)
	if leader < 0 {
		return nil, errors.New("the cluster has no leader")
	}
	pids := []int{c.members[leader].PID, c.members[(leader+1)%members].PID}
	ofCluster, err := opt.fillAndWeigh(ctx, c.members[leader].Addr, pids, func() error { return c.level(ctx) })
	if err == nil {
		if still, _ := c.look(ctx); still != leader {
			err = errors.New("the leader has changed while the jobs were put")
		}
	}
	return append(held, ofCluster...), err
}

// fillAndWeigh puts the jobs at an address, and tells what memory some processes have before, and when they have all jobs.
func (opt *options) fillAndWeigh(ctx context.Context, addr string, pids []int, untilAll func() error) ([]holding, error) {
	held := make([]holding, len(pids))
	for i, pid := range pids {
		held[i].before = float64(load.UsageOf(pid).RSS)
	}
	fill := load.Options{Addr: addr, Mix: load.Put, Tube: "backlog", Connections: 8, InFlight: 64, BodySize: opt.body, Ops: int64(opt.jobs)}
	if _, err := load.Run(ctx, fill); err != nil {
		return nil, err
	}
	if err := untilAll(); err != nil {
		return nil, err
	}
	for i, pid := range pids {
		held[i].with = float64(load.UsageOf(pid).RSS)
	}
	return held, nil
}

// level waits until all members have what the leader has.
func (c *cluster) level(ctx context.Context) error {
	for {
		leader, voters := c.look(ctx)
		if leader >= 0 && voters == members {
			out, err := c.command(ctx, "status", c.members[leader].dir, "--json")
			var s status
			if err == nil && json.Unmarshal(out, &s) == nil && s.isLevel() {
				return nil
			}
		}
		if err := pause(ctx); err != nil {
			return fmt.Errorf("not all members have all jobs: %w", err)
		}
	}
}

// isLevel reports whether all members are known to have each entry.
func (s *status) isLevel() bool {
	for _, m := range s.Members {
		if m.Lag == nil || *m.Lag > 0 {
			return false
		}
	}
	return true
}
