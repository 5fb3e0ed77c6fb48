package core

import (
	"errors"
	"testing"

	"go.etcd.io/raft/v3/raftpb"
)

// Messages that contradict the committed entries do not reach Raft, which would
// acknowledge entries that it does not have.
func TestContradiction(t *testing.T) {
	sim, leader, others := leads(t, 1, 3, "")
	m := others[0]
	leader.do(0, func() { leader.ask(put) })
	sim.run(sim.now + second)
	at, term := m.core.Applied(), m.core.lead.Term
	message := func(kind raftpb.MessageType, from, to *member, index, logTerm uint64, entries ...*raftpb.Entry) *raftpb.Message {
		return &raftpb.Message{Type: kind.Enum(), From: &from.id, To: &to.id, Term: &term, Index: &index, LogTerm: &logTerm, Entries: entries}
	}
	earlier, other := at.Index-1, at.Term+1
	earlierTerm, err := m.log.Term(earlier)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		at  *member
		msg *raftpb.Message
		bad bool
	}{
		"the last agreed entry":            {m, message(raftpb.MsgApp, leader, m, at.Index, at.Term), false},
		"another one before":               {m, message(raftpb.MsgApp, leader, m, at.Index, other), true},
		"the entries that are there":       {m, message(raftpb.MsgApp, leader, m, earlier, earlierTerm, &raftpb.Entry{Index: &at.Index, Term: &at.Term}), false},
		"another entry":                    {m, message(raftpb.MsgApp, leader, m, earlier, earlierTerm, &raftpb.Entry{Index: &at.Index, Term: &other}), true},
		"what comes later":                 {m, message(raftpb.MsgApp, leader, m, at.Index+7, other), false},
		"acknowledged what the leader has": {leader, message(raftpb.MsgAppResp, m, leader, leader.core.last, 0), false},
		"acknowledged more":                {leader, message(raftpb.MsgAppResp, m, leader, leader.core.last+1, 0), true},
	} {
		if err := test.at.core.checkAgreed(test.msg); errors.Is(err, ErrContradiction) != test.bad {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := m.core.Step(message(raftpb.MsgApp, leader, m, at.Index, other)); !errors.Is(err, ErrContradiction) {
		t.Errorf("the core passes the message to Raft: %v", err)
	}
}
