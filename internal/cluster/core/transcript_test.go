package core

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/cryptotest"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/beanpole-mq/beanpole/internal/cluster/raftlog"
)

var update = flag.Bool("update", false, "rewrite the transcripts in testdata")

// The transcripts in testdata tell stories of a few members, like etcd-io/raft's
// transcripts. An unindented line is a command, an indented line is its result, and a
// line that starts with # is a comment. -update writes the results.
//
//	members 3              creates voters with empty logs
//	tick 1 x20             the clock of a member ticks
//	propose 1 a b          a member proposes entries in its epoch, or in another: propose 1 @2 a
//	deliver [1->2]         the messages in transit arrive, or those of one direction
//	drop [1->2]            they are lost
//	sync 1                 a member writes and syncs its pending data
//	apply 1                it applies its pending entries
//	settle                 all of this, for all members, until no work is left
//	crash 1, start 1       it loses power and unsynced data; it starts again
//	ask 1, lease 1         it asks a majority to confirm that it leads; prints the rest of its lease
//	wait 100ms             time passes, and no clock ticks
//	transfer 1 2, resign 1, reloaded 1, forget 1 2, stand 1, change 1 learner|voter|remove 4
//	cut 1                  its log is cut at the last applied entry
//	fetch 1 2              it fetches a snapshot from another member and passes it to Raft
//	installed 1            the snapshot is installed
//	expire 1 2             the leader stops waiting for another member to fetch a snapshot
//	status                 prints the state of all members
//
// A number can be a list: tick 1,2.
func TestTranscripts(t *testing.T) {
	names, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(names) == 0 {
		t.Fatal(err)
	}
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			cryptotest.SetGlobalRandom(t, 1)
			want, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			s := &stage{t: t}
			for line := range strings.Lines(string(want)) {
				if strings.HasPrefix(line, " ") {
					continue
				}
				s.out.WriteString(line)
				if words := strings.Fields(line); len(words) > 0 && !strings.HasPrefix(line, "#") {
					s.do(words[0], words[1:])
				}
			}
			got := s.out.String()
			if *update {
				if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			is, was := strings.Split(got, "\n"), strings.Split(string(want), "\n")
			for i := range min(len(is), len(was)) {
				if is[i] != was[i] {
					t.Fatalf("line %d is\n%s\nand is to be\n%s", i+1, is[i], was[i])
				}
			}
			if len(is) != len(was) {
				t.Fatalf("%d lines, and %d are to be", len(is), len(was))
			}
		})
	}
}

// A stage contains the members of a transcript, and the messages between them.
type stage struct {
	t     *testing.T
	out   strings.Builder
	now   int64
	nodes []*node
	net   []*raftpb.Message // messages in transit, in order
	quiet bool              // print only changes of the members' state
}

// A node is a member.
type node struct {
	machine // the core is nil if it is not running
	mark    raftlog.Position
	writes  []Write
	apply   []Apply
	said    string
}

func (s *stage) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("%v\n%s", err, s.out.String())
	}
}

func (s *stage) tell(format string, args ...any) {
	for line := range strings.Lines(fmt.Sprintf(format, args...)) {
		fmt.Fprintf(&s.out, "  %s\n", strings.TrimRight(line, "\n"))
	}
}

// do executes a command.
func (s *stage) do(verb string, args []string) {
	switch verb {
	case "members":
		s.begin(int(s.number(args[0])))
	case "deliver", "drop":
		s.deliver(verb == "drop", args)
	case "settle":
		s.settle()
	case "wait":
		ms, err := strconv.ParseInt(strings.TrimSuffix(args[0], "ms"), 10, 64)
		s.must(err)
		s.now += ms * 1e6
	case "status":
		for _, n := range s.nodes {
			s.tell("%d: %s", n.id, n.status())
		}
	default:
		for id := range strings.SplitSeq(args[0], ",") {
			s.act(s.nodes[s.number(id)-1], verb, args[1:])
		}
	}
	s.work()
}

func (s *stage) number(text string) uint64 {
	n, err := strconv.ParseUint(text, 10, 64)
	s.must(err)
	return n
}

func (s *stage) begin(members int) {
	s.now = 1e9
	var voters []uint64
	for i := range members {
		voters = append(voters, uint64(i+1))
	}
	for range voters {
		s.grow(&raftpb.ConfState{Voters: voters}, 0)
	}
}

// grow creates and starts another member.
func (s *stage) grow(conf *raftpb.ConfState, index uint64) {
	n := new(node)
	n.id = uint64(len(s.nodes) + 1)
	n.opt = raftlog.Options{SegmentSize: 64 << 10, LogID: n.id}
	s.nodes = append(s.nodes, n)
	s.must(n.create(conf, index))
	s.start(n)
}

func (s *stage) start(n *node) {
	s.must(n.machine.start(n.log.State().Starts, n.mark))
	n.writes, n.apply, n.said = nil, nil, n.status()
}

// lost is a random source with which a crash loses all writes that are not synced.
type lost struct{}

func (lost) Uint64() uint64 { return 1 << 32 } // selects the first alternative

// act executes a command of one member.
func (s *stage) act(n *node, verb string, args []string) {
	switch c := n.core; verb {
	case "tick":
		times := uint64(1)
		if len(args) > 0 {
			times = s.number(strings.TrimPrefix(args[0], "x"))
		}
		for range times {
			s.now += int64(c.opt.Tick)
			c.Tick(s.now)
		}
	case "propose":
		epoch := c.Lead().Epoch
		if at, ok := strings.CutPrefix(args[0], "@"); ok {
			epoch, args = s.number(at), args[1:]
		}
		var entries [][]byte
		for _, a := range args {
			entries = append(entries, []byte(a))
		}
		if err := c.Propose(epoch, entries...); err != nil {
			s.tell("%d: %v", n.id, err)
		}
	case "sync":
		s.sync(n)
	case "apply":
		s.applied(n)
	case "crash":
		n.core = nil
		n.disk = n.disk.Crash(rand.New(lost{}))
	case "start":
		s.must(n.open())
		s.start(n)
		s.tell("%d: %s", n.id, n.said)
	case "ask":
		s.tell("question %d", c.Ask(s.now))
	case "lease":
		s.tell("%d ms, question %d is answered", max(0, c.LeasedUntil()-s.now)/1e6, c.Confirmed())
	case "transfer":
		c.Transfer(s.number(args[0]))
	case "resign":
		c.Resign()
	case "reloaded":
		c.Reloaded()
	case "forget":
		term := c.Lead().Term
		s.tell("%v", c.Forget(s.number(args[0]), term))
	case "stand":
		term := c.Lead().Term
		c.Stand(term)
	case "cut":
		s.must(n.log.Cut(c.Applied()))
		s.must(n.log.Sync())
	case "fetch":
		from := s.nodes[s.number(args[0])-1].core
		conf, _ := from.Conf()
		at := from.Applied()
		s.tell("of %d/%d: %v", at.Term, at.Index, c.Restore(&raftpb.Snapshot{Metadata: &raftpb.SnapshotMetadata{ConfState: conf, Index: &at.Index, Term: &at.Term}}))
	case "installed":
		c.Installed()
		n.mark = c.Applied()
	case "expire":
		c.SnapshotFailed(s.number(args[0]))
	case "change":
		kind := map[string]raftpb.ConfChangeType{"learner": raftpb.ConfChangeAddLearnerNode, "voter": raftpb.ConfChangeAddNode, "remove": raftpb.ConfChangeRemoveNode}[args[0]]
		id := s.number(args[1])
		if err := c.ProposeConf(c.Lead().Epoch, &raftpb.ConfChangeV2{Changes: []*raftpb.ConfChangeSingle{{Type: kind.Enum(), NodeId: &id}}}); err != nil {
			s.tell("%d: %v", n.id, err)
		}
	default:
		s.t.Fatalf("no command %q", verb)
	}
}

// sync writes and syncs the data that a member must write.
func (s *stage) sync(n *node) {
	responses, _, err := n.append(n.writes)
	s.must(errors.Join(err, n.log.Sync()))
	n.writes = nil
	n.core.Done(responses)
}

func (s *stage) applied(n *node) {
	apply := n.apply
	n.apply = nil
	for _, a := range apply {
		n.core.Done(a.Responses)
		n.mark = n.core.Applied()
	}
}

// deliver delivers the messages in transit, or loses them.
func (s *stage) deliver(drop bool, args []string) {
	var now []*raftpb.Message
	for _, m := range s.net {
		if len(args) == 0 || args[0] == fmt.Sprintf("%d->%d", m.GetFrom(), m.GetTo()) {
			now = append(now, m)
		}
	}
	s.net = slices.DeleteFunc(s.net, func(m *raftpb.Message) bool { return slices.Contains(now, m) })
	for _, m := range now {
		to := s.nodes[m.GetTo()-1]
		if drop || to.core == nil {
			continue
		}
		if err := to.core.Step(m); err != nil {
			s.tell("%d: %v: %v", to.id, err, describe(m))
		}
	}
}

func (s *stage) settle() {
	s.quiet = true
	defer func() { s.quiet = false }()
	for range 100 {
		s.work()
		busy := len(s.net) > 0
		s.deliver(false, nil)
		for _, n := range s.nodes {
			if n.core != nil && len(n.writes)+len(n.apply) > 0 {
				busy = true
				s.sync(n)
				s.applied(n)
			}
		}
		if !busy {
			return
		}
	}
	s.t.Fatal("it does not settle")
}

// work collects the work of all members and prints it.
func (s *stage) work() {
	for _, n := range s.nodes {
		if n.core == nil {
			continue
		}
		w := n.core.Work()
		if now := n.status(); now != n.said {
			n.said = now
			s.tell("%d: %s", n.id, now)
		}
		s.net = append(s.net, w.Send...)
		n.writes, n.apply = append(n.writes, w.Write...), append(n.apply, w.Apply...)
		if w.Roles != nil {
			s.must(n.log.SetMembership(raftlog.Membership{Roles: w.Roles.Conf, RolesIndex: w.Roles.Index}))
			s.tell("%d: members at entry %d: %s", n.id, w.Roles.Index, raft.DescribeConfState(w.Roles.Conf))
			for _, id := range w.Roles.Conf.GetLearners() {
				if id > uint64(len(s.nodes)) {
					s.grow(w.Roles.Conf, w.Roles.Index)
				}
			}
		}
		if s.quiet {
			continue
		}
		for i, m := range w.Send {
			if i == 0 || !slices.ContainsFunc(w.Send[:i], func(k *raftpb.Message) bool { return describe(k) == describe(m) }) {
				s.tell("%s", describe(m)) // once, if several are equal
			}
		}
		for _, write := range w.Write {
			if write.Hard != nil {
				s.tell("%d writes %s", n.id, raft.DescribeHardState(write.Hard))
			}
			if at := write.Snapshot.GetMetadata(); at != nil {
				s.tell("%d writes a snapshot of %d/%d", n.id, at.GetTerm(), at.GetIndex())
			}
			for _, e := range write.Entries {
				s.tell("%d writes %s", n.id, raft.DescribeEntry(e, nil))
			}
		}
		for _, a := range w.Apply {
			for _, e := range a.Entries {
				s.tell("%d applies %s", n.id, raft.DescribeEntry(e, nil))
			}
		}
	}
}

func describe(m *raftpb.Message) string { return raft.DescribeMessage(m, nil) }

func (n *node) status() string {
	if n.core == nil {
		return "down"
	}
	lead := n.core.Lead()
	s := fmt.Sprintf("%s of term %d", strings.TrimPrefix(n.core.state.String(), "State"), lead.Term)
	if lead.Leader != 0 && lead.Leader != n.id {
		s += fmt.Sprintf(", %d leads", lead.Leader)
	}
	if n.core.LacksSnapshot() {
		s += ", lacks a snapshot"
	}
	if e := n.core.Lead().Epoch; e != 0 {
		s += fmt.Sprintf(", in epoch %d, %d committed", e, n.core.Committed())
	}
	return s
}
