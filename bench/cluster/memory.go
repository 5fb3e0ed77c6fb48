package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/beanpole-mq/beanpole/bench/load"
	"github.com/beanpole-mq/beanpole/client/admin"
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
func (opt *options) hold(ctx context.Context, dir string) ([]holding, error) {
	defer os.RemoveAll(dir)
	alone, err := startSingle(ctx, opt.program, filepath.Join(dir, "single"))
	if err != nil {
		return nil, err
	}
	defer alone.stop()
	before := weigh(alone)
	if err := opt.fill(ctx, alone.Addr); err != nil {
		return nil, err
	}
	held := []holding{{before[0], weigh(alone)[0]}}
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
	both := []*process{c.members[leader], c.members[(leader+1)%members]}
	before = weigh(both...)
	if err := opt.fill(ctx, both[0].Addr); err != nil {
		return nil, err
	}
	if err := c.level(ctx); err != nil {
		return nil, err
	}
	for i, with := range weigh(both...) {
		held = append(held, holding{before[i], with})
	}
	if still, _ := c.look(ctx); still != leader {
		return nil, errors.New("the leader has changed while the jobs were put")
	}
	return held, nil
}

// weigh tells the memory of processes.
func weigh(of ...*process) (rss []float64) {
	for _, p := range of {
		rss = append(rss, float64(load.UsageOf(p.PID).RSS))
	}
	return rss
}

// fill puts the jobs at an address.
func (opt *options) fill(ctx context.Context, addr string) error {
	_, err := load.Run(ctx, load.Options{Addr: addr, Mix: load.Put, Tube: "backlog", Connections: 8, InFlight: 64, BodySize: opt.body, Ops: int64(opt.jobs)})
	return err
}

// level waits until all members have what the leader has.
func (c *cluster) level(ctx context.Context) error {
	return until(ctx, "all members have all jobs", func() bool {
		leader, voters := c.look(ctx)
		if leader < 0 || voters != members {
			return false
		}
		s, ok := c.statusOf(ctx, leader)
		return ok && !slices.ContainsFunc(s.Members, func(m admin.ClusterMember) bool { return m.Progress == nil || m.Lag > 0 })
	})
}
