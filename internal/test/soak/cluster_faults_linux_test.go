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

// A fault disturbs a server or a cluster under load. The fault ends when do returns.
type fault struct {
	name  string
	needs func(c *group) error // returns an error if the fault is impossible here, or is nil
	do    func(c *group)
}

// clusterFaults are the faults of a cluster, in the order in which they occur.
var clusterFaults = append([]fault{
	{"kill -9 of the leader", nil, func(c *group) { c.restartAfter(c.leader(), (*process).kill) }},
	{"kill -9 of all members at once", nil, killAll},
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
			c.s.t.Logf("the leadership was not transferred: %v: %s", err, out) // the target might already lead
		}
	}},
	{"kill -9 of a follower", nil, func(c *group) { c.restartAfter(c.leader().next(), (*process).kill) }},
	{"a follower is removed and joins as a new member", nil, func(c *group) { c.renew(c.leader().next()) }},
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

// roll restarts one member after the other with the given program.
func (c *group) roll(program string) {
	for _, p := range c.members {
		p.program = program
		c.restartAfter(p, (*process).terminate)
		c.awaitAll(mayLag)
	}
}

// partitions contains cuts of the network between members.
var partitions = []fault{
	{"the leader is cut off from one follower", aNetwork, parted(anyMember, both(0, 1))},
	{"the followers are cut off from each other", aNetwork, parted(anyMember, both(1, 2))},
	{"a follower is cut off", aNetwork, parted(anyMember, both(1, 0), both(1, 2))},
	{"all members are cut off from each other", aNetwork, parted(noMember, both(0, 1), both(1, 2), both(2, 0))},
	{"no member hears the leader", aNetwork, parted(another, oneWay(0, 1), oneWay(0, 2))},
	{"the leader hears no member", aNetwork, parted(another, oneWay(1, 0), oneWay(2, 0))},
	{"one follower receives nothing from the leader", aNetwork, parted(anyMember, oneWay(0, 1))},
	{"the leader receives nothing from one follower", aNetwork, parted(anyMember, oneWay(1, 0))},
	{"no member hears a follower", aNetwork, parted(anyMember, oneWay(1, 0), oneWay(1, 2))},
	{"each member hears one other", aNetwork, parted(noMember, oneWay(0, 1), oneWay(1, 2), oneWay(2, 0))},
	{"short cuts", aNetwork, flap},
}

func aNetwork(c *group) error {
	if c.network == nil {
		return errors.New("namespaces are unavailable")
	}
	return nil
}

// An able value defines which member can lead during a fault.
type able int

const (
	anyMember able = iota // the leader or another member
	another               // a member other than the old leader
	noMember
)

// A way is a direction between two members. 0 is the member that leads when the cut
// starts, and 1 and 2 are the others.
type way struct{ from, to int }

func oneWay(from, to int) []way { return []way{{from, to}} }

func both(a, b int) []way { return []way{{a, b}, {b, a}} }

// parted returns a fault that cuts some ways. It heals them when clients were served in
// spite of the cuts, or when all members have noticed that this is impossible.
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
		if can == noMember {
			until(c.s.t, "all members notice that there is no majority", func() bool {
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

// goOn lets a fault last some seconds. If the cluster can work, goOn also waits until
// clients are served.
func (c *group) goOn(can able, leader *process) {
	if can == noMember {
		c.s.pause(4 * time.Second)
		return
	}
	if can == another {
		c.awaitLeaderBut(leader)
	}
	c.s.pause(4 * time.Second)
	c.load.await(acksPerRound)
}

// flap repeatedly cuts random ways for short times.
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

// diskFaults contains faults of a member's disk.
var diskFaults = []fault{
	{"the disk of the leader hangs", aTracer, injected(leads, another, "fdatasync,fsync,pwrite64", "delay_enter=3600s")},
	{"the syncs of the leader hang", aTracer, injected(leads, another, "fdatasync,fsync", "delay_enter=3600s")},
	{"the disk of a follower hangs", aTracer, injected(follows, anyMember, "fdatasync,fsync,pwrite64", "delay_enter=3600s")},
	{"the disk of the leader is slow", aTracer, injected(leads, anyMember, "fdatasync,fsync", "delay_enter=200ms")},
	{"the disk of a follower is slow", aTracer, injected(follows, anyMember, "fdatasync,fsync", "delay_enter=200ms")},
	{"syncs of the leader fail", aTracer, injected(leads, another, "fdatasync,fsync", "error=EIO")},
	{"syncs of a follower fail", aTracer, injected(follows, anyMember, "fdatasync,fsync", "error=EIO")},
	{"writes of the leader have no room", aTracer, injected(leads, another, "pwrite64,fallocate", "error=ENOSPC")},
	{"writes of a follower have no room", aTracer, injected(follows, anyMember, "pwrite64,fallocate", "error=ENOSPC")},
	{"the disk of the leader is full", aSmallDisk, filled(leads, anyMember)},
	{"the disk of a follower is full", aSmallDisk, filled(follows, anyMember)},
}

func aTracer(*group) error {
	_, err := exec.LookPath("strace")
	return err
}

func aSmallDisk(c *group) error {
	if !c.small {
		return errors.New("the disks are large; use an odd seed, and namespaces, for small disks")
	}
	return nil
}

func leads(c *group) *process { return c.leader() }

func follows(c *group) *process { return c.leader().next() }

// injected returns a fault that makes calls of a member fail or hang while the other
// members continue.
func injected(whom func(*group) *process, can able, calls, how string) func(*group) {
	return func(c *group) {
		p := whom(c)
		if can == noMember || strings.Contains(how, "ENOSPC") {
			c.h.diskIsFull()
		}
		how := how
		if can == noMember && c.s.rng.IntN(2) == 0 { // every few calls, not all
			how += fmt.Sprintf(":when=%d+%d", 1+c.s.rng.IntN(20), 1+c.s.rng.IntN(5))
		}
		cmd, letGo := tracer("-f", "-o", "/dev/null", "-p", fmt.Sprint(p.srv.Cmd.Process.Pid), "-e", "signal=none", "-e", "trace="+calls, "-e", "inject="+calls+":"+how)
		awaitAttached(c.s.t, cmd)
		defer letGo()
		c.goOn(can, p)
	}
}

// filled returns a fault that fills the disk of a member while the other members
// continue.
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

// changes contains changes of the members or of their versions.
var changes = []fault{
	{"the leader is removed and joins as a new member", nil, func(c *group) { c.renew(c.leader()) }},
	{"a lost member is replaced", nil, func(c *group) {
		p := c.leader().next()
		id := c.idOf(p)
		p.kill()
		c.must(os.RemoveAll(p.dir))
		p.move()
		c.admit(p, "--replace", fmt.Sprint(id))
	}},
	{"a member joins again", nil, func(c *group) {
		p := c.leader().next()
		p.kill()
		c.run("cluster", "rejoin", p.dir)
		c.must(p.start())
	}},
	{"rolling change to the older version and back", anOldProgram, func(c *group) {
		c.roll(*oldProgram)
		c.load.await(acksPerRound)
		c.roll(c.s.program)
	}},
}

func anOldProgram(*group) error {
	if *oldProgram == "" {
		return errors.New("no older version; set -cluster.old")
	}
	return nil
}

// renew removes a member and lets it join again as a new member.
func (c *group) renew(p *process) {
	id := c.idOf(p)
	c.run("cluster", "remove", p.next().dir, fmt.Sprint(id))
	p.kill()
	c.must(os.RemoveAll(p.dir))
	c.awaitLeaderBut(p)
	c.admit(p)
}
