package core

import (
	"fmt"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/test/seeds"
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// Members whose disks, clocks, processes and networks fail lose nothing that was acknowledged, and
// read nothing that is out of date.
func TestSimulation(t *testing.T) {
	acknowledged, epochs := 0, 0
	seeds.Each(t, 10, func(t *testing.T, seed uint64) {
		w := simulate(t, seed, "")
		acknowledged += w.acknowledged
		epochs += len(w.epochs)
		if w.wrong != "" {
			t.Fatalf("%s\n%v", w.wrong, w)
		}
	})
	t.Logf("%d commands acknowledged, %d epochs", acknowledged, epochs)
}

// Each mistake that is planted is found. A simulation that does not find them proves nothing.
func TestPlanted(t *testing.T) {
	for p, seed := range map[plant]uint64{
		"an append before its sync": 2947118857, "cut at the unsynced mark": 1, "the clock is not carried over": 1,
	} {
		t.Run(string(p), func(t *testing.T) {
			seeds.Find(t, seed, func(t *testing.T, seed uint64) string {
				return found(func() string { return simulate(t, seed, p).wrong })
			})
		})
	}
}

// A member that must not stand for election helps another one to win, and never stands.
func TestTickAsVoter(t *testing.T) {
	_, old, others := leads(t, 1, 3, "")
	w, voter := old.w, others[1]
	voter.voter = true
	old.crash(false)
	w.run(w.now + 3*second)
	if others[0].core.state != raft.StateLeader {
		t.Fatalf("nobody leads: %v", w)
	}
	others[0].crash(false)
	term := voter.core.term
	w.run(w.now + 5*second)
	if voter.core.state != raft.StateFollower || voter.core.term != term || voter.core.lead != 0 {
		t.Errorf("the voter is %v of term %d, led by %d; it was in term %d", voter.core.state, voter.core.term, voter.core.lead, term)
	}
}

// found returns what a run with a mistake shows; a panic of Raft is a find, too.
func found(run func() string) (wrong string) {
	defer func() {
		if r := recover(); r != nil {
			wrong = fmt.Sprint("panic: ", r)
		}
	}()
	return run()
}

// A member that answers a late message of an earlier term says in which term it is. That acknowledges nothing, not even that its log is
// empty.
func TestAnswerSaysOnlyTerm(t *testing.T) {
	w, leader, others := leads(t, 1, 3, "")
	next, other := others[0], others[1]
	w.cut[[2]int{int(other.id), int(next.id)}] = true // it does not acknowledge the first entry of the term
	leader.do(0, func() { leader.core.Transfer(next.id) })
	w.run(w.now + second)
	if next.epoch == 0 {
		t.Fatal("it does not lead")
	}
	before := next.core.Status().Progress[other.id]
	_, term := next.core.Leader()
	late := term - 1
	var answer *raftpb.Message
	other.core.Step(&raftpb.Message{Type: raftpb.MsgApp.Enum(), From: &next.id, To: &other.id, Term: &late})
	for _, write := range other.core.Work().Write {
		answer = write.Responses[len(write.Responses)-1]
	}
	if answer == nil || answer.GetTo() != next.id {
		t.Fatalf("the answer is %v", answer)
	}
	next.core.Step(answer)
	if after := next.core.Status().Progress[other.id]; after.Next != before.Next || after.State != before.State {
		t.Errorf("the leader takes %v for what the member has, and %v before", after, before)
	}
}
