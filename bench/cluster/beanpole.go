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
	"syscall"
	"time"

	"github.com/beanpole-mq/beanpole/bench"
	"github.com/beanpole-mq/beanpole/bench/load"
	"github.com/beanpole-mq/beanpole/client"
)

// A process is a beanpole with a directory of its own.
type process struct {
	*bench.Process
	program, dir string
	flags        []string // besides those of its addresses and directory
}

// start starts the process, in place of one that was killed, and returns when it answers clients.
func (p *process) start(ctx context.Context) (err error) {
	p.stop()
	command := []string{p.program, "-l", "127.0.0.1", "-p", "{port}", "-b", "{dir}"}
	server := bench.Server{Command: append(command, p.flags...)}
	p.Process, err = server.Start(ctx, p.dir)
	return err
}

func (p *process) stop() {
	if p.Process != nil {
		p.Process.Stop()
	}
}

// crash ends the process at once.
func (p *process) crash() error {
	p.Kill()
	return nil
}

// freeze lets the process stand still, as a paused virtual machine does; thaw lets it go on.
func (p *process) freeze() error { return syscall.Kill(p.PID, syscall.SIGSTOP) }

func (p *process) thaw(context.Context) error { return syscall.Kill(p.PID, syscall.SIGCONT) }

// pause waits a little.
func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(20 * time.Millisecond):
		return nil
	}
}

// put measures puts at an address, and removes the jobs.
func put(ctx context.Context, addr string, connections, body int, duration time.Duration) (load.Result, error) {
	r, err := load.Run(ctx, load.Options{Addr: addr, Mix: load.Put, Tube: "jobs", Connections: connections, BodySize: body, Duration: duration})
	if err != nil {
		return r, err
	}
	return r, flush(ctx, addr)
}

// flush removes the jobs of put.
func flush(ctx context.Context, addr string) error {
	c, err := client.Dial(ctx, addr, nil)
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.FlushTube(ctx, client.Selection{Tube: "jobs", State: client.StateReady, Limit: client.All})
	return err
}

// A single is one server.
type single struct{ process }

func startSingle(ctx context.Context, program, dir string) (*single, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	s := &single{process{program: program, dir: dir}}
	return s, s.start(ctx)
}

func (s *single) name() string { return "single server, sync before each reply" }
func (s *single) pids() []int  { return []int{s.PID} }

func (s *single) put(ctx context.Context, connections, body int, duration time.Duration) (load.Result, error) {
	return put(ctx, s.Addr, connections, body, duration)
}

// A cluster is three servers that keep one queue.
type cluster struct {
	program string
	members []*process
	listen  []string // for the other members
	ports   ports    // of listen
}

// startCluster starts a cluster whose members have some flags besides.
func startCluster(ctx context.Context, program, dir string, flags ...string) (*cluster, error) {
	c, err := newCluster(program, dir)
	if err != nil {
		return nil, err
	}
	for _, m := range c.members {
		m.flags = flags
	}
	if err := c.form(ctx); err != nil {
		c.stop()
		return nil, err
	}
	return c, nil
}

// newCluster returns a cluster of which nothing runs yet.
func newCluster(program, dir string) (*cluster, error) {
	ports, err := reservePorts(members)
	if err != nil {
		return nil, err
	}
	c := &cluster{program: program, ports: ports}
	for i := range members {
		c.members = append(c.members, &process{program: program, dir: filepath.Join(dir, fmt.Sprint(i))})
		c.listen = append(c.listen, net.JoinHostPort("127.0.0.1", ports[i].String()))
	}
	return c, nil
}

// form makes a cluster of what the first directory has.
func (c *cluster) form(ctx context.Context) error {
	for i, m := range c.members {
		err := c.admit(ctx, i)
		if err == nil {
			err = m.start(ctx)
		}
		if err == nil {
			err = c.settle(ctx, i+1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// admit makes the directory of a member.
func (c *cluster) admit(ctx context.Context, i int) error {
	m := c.members[i]
	if err := os.MkdirAll(m.dir, 0o700); err != nil {
		return err
	}
	if i == 0 {
		_, err := c.command(ctx, "init", m.dir, "--listen", c.listen[0])
		return err
	}
	token, err := c.command(ctx, "join-token", c.members[0].dir)
	if err != nil {
		return err
	}
	file := m.dir + ".token"
	if err := os.WriteFile(file, token, 0o600); err != nil {
		return err
	}
	_, err = c.command(ctx, "join", m.dir, c.listen[0], "--join-token-file", file, "--listen", c.listen[i])
	return err
}

// command runs a command of beanpole cluster.
func (c *cluster) command(ctx context.Context, args ...string) ([]byte, error) {
	out, err := exec.CommandContext(ctx, c.program, append([]string{"cluster"}, args...)...).Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		return nil, fmt.Errorf("cluster %s: %w", args[0], err)
	}
	return out, nil
}

// status is what the command status prints with --json, as far as it is used here.
type status struct {
	Members []struct {
		ID        uint64 `json:"id"`
		Address   string `json:"address"`
		Role      string `json:"role"`
		Reachable bool   `json:"reachable"`
		Lag       *int64 `json:"lag"` // nil: not known
	} `json:"members"`
	Quorum bool `json:"quorum"`
}

// settle waits until so many members take part fully, and one of them leads.
func (c *cluster) settle(ctx context.Context, n int) error { return c.settleWithout(ctx, n, 0) }

// settleWithout is settle that does not count the member with an id: another one takes its place.
func (c *cluster) settleWithout(ctx context.Context, n int, replaced uint64) error {
	for {
		leader, voters := c.look(ctx, replaced)
		if leader >= 0 && voters == n {
			return nil
		}
		if err := pause(ctx); err != nil {
			return fmt.Errorf("%d of %d members take part: %w", voters, n, err)
		}
	}
}

// look returns which member leads, or -1, and how many take part fully, without the one with an id.
func (c *cluster) look(ctx context.Context, without uint64) (leader, voters int) {
	leader = -1
	for _, k := range c.status(ctx).Members {
		if k.Role == "leader" {
			leader = slices.Index(c.listen, k.Address)
		}
		if k.Reachable && k.Role != "learner" && k.ID != without {
			voters++
		}
	}
	return leader, voters
}

// id returns the id of a member.
func (c *cluster) id(ctx context.Context, i int) (uint64, error) {
	for _, k := range c.status(ctx).Members {
		if k.Address == c.listen[i] {
			return k.ID, nil
		}
	}
	return 0, fmt.Errorf("the cluster has no member at %s", c.listen[i])
}

// status returns what a member tells that hears a majority; nothing if none does.
func (c *cluster) status(ctx context.Context) (s status) {
	for _, m := range c.members {
		out, err := c.command(ctx, "status", m.dir, "--json")
		if err == nil && json.Unmarshal(out, &s) == nil && s.Quorum {
			return s
		}
		s = status{}
	}
	return s
}

func (c *cluster) stop() {
	for _, m := range c.members {
		m.stop()
	}
	c.ports.release()
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
	leader, _ := a.look(ctx, 0)
	if leader < 0 {
		return load.Result{}, errors.New("the cluster has no leader")
	}
	if !a.leader {
		leader = (leader + 1) % members
	}
	return put(ctx, a.members[leader].Addr, connections, body, duration)
}
