package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/beanpole-mq/beanpole/bench"
	"github.com/beanpole-mq/beanpole/bench/load"
	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/test/freeport"
)

// A process is a beanpole server with its own directory.
type process struct {
	*bench.Process
	command []string
	dir     string
	port    *freeport.Port // port for the other members
}

func newProcess(program, dir string, flags ...string) (*process, error) {
	command := append([]string{program, "-l", "127.0.0.1", "-p", "{port}", "-b", "{dir}"}, flags...)
	return &process{command: command, dir: dir}, os.MkdirAll(dir, 0o700)
}

// listen returns the address on which a member listens for other members.
func (p *process) listen() string { return "127.0.0.1:" + p.port.String() }

// start starts the process, possibly again after a kill, and returns when it answers
// clients.
func (p *process) start(ctx context.Context) (err error) {
	p.stop()
	p.Process, err = (&bench.Server{Command: p.command}).Start(ctx, p.dir)
	return err
}

func (p *process) stop() {
	if p.Process != nil {
		p.Kill()
	}
}

// until waits until so returns true. what describes the condition.
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

// putsAt measures puts at an address, and removes the jobs.
func putsAt(where func(context.Context) (addr string, err error)) puts {
	return func(ctx context.Context, connections, body int, duration time.Duration) (r load.Result, err error) {
		addr, err := where(ctx)
		if err == nil {
			r, err = load.Run(ctx, load.Options{Addr: addr, Mix: load.Put, Tube: "jobs", Connections: connections, BodySize: body, Duration: duration})
		}
		if err != nil {
			return r, err
		}
		c, err := client.Dial(ctx, addr, nil)
		if err != nil {
			return r, err
		}
		defer c.Close()
		_, err = c.FlushTube(ctx, "jobs", client.StateReady, client.All)
		return r, err
	}
}

// startSingle starts one server.
func startSingle(ctx context.Context, program, dir string) (*process, error) {
	p, err := newProcess(program, dir)
	if err == nil {
		err = p.start(ctx)
	}
	return p, err
}

// A cluster is three servers with one queue.
type cluster struct {
	program string
	members []*process
}

// startCluster starts a cluster whose members have some additional flags.
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

// add starts another member, and waits until it is a voter.
func (c *cluster) add(ctx context.Context, dir string, flags []string) error {
	m, err := newProcess(c.program, dir, flags...)
	if err != nil {
		return err
	}
	if m.port, err = freeport.Reserve(); err != nil {
		return err
	}
	c.members = append(c.members, m)
	n := len(c.members)
	if n == 1 {
		_, err = c.command(ctx, "init", dir, "--listen", m.listen())
	} else {
		var token []byte
		file := dir + ".token"
		if token, err = c.command(ctx, "join-token", c.members[0].dir); err == nil {
			err = os.WriteFile(file, token, 0o600)
		}
		if err == nil {
			_, err = c.command(ctx, "join", dir, c.members[0].listen(), "--join-token-file", file, "--listen", m.listen())
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

// settle waits until the cluster has n voters and a leader.
func (c *cluster) settle(ctx context.Context, n int) error {
	return until(ctx, fmt.Sprintf("%d members take part", n), func() bool {
		leader, voters := c.look(ctx)
		return leader >= 0 && voters == n
	})
}

// look returns the index of the leader, or -1, and the number of voters.
func (c *cluster) look(ctx context.Context) (leader, voters int) {
	leader = -1
	for _, k := range c.status(ctx).Members {
		if k.Role == admin.Leader {
			leader = slices.IndexFunc(c.members, func(m *process) bool { return m.listen() == k.Address })
		}
		if k.Reachable && k.Role != admin.Learner {
			voters++
		}
	}
	return leader, voters
}

// status returns the status from a member that reaches a majority, or the zero value if
// there is no such member.
func (c *cluster) status(ctx context.Context) admin.Cluster {
	for i := range c.members {
		if s, ok := c.statusOf(ctx, i); ok && s.Quorum {
			return s
		}
	}
	return admin.Cluster{}
}

// statusOf returns the status from a member.
func (c *cluster) statusOf(ctx context.Context, i int) (s admin.Cluster, ok bool) {
	out, err := c.command(ctx, "status", c.members[i].dir, "--json")
	return s, err == nil && json.Unmarshal(out, &s) == nil
}

func (c *cluster) stop() {
	for _, m := range c.members {
		m.stop()
		m.port.Release()
	}
}

// leader returns the address of the leader.
func (c *cluster) leader(ctx context.Context) (string, error) { return c.fromLeader(ctx, 0) }

// follower returns the address of another member.
func (c *cluster) follower(ctx context.Context) (string, error) { return c.fromLeader(ctx, 1) }

func (c *cluster) fromLeader(ctx context.Context, n int) (string, error) {
	i, _ := c.look(ctx)
	if i < 0 {
		return "", errors.New("the cluster has no leader")
	}
	return c.members[(i+n)%members].Addr, nil
}

func (c *cluster) pids() (all []int) {
	for _, m := range c.members {
		all = append(all, m.PID)
	}
	return all
}
