package soak

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/beanpole-mq/beanpole/internal/test/exectest"
	"github.com/beanpole-mq/beanpole/internal/test/freeport"
	"github.com/beanpole-mq/beanpole/internal/test/netns"
	"github.com/beanpole-mq/beanpole/internal/test/seeds"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

var faultKinds = flag.String("faults", "", "only faults whose name matches this regular expression")

// TestCluster runs three members under faults. Clients put, peek, reserve, bury, kick and
// delete jobs through any member. No acknowledged change is lost or undone, and the
// history of each job fits a single queue.
func TestCluster(t *testing.T) {
	t.Parallel()
	if isolate(t) {
		return
	}
	s := newSoak(t)
	c := newGroup(s)
	defer c.stop()
	faults := c.possible(clusterFaults)
	h := c.h
	c.load = c.begin()
	defer c.load.end()
	c.load.await(acksPerRound)
	gaps := make(map[string][]time.Duration)
	s.rng.Shuffle(len(faults), func(i, j int) { faults[i], faults[j] = faults[j], faults[i] })
	for round := range seeds.Rounds(t, 1) {
		f := faults[round%len(faults)]
		t.Logf("round %d: %s", round+1, f.name)
		began := h.now()
		f.do(c)
		c.load.await(acksPerRound)
		c.awaitAll(mayLag)
		c.load.await(acksPerRound)
		gap := c.load.probes.longest(began)
		gaps[f.name] = append(gaps[f.name], gap)
		t.Logf("round %d: %s: no put was acknowledged for %v", round+1, f.name, gap.Round(time.Millisecond))
	}
	c.load.end()
	c.audit()
	for name, all := range gaps {
		slices.Sort(all)
		t.Logf("%s: median %v, worst %v of %d", name, all[len(all)/2].Round(time.Millisecond), all[len(all)-1].Round(time.Millisecond), len(all))
	}
	t.Logf("%d puts, %d deletes and %d other commands were acknowledged, %d were not answered", h.count("put"), h.count("delete"), h.others(), h.unknown())
	h.check(t)
	c.awaitAll(0)
	c.stop()
	c.restart() // after a disk fault, the journal can lack entries of the log
	c.awaitAll(0)
	c.stop()
	c.compare()
}

// mayLag is the maximum number of log entries by which a member can lag under load.
const mayLag = 5000

// acksPerRound is the number of commands that are acknowledged before and after each
// fault.
const acksPerRound = 200

// A group is a cluster or a single server.
type group struct {
	s       *soak
	h       *history
	members []*process
	network *network // nil if all members use this machine's network
	small   bool     // the members' disks are small
	load    *load
	stopped bool
}

// A process is a member: a directory with two ports, and the program that serves it.
type process struct {
	c       *group
	dir     string
	program string
	args    []string    // additional arguments of the server
	shell   string      // shell command that runs before the server starts
	socket  *os.File    // inherited socket that listens at clients, or nil
	host    *netns.Host // nil on this machine
	clients string      // address for clients
	addr    string      // address for other members
	moves   int         // number of changes of addr
	srv     *exectest.Process
}

// newGroup starts three members. The first has the journal of a single server, so the
// others need a snapshot in addition to the log.
func newGroup(s *soak) *group {
	c := &group{s: s, h: newHistory()}
	if netns.Isolated() {
		c.network = newNetwork(s.t)
	}
	for i := range 3 {
		p := &process{c: c, dir: filepath.Join(c.disk(), fmt.Sprintf("member%d", i)), program: s.program, args: []string{"-s", "20000"}}
		if c.network != nil {
			p.host = c.network.add()
			p.clients = p.host.Addr + ":11300"
		} else {
			p.clients = freeAddress(s.t)
		}
		p.move()
		c.members = append(c.members, p)
		if i == 0 {
			c.fillQueue(p)
			c.run("cluster", "init", p.dir, "--listen", p.addr)
			c.must(p.start())
		} else {
			c.admit(p)
		}
	}
	return c
}

// disk returns a directory for a member. With odd seeds it is on its own small disk.
func (c *group) disk() string {
	dir := c.s.t.TempDir()
	c.small = c.network != nil && c.s.seed%2 == 1
	if c.small {
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=400m"); err != nil {
			c.s.t.Fatal(err)
		}
		c.s.t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	}
	return dir
}

func freeAddress(t *testing.T) string {
	port, err := freeport.Reserve()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(port.Release)
	return "127.0.0.1:" + port.String()
}

// move gives a member a new address for the other members.
func (p *process) move() {
	if p.host == nil {
		p.addr = freeAddress(p.c.s.t)
		return
	}
	p.moves++
	p.addr = fmt.Sprintf("%s:%d", p.host.Addr, 11400+p.moves)
}

// fillQueue puts jobs into a single server, which leaves its journal.
func (c *group) fillQueue(p *process) {
	c.must(os.Mkdir(p.dir, 0o700))
	c.must(p.start())
	conn := p.dial()
	const jobs = 500
	io.WriteString(conn, strings.Repeat("put 0 0 60 5\r\nfirst\r\n", jobs)+"quit\r\n")
	if replies, err := io.ReadAll(conn); strings.Count(string(replies), "INSERTED") != jobs {
		c.s.t.Fatalf("%v: %.200q", err, replies)
	}
	conn.Close()
	p.terminate()
}

// possible returns the faults that are possible here and match -faults.
func (c *group) possible(all []fault) (faults []fault) {
	name := regexp.MustCompile(*faultKinds)
	for _, f := range all {
		if !name.MatchString(f.name) {
			continue
		}
		if f.needs != nil {
			if err := f.needs(c); err != nil {
				c.s.t.Logf("without %q: %v", f.name, err)
				continue
			}
		}
		faults = append(faults, f)
	}
	if len(faults) == 0 {
		c.s.t.Skip("no selected fault is possible here")
	}
	return faults
}

// admit prepares an empty directory for a new member with cluster join, and waits until
// the member is a voter.
func (c *group) admit(p *process, options ...string) {
	token := filepath.Join(c.s.t.TempDir(), "token")
	leader := c.leader()
	until(c.s.t, "a token exists", func() bool {
		text, err := leader.command("cluster", "join-token", leader.dir)
		return err == nil && os.WriteFile(token, text, 0o600) == nil
	})
	c.run(append(append([]string{"cluster", "join"}, options...), p.dir, leader.addr, "--join-token-file", token, "--listen", p.addr)...)
	c.must(p.start())
	c.awaitAll(mayLag)
}

func (c *group) must(err error) {
	if err != nil {
		c.s.t.Helper()
		c.s.t.Error(err)
	}
}

// run runs a command of the program and fails the test if the command fails.
func (c *group) run(args ...string) {
	c.s.t.Helper()
	if out, err := exec.Command(c.s.program, args...).CombinedOutput(); err != nil {
		c.s.t.Fatalf("%q: %v\n%s", args, err, out)
	}
}

func (p *process) command(args ...string) ([]byte, error) {
	limit := commandTimeout // the network might drop its packets
	if args[0] == "journal" || slices.Contains(args, "--offline") {
		limit = patience
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	out, err := exec.CommandContext(ctx, p.c.s.program, args...).Output()
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("%w: %s", err, e.Stderr)
	}
	return out, err
}

// start starts the member. When it returns, the cluster might not have a leader yet.
func (p *process) start() (err error) {
	host, port, _ := net.SplitHostPort(p.clients)
	program, args := p.program, append([]string{"-b", p.dir, "-l", host, "-p", port}, p.args...)
	var env []string
	var files []*os.File
	if p.socket != nil { // a shell sets LISTEN_PID to the server's process
		args, p.shell = slices.Delete(args, 2, 6), "export LISTEN_PID=$$"
		env, files = []string{"LISTEN_FDS=1"}, []*os.File{p.socket}
	}
	if p.shell != "" {
		program, args = "sh", append([]string{"-c", p.shell + `; exec "$0" "$@"`, program}, args...)
	}
	if p.host != nil {
		program, args = p.host.Command(program, args...)
	}
	p.srv, err = start(program, args, env, files...)
	return err
}

func (p *process) dial() net.Conn {
	conn, err := net.Dial("tcp", p.clients)
	if err != nil {
		p.c.s.t.Fatal(err)
	}
	return conn
}

func (p *process) stats() map[string]string {
	conn := p.dial()
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(patience))
	io.WriteString(conn, "stats\r\nquit\r\n")
	text, err := io.ReadAll(conn)
	var r wire.Reply
	if err == nil {
		_, err = wire.ParseReply(text, &r)
	}
	dict, err2 := wire.ParseDict(r.Body)
	if err := errors.Join(err, err2); err != nil {
		p.c.s.t.Fatalf("stats: %v", err)
	}
	return dict
}

func (p *process) kill() { p.srv.Kill() }

func (p *process) terminate() {
	if err := p.srv.Stop(); err != nil {
		p.c.s.t.Error(err)
	}
}

func (p *process) next() *process {
	i := slices.Index(p.c.members, p)
	return p.c.members[(i+1)%len(p.c.members)]
}

// restartAfter ends a member, waits until the others work without it, and starts it
// again.
func (c *group) restartAfter(p *process, end func(*process)) {
	end(p)
	c.awaitLeaderBut(p)
	c.must(p.start())
}

// restart starts all members after stop, and waits until one of them leads, and therefore
// has determined the committed entries.
func (c *group) restart() {
	for _, p := range c.members {
		c.must(p.start())
	}
	c.stopped = false
	k := &clients{c: c, timeout: commandTimeout}
	defer k.disconnect()
	until(c.s.t, "a leader answers", func() bool { return k.do("peek", 1) })
}

func (c *group) stop() {
	if c.stopped {
		return
	}
	c.stopped = true
	if c.load != nil {
		c.load.end()
	}
	if c.s.t.Failed() && len(c.members) > 1 {
		for _, p := range c.members {
			out, err := p.command("cluster", "status", p.dir)
			c.s.t.Logf("cluster status at %s: %v\n%s", p.addr, err, out)
		}
	}
	for _, p := range c.members {
		if p.srv != nil && p.srv.Alive() {
			p.srv.Cmd.Process.Signal(syscall.SIGCONT)
			p.terminate()
		}
	}
	if c.s.t.Failed() {
		for _, p := range c.members {
			c.s.t.Logf("the log of %s:\n%s", p.addr, p.srv.Log.End())
		}
	}
}

// memberStatus is the part of "cluster status" for one member.
type memberStatus struct {
	ID        uint64  `json:"id"`
	Address   string  `json:"address"`
	Role      string  `json:"role"`
	Reachable bool    `json:"reachable"`
	Applied   uint64  `json:"applied"`
	Lag       *uint64 `json:"lag"` // nil if unknown
}

type groupStatus struct {
	Members []memberStatus `json:"members"`
	Quorum  bool           `json:"quorum"`
}

// status returns a member's view of the cluster. The command prints the status even if it
// exits with an error because of findings, such as a nearly full disk.
func (p *process) status() (st groupStatus, ok bool) {
	out, _ := p.command("cluster", "status", p.dir, "--json")
	return st, json.Unmarshal(out, &st) == nil
}

// leaderBut returns the leader that a member other than p reports, or nil.
func (c *group) leaderBut(p *process) *process {
	for _, asked := range c.members {
		if asked == p || asked.srv == nil || !asked.srv.Alive() {
			continue
		}
		st, ok := asked.status()
		if !ok || !st.Quorum {
			continue
		}
		for _, m := range st.Members {
			i := slices.IndexFunc(c.members, func(p *process) bool { return p.addr == m.Address })
			if m.Role == "leader" && i >= 0 && c.members[i] != p {
				return c.members[i]
			}
		}
	}
	return nil
}

func (c *group) idOf(p *process) (id uint64) {
	until(c.s.t, "the leader lists "+p.addr, func() bool {
		st, ok := c.leader().status()
		if !ok {
			return false
		}
		for _, m := range st.Members {
			if m.Address == p.addr {
				id = m.ID
			}
		}
		return id != 0
	})
	return id
}

func (c *group) leader() *process { return c.awaitLeaderBut(nil) }

func (c *group) awaitLeaderBut(p *process) (leader *process) {
	until(c.s.t, "a member leads", func() bool {
		leader = c.leaderBut(p)
		return leader != nil
	})
	return leader
}

// awaitAll waits until all members are voters, and have received and applied all entries
// except at most `most`.
func (c *group) awaitAll(most uint64) {
	until(c.s.t, "all members are voters and up to date", func() bool {
		leader := c.leaderBut(nil)
		if leader == nil {
			return false
		}
		st, ok := leader.status()
		if !ok || len(st.Members) != len(c.members) || slices.ContainsFunc(st.Members, func(m memberStatus) bool {
			return m.Role == "learner" || !m.Reachable || m.Lag == nil || *m.Lag > most
		}) {
			return false
		}
		committed := uint64(0)
		for _, m := range st.Members {
			committed = max(committed, m.Applied)
		}
		return !slices.ContainsFunc(c.members, func(p *process) bool { return p.applied()+most < committed })
	})
}

// applied returns the last entry in the member's journal. It reads the directory, because
// members do not report it: "cluster status" asks the leader.
func (p *process) applied() uint64 {
	var st struct {
		Applied struct {
			Index uint64 `json:"index"`
		} `json:"applied"`
	}
	out, err := p.command("cluster", "status", "--offline", "--json", p.dir)
	if err != nil || json.Unmarshal(out, &st) != nil {
		return 0 // the server has just removed a file of the journal
	}
	return st.Applied.Index
}

// until waits until is returns true because of other processes.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	deadline := time.Now().Add(3 * patience)
	for pause := time.Millisecond; !is(); pause = min(2*pause, 200*time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("timeout while waiting until %s", what)
		}
		time.Sleep(pause)
	}
}

// audit peeks at each known job, and at some deleted jobs, while no client changes the
// queue.
func (c *group) audit() {
	k := &clients{c: c, timeout: commandTimeout}
	defer k.disconnect()
	ids, past := c.h.ids()
	c.s.rng.Shuffle(len(past), func(i, j int) { past[i], past[j] = past[j], past[i] })
	for some := range slices.Chunk(append(ids, past[:min(len(past), 2000)]...), 100) {
		var all []request
		for _, id := range some {
			all = append(all, request{"peek", id}, request{"kick-job", id}) // kick-job succeeds if the job is buried
		}
		until(c.s.t, "a member answers", func() bool { return k.talk(all...) })
	}
	if len(c.members) > 1 {
		return
	}
	jobs, stats := 0, c.members[0].stats()
	for _, state := range []string{"ready", "reserved", "delayed", "buried"} {
		n, _ := strconv.Atoi(stats["current-jobs-"+state])
		jobs += n
	}
	if there, more := c.h.there(); jobs < there || jobs > there+more {
		c.s.t.Errorf("the server has %d jobs; the history has %d, and %d unanswered puts", jobs, there, more)
	}
	if health := stats["journal-health"]; health != "ok" {
		c.s.t.Errorf("journal-health is %q after a start", health)
	}
}

// compare compares the jobs on the members' disks.
func (c *group) compare() {
	t := c.s.t
	var first []string
	for _, p := range c.members {
		out, err := p.command("journal", "dump", "--live", p.dir)
		if err != nil {
			t.Errorf("%s: %v", p.dir, err)
			return
		}
		jobs := liveJobs(t, out)
		if p == c.members[0] {
			first = jobs
		} else if !slices.Equal(first, jobs) {
			t.Errorf("the jobs of %s and %s differ: %d and %d jobs\n%s", p.addr, c.members[0].addr, len(jobs), len(first), difference(jobs, first))
		}
	}
	if !t.Failed() {
		return
	}
	for _, p := range c.members {
		out, err := p.command("cluster", "status", "--offline", p.dir)
		t.Logf("the directory of %s: %v\n%s\nand its last log:\n%s", p.addr, err, out, p.srv.Log.End())
	}
}

func liveJobs(t *testing.T, dump []byte) (lines []string) {
	for line := range strings.Lines(string(dump)) {
		var j struct {
			ID    uint64 `json:"id"`
			Tube  string `json:"tube"`
			State string `json:"state"`
			Body  string `json:"body"`
		}
		if err := json.Unmarshal([]byte(line), &j); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		lines = append(lines, fmt.Sprintf("%012d %s %s %s", j.ID, j.Tube, j.State, j.Body))
	}
	slices.Sort(lines)
	return lines
}

func difference(a, b []string) string {
	var diff []string
	for _, line := range a {
		if !slices.Contains(b, line) {
			diff = append(diff, "+"+line)
		}
	}
	for _, line := range b {
		if !slices.Contains(a, line) {
			diff = append(diff, "-"+line)
		}
	}
	return strings.Join(diff[:min(len(diff), 20)], "\n")
}
