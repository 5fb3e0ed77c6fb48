package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/beanpole-mq/beanpole/bench"
	"github.com/beanpole-mq/beanpole/bench/load"
	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/internal/test/freeport"
)

// A process is a beanpole with a directory of its own.
type process struct {
	*bench.Process
	command []string
	dir     string
}

func newProcess(program, dir string, flags ...string) (*process, error) {
	command := append([]string{program, "-l", "127.0.0.1", "-p", "{port}", "-b", "{dir}"}, flags...)
	return &process{command: command, dir: dir}, os.MkdirAll(dir, 0o700)
}

// start starts the process, in place of one that was killed, and returns when it answers clients.
func (p *process) start(ctx context.Context) (err error) {
	p.stop()
	p.Process, err = (&bench.Server{Command: p.command}).Start(ctx, p.dir)
	return err
}

func (p *process) stop() {
	if p.Process != nil {
		p.Stop()
	}
}

// until waits until it is so.
func until(ctx context.Context, what string, so func() bool) error {
	for !so() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w before %s", ctx.Err(), what)
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

// put measures puts at an address, and removes the jobs.
func put(ctx context.Context, addr string, connections, body int, duration time.Duration) (load.Result, error) {
	r, err := load.Run(ctx, load.Options{Addr: addr, Mix: load.Put, Tube: "jobs", Connections: connections, BodySize: body, Duration: duration})
	if err != nil {
		return r, err
	}
	c, err := client.Dial(ctx, addr, nil)
	if err != nil {
		return r, err
	}
	defer c.Close()
	_, err = c.FlushTube(ctx, client.Selection{Tube: "jobs", State: client.StateReady, Limit: client.All})
	return r, err
}

// A single is one server.
type single struct{ *process }

func startSingle(ctx context.Context, program, dir string) (single, error) {
	p, err := newProcess(program, dir)
	if err == nil {
		err = p.start(ctx)
	}
	return single{p}, err
}

func (s single) name() string { return "single server, sync before each reply" }
func (s single) pids() []int  { return []int{s.PID} }

func (s single) put(ctx context.Context, connections, body int, duration time.Duration) (load.Result, error) {
	return put(ctx, s.Addr, connections, body, duration)
}

// A cluster is three servers that keep one queue.
type cluster struct {
	program string
	members []*process
	listen  []string // for the other members
	ports   []*freeport.Port
}

// startCluster starts a cluster whose members have some flags besides.
func startCluster(ctx context.Context, program, dir string, flags ...string) (*cluster, error) {
	c := &cluster{program: program}
	for i := range members {
		if err := c.add(ctx, filepath.Join(dir, fmt.Sprint(i)), flags); err != nil {
			c.stop()
			return nil, fmt.Errorf("member %d: %w", i, err)
		}
	}
	return c, nil
}

// add starts another member, and waits until it takes part fully.
func (c *cluster) add(ctx context.Context, dir string, flags []string) error {
	m, err := newProcess(c.program, dir, flags...)
	if err != nil {
		return err
	}
	port, err := freeport.Reserve()
	if err != nil {
		return err
	}
	c.members, c.ports, c.listen = append(c.members, m), append(c.ports, port), append(c.listen, net.JoinHostPort("127.0.0.1", port.String()))
	n := len(c.members)
	if n == 1 {
		_, err = c.command(ctx, "init", dir, "--listen", c.listen[0])
	} else {
		var token []byte
		file := dir + ".token"
		if token, err = c.command(ctx, "join-token", c.members[0].dir); err == nil {
			err = os.WriteFile(file, token, 0o600)
		}
		if err == nil {
			_, err = c.command(ctx, "join", dir, c.listen[0], "--join-token-file", file, "--listen", c.listen[n-1])
		}
	}
	if err == nil {
		err = m.start(ctx)
	}
	if err == nil {
		err = c.settle(ctx, n)
	}
	return err
}

// command runs a command of beanpole cluster.
func (c *cluster) command(ctx context.Context, args ...string) ([]byte, error) {
	out, err := exec.CommandContext(ctx, c.program, append([]string{"cluster"}, args...)...).Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("cluster %s: %w: %s", args[0], err, exit.Stderr)
	}
	return out, err
}

// status is what the command status prints with --json, as far as it is used here.
type status struct {
	Members []member `json:"members"`
	Quorum  bool     `json:"quorum"`
}

type member struct {
	Address   string `json:"address"`
	Role      string `json:"role"`
	Reachable bool   `json:"reachable"`
	Lag       *int64 `json:"lag"` // nil: not known
}

// settle waits until so many members take part fully, and one of them leads.
func (c *cluster) settle(ctx context.Context, n int) error {
	return until(ctx, fmt.Sprintf("%d members take part", n), func() bool {
		leader, voters := c.look(ctx)
		return leader >= 0 && voters == n
	})
}

// look returns which member leads, or -1, and how many take part fully.
func (c *cluster) look(ctx context.Context) (leader, voters int) {
	leader = -1
	for _, k := range c.status(ctx).Members {
		if k.Role == "leader" {
			leader = slices.Index(c.listen, k.Address)
		}
		if k.Reachable && k.Role != "learner" {
			voters++
		}
	}
	return leader, voters
}

// status returns what a member tells that hears a majority; nothing if none does.
func (c *cluster) status(ctx context.Context) status {
	for i := range c.members {
		if s, ok := c.statusOf(ctx, i); ok && s.Quorum {
			return s
		}
	}
	return status{}
}

// statusOf returns what a member tells.
func (c *cluster) statusOf(ctx context.Context, i int) (s status, ok bool) {
	out, err := c.command(ctx, "status", c.members[i].dir, "--json")
	return s, err == nil && json.Unmarshal(out, &s) == nil
}

func (c *cluster) stop() {
	for _, m := range c.members {
		m.stop()
	}
	for _, p := range c.ports {
		p.Release()
	}
}

// at is a cluster whose clients are all at one member.
type at struct {
	*cluster
	leader bool // or a follower
}

func (a at) name() string {
	if a.leader {
		return "cluster of three, at the leader"
	}
	return "cluster of three, at a follower"
}

func (a at) pids() (pids []int) {
	for _, m := range a.members {
		pids = append(pids, m.PID)
	}
	return pids
}

func (a at) put(ctx context.Context, connections, body int, duration time.Duration) (load.Result, error) {
	i, _ := a.look(ctx)
	if i < 0 {
		return load.Result{}, errors.New("the cluster has no leader")
	}
	if !a.leader {
		i = (i + 1) % members
	}
	return put(ctx, a.members[i].Addr, connections, body, duration)
}
