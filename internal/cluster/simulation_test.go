package cluster

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/beanpole-mq/beanpole/client/admin/apitype"
	"github.com/beanpole-mq/beanpole/internal/cluster/raftlog"
	"github.com/beanpole-mq/beanpole/internal/test/ledger"
	"github.com/beanpole-mq/beanpole/internal/test/memfs"
)

const dir = "/"

// A simulation consists of nodes with disks, and a network between them, in a synctest
// bubble with fake time.
type simulation struct {
	t     *testing.T
	start time.Time
	opt   Options // options of all members, except those that differ by node

	mu    sync.Mutex
	rng   *rand.Rand
	nodes []*node
	cut   map[[2]uint64]bool // whether the link from one node to another is cut
	told
	once       sync.Map // reservations that workers received, of jobs with a single attempt
	fault      fault
	offOf      uint64                     // id of the node whose clock is wrong
	lagged     time.Duration              // lag of the cluster's time when all nodes lost power, which their clocks make up for
	stop       func()                     // ends the load; nil if there is none
	sent       func()                     // called when a member has sent a snapshot; can be nil
	silent     atomic.Bool                // the next member asked for a snapshot sends nothing
	laterRoles atomic.Bool                // snapshots claim to have the roles of a later entry
	lose       func(*raftpb.Message) bool // whether a message is lost; nil means that none is. Guarded by mu

	clockRead func() // called when a member reads its clock; can be nil

	refusals bool // a machine refuses connections if its process is dead
	patient  bool // connections survive short network failures

	clients *clientele // nil if the nodes have no servers

	logMu sync.Mutex // separate from mu, because a member can log while it is called under mu
	log   strings.Builder
}

// A node has a disk and, while it is running, a member.
type node struct {
	sim  *simulation
	id   uint64
	disk *memfs.FS
	off  time.Duration // offset of its clock

	// Guarded by simulation.mu.
	member *Member // nil if it is not running
	life   int
	front  *front           // nil if it has no server, or is down
	links  map[uint64]*link // links to other nodes
	peers  []uint64         // nodes to which it connects

	gone    bool         // whether its member was removed
	deposed atomic.Int32 // number of times that its clients were suspended
	trouble trouble
}

func newSimulation(t *testing.T, seed uint64, n int) *simulation {
	sim := emptySimulation(t, seed)
	sim.grow(n)
	return sim
}

// inSimulation runs a test with n members. At the end, all members must have the same
// queue, and it must be consistent with the replies to clients.
func inSimulation(t *testing.T, n int, test func(t *testing.T, sim *simulation)) {
	t.Helper()
	inSimulationOf(t, n, func(*simulation) {}, test)
}

// inSmallSimulation is inSimulation with three members whose logs are cut early.
func inSmallSimulation(t *testing.T, test func(t *testing.T, sim *simulation)) {
	t.Helper()
	inSimulationOf(t, 3, (*simulation).small, test)
}

func inSimulationOf(t *testing.T, n int, set func(*simulation), test func(t *testing.T, sim *simulation)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		sim := emptySimulation(t, 1)
		set(sim)
		sim.grow(n)
		test(t, sim)
		sim.audit()
		sim.close()
	})
}

func emptySimulation(t *testing.T, seed uint64) *simulation {
	sim := &simulation{t: t, start: time.Now(), rng: rand.New(rand.NewPCG(seed, 1)), cut: map[[2]uint64]bool{}, told: told{asked: ledger.New[string](), due: map[uint64]time.Duration{}}}
	sim.opt.Log.SegmentSize, sim.opt.Journal.SegmentSize = 256<<10, 256<<10 // disks are in memory
	return sim
}

// grow adds nodes until there are n members.
func (sim *simulation) grow(n int) {
	sim.t.Helper()
	for len(sim.nodes) < n {
		m := sim.node()
		if len(sim.nodes) > 1 {
			sim.join(m)
			continue
		}
		sim.must(Init(m.disk, dir, m.self()))
		m.boot()
		sim.leader()
	}
}

// emptyDisk returns a disk with the directories of a member, which package directory
// normally creates.
func emptyDisk() *memfs.FS {
	disk := memfs.New()
	if err := errors.Join(disk.Mkdir(filepath.Dir(LogDir(dir))), disk.Mkdir(LogDir(dir))); err != nil {
		panic(err)
	}
	return disk
}

func (sim *simulation) node() *node {
	m := &node{sim: sim, id: uint64(len(sim.nodes) + 1), disk: emptyDisk(), links: map[uint64]*link{}}
	sim.mu.Lock()
	defer sim.mu.Unlock()
	if m.id == sim.offOf {
		m.off = time.Duration(sim.rng.Int64N(int64(48*time.Hour))) - 24*time.Hour
	}
	sim.nodes = append(sim.nodes, m)
	return m
}

func (sim *simulation) must(err error) {
	sim.t.Helper()
	if err != nil {
		sim.fatalf("%v", err)
	}
}

func (sim *simulation) fatalf(format string, args ...any) {
	sim.t.Helper()
	if sim.fault != "" {
		panic(found(fmt.Sprintf(format, args...)))
	}
	sim.logMu.Lock()
	defer sim.logMu.Unlock()
	sim.t.Fatalf("%s\nlog:\n%s", fmt.Sprintf(format, args...), sim.log.String())
}

// Write receives the lines of the log.
func (sim *simulation) Write(b []byte) (int, error) {
	sim.logMu.Lock()
	defer sim.logMu.Unlock()
	fmt.Fprintf(&sim.log, "%6d ms %s", time.Since(sim.start).Milliseconds(), b)
	return len(b), nil
}

// logged returns the number of times that a text was logged.
func (sim *simulation) logged(text string) int {
	sim.logMu.Lock()
	defer sim.logMu.Unlock()
	return strings.Count(sim.log.String(), text)
}

func (m *node) self() raftlog.MemberInfo {
	return raftlog.MemberInfo{ID: m.id, Address: fmt.Sprintf("10.0.0.%d:11400", m.id)}
}

// join adds a node to the cluster, and waits until it is a voter.
func (sim *simulation) join(m *node) {
	sim.t.Helper()
	sim.joinAs(m, m.self())
}

func (sim *simulation) joinAs(m *node, self raftlog.MemberInfo) {
	sim.t.Helper()
	sim.admit(m, self)
	m.boot()
	sim.until("the member is a voter", func() bool { return sim.roles()[m.id] == apitype.Voter })
}

// admit adds a node to the cluster. It does not start the node.
func (sim *simulation) admit(m *node, self raftlog.MemberInfo) {
	sim.t.Helper()
	var l *Member
	sim.until("the member is added", func() bool {
		l = sim.leader()
		return l.Add(sim.t.Context(), self) == nil
	})
	sim.must(Join(m.disk, dir, l.Membership()))
}

// boot starts the member of a node.
func (m *node) boot() {
	m.sim.t.Helper()
	m.sim.must(m.start())
}

func (m *node) start() error {
	fmt.Fprintf(m.sim, "%d starts\n", m.id)
	o := m.sim.opt
	o.FS, o.Dir, o.Self, o.Transport = &troubledFS{m.disk, &m.trouble}, dir, m.self(), m
	o.Now = func() int64 {
		if m.sim.clockRead != nil {
			m.sim.clockRead()
		}
		return int64(time.Since(m.sim.start)) + 1
	}
	o.Wall = func() int64 { return time.Now().Add(m.off).UnixNano() }
	var f *front
	if m.sim.clients != nil {
		f = newFront(m.sim, m.id)
	}
	o.Deposed = func() {
		m.deposed.Add(1)
		if f != nil {
			<-f.opened
			f.follow(true)
		}
		m.sim.mu.Lock()
		member := m.member
		m.sim.mu.Unlock()
		if m.sim.fault == keptEngine && member != nil {
			member.forgetLost()
		}
	}
	switch m.sim.fault {
	case skippedEntry:
		o.testHook = skipLast
	case unsyncedMark:
		m.trouble.late = func(name string) time.Duration { return lateIf(isOfJournal(name)) }
	case earlyAnswer:
		m.trouble.late = func(name string) time.Duration { return lateIf(!isOfJournal(name)) }
	}
	o.Fetch = m.fetch
	o.FastFailover = true
	o.Logger = slog.New(slog.NewTextHandler(m.sim, &slog.HandlerOptions{Level: slog.LevelDebug})).With("member", m.id)
	member, err := Open(o)
	if err != nil {
		return err
	}
	if m.sim.fault == followerTick {
		member.done.Go(member.tickOn)
	}
	if f != nil {
		f.start(member)
	}
	m.sim.mu.Lock()
	defer m.sim.mu.Unlock()
	m.member, m.front = member, f
	m.life++
	m.ping(m.life)
	return nil
}

// kill kills the process of a node. If power is true, the machine also loses power.
func (m *node) kill(power bool) {
	sim := m.sim
	fmt.Fprintf(sim, "%d is killed; power %v\n", m.id, power)
	sim.mu.Lock()
	member, f := m.member, m.front
	m.member, m.front = nil, nil
	m.life++
	var luck *rand.Rand // all written data is on the disk
	if power {
		luck = sim.rng
	}
	m.disk.Cut() // later operations of the process do not change the next process's disk
	m.disk = m.disk.Crash(luck)
	sim.mu.Unlock()
	m.trouble.goOn() // no operation waits for the disk
	if f != nil {
		f.crash()
	}
	if member != nil {
		sim.disconnect(m)
		sim.refuse(m, member.Lead().Term)
		member.Close() // ends its goroutines; it no longer uses the node's disk
	}
	if f != nil {
		f.done.Wait()
	}
}

// leader waits until a member is active, and returns it.
func (sim *simulation) leader() *Member {
	sim.t.Helper()
	var leader *Member
	sim.until("somebody leads", func() bool {
		sim.mu.Lock()
		defer sim.mu.Unlock()
		var term uint64
		leader = nil
		for _, m := range sim.nodes {
			if m.member == nil {
				continue
			}
			if l := m.member.Lead(); l.Epoch != 0 && l.Term > term {
				leader, term = m.member, l.Term
			}
		}
		return leader != nil
	})
	return leader
}

func (sim *simulation) nodeOf(member *Member) *node { return sim.nodes[member.opt.Self.ID-1] }

// checkPhases fails the test if a member contradicts its phase.
func (sim *simulation) checkPhases() {
	for _, m := range sim.nodes {
		sim.mu.Lock()
		member := m.member
		sim.mu.Unlock()
		if member != nil {
			sim.must(member.checkPhase())
		}
	}
}

// until advances fake time until a condition holds.
func (sim *simulation) until(what string, so func() bool) {
	sim.t.Helper()
	for range 3000 {
		if so() {
			return
		}
		if err := sim.whatIsWrong(); err != nil {
			sim.fatalf("%v", err)
		}
		sim.checkPhases()
		time.Sleep(10 * time.Millisecond)
	}
	for _, m := range sim.nodes {
		if m.member != nil {
			s, err := m.member.Status()
			fmt.Fprintf(sim, "%d: %+v %v %v applied %v\n", m.id, s, err, m.member.Err(), m.applied())
		}
	}
	sim.fatalf("timeout after 30 s: %s", what)
}

// removed waits until the member of a node has stopped because it was removed.
func (sim *simulation) removed(m *node) {
	sim.t.Helper()
	sim.until("the member that was removed stops", func() bool { return errors.Is(m.member.Err(), ErrRemoved) })
	if err := m.member.Close(); !errors.Is(err, ErrRemoved) {
		sim.fatalf("member %d was removed, and its error is %v", m.id, err)
	}
	sim.mu.Lock()
	m.member = nil
	sim.mu.Unlock()
	if err := m.start(); !errors.Is(err, ErrRemoved) {
		sim.fatalf("member %d was removed, and starts: %v", m.id, err)
	}
}

// close closes all members, without errors.
func (sim *simulation) close() { sim.must(sim.abandon()) }

// abandon closes all members and ends the load.
func (sim *simulation) abandon() (err error) {
	for _, m := range sim.nodes {
		m.trouble.goOn() // Close waits for a hanging disk
		sim.mu.Lock()
		member, f := m.member, m.front
		m.member, m.front = nil, nil
		sim.mu.Unlock()
		if f != nil {
			f.crash()
			defer f.done.Wait()
		}
		if member != nil {
			err = errors.Join(err, member.Broker().Check(), member.Close())
		}
	}
	if sim.stop != nil {
		sim.stop()
	}
	time.Sleep(2 * longCut) // until front.carry has ended
	return err
}
