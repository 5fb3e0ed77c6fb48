package soak

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

var oldProgram = flag.String("cluster.old", "", "an older version of the program, which TestCluster runs beside the other")

// A fault happens to a server or a cluster under load, and is over when do returns.
type fault struct {
	name  string
	needs func(c *group) error // nil: nothing; an error says why it cannot happen here
	do    func(c *group)
}

// clusterFaults are what happens, in turn.
var clusterFaults = append([]fault{
	{"kill -9 of the leader", nil, func(c *group) { c.restartAfter(c.leader(), (*process).kill) }},
	{"kill -9 of all at once", nil, killAll},
	{"the leader is cut off", aNetwork, parted(another, both(0, 1), both(0, 2))},
	{"SIGSTOP of the leader", nil, func(c *group) {
		p := c.leader()
		p.srv.Cmd.Process.Signal(syscall.SIGSTOP)
		c.awaitLeaderBut(p)
		p.srv.Cmd.Process.Signal(syscall.SIGCONT)
	}},
	{"transfer", nil, func(c *group) {
		to := c.leader().next()
		if out, err := to.command("cluster", "transfer", to.dir); err != nil {
			c.s.t.Logf("the leadership was not handed over: %v: %s", err, out) // it may lead by now
		}
	}},
	{"kill -9 of a follower", nil, func(c *group) { c.restartAfter(c.leader().next(), (*process).kill) }},
	{"a member is removed, and joins as another one", nil, func(c *group) { c.renew(c.leader().next()) }},
	{"rolling restart", nil, func(c *group) { c.roll(c.s.program) }},
}, slicesOf(partitions, diskFaults, changes)...)

func slicesOf(lists ...[]fault) (all []fault) {
	for _, list := range lists {
		all = append(all, list...)
	}
	return all
}

func killAll(c *group) {
	for _, p := range c.members {
		p.srv.Cmd.Process.Kill()
	}
	var starts sync.WaitGroup
	for _, p := range c.members {
		<-p.srv.Exited
		starts.Go(func() { c.must(p.start()) })
	}
	starts.Wait()
}

// roll restarts one member after the other, with a program.
func (c *group) roll(program string) {
	for _, p := range c.members {
		p.program = program
		c.restartAfter(p, (*process).terminate)
		c.awaitAll(mayLag)
	}
}

// partitions are cuts of the network between members.
var partitions = []fault{
	{"the leader is cut off from one", aNetwork, parted(somebody, both(0, 1))},
	{"the followers are cut off from each other", aNetwork, parted(somebody, both(1, 2))},
	{"a follower is cut off", aNetwork, parted(somebody, both(1, 0), both(1, 2))},
	{"all are cut off from each other", aNetwork, parted(nobody, both(0, 1), both(1, 2), both(2, 0))},
	{"nobody hears the leader", aNetwork, parted(another, oneWay(0, 1), oneWay(0, 2))},
	{"the leader hears nobody", aNetwork, parted(another, oneWay(1, 0), oneWay(2, 0))},
	{"one does not hear the leader", aNetwork, parted(somebody, oneWay(0, 1))},
	{"the leader does not hear one", aNetwork, parted(somebody, oneWay(1, 0))},
	{"nobody hears a follower", aNetwork, parted(somebody, oneWay(1, 0), oneWay(1, 2))},
	{"each hears one other", aNetwork, parted(nobody, oneWay(0, 1), oneWay(1, 2), oneWay(2, 0))},
	{"short cuts", aNetwork, flap},
}

func aNetwork(c *group) error {
	if c.network == nil {
		return errors.New("there are no namespaces")
	}
	return nil
}

// Who can lead while the network is parted.
type able int

const (
	somebody able = iota // the leader, or another one
	another              // not the one that led
	nobody
)

// A way is from one member to another. 0 is the leader when the cut begins; 1 and 2 are the others.
type way struct{ from, to int }

func oneWay(from, to int) []way { return []way{{from, to}} }

func both(a, b int) []way { return []way{{a, b}, {b, a}} }

// parted cuts some ways, and heals them when the others have gone on without, or know that they cannot.
func parted(can able, cuts ...[]way) func(*group) {
	return func(c *group) {
		leader := c.leader()
		roles := []*process{leader, leader.next(), leader.next().next()}
		for _, ways := range cuts {
			for _, w := range ways {
				c.network.cut(roles[w.from].host, roles[w.to].host)
			}
		}
		defer c.network.heal()
		if can == nobody {
			until(c.s.t, "all know that there is no majority", func() bool {
				return !slices.ContainsFunc(roles, func(p *process) bool {
					st, ok := p.status()
					return ok && st.Quorum
				})
			})
			return
		}
		c.goOn(can, leader)
	}
}

// goOn waits until clients are served in spite of a fault, which lasts some seconds; if they can be.
func (c *group) goOn(can able, leader *process) {
	if can == nobody {
		c.s.pause(4 * time.Second)
		return
	}
	if can == another {
		c.awaitLeaderBut(leader)
	}
	c.s.pause(4 * time.Second)
	c.load.await(acksPerRound)
}

// flap cuts some ways at random, for moments.
func flap(c *group) {
	for range 15 {
		for _, from := range c.members {
			for _, to := range c.members {
				if from != to && c.s.rng.IntN(2) == 0 {
					c.network.cut(from.host, to.host)
				}
			}
		}
		c.s.pause(700 * time.Millisecond)
		c.network.heal()
		c.s.pause(300 * time.Millisecond)
	}
}

// diskFaults are what a disk does to a member.
var diskFaults = []fault{
	{"the disk of the leader hangs", aTracer, injected(leads, another, "fdatasync,fsync,pwrite64", "delay_enter=3600s")},
	{"the syncs of the leader hang", aTracer, injected(leads, another, "fdatasync,fsync", "delay_enter=3600s")},
	{"the disk of a follower hangs", aTracer, injected(follows, somebody, "fdatasync,fsync,pwrite64", "delay_enter=3600s")},
	{"the disk of the leader is slow", aTracer, injected(leads, somebody, "fdatasync,fsync", "delay_enter=200ms")},
	{"the disk of a follower is slow", aTracer, injected(follows, somebody, "fdatasync,fsync", "delay_enter=200ms")},
	{"syncs of the leader fail", aTracer, injected(leads, another, "fdatasync,fsync", "error=EIO")},
	{"syncs of a follower fail", aTracer, injected(follows, somebody, "fdatasync,fsync", "error=EIO")},
	{"writes of the leader have no room", aTracer, injected(leads, another, "pwrite64,fallocate", "error=ENOSPC")},
	{"writes of a follower have no room", aTracer, injected(follows, somebody, "pwrite64,fallocate", "error=ENOSPC")},
	{"the disk of the leader is full", aSmallDisk, filled(leads, somebody)},
	{"the disk of a follower is full", aSmallDisk, filled(follows, somebody)},
}

func aTracer(*group) error {
	_, err := exec.LookPath("strace")
	return err
}

func aSmallDisk(c *group) error {
	if !c.small {
		return errors.New("the members' disks are large: they are small ones with odd seeds, in namespaces")
	}
	return nil
}

func leads(c *group) *process { return c.leader() }

func follows(c *group) *process { return c.leader().next() }

// injected lets calls of a member fail or last, while the others go on.
func injected(whom func(*group) *process, can able, calls, how string) func(*group) {
	return func(c *group) {
		p := whom(c)
		if can == nobody || strings.Contains(how, "ENOSPC") {
			c.h.diskIsFull()
		}
		how := how
		if can == nobody && c.s.rng.IntN(2) == 0 { // from some call on each so many, not all
			how += fmt.Sprintf(":when=%d+%d", 1+c.s.rng.IntN(20), 1+c.s.rng.IntN(5))
		}
		cmd, letGo := tracer("-f", "-o", "/dev/null", "-p", fmt.Sprint(p.srv.Cmd.Process.Pid), "-e", "signal=none", "-e", "trace="+calls, "-e", "inject="+calls+":"+how)
		awaitAttached(c.s.t, cmd)
		defer letGo()
		c.goOn(can, p)
	}
}

// filled leaves no room on the disk of a member, while the others go on.
func filled(whom func(*group) *process, can able) func(*group) {
	return func(c *group) {
		p := whom(c)
		c.h.diskIsFull()
		empty, err := fillDisk(filepath.Join(filepath.Dir(p.dir), "ballast"))
		c.must(err)
		defer empty()
		c.goOn(can, p)
	}
}

// changes are of the members, and of their versions.
var changes = []fault{
	{"the leader is removed, and joins as another one", nil, func(c *group) { c.renew(c.leader()) }},
	{"a member is lost, and replaced", nil, func(c *group) {
		p := c.leader().next()
		id := c.idOf(p)
		p.kill()
		c.must(os.RemoveAll(p.dir))
		p.move()
		c.admit(p, "replace", fmt.Sprint(id))
	}},
	{"a member joins again", nil, func(c *group) {
		p := c.leader().next()
		p.kill()
		c.run("cluster", "rejoin", p.dir)
		c.must(p.start())
	}},
	{"rolling change to the older version, and back", anOldProgram, func(c *group) {
		c.roll(*oldProgram)
		c.load.await(acksPerRound)
		c.roll(c.s.program)
	}},
}

func anOldProgram(*group) error {
	if *oldProgram == "" {
		return errors.New("no older version was named")
	}
	return nil
}

// renew removes a member, and lets it join as another one.
func (c *group) renew(p *process) {
	id := c.idOf(p)
	c.run("cluster", "remove", p.next().dir, fmt.Sprint(id))
	p.kill()
	c.must(os.RemoveAll(p.dir))
	c.awaitLeaderBut(p)
	c.admit(p, "join")
}
