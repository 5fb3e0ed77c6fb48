package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/beanpole-mq/beanpole/bench"
	"github.com/beanpole-mq/beanpole/bench/load"
	"github.com/beanpole-mq/beanpole/client"
)

// A joining is what one member that joins was measured to cost.
type joining struct {
	before, while, after float64 // puts/s of the clients at the leader
	took                 time.Duration
}

// measureJoins lets a member join again and again, and prints what the clients at the leader get meanwhile.
func (opt *options) measureJoins(ctx context.Context, w io.Writer, dir string) error {
	c, err := newCluster(opt.program, dir)
	if err != nil {
		return err
	}
	defer c.stop()
	if err := opt.fill(ctx, c.members[0]); err != nil {
		return err
	}
	if err := c.form(ctx); err != nil {
		return err
	}
	fmt.Fprintf(w, "Puts of %d bytes at the leader of three members with %d jobs, one of which joins again with nothing: medians of %d rounds, smallest and largest.\n\n", opt.body, opt.jobs, opt.joins)
	fmt.Fprint(w, "| clients | puts/s before | while it joins, of that | after, of that | it votes after |\n|--:|--:|--:|--:|--:|\n")
	for _, connections := range opt.connections {
		var all []joining
		for range opt.joins {
			j, err := opt.measureJoin(ctx, c, connections)
			if err != nil {
				return fmt.Errorf("%d connections: %w", connections, err)
			}
			all = append(all, j)
		}
		of := func(value func(j joining) float64) *bench.Spread {
			values := make([]float64, len(all))
			for i := range all {
				values[i] = value(all[i])
			}
			return bench.NewSpread(values)
		}
		before, took := of(func(j joining) float64 { return j.before }), of(func(j joining) float64 { return j.took.Seconds() })
		while, after := of(func(j joining) float64 { return j.while / j.before }), of(func(j joining) float64 { return j.after / j.before })
		fmt.Fprintf(w, "| %d | %.0f | %s | %s | %.1f s (%.1f..%.1f) |\n", connections, before.Median,
			while.Ratio(), after.Ratio(), took.Median, took.Min, took.Max)
	}
	fmt.Fprintln(w)
	return nil
}

// fill puts the jobs into the journal of a single server.
func (opt *options) fill(ctx context.Context, p *process) error {
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return err
	}
	if err := p.start(ctx); err != nil {
		return err
	}
	defer p.stop()
	return opt.pile(ctx, p.Addr)
}

// pile puts the jobs at an address.
func (opt *options) pile(ctx context.Context, addr string) error {
	_, err := load.Run(ctx, load.Options{Addr: addr, Mix: load.Put, Tube: "backlog", Connections: 8, InFlight: 64, BodySize: opt.body, Ops: int64(opt.jobs)})
	return err
}

// measureJoin lets a member join while clients put jobs at the leader.
func (opt *options) measureJoin(ctx context.Context, c *cluster, connections int) (j joining, err error) {
	leader, voters := c.look(ctx, 0)
	if leader < 0 || voters != members {
		return j, errors.New("the cluster has no leader, or not all members take part")
	}
	addr := c.members[leader].Addr
	conn, err := client.Dial(ctx, addr, nil)
	if err != nil {
		return j, err
	}
	defer conn.Close()
	loading, end := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		_, err := load.Run(loading, load.Options{Addr: addr, Mix: load.Put, Tube: "jobs", Connections: connections, BodySize: opt.body, Duration: time.Hour, Warmup: -1})
		ended <- err
	}()
	j, err = opt.watchJoin(ctx, c, (leader+1)%members, conn)
	end()
	if loadErr := <-ended; !errors.Is(loadErr, context.Canceled) {
		err = errors.Join(err, loadErr)
	}
	return j, errors.Join(err, flush(ctx, addr))
}

// watchJoin counts the puts of a leader before a member joins in its own place, while it does, and after.
func (opt *options) watchJoin(ctx context.Context, c *cluster, i int, conn *client.Conn) (j joining, err error) {
	last, at := uint64(0), time.Now()
	lap := func() (rate float64) { // since the last call
		st, statsErr := conn.Stats(ctx)
		if statsErr != nil {
			err = errors.Join(err, statsErr)
			return 0
		}
		now := time.Now()
		rate = float64(st.CmdPut-last) / now.Sub(at).Seconds()
		last, at = st.CmdPut, now
		return rate
	}
	time.Sleep(opt.duration / 2) // the load settles
	lap()
	time.Sleep(opt.duration)
	j.before = lap()
	m := c.members[i]
	old, err := c.id(ctx, i)
	if err != nil {
		return j, err
	}
	m.stop()
	if _, err := c.command(ctx, "rejoin", m.dir); err != nil {
		return j, err
	}
	lap()
	began := at
	if err := m.start(ctx); err != nil {
		return j, err
	}
	if err := c.settleWithout(ctx, members, old); err != nil {
		return j, err
	}
	j.while = lap()
	j.took = at.Sub(began)
	time.Sleep(opt.duration)
	j.after = lap()
	return j, err
}
